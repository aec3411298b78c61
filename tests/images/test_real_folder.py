"""The photographs of the Paris subset, where they are: what was added, removed and renamed is touched, nothing else."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import manifind
from images.painted import NOTHING
from manifind.model.index_folder import index_folder

pytestmark = pytest.mark.skipif(
    not os.environ.get("MANIFIND_DATA"), reason="MANIFIND_DATA names no folder with paris1274/images"
)
FEW = {"n_neighbors": 10, "max_steps": 2}


def test_a_hundred_added_fifty_removed_and_twenty_renamed_touches_exactly_those(tmp_path):
    source = Path(os.environ["MANIFIND_DATA"]) / "paris1274" / "images"
    if not source.is_dir():
        pytest.skip("MANIFIND_DATA has no paris1274/images")
    files = sorted(source.glob("*.jpg"))
    folder, path = tmp_path / "photos", tmp_path / "c"
    folder.mkdir()
    for file in files[100:]:
        shutil.copy(file, folder)
    index_folder(folder, path, "pixels", FEW)
    before = manifind.load(path)
    kept = dict(zip(before.ids.tolist(), before.metadata(before.ids), strict=True))
    for file in files[:100]:
        shutil.copy(file, folder)
    gone, renamed = files[100:150], files[150:170]
    for file in gone:
        (folder / file.name).unlink()
    (folder / "elsewhere").mkdir()
    for file in renamed:
        (folder / file.name).rename(folder / "elsewhere" / f"renamed {file.name}")
    expected = {**NOTHING, "added": 100, "removed": 50, "moved": 20, "unchanged": len(files) - 170}
    assert index_folder(folder, path, dry_run=True).counts == expected
    assert len(manifind.load(path)) == len(files) - 100
    assert index_folder(folder, path).counts == expected
    after = manifind.load(path)
    assert set(after.ids) == set(kept) - {file.name for file in gone} | {file.name for file in files[:100]}
    for id_, metadata_of in zip(after.ids.tolist(), after.metadata(after.ids), strict=True):
        if id_ in {file.name for file in renamed}:
            assert metadata_of == {**kept[id_], "path": f"elsewhere/renamed {id_}"}
        elif id_ in kept:
            assert metadata_of == kept[id_]
    still = [id_ for id_ in kept if id_ in after]
    np.testing.assert_array_equal(features_of(after, still), features_of(before, still))


def features_of(collection, ids):
    place = {id_: row for row, id_ in enumerate(collection.ids.tolist())}
    return collection.features[[place[id_] for id_ in ids]]
