"""`gradnet serve` as a program: it says where it listens, answers, and ends when asked to."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest


@pytest.fixture
def server(named):
    """A process that serves a collection, and the first line that it prints."""
    command = [sys.executable, "-m", "gradnet", "serve", str(named), "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "GRADNET_TOKEN"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**environment, "COLUMNS": "200"}
    ) as process:
        yield process, process.stdout.readline()
        process.kill()


def test_it_says_where_it_listens_and_answers_until_it_is_interrupted(server):
    process, line = server
    address = line.split(" at ")[1].strip()
    assert address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(f"{address}api/v1/collection") as answer:
        assert json.load(answer)["items"] > 0
    process.send_signal(signal.SIGINT)
    assert process.wait(20) in (0, 130)


def test_mistakes_are_told_before_it_listens(refused, named, tmp_path, monkeypatch):
    monkeypatch.delenv("GRADNET_TOKEN", raising=False)
    problem, hint = refused("serve", tmp_path / "none")
    assert "none" in problem
    problem, hint = refused("serve", named, "--host", "0.0.0.0")
    assert "a token is needed" in problem
    assert "GRADNET_TOKEN" in hint
    problem, _ = refused("serve", named, "--host", "192.0.2.77", "--token-file", tmp_path / "none")
    assert "cannot be read" in problem
    monkeypatch.setenv("GRADNET_TOKEN", "a-token-of-many-characters")
    problem, _ = refused("serve", named, "--host", "192.0.2.77")
    assert "cannot listen on 192.0.2.77" in problem
    assert "a-token-of-many" not in problem


def test_without_the_extra_it_says_what_to_install(refused, named, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    _, hint = refused("serve", named)
    assert 'pip install "gradnet[web]"' in hint
