"""Labelled sets in every form: folders of pictures, tables, arrays; and what is wrong with those that are refused."""

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from manifind.datasets.labelled import load_labelled_set, read_labelled
from manifind.errors import DataError, FileFormatError, InputError

PIXELS = (3, 4)


@pytest.fixture
def refused():
    """The problem with which a source is refused; the hint is never empty."""

    def read(source):
        with pytest.raises(FileFormatError) as caught:
            read_labelled(source)
        assert str(source) in caught.value.problem
        assert caught.value.hint
        assert len(str(caught.value)) < 1500
        return caught.value.problem

    return read


def orl(folder, draw, people=(1, 2, 10), pictures=(1, 2, 10)):
    """Pictures as ORL has them, written in no particular order."""
    return {
        f"s{person}/{number}.pgm": draw(folder / f"s{person}" / f"{number}.pgm")
        for person in reversed(people)
        for number in reversed(pictures)
    }


def test_a_folder_of_folders_is_read_in_natural_order(draw, tmp_path):
    drawn = orl(tmp_path, draw)
    (labelled,) = read_labelled(tmp_path)
    assert labelled.name == "pixels"
    assert labelled.classes == ("s1", "s2", "s10")
    assert labelled.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert labelled.names == tuple(f"s{person}/{number}.pgm" for person in (1, 2, 10) for number in (1, 2, 10))
    for name, row in zip(labelled.names, labelled.descriptors, strict=True):
        np.testing.assert_array_equal(row, drawn[name].ravel())


def test_hidden_files_and_those_that_are_no_pictures_are_left_out(draw, tmp_path):
    orl(tmp_path, draw, (1, 2), (1,))
    for name in ("README", "s1/Thumbs.db", "s1/.DS_Store", "s2/._1.pgm", ".hidden/1.pgm", "s1/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("not a picture")
    (labelled,) = read_labelled(tmp_path)
    assert labelled.names == ("s1/1.pgm", "s2/1.pgm")


def test_a_file_with_a_pictures_suffix_must_be_one(draw, tmp_path):
    orl(tmp_path, draw)
    (tmp_path / "s2" / "3.pgm").write_text("not a picture")
    with pytest.raises(FileFormatError, match=r"s2/3\.pgm is not a picture of a known kind"):
        read_labelled(tmp_path)


def test_one_class_and_classes_of_one_picture_are_allowed(draw, tmp_path):
    orl(tmp_path, draw, (1,), (1,))
    (labelled,) = read_labelled(tmp_path)
    assert labelled.descriptors.shape == (1, 12)
    assert labelled.classes == ("s1",)


def test_an_empty_folder_is_refused(tmp_path, refused):
    assert "has no folder in it; expected one folder for each class" in refused(tmp_path)


def test_a_class_without_pictures_is_refused_by_name(draw, tmp_path):
    orl(tmp_path, draw)
    (tmp_path / "s3").mkdir()
    (tmp_path / "s3" / "README").write_text("to come")
    with pytest.raises(FileFormatError, match="s3 has no picture in it"):
        read_labelled(tmp_path)


def test_a_picture_that_lies_in_no_class_is_refused_by_name(draw, tmp_path, refused):
    orl(tmp_path, draw)
    draw(tmp_path / "all.png")
    assert "has the picture all.png in no class" in refused(tmp_path)


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".TSV", "\t")])
def test_a_table_names_pictures_anywhere_beside_it(draw, tmp_path, suffix, delimiter):
    drawn = [draw(tmp_path / "set" / "a.png"), draw(tmp_path / "b.png"), draw(tmp_path / "set" / "deep" / "c.png")]
    rows = [["a.png", "x", "cat 10"], [str(tmp_path / "b.png"), "y", "cat 9"], ["deep/c.png", "", "cat 10"]]
    table = tmp_path / "set" / f"table{suffix}"
    lines = [["File", "other", " label "], *rows]
    table.write_text("\ufeff" + "\r\n".join(delimiter.join(line) for line in lines) + "\r\n\r\n", encoding="utf-8")
    (labelled,) = read_labelled(table)
    assert labelled.name == "pixels"
    assert labelled.classes == ("cat 9", "cat 10")
    assert labelled.labels.tolist() == [1, 0, 1]
    assert labelled.names == tuple(row[0] for row in rows)
    np.testing.assert_array_equal(labelled.descriptors, np.stack(drawn).reshape(3, -1))


_CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).map(str.strip).filter(bool)


@given(labels=st.lists(_CELLS, min_size=1, max_size=6))
@settings(max_examples=40)
def test_any_text_can_be_a_label_in_a_table(tmp_path_factory, labels):
    folder = tmp_path_factory.mktemp("table")
    (folder / "a.pgm").write_bytes(b"P5 1 1 255\n\7")
    with (folder / "t.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["label", "file"], *([label, "a.pgm"] for label in labels)])
    (labelled,) = read_labelled(folder / "t.csv")
    assert [labelled.classes[label] for label in labelled.labels] == labels
    assert labelled.descriptors.tolist() == [[7]] * len(labels)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a.png,cat\n", "starts with the columns a.png, cat; expected `label` and `file`"),
        ("file,class\na.png,cat\n", "starts with the columns file, class; expected"),
        ("file,label,label\na.png,cat,dog\n", "each once"),
        ("file,label\n", "has a header only"),
        ("\n\n", "starts with the columns none"),
        ("file,label\na.png\n", "line 2 has no label"),
        ("file,label\na.png,cat\n ,cat\n", "line 3 has no file"),
        ('file,label\n"a.png,cat\n', "near line 2"),
        (b"file,label\n\xff,cat\n", "near line"),
    ],
)
def test_a_table_with_a_mistake_is_refused_with_its_place(tmp_path, refused, text, problem):
    table = tmp_path / "t.csv"
    table.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert problem in refused(table)


def test_a_picture_that_the_table_names_and_that_is_missing_is_named(draw, tmp_path):
    draw(tmp_path / "a.png")
    (tmp_path / "t.csv").write_text("file,label\na.png,cat\nb.png,cat\n")
    with pytest.raises(FileFormatError, match=r"b\.png does not exist"):
        read_labelled(tmp_path / "t.csv")


def saved(path, **named):
    np.savez(path, **named)
    return path


def test_every_array_of_as_many_rows_is_a_set_of_its_own(tmp_path):
    generator = np.random.default_rng(0)
    named = {
        "masks": generator.integers(0, 9, (4, 3, 2), dtype=np.uint8),
        "gem": generator.normal(size=(4, 5)).astype(np.float16),
        "colours": generator.integers(0, 9, (4, 3, 2, 3), dtype=np.int16),
        "flags": np.eye(4, dtype=bool),
    }
    others = {"boxes": np.ones((5, 2)), "scale": np.float32(3), "years": np.arange(4), "words": np.array(["a"] * 4)}
    path = saved(tmp_path / "mine.npz", **named, **others, labels=np.array(["b", "a", "b", "a10"]))
    sets = read_labelled(path)
    assert [one.name for one in sets] == ["mine: masks", "mine: gem", "mine: colours", "mine: flags"]
    for one, array in zip(sets, named.values(), strict=True):
        assert one.descriptors.dtype == array.dtype
        np.testing.assert_array_equal(one.descriptors, array.reshape(4, -1))
        assert one.labels.tolist() == [2, 0, 2, 1]
        assert one.classes == ("a", "a10", "b")
        assert one.names == ("0", "1", "2", "3")


@given(labels=st.one_of(arrays.arrays(kind, st.integers(1, 6)) for kind in ("int8", ">i4", "uint64", "bool", "int64")))
@settings(max_examples=40)
def test_whole_numbers_of_any_kind_are_labels(tmp_path_factory, labels):
    path = saved(tmp_path_factory.mktemp("npz") / "a.npz", X=np.ones((len(labels), 2)), labels=labels)
    (labelled,) = read_labelled(path)
    assert [labelled.classes[label] for label in labelled.labels] == [str(value) for value in labels.tolist()]
    assert list(labelled.classes) == [str(value) for value in sorted(set(labels.tolist()))]


@given(
    labels=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=1)
)
@settings(max_examples=40)
def test_texts_of_any_kind_are_labels(tmp_path_factory, labels):
    path = saved(tmp_path_factory.mktemp("npz") / "a.npz", X=np.ones((len(labels), 2)), labels=np.array(labels))
    (labelled,) = read_labelled(path)
    assert [labelled.classes[label] for label in labelled.labels] == labels


@pytest.mark.parametrize("key", ["names", "ids"])
def test_names_are_taken_from_the_file(tmp_path, key):
    path = saved(tmp_path / "a.npz", X=np.ones((2, 2)), labels=[0, 1], **{key: np.array(["é", "b"])})
    assert read_labelled(path)[0].names == ("é", "b")
    path = saved(tmp_path / "b.npz", X=np.ones((2, 2)), labels=[0, 1], **{key: np.array([7, 9])})
    assert read_labelled(path)[0].names == ("7", "9")


def test_descriptors_with_nan_are_read_as_they_are(tmp_path):
    path = saved(tmp_path / "a.npz", X=np.full((2, 2), np.nan), labels=[0, 1])
    assert np.isnan(read_labelled(path)[0].descriptors).all()


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ({"X": np.ones((3, 2))}, "has no array called labels; it has X"),
        ({}, "has no array called labels; it has none at all"),
        (
            {"X": np.ones((3, 2)), "labels": np.arange(4)},
            r"has 4 labels but no array of 4 rows; its arrays are X (3, 2)",
        ),
        ({"X": np.ones((3, 2)), "labels": np.ones((3, 1), dtype=int)}, "has shape (3, 1); expected (n,)"),
        ({"X": np.ones((0, 2)), "labels": np.ones(0, dtype=int)}, "has shape (0,); expected (n,)"),
        ({"X": np.ones((3, 0)), "labels": np.arange(3)}, "no array of 3 rows"),
        ({"X": np.ones((3, 2)), "labels": np.ones(3)}, "'<f8'; expected whole numbers or strings"),
        ({"X": np.ones((2, 2)), "labels": np.array(["a", None])}, "holds Python objects"),
        ({"X": np.ones((2, 2)), "labels": np.array(["a", ""])}, "has an empty label for item 1"),
    ],
)
def test_arrays_with_a_mistake_are_refused(tmp_path, refused, named, problem):
    assert problem in refused(saved(tmp_path / "a.npz", **named))


def test_a_pickled_array_that_nobody_asks_for_is_not_opened(tmp_path):
    path = saved(tmp_path / "a.npz", X=np.ones((2, 2)), labels=[0, 1], meta=np.array([[{}], [{}]], dtype=object))
    assert [one.name for one in read_labelled(path)] == ["a: X"]


def test_all_npz_files_of_a_folder_are_read_in_natural_order(tmp_path, draw):
    for name in ("set10", "set9", ".hidden"):
        saved(tmp_path / f"{name}.npz", X=np.ones((2, 2)), labels=[0, 1])
    draw(tmp_path / "plots" / "figure.png")
    assert [one.name for one in read_labelled(tmp_path)] == ["set9: X", "set10: X"]


def test_one_npz_file_without_labels_is_named(tmp_path):
    saved(tmp_path / "a.npz", X=np.ones((2, 2)), labels=[0, 1])
    saved(tmp_path / "b.npz", X=np.ones((2, 2)))
    with pytest.raises(FileFormatError, match=r"b\.npz has no array called labels"):
        read_labelled(tmp_path)


def test_other_files_are_refused(tmp_path, refused):
    (tmp_path / "a.txt").write_text("1 2 3")
    assert "has the suffix '.txt'; expected a folder with one folder for each class" in refused(tmp_path / "a.txt")
    (tmp_path / "b.csv").write_text("")
    assert "is empty (0 bytes)" in refused(tmp_path / "b.csv")
    assert "does not exist" in refused(tmp_path / "nowhere")
    (tmp_path / "c.npz").write_bytes(b"no zip file")
    assert "cannot be read as the zip file" in refused(tmp_path / "c.npz")


def test_progress_is_told_while_pictures_are_read(draw, tmp_path):
    orl(tmp_path, draw, (1, 2), (1,))
    reports = []
    read_labelled(tmp_path, reports.append)
    assert reports[-1].done == reports[-1].total == 2


def test_a_set_of_the_catalogue_is_found_as_arrays_before_pictures(tmp_path, draw):
    orl(tmp_path / "orl", draw)
    saved(tmp_path / "orl" / "faces.npz", images=np.ones((2, 3, 4)), labels=[0, 1])
    assert [one.name for one in load_labelled_set("orl", tmp_path)] == ["faces: images"]
    (tmp_path / "orl" / "faces.npz").unlink()
    assert [one.name for one in load_labelled_set("orl", tmp_path)] == ["pixels"]


@pytest.mark.parametrize(("name", "n", "d", "classes"), [("digits", 1797, 64, 10), ("letters", 1500, 2, 4)])
def test_sets_without_files_are_made_on_the_spot(tmp_path, name, n, d, classes):
    (labelled,) = load_labelled_set(name, tmp_path)
    assert labelled.descriptors.shape == (n, d)
    assert len(labelled.names) == len(labelled.labels) == n
    assert len(labelled.classes) == classes == labelled.labels.max() + 1


def test_a_set_that_is_not_there_leads_to_the_command_that_fetches_it(tmp_path):
    with pytest.raises(DataError, match=r"neither \.npz files nor the published pictures of orl") as caught:
        load_labelled_set("orl", tmp_path)
    assert "`manifind data fetch orl`" in caught.value.hint


def test_a_set_with_lists_for_ground_truth_is_not_labelled(tmp_path):
    with pytest.raises(InputError, match="oxford5k has no labels") as caught:
        load_labelled_set("oxford5k", tmp_path)
    assert "orl, coil20, mpeg7, digits, letters" in caught.value.hint
