"""A file whose parser crashes, hangs or swells is refused, and costs that file alone: with the children users have."""

import os
import pickle
import sys

import numpy as np
import pytest

from manifind.errors import FileFormatError
from manifind.io import checks
from manifind.io.ground_truth import read_ground_truth
from manifind.io.vectors import read_vectors
from manifind.worker import Worker
from reference.files import DOUBLE, array, by_hand, element, mat5

X = np.arange(12, dtype=np.float32).reshape(4, 3)
PARSERS = """
import os, time
def crashes(path): os.kill(os.getpid(), 11)
def hangs(path): time.sleep(1000)
def swells(path): bytearray(1 << 40)
def fails(path): raise OSError("the library gives up")
"""


@pytest.fixture(autouse=True)
def own_child(monkeypatch):
    monkeypatch.setattr(checks, "Worker", Worker)


@pytest.mark.parametrize(
    ("parser", "reason"),
    [
        ("crashes", "the parser crashes: its process was ended by SIGSEGV"),
        ("hangs", "stopped after 3 s, the time limit"),
        ("swells", "ran out of memory"),
        ("fails", "OSError: the library gives up"),
    ],
)
def test_a_parser_that_does_not_come_back_makes_the_file_a_damaged_one(fresh, monkeypatch, tmp_path, parser, reason):
    (tmp_path / "parsers.py").write_text(PARSERS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    monkeypatch.setattr(checks, "_SECONDS", 3)
    path = fresh(".mat", b"content")
    with pytest.raises(FileFormatError) as caught:
        checks.parse_in_child(f"parsers:{parser}", path, "a MATLAB file")
    assert f"{path} cannot be read as a MATLAB file: {reason}" in caught.value.problem
    assert caught.value.hint


def test_a_file_from_which_scipy_crashes_is_refused_and_the_next_one_read(fresh):
    with pytest.raises(FileFormatError, match="crashes: its process was ended by SIGSEGV"):
        read_vectors(fresh(".mat", by_hand(array("X", DOUBLE, (2, 3), element(8, bytes(48))))))
    np.testing.assert_array_equal(read_vectors(mat5(fresh(".mat"), X=X.T)).rows, X)


def test_a_pickle_is_read_in_a_child_too(fresh):
    content = {"gnd": [{"ok": [1, 0], "junk": []}], "imlist": ["a", "b"]}
    truth = read_ground_truth(fresh(".pkl", pickle.dumps(content)))
    assert [one.tolist() for one in truth.lists["ok"]] == [[0, 1]]
    assert truth.images == ("a", "b")
