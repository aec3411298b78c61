"""Rankings in files: TREC runs ordered by score, .npy arrays of positions or names; anything else is refused."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import FileFormatError
from manifind.io.tables import RankedLists, read_ranking

RUN = "q1 Q0 a 1 0.9 tag\nq1 Q0 b 2 0.5 tag\nq2 Q0 b 1 7 tag\n"
NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


def refusal(path: Path) -> str:
    """What a file is refused for; the file is named, the message short, and a hint given."""
    with pytest.raises(FileFormatError) as caught:
        read_ranking(path)
    assert str(path) in caught.value.problem
    assert caught.value.hint
    assert len(str(caught.value)) < 1500
    return caught.value.problem


def test_a_run_gives_the_items_of_each_query_by_name(fresh):
    assert read_ranking(fresh(".txt", RUN)) == RankedLists([["a", "b"], ["b"]], True, ["q1", "q2"])


@pytest.mark.parametrize("suffix", ["", ".run", ".trec", ".TXT"])
def test_the_name_of_a_run_may_end_in_anything(fresh, suffix):
    assert read_ranking(fresh(suffix, RUN)).queries == ["q1", "q2"]


def test_a_path_may_be_a_string(fresh):
    assert read_ranking(str(fresh(".run", RUN))).items == [["a", "b"], ["b"]]


def test_items_stand_by_falling_score_whatever_their_lines_and_ranks(fresh):
    lines = ["q 0 low 1 -3 t", "q 0 high 3 1e2 t", "q 0 middle 2 5 t", "q 0 last 0 -inf t", "q 0 top 9 inf t"]
    for order in (lines, lines[::-1]):
        assert read_ranking(fresh(".run", "\n".join(order))).items == [["top", "high", "middle", "low", "last"]]


def test_equal_scores_stand_by_rank_and_equal_ranks_as_the_file_has_them(fresh):
    lines = ["q 0 third 2 1 t", "q 0 first 1 1 t", "q 0 fourth 2 1 t", "q 0 second 1 1 t", "q 0 zero 7 2 t"]
    found = read_ranking(fresh(".run", "\n".join(lines)))
    assert [list(row) for row in found.items] == [["zero", "first", "second", "third", "fourth"]]


def test_equal_scores_are_not_ordered_by_name_as_trec_eval_does(fresh):
    assert read_ranking(fresh(".run", "q 0 a 1 1 t\nq 0 z 2 1 t\n")).items == [["a", "z"]]
    assert read_ranking(fresh(".run", "q 0 z 1 1 t\nq 0 a 2 1 t\n")).items == [["z", "a"]]


def test_lines_of_several_queries_may_be_mixed_and_the_first_line_decides_their_order(fresh):
    text = "b 0 x 1 3 t\na 0 x 1 3 t\nb 0 y 2 2 t\na 0 y 2 4 t\n"
    assert read_ranking(fresh(".run", text)) == RankedLists([["x", "y"], ["y", "x"]], True, ["b", "a"])


def test_blank_lines_tabs_and_windows_line_ends_do_not_matter(fresh):
    spaced = "\r\n" + RUN.replace(" ", "\t  ").replace("\n", "  \r\n\r\n \t\r\n")
    assert read_ranking(fresh(".run", spaced)) == read_ranking(fresh(".run", RUN))


def test_a_run_without_a_line_end_is_read_to_its_end(fresh):
    assert read_ranking(fresh(".run", RUN.rstrip())).items == [["a", "b"], ["b"]]


def test_a_byte_order_mark_is_not_part_of_a_name(fresh):
    assert read_ranking(fresh(".run", "\ufeff" + RUN)).queries == ["q1", "q2"]


@settings(max_examples=50)
@given(
    run=st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=5, unique=True), min_size=1, max_size=4),
    scores=st.lists(st.floats(-1e9, 1e9), min_size=5, max_size=5, unique=True),
)
def test_what_is_written_as_a_run_is_read_back(fresh, run, scores):
    falling = sorted(scores, reverse=True)
    lines = [
        f"{query} Q0 {item} {rank} {falling[rank]!r} gradnet"
        for query, items in run.items()
        for rank, item in enumerate(items)
    ]
    found = read_ranking(fresh(".run", "\n".join(lines)))
    assert found == RankedLists(list(run.values()), True, list(run))


@pytest.mark.parametrize(
    "line",
    [
        "q1 Q0 a 1 0.9",
        "q1 Q0 a 1 0.9 tag more",
        "q1",
        "q1 Q0 a one 0.9 tag",
        "q1 Q0 a 1.5 0.9 tag",
        "q1 Q0 a 1 high tag",
        "q1 Q0 a 1 nan tag",
        "q1 Q0 a 1 -NaN tag",
        "q1,Q0,a,1,0.9,tag",
        f"q1 Q0 a {'1' * 5000} 0.9 tag",
    ],
)
def test_a_line_that_is_no_line_of_a_run_is_refused_with_its_number(fresh, line):
    path = fresh(".run", f"{RUN}\n{line}\n")
    problem = refusal(path)
    assert f"{path}, line 5: " in problem
    assert line.split()[0] in problem
    assert "expected `query Q0 item rank score tag`" in problem


@pytest.mark.parametrize("content", ["\n", "  \n\t\n"])
def test_a_run_of_blank_lines_is_refused(fresh, content):
    assert "no lines; expected a TREC run" in refusal(fresh(".run", content))


@pytest.mark.parametrize("content", [b"\x93NUMPY\x01\x00v\x00", RUN.encode("utf-16"), b"q1 Q0 \xe9t\xe9 1 1 t"])
def test_a_file_that_is_not_utf_8_is_refused(fresh, content):
    path = fresh(".run", content)
    assert "is not UTF-8 text" in refusal(path)


@pytest.mark.parametrize("suffix", [".run", ".npy"])
def test_an_empty_file_a_folder_and_a_missing_file_are_refused(fresh, tmp_path, suffix):
    assert "is empty (0 bytes); expected a ranking: .npy, or a TREC run" in refusal(fresh(suffix, b""))
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    assert "is a folder" in refusal(folder)
    assert "does not exist" in refusal(tmp_path / f"missing{suffix}")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.run")
    assert "is not a regular file" in refusal(tmp_path / "pipe.run")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_file_of_somebody_else_is_refused(fresh):
    path = fresh(".run", RUN)
    path.chmod(0)
    assert "cannot be read" in refusal(path)


@pytest.mark.parametrize("dtype", ["i1", "u2", "<i4", ">i8", "u8"])
def test_an_array_of_whole_numbers_is_positions(fresh, dtype):
    found = read_ranking(fresh(".npy", npy(np.array([[2, 0], [1, 2]], dtype))))
    assert found.queries is None
    assert not found.are_names
    assert [list(row) for row in found.items] == [[2, 0], [1, 2]]


def test_the_filler_behind_short_rankings_is_kept(fresh):
    found = read_ranking(fresh(".npy", npy([[2, 0], [1, -1]])))
    assert found.items[1].tolist() == [1, -1]


def test_an_array_of_strings_is_names(fresh):
    found = read_ranking(fresh(".NPY", npy([["a.jpg", "été"], ["b", "日本"]])))
    assert found.queries is None
    assert found.are_names
    assert [list(row) for row in found.items] == [["a.jpg", "été"], ["b", "日本"]]


def test_an_array_stored_by_columns_is_read_by_rows(fresh):
    found = read_ranking(fresh(".npy", npy(np.asfortranarray([[2, 0, 1], [1, 2, 0]]))))
    assert [list(row) for row in found.items] == [[2, 0, 1], [1, 2, 0]]


@pytest.mark.parametrize("shape", [(4,), (2, 2, 2), (0, 3), (3, 0), ()])
def test_an_array_of_another_shape_is_refused_with_it(fresh, shape):
    assert f"has shape {shape}; expected (queries, k)" in refusal(fresh(".npy", npy(np.zeros(shape, int))))


@pytest.mark.parametrize("array", [np.zeros((2, 2)), np.zeros((2, 2), bool), np.array([[b"a"]])])
def test_an_array_of_another_type_is_refused_with_it(fresh, array):
    problem = refusal(fresh(".npy", npy(array)))
    assert array.dtype.str in problem
    assert "expected whole numbers or strings" in problem


def test_an_array_of_objects_is_refused_unopened(fresh):
    assert "Python objects" in refusal(fresh(".npy", npy(np.array([["a", 1]], dtype=object))))


@pytest.mark.parametrize("array", [[[2, 0], [1, 2]], [["a", "bc"], ["d", "e"]]], ids=["positions", "names"])
def test_an_array_cut_at_any_length_is_refused(fresh, array):
    content = npy(array)
    for length in range(len(content)):
        refusal(fresh(".npy", content[:length]))


def test_a_run_cut_anywhere_is_refused_or_has_the_lines_before(fresh):
    for length in range(1, len(RUN)):
        try:
            found = read_ranking(fresh(".run", RUN[:length]))
        except FileFormatError:
            continue
        whole_lines = RUN[:length].count("\n")
        assert sum(map(len, found.items)) - whole_lines in (0, 1)


def is_sound(found: RankedLists) -> None:
    """Lists of names or of whole numbers, for as many queries as there are names of queries."""
    assert len(found.items) > 0
    assert found.queries is None or len(set(found.queries)) == len(found.queries) == len(found.items)
    for one in found.items:
        assert len(one) > 0
        assert all(isinstance(x, str) for x in one) if found.are_names else one.dtype.kind in "iu"


def changed(content: bytes, data: st.DataObject) -> bytes:
    edits = st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), min_size=1, max_size=6)
    copy = bytearray(content)
    for position, byte in data.draw(edits):
        copy[position] = byte
    return bytes(copy)


SAMPLES = [(".run", RUN.encode()), (".npy", npy([[2, 0], [1, 2]])), (".npy", npy([["a", "bc"], ["d", "e"]]))]


@pytest.mark.parametrize(("suffix", "content"), SAMPLES, ids=["run", "positions", "names"])
@settings(max_examples=300)
@given(data=st.data())
def test_a_file_changed_anywhere_is_refused_or_read_as_rankings(fresh, suffix, content, data):
    refused_or(is_sound, fresh(suffix, changed(content, data)))


@settings(max_examples=200)
@given(content=st.one_of(st.binary(min_size=1, max_size=60), st.text(min_size=1, max_size=60)))
def test_any_bytes_and_any_text_are_refused_or_read_as_rankings(fresh, content):
    with contextlib.suppress(UnicodeEncodeError):  # half a surrogate pair cannot be written in the first place
        refused_or(is_sound, fresh(".run", content))


@given(cells=st.lists(st.lists(NAMES | st.just("1"), max_size=7), max_size=4))
def test_lines_of_any_cells_are_refused_or_read_as_rankings(fresh, cells):
    refused_or(is_sound, fresh(".run", "\n".join(" ".join(line) for line in cells) or "\n"))


def refused_or(check: Callable[[RankedLists], None], path: Path) -> None:
    try:
        found = read_ranking(path)
    except FileFormatError:
        return
    check(found)
