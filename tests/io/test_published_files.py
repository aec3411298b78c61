"""The published files themselves, where they are at hand: every format says the same."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from manifind.io.ground_truth import read_ground_truth

FOLDER = os.environ.get("MANIFIND_DATA", "")

pytestmark = [pytest.mark.data, pytest.mark.skipif(not FOLDER, reason="MANIFIND_DATA is not set")]


def read(name):
    path = Path(FOLDER) / name
    if not path.exists():
        pytest.skip(f"MANIFIND_DATA has no {name}")
    return read_ground_truth(path)


def assert_same(first, second):
    assert first.images == second.images
    assert first.queries == second.queries
    assert list(first.lists) == list(second.lists)
    for name, lists in first.lists.items():
        for ours, theirs in zip(lists, second.lists[name], strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("suffix", [".pkl", ".mat"])
def test_roxford5k_is_the_same_in_every_format(suffix):
    assert_same(read(f"oxford5k/gnd_roxford5k{suffix}"), read("oxford5k/gnd_roxford5k.json"))


def test_rparis6k_is_the_same_in_both_formats():
    assert_same(read("paris1274/gnd_rparis6k.pkl"), read("paris1274/gnd_rparis6k.json"))


@pytest.mark.parametrize(
    ("name", "images", "queries", "entries"),
    [
        ("oxford5k/gnd_oxford5k.json", 5063, 55, {"ok": 2840, "junk": 1495}),
        ("oxford5k/gnd_roxford5k.json", 4993, 70, {"easy": 3029, "hard": 2497, "junk": 1356}),
        ("paris1274/gnd_paris6k.json", 6392, 55, {"ok": 8955, "junk": 8245}),
        ("paris1274/gnd_rparis6k.json", 6322, 70, {"easy": 6874, "hard": 10350, "junk": 7153}),
    ],
)
def test_the_published_lists_are_complete(name, images, queries, entries):
    truth = read(name)
    assert len(truth.images) == images
    assert len(truth.queries) == truth.n_queries == queries
    assert {name: sum(map(len, lists)) for name, lists in truth.lists.items()} == entries


def test_the_readers_of_matlab_5_agree():
    """Ours and SciPy's, on the one file that MATLAB itself wrote."""
    scipy_io = pytest.importorskip("scipy.io")
    ours = read("oxford5k/gnd_roxford5k.mat")
    theirs = scipy_io.loadmat(Path(FOLDER) / "oxford5k/gnd_roxford5k.mat", squeeze_me=True)
    assert list(ours.images) == theirs["imlist"].tolist()
    assert list(ours.queries) == theirs["qimlist"].tolist()
    for name, lists in ours.lists.items():
        for mine, other in zip(lists, theirs["gnd"][name], strict=True):
            assert mine.tolist() == sorted(np.atleast_1d(other) - 1)
