"""Descriptors and lists brought together: by name, by position, with distractors and with gaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifind.datasets.landmarks import join
from manifind.errors import InputError
from manifind.io.checks import Vectors
from manifind.io.ground_truth import GroundTruth

NAMES = ("a", "b", "c", "d")


def arrays(*lists):
    return [np.array(one, dtype=np.int64) for one in lists]


def rows_of(names):
    """Vectors that can be told apart: the row of `x` is its letter's number."""
    return np.array([[ord(name[0])] for name in names], dtype=np.float32)


def truth(images=NAMES, queries=("a", "c"), is_whole=True):
    return GroundTruth({"ok": arrays([0, 1], [2]), "junk": arrays([3], [])}, images, queries, is_whole)


def test_rows_are_put_in_the_order_of_the_lists_by_name():
    shuffled = ["c", "a", "d", "b"]
    data = join(Vectors(rows_of(shuffled), shuffled), truth())
    np.testing.assert_array_equal(data.descriptors, rows_of("abcd"))
    np.testing.assert_array_equal(data.queries, rows_of("ac"))
    assert (data.distractors, data.missing) == (0, (0, 0))
    assert [one.tolist() for one in data.truth.lists["ok"]] == [[0, 1], [2]]


def test_folder_and_picture_suffix_do_not_keep_a_name_from_being_found():
    names = ["jpg/c.jpg", "jpg/a.JPG", "d.png", "b"]
    data = join(Vectors(rows_of(["c", "a", "d", "b"]), names), truth())
    np.testing.assert_array_equal(data.descriptors, rows_of("abcd"))


def test_images_without_a_row_leave_the_lists_and_queries_without_one_leave_altogether():
    data = join(Vectors(rows_of("db"), ["d", "b"]), truth())
    np.testing.assert_array_equal(data.descriptors, rows_of("bd"))
    assert data.missing == (2, 2)
    assert len(data.queries) == data.truth.n_queries == 0
    assert [one.tolist() for one in data.every_list.lists["ok"]] == [[0], []]
    assert [one.tolist() for one in data.every_list.lists["junk"]] == [[1], []]


def test_queries_outside_the_database_are_found_by_name_and_do_not_join_it():
    names = ["q", "a", "b", "c", "d", "p"]
    data = join(Vectors(rows_of(names), names), truth(queries=("q", "p")))
    np.testing.assert_array_equal(data.descriptors, rows_of("abcd"))
    np.testing.assert_array_equal(data.queries, rows_of("qp"))


def test_rows_that_the_lists_do_not_know_follow_as_distractors():
    names = ["x", "a", "b", "c", "y", "d"]
    data = join(Vectors(rows_of(names), names), truth())
    np.testing.assert_array_equal(data.descriptors, rows_of("abcdxy"))
    assert data.distractors == 2


def test_query_vectors_of_their_own_are_taken_as_they_are():
    own = np.array([[1.0], [2.0]], dtype=np.float32)
    data = join(Vectors(rows_of("abcd"), None, own), truth())
    np.testing.assert_array_equal(data.queries, own)
    np.testing.assert_array_equal(data.descriptors, rows_of("abcd"))


def test_without_names_row_i_is_image_i_and_more_rows_are_distractors():
    data = join(Vectors(rows_of("abcdz"), None), truth())
    np.testing.assert_array_equal(data.queries, rows_of("ac"))
    assert data.distractors == 1


def test_text_files_name_only_some_images_and_the_rest_of_the_rows_are_distractors():
    names = ["z", "c", "a", "b", "d"]
    data = join(Vectors(rows_of(names), names), truth(is_whole=False))
    np.testing.assert_array_equal(data.descriptors, rows_of("abcdz"))
    assert data.distractors == 1
    assert data.truth.is_whole


@pytest.mark.parametrize(
    ("vectors", "lists", "problem"),
    [
        (Vectors(rows_of("abc"), None), truth(), "3 vectors without names for 4 images"),
        (Vectors(rows_of("xy"), ["x", "y"]), truth(), "none of the 4 images"),
        (Vectors(rows_of("abcd"), None, rows_of("a")), truth(), "1 query vector for 2 queries"),
        (Vectors(rows_of("abcd"), None), truth(queries=None), "which vectors are the queries"),
        (Vectors(rows_of("abcd"), None), truth(images=None), "which vectors are the queries"),
        (Vectors(rows_of("abcd"), None), truth(is_whole=False), "in which order"),
    ],
)
def test_what_cannot_be_brought_together_is_refused_with_the_way_out(vectors, lists, problem):
    with pytest.raises(InputError, match=problem) as caught:
        join(vectors, lists)
    assert caught.value.hint


@given(st.permutations([f"{c}{i}" for c in "abc" for i in range(3)]), st.integers(0, 9))
def test_every_list_names_the_same_images_before_and_after(names, n_present):
    images = tuple(sorted(names))
    lists = GroundTruth({"ok": arrays([0, 4, 8]), "junk": arrays([1])}, images, (images[0],))
    present = [*names[:n_present], "other"]
    vectors = Vectors(np.arange(len(present), dtype=np.float32)[:, None], present)
    if not set(present) & set(images):
        return
    data = join(vectors, lists)
    for name in ("ok", "junk"):
        before = {images[i] for i in lists.lists[name][0]} & set(present)
        after = {present[int(data.descriptors[i, 0])] for i in data.every_list.lists[name][0]}
        assert before == after
