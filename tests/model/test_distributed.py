"""Two processes that fit together: the same steps in both, scores like those of one, and an end when one is gone."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

import manifind
from manifind.errors import InputError
from manifind.index.fit_context import ALONE, ProcessGroup
from manifind.model.distributed import join_process_group

pytestmark = pytest.mark.long


FIT = """
import sys, numpy as np, manifind
X = np.load(sys.argv[1])
model = manifind.GradNet(max_steps=40, layers=(32, 16), random_state=0).fit(X)
weights = model._weights["layers.0.W1"]
np.savez(sys.argv[2] + sys.argv[3], features=model.features_, losses=model.loss_curve_, weights=weights)
"""
GOING = """
import os, sys, numpy as np, manifind
def heard(progress):
    if progress.stage == "training" and progress.done == 3 and os.environ["RANK"] == "1":
        raise manifind.InputError("this process has had enough", "nothing to be done")
manifind.GradNet(max_steps=40, layers=(32, 16), random_state=0).fit(np.load(sys.argv[1]), listener=heard)
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def together(code, *arguments):
    """Two processes with the same code; what each printed, and how it ended."""
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments), str(rank)],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    return [(process.communicate(timeout=240)[1], process.returncode) for process in started]


def precision(features, labels):
    similarity = features @ features.T
    np.fill_diagonal(similarity, -2)
    nearest = np.argsort(-similarity, axis=1)[:, :10]
    return float((labels[nearest] == labels[:, None]).mean())


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    X, y = load_digits(return_X_y=True)
    file = tmp_path_factory.mktemp("ranks") / "X.npy"
    np.save(file, X[:600].astype(np.float32))
    return file, y[:600]


def test_two_processes_take_the_same_steps_and_learn_as_well_as_one(digits, tmp_path):
    file, labels = digits
    ended = together(FIT, file, tmp_path / "rank")
    assert [code for _, code in ended] == [0, 0], ended
    a, b = (np.load(tmp_path / f"rank{rank}.npz") for rank in range(2))
    np.testing.assert_array_equal(a["losses"], b["losses"])
    np.testing.assert_array_equal(a["weights"], b["weights"])
    np.testing.assert_array_equal(a["features"], b["features"])
    alone = manifind.GradNet(max_steps=40, layers=(32, 16), random_state=0).fit(np.load(file))
    assert abs(precision(a["features"], labels) - precision(alone.features_, labels)) < 0.01
    assert not np.array_equal(a["losses"], alone.loss_curve_)


def test_when_one_is_gone_the_other_says_so_and_ends(digits):
    (reported, code), (_, other) = together(GOING, digits[0])
    assert code != 0
    assert other != 0
    assert "another of the processes that fit together is gone" in reported


def test_torchrun_makes_a_collection_as_one_process_would(digits, tmp_path):
    file, _ = digits
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        str(free_port()),
    ]
    command += ["-m", "manifind", "index", str(file), str(tmp_path / "c"), "--max-steps", "5", "--json"]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["processes"] == 2
    assert len(manifind.load(tmp_path / "c", verify=True)) == 600


def test_what_several_cannot_do_is_refused(digits, tmp_path, monkeypatch, command_line):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "is a folder of pictures" in command_line("index", tmp_path, tmp_path / "c")
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(InputError, match="WORLD_SIZE = 'many'"):
        join_process_group("cpu")


@pytest.fixture
def command_line():
    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "manifind", *map(str, arguments)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        return done.stderr

    return run


def test_a_process_alone_is_what_it_was(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert join_process_group("cpu") is ALONE
    assert ALONE.seed(7) == 7
    assert ALONE.share(64) == 64


def test_shares_and_seeds_differ_between_processes():
    three = [ProcessGroup(rank, 3) for rank in range(3)]
    assert [one.share(64) for one in three] == [22, 22, 22]
    assert len({one.seed(5) for one in three}) == 3
