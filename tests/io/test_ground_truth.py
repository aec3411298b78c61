"""Published ground truth: four ways of writing it down say the same, and what makes no sense is refused."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from manifind.errors import FileFormatError
from manifind.io import ground_truth
from manifind.io.ground_truth import GroundTruth, read_ground_truth
from reference.files import cell_array, mat5, mat73, struct_array

IMAGES = ["b_1.jpg", "a_2", "é", "d"]
QUERIES = ["q_1", "b_1.jpg"]
BOX = [1.5, 2.0, 3.0, 4.5]
REVISITED = [
    {"easy": [2, 0], "hard": [], "junk": [1], "bbx": BOX},
    {"easy": [], "hard": [3, 1, 2], "junk": [], "bbx": BOX},
]
CLASSIC = [{"ok": [3, 0], "junk": [], "bbx": BOX}, {"ok": [1], "junk": [0, 2], "bbx": BOX}]


def content(gnd, **changes):
    return {"gnd": gnd, "imlist": IMAGES, "qimlist": QUERIES} | changes


def as_json(path, content):
    path.write_text(json.dumps(content))


def pickled(protocol, arrays):
    def write(path, content):
        if arrays:
            gnd = [{name: np.array(values) for name, values in one.items()} for one in content["gnd"]]
            content = content | {"gnd": gnd}
        path.write_bytes(pickle.dumps(content, protocol))

    return write


def counted_from_1(gnd, kind=float):
    return [
        {
            name: np.array([values], kind) + (name != "bbx") if values else np.empty((0, 0))
            for name, values in one.items()
        }
        for one in gnd
    ]


def as_mat5(compressed, kind=float):
    def write(path, content):
        names = {key: cell_array(content[key]) for key in ("imlist", "qimlist") if key in content}
        mat5(path, compressed, gnd=struct_array(counted_from_1(content["gnd"], kind)), user="final", **names)

    return write


def as_mat73(path, content):
    pytest.importorskip("h5py")
    with mat73(path) as mat:
        mat.structs("gnd", counted_from_1(content["gnd"]))
        for key in ("imlist", "qimlist"):
            if key in content:
                mat.cells(key, content[key])


WRITERS = {
    "json": (".json", as_json),
    "pickle 2": (".pkl", pickled(2, arrays=False)),
    "pickle 3": (".pickle", pickled(3, arrays=False)),
    "pickled arrays 2": (".pkl", pickled(2, arrays=True)),
    "pickled arrays 5": (".pkl", pickled(5, arrays=True)),
    "MATLAB 5 compressed": (".mat", as_mat5(True)),
    "MATLAB 5 stored": (".MAT", as_mat5(False)),
    "MATLAB 5 of int32": (".mat", as_mat5(True, np.int32)),
    "MATLAB 7.3": (".mat", as_mat73),
}
FROM_0 = ["json", "pickle 2"]
FROM_1 = ["MATLAB 5 compressed", "MATLAB 7.3"]


def written(fresh, writer, content):
    suffix, write = WRITERS[writer]
    path = fresh(suffix)
    write(path, content)
    return path


def refused(path):
    """The problem that ground truth is refused for; the file is named, the message short, and a hint given."""
    with pytest.raises(FileFormatError) as caught:
        read_ground_truth(path)
    assert str(path) in caught.value.problem
    assert caught.value.hint
    assert len(str(caught.value)) < 1500
    return caught.value.problem


def lists_of(truth):
    return {name: [one.tolist() for one in lists] for name, lists in truth.lists.items()}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    ("gnd", "lists"),
    [
        (REVISITED, {"easy": [[0, 2], []], "hard": [[], [1, 2, 3]], "junk": [[1], []]}),
        (CLASSIC, {"ok": [[0, 3], [1]], "junk": [[], [0, 2]]}),
    ],
    ids=["revisited", "classic"],
)
def test_every_published_format_gives_sorted_positions_from_0_and_names_as_they_are(fresh, writer, gnd, lists):
    truth = read_ground_truth(written(fresh, writer, content(gnd)))
    assert isinstance(truth, GroundTruth)
    assert lists_of(truth) == lists
    assert list(truth.lists) == list(lists)
    assert all(one.dtype == np.int64 for lists in truth.lists.values() for one in lists)
    assert truth.images == tuple(IMAGES)
    assert truth.queries == tuple(QUERIES)
    assert truth.is_whole
    assert truth.n_queries == 2


@pytest.mark.parametrize("writer", WRITERS)
def test_names_may_be_absent(fresh, writer):
    truth = read_ground_truth(written(fresh, writer, {"gnd": CLASSIC}))
    assert truth.images is None
    assert truth.queries is None
    assert lists_of(truth)["ok"] == [[0, 3], [1]]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_single_query_is_read(fresh, writer):
    truth = read_ground_truth(written(fresh, writer, content(CLASSIC[:1], qimlist=QUERIES[:1])))
    assert lists_of(truth) == {"ok": [[0, 3]], "junk": [[]]}


def changed(query, name, values):
    return [one | {name: values} if position == query else one for position, one in enumerate(CLASSIC)]


@pytest.mark.parametrize("writer", FROM_0 + FROM_1)
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"gnd": changed(1, "ok", [1, 4])}, "the list 'ok' of query 1 (counted from 0)"),
        ({"gnd": changed(1, "junk", [2, -2])}, "the list 'junk' of query 1 (counted from 0)"),
        ({"gnd": changed(0, "ok", [3, 1, 3])}, "twice"),
        ({"gnd": changed(1, "junk", [0, 1])}, "has the image 'a_2', which stands in 'ok' too"),
        ({"gnd": changed(1, "ok", [1.5])}, "expected whole numbers"),
        ({"qimlist": ["q"]}, "lists for 2 queries but 1 names"),
        ({"imlist": ["a", "b", "c", "b"]}, "imlist in"),
        ({"imlist": ["a", "b", "", "c"]}, "has ''; expected names"),
    ],
)
def test_lists_and_names_that_make_no_sense_are_refused(fresh, writer, changes, problem):
    assert problem in refused(written(fresh, writer, content(CLASSIC) | changes))


@pytest.mark.parametrize("writer", ["json", "pickle 2"])
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"gnd": []}, "gnd in"),
        ({"gnd": {}}, "gnd in"),
        ({"gnd": [1]}, "gnd in"),
        ({"gnd": None}, "gnd in"),
        ({"gnd": [CLASSIC[0], REVISITED[1]]}, "has for query 1 (counted from 0) the lists ['easy', 'hard', 'junk']"),
        ({"gnd": [CLASSIC[0] | REVISITED[0]] * 2}, "the lists ['easy', 'hard', 'junk', 'ok']"),
        ({"gnd": [{"ok": [1]}] * 2}, "the lists ['ok']"),
        ({"gnd": [{"easy": [1], "junk": []}] * 2}, "the lists ['easy', 'junk']"),
        ({"gnd": [{}] * 2}, "the lists []"),
        ({"gnd": changed(1, "ok", [True])}, "has True; expected whole numbers"),
        ({"gnd": changed(1, "ok", [1.0])}, "has 1.0; expected whole numbers"),
        ({"gnd": changed(1, "ok", ["1"])}, "has '1'; expected whole numbers"),
        ({"gnd": changed(1, "ok", [None])}, "has None; expected whole numbers"),
        ({"gnd": changed(1, "ok", 5)}, "is 5; expected a list of positions"),
        ({"gnd": changed(1, "ok", [10**30])}, "which is too large"),
        ({"imlist": "abcd"}, "imlist in"),
        ({"imlist": [1, 2, 3, 4]}, "has 1; expected names"),
        ({"qimlist": [["q"], "r"]}, "has ['q']; expected names"),
    ],
)
def test_dictionaries_that_hold_something_else_are_refused(fresh, writer, changes, problem):
    assert problem in refused(written(fresh, writer, content(CLASSIC) | changes))


@pytest.mark.parametrize("position", [4, -1])
def test_a_position_out_of_range_is_shown_with_how_positions_are_counted(fresh, position):
    path = written(fresh, "json", content(changed(0, "ok", [position])))
    assert f"has the position {position}; expected 0 to 3, as imlist has 4 names" in refused(path)
    with pytest.raises(FileFormatError) as caught:
        read_ground_truth(path)
    assert ".mat files from 1" in caught.value.hint


@pytest.mark.parametrize("writer", FROM_1)
def test_a_0_among_positions_that_count_from_1_is_refused_with_and_without_names(fresh, writer):
    gnd = changed(0, "ok", [2, -1])
    assert "has the position 0; expected 1 to 4" in refused(written(fresh, writer, content(gnd)))
    assert "has the position 0; expected 1 up" in refused(written(fresh, writer, {"gnd": gnd}))


@pytest.mark.parametrize("number", [np.nan, np.inf, 2.0**60])
@pytest.mark.parametrize("writer", FROM_1)
def test_floats_that_are_no_positions_are_refused(fresh, writer, number):
    assert "expected whole numbers" in refused(written(fresh, writer, {"gnd": changed(0, "ok", [number])}))


@pytest.mark.parametrize("number", [2**63, 2**64 - 1])
def test_unsigned_numbers_beyond_all_positions_are_refused(fresh, number):
    gnd = changed(0, "ok", np.array([1, number], np.uint64))
    path = fresh(".pkl", pickle.dumps({"gnd": gnd}))
    assert f"has the position {number}" in refused(path)


def test_an_array_of_two_rows_is_no_list_of_positions(fresh):
    path = fresh(".pkl", pickle.dumps({"gnd": changed(0, "ok", np.eye(2, dtype=int))}))
    assert "has shape (2, 2); expected one row" in refused(path)


@pytest.mark.parametrize("value", [[1], "text", None, {"imlist": []}, 5])
def test_a_file_that_holds_no_dictionary_with_gnd_is_refused(fresh, value):
    assert "expected a dictionary with gnd" in refused(fresh(".json", json.dumps(value)))
    assert "expected a dictionary with gnd" in refused(fresh(".pkl", pickle.dumps(value)))


@pytest.mark.parametrize(
    "text", ["", " ", "{", '{"gnd": [', "[" * 100_000, b"\xff\xfe{", '{"gnd": ' + "9" * 5000 + "}", '{"a": "\\ud8"}']
)
def test_what_is_no_json_is_refused(fresh, text):
    refused(fresh(".json", text))


def test_a_pickle_that_names_code_is_refused(fresh):
    assert "os.system" in refused(fresh(".pkl", b"(dS'gnd'\ncos\nsystem\n(S'true'\ntRs."))


@pytest.mark.parametrize("write", [mat5, None])
def test_a_mat_file_without_lists_is_refused(fresh, write):
    path = fresh(".mat")
    if write is None:
        pytest.importorskip("h5py")
        with mat73(path) as mat:
            mat.numbers("gnd", np.eye(2))
    else:
        mat5(path, X=np.eye(2))
    assert "has no struct array gnd" in refused(path)


@pytest.mark.parametrize("gnd", [np.eye(2), "text", cell_array(["a"])])
def test_a_gnd_of_matlab_that_is_no_struct_array_is_refused(fresh, gnd):
    assert "gnd in" in refused(mat5(fresh(".mat"), gnd=gnd))


@pytest.mark.parametrize("names", [np.eye(2), "abc", struct_array([{"a": 1.0}])])
def test_names_of_matlab_that_are_no_cells_of_text_are_refused(fresh, names):
    gnd = struct_array(counted_from_1(CLASSIC))
    assert "expected names" in refused(mat5(fresh(".mat"), gnd=gnd, imlist=names))


def test_in_version_7_3_too_lists_and_names_must_be_what_they_are_called(fresh):
    h5py = pytest.importorskip("h5py")
    for name, value in (("imlist", np.eye(2)), ("gnd/ok", h5py.SoftLink("/gnd/junk"))):
        path = written(fresh, "MATLAB 7.3", content(CLASSIC))
        with h5py.File(path, "r+") as file:
            del file[name]
            file[name] = value
        refused(path)
    path = fresh(".mat")
    with mat73(path) as mat:
        mat.structs("gnd", counted_from_1(CLASSIC))
        mat.cells("imlist", [np.eye(2), "a", "b", "c"])
    assert "where one line of text should" in refused(path)


def test_fields_of_different_length_are_refused_in_version_7_3(fresh):
    pytest.importorskip("h5py")
    path = fresh(".mat")
    with mat73(path) as mat:
        group = mat.file.create_group("gnd")
        mat.cells("ok", [np.ones((1, 1)), np.ones((1, 1))], group)
        mat.cells("junk", [np.ones((1, 1))], group)
    assert "has lists for" in refused(path)


def test_other_files_are_refused_with_the_accepted_ones(fresh):
    assert "does not exist" in refused(fresh(".json"))
    assert "empty (0 bytes)" in refused(fresh(".mat", b""))
    problem = refused(fresh(".txt", b"all_souls"))
    assert all(suffix in problem for suffix in (".json", ".pkl", ".pickle", ".mat", "folder"))


def test_a_file_far_too_large_for_lists_is_refused(fresh, monkeypatch):
    path = written(fresh, "json", content(CLASSIC))
    monkeypatch.setattr(ground_truth, "_LARGEST_FILE", 10)
    assert "at most 10" in refused(path)
