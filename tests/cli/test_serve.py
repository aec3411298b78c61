"""`manifind serve` as a program: it says where it listens, answers, and ends when asked to."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest


@contextmanager
def served(path, files=1024):
    """A process that serves a collection and may open some files, and its address."""
    limited = ["sh", "-c", 'ulimit -n $0; exec "$@"', str(files)]
    command = [*limited, sys.executable, "-m", "manifind", "serve", str(path), "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "MANIFIND_TOKEN"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**environment, "COLUMNS": "200"}) as process:
        try:
            yield process, process.stdout.readline().split(" at ")[1].strip()
        finally:
            process.kill()


@pytest.fixture
def server(named):
    with served(named) as one:
        yield one


def asked(address):
    """Status and content of an answer."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_it_says_where_it_listens_and_answers_until_it_is_interrupted(server):
    process, address = server
    assert address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(f"{address}api/v1/collection") as answer:
        assert json.load(answer)["items"] > 0
    process.send_signal(signal.SIGINT)
    assert process.wait(20) in (0, 130)


@pytest.mark.parametrize("role", ["features", "descriptors"])
def test_a_segment_that_is_cut_off_is_named_and_the_server_goes_on(named, tmp_path, role):
    path = shutil.copytree(named, tmp_path / "c")
    (segment,) = (path / "segments").glob(f"{role}-*.npy")
    search = "api/v1/search?id=cat%2007"
    with served(path) as (process, address):
        assert asked(f"{address}{search}")[0] == 200
        os.truncate(segment, 0)
        for question in (search, f"{search}&method=knn", "api/v1/compare?id=cat%2007", "api/v1/collection"):
            status, reported = asked(f"{address}{question}")
            assert status == 409, question
            assert f"{segment.name} is damaged: it has 0 bytes" in reported["error"]
            assert "backup" in reported["hint"]
        assert asked(f"{address}healthz") == (200, {"status": "ok"})
        assert process.poll() is None


def test_three_hundred_silent_connections_do_not_use_up_256_files(named):
    with served(named, files=256) as (_, address), ExitStack() as stack:
        parts = urlsplit(address)
        for _ in range(300):
            stack.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=60))
        for _ in range(5):
            assert asked(f"{address}healthz")[0] == 200
            assert asked(f"{address}api/v1/search?id=cat%2007")[0] == 200


def test_a_head_of_a_megabyte_is_refused_by_the_parser_that_is_installed(server):
    _, address = server
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"a" * (64 << 10))
        with suppress(ConnectionError):
            raw.sendall(b"a" * (1 << 20) + b"\r\n\r\n")
        with suppress(ConnectionError):
            assert raw.recv(100).startswith(b"HTTP/1.1 431 ")
    assert asked(f"{address}healthz")[0] == 200


def test_mistakes_are_told_before_it_listens(refused, named, tmp_path, monkeypatch):
    monkeypatch.delenv("MANIFIND_TOKEN", raising=False)
    problem, hint = refused("serve", tmp_path / "none")
    assert "none" in problem
    problem, hint = refused("serve", named, "--host", "0.0.0.0")
    assert "a token is needed" in problem
    assert "MANIFIND_TOKEN" in hint
    problem, _ = refused("serve", named, "--host", "192.0.2.77", "--token-file", tmp_path / "none")
    assert "cannot be read" in problem
    monkeypatch.setenv("MANIFIND_TOKEN", "a-token-of-many-characters")
    problem, _ = refused("serve", named, "--host", "192.0.2.77")
    assert "cannot listen on 192.0.2.77" in problem
    assert "a-token-of-many" not in problem


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "uvloop", "httptools"])
def test_without_the_extra_it_says_what_to_install(named, missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from manifind.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "serve", named], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"needs {missing}" in done.stderr
    assert 'pip install "manifind[web]"' in done.stderr
