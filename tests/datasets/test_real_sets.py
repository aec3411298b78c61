"""The real sets, where they are: what the catalogue says of them is true of what is read."""

import os
from pathlib import Path

import numpy as np
import pytest

from manifind.datasets.catalogue import CATALOGUE
from manifind.datasets.check import check_files
from manifind.datasets.labelled import load_labelled_set

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("MANIFIND_DATA"), reason="MANIFIND_DATA names no folder"),
]

SETS = {
    "orl": {"orl_112x92: images": (400, 10304, "uint8"), "orl_aligned_32x32: images": (400, 1024, "uint8")},
    "mpeg7": {"mpeg7: masks": (1400, 1024, "uint8"), "mpeg7: efficientnet_lite0_gem": (1400, 1280, "float16")},
    "coil20": {"coil20_32x32: images": (1440, 1024, "uint8")},
}
CLASSES = {"orl": (40, 10), "mpeg7": (70, 20), "coil20": (20, 72)}


@pytest.fixture(params=SETS)
def name(request):
    if not (Path(os.environ["MANIFIND_DATA"]) / request.param).is_dir():
        pytest.skip(f"{request.param} is not in the folder that MANIFIND_DATA names")
    return request.param


def test_a_labelled_set_has_the_items_and_classes_that_the_catalogue_says(name):
    sets = load_labelled_set(name, Path(os.environ["MANIFIND_DATA"]))
    shapes = {one.name: (*one.descriptors.shape, str(one.descriptors.dtype)) for one in sets}
    assert shapes == SETS[name]
    for one in sets:
        assert len(one.labels) == CATALOGUE[name].items
        assert np.bincount(one.labels).tolist() == [CLASSES[name][1]] * CLASSES[name][0]
        assert len(one.classes) == CLASSES[name][0]
        assert len(set(one.names)) == len(one.names)


def test_the_names_of_mpeg7_tell_the_class():
    root = Path(os.environ["MANIFIND_DATA"])
    if not (root / "mpeg7" / "mpeg7.npz").is_file():
        pytest.skip("mpeg7.npz is not in the folder that MANIFIND_DATA names")
    shapes = load_labelled_set("mpeg7", root)[0]
    assert len({(name.rsplit("-", 1)[0], label) for name, label in zip(shapes.names, shapes.labels, strict=True)}) == 70


def test_a_labelled_set_is_usable_as_it_lies_there(name):
    assert check_files(CATALOGUE[name], Path(os.environ["MANIFIND_DATA"])).is_usable


@pytest.mark.parametrize(
    ("folder", "file"),
    [("oxford5k", "gnd_roxford5k.pkl"), ("oxford5k", "gnd_roxford5k.mat"), ("paris1274", "gnd_rparis6k.pkl")],
)
def test_the_published_originals_have_the_digests_of_the_catalogue(folder, file, tmp_path):
    source = Path(os.environ["MANIFIND_DATA"]) / folder / file
    if not source.is_file():
        pytest.skip(f"{file} is not in the folder that MANIFIND_DATA names")
    name = file.removeprefix("gnd_").rsplit(".", 1)[0]
    (tmp_path / name).mkdir()
    (tmp_path / name / file).write_bytes(source.read_bytes())
    states = {one.file.path: one for one in check_files(CATALOGUE[name], tmp_path).files}
    assert states[file].state == "matches what was published"
    assert states[file].file.size == source.stat().st_size
