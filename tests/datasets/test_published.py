"""ORL, COIL-20 and MPEG-7 as they are published, wherever in their folder an archive put them."""

import numpy as np
import pytest

from manifind.datasets.labelled import load_labelled_set
from manifind.errors import DataError


def only(name, root):
    (labelled,) = load_labelled_set(name, root)
    assert labelled.name == "pixels"
    return labelled


@pytest.mark.parametrize("inside", ["", "pictures", "pictures/orl_faces", "a/b/c"])
def test_orl_is_found_in_any_folder(tmp_path, draw, inside):
    folder = tmp_path / "orl" / inside
    drawn = {name: draw(folder / name, (92, 112)) for name in ("s10/1.pgm", "s2/10.pgm", "s2/9.pgm", "s1/1.PGM")}
    (folder / "README").write_text("the Olivetti faces")
    labelled = only("orl", tmp_path)
    assert labelled.names == ("s1/1.PGM", "s2/9.pgm", "s2/10.pgm", "s10/1.pgm")
    assert labelled.classes == ("s1", "s2", "s10")
    assert labelled.labels.tolist() == [0, 1, 1, 2]
    np.testing.assert_array_equal(labelled.descriptors[2], drawn["s2/10.pgm"].ravel())
    assert labelled.descriptors.shape == (4, 10304)


def test_coil_is_labelled_by_object(tmp_path, draw):
    folder = tmp_path / "coil20" / "pictures" / "coil-20-proc"
    for name in ("obj10__0", "obj2__71", "obj2__8", "obj1__0"):
        draw(folder / f"{name}.png", (128, 128))
    (folder / "obj1__0.txt").write_text("")
    labelled = only("coil20", tmp_path)
    assert labelled.names == ("obj1__0.png", "obj2__8.png", "obj2__71.png", "obj10__0.png")
    assert labelled.classes == ("obj1", "obj2", "obj10")
    assert labelled.labels.tolist() == [0, 1, 1, 2]
    assert labelled.descriptors.shape == (4, 128 * 128)


def test_mpeg7_is_labelled_by_what_stands_before_the_number(tmp_path, draw):
    folder = tmp_path / "mpeg7" / "pictures" / "original"
    sizes = {"apple-1": (40, 30), "apple-10": (30, 40), "apple-2": (5, 5), "cellular_phone-1": (300, 200)}
    for name, size in {**sizes, "device0-1": (9, 9), "sea-snake-1": (9, 9)}.items():
        draw(folder / f"{name}.gif", size)
    labelled = only("mpeg7", tmp_path)
    assert labelled.names[:3] == ("apple-1.gif", "apple-2.gif", "apple-10.gif")
    assert labelled.classes == ("apple", "cellular_phone", "device0", "sea-snake")
    assert labelled.labels.tolist() == [0, 0, 0, 1, 2, 3]
    assert labelled.descriptors.shape == (6, 1024)


def test_mpeg7_leaves_out_the_figures_and_the_second_copy_of_a_rat(tmp_path, draw):
    folder = tmp_path / "mpeg7" / "original"
    for name in ("rat-9", "rat-09", "confusions", "shapedata"):
        draw(folder / f"{name}.gif")
    (folder / "confusions.fig").write_text("")
    assert only("mpeg7", tmp_path).names == ("rat-9.gif",)


@pytest.mark.parametrize("second", ["copy", "."])
def test_pictures_in_two_places_are_refused_with_both(tmp_path, draw, second):
    for place in ("pictures", second):
        draw(tmp_path / "coil20" / place / "obj1__0.png")
    with pytest.raises(DataError, match="the pictures of coil20 lie in 2 folders") as caught:
        load_labelled_set("coil20", tmp_path)
    assert str(tmp_path / "coil20" / "pictures") in caught.value.problem


def test_hidden_folders_and_files_are_not_looked_into(tmp_path, draw):
    draw(tmp_path / "coil20" / ".pictures.wrong" / "obj1__0.png")
    draw(tmp_path / "coil20" / "__MACOSX" / "._obj1__0.png")
    with pytest.raises(DataError, match="neither"):
        load_labelled_set("coil20", tmp_path)
