"""Thousands of damaged and hostile files: the run ends, every one is accounted for, and memory stays bounded."""

import resource

import pytest

import manifind
from images.hostile import bombs, mutated, picture_bytes, write_hostile
from images.painted import paint_many
from manifind.images.decode import MOST_MEMORY
from manifind.model.index_folder import index_folder

SMALL = {"n_neighbors": 3, "layers": (8, 4), "max_steps": 2, "batch_size": 8}
_GROWTH = 400 << 10  # kB that the process itself may grow by, whatever the files claim


@pytest.mark.parametrize("n", [150, pytest.param(2000, marks=pytest.mark.endurance)])
def test_every_hostile_file_is_described_or_listed(tmp_path, n):
    folder = paint_many(tmp_path / "photos")
    names = [f"hostile/{name}" for name in write_hostile(folder / "hostile", n)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = index_folder(folder, tmp_path / "c", "pixels", SMALL)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    listed = dict(outcome.problems)
    collection = manifind.load(tmp_path / "c")
    for name in names:
        assert (name in collection) != (name in listed), name
    assert len(listed) + len(collection) == n + 20
    assert len(listed) > n // 4
    assert all(f"hostile/{name}" in listed for name in ("square.png", "wide.bmp", "page.jpg", "postscript.jpg"))
    assert all(f"{place}.png" in collection for place in ("north/01", "south/18"))
    assert grown < _GROWTH
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10 <= MOST_MEMORY


def test_the_files_are_hostile_in_many_ways():
    assert len(bombs()) > 10
    good = picture_bytes("PNG", 0)
    changed = {mutated(good, seed) for seed in range(60)}
    assert len(changed) > 50
    assert good not in changed
