"""Groups of the learned space: the same always, none tiny, and named by what others have not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifind.collection.clusters import MOST, find_clusters, name_clusters


def clouds(sizes, seed=0):
    """Points around the corners of a cube of many dimensions."""
    rng = np.random.default_rng(seed)
    middles = np.eye(len(sizes), 8) * 10
    X = np.repeat(middles, sizes, axis=0) + rng.normal(size=(sum(sizes), 8)) * 0.1
    return X.astype(np.float32)


def test_what_lies_together_is_one_group_and_the_largest_is_the_first():
    found = find_clusters(clouds([3, 9, 6]))
    assert [set(part.tolist()) for part in np.split(found.numbers, [3, 12])] == [{3}, {1}, {2}]
    assert found.distances.max() < 1


def test_groups_are_the_same_always():
    X = np.random.default_rng(1).normal(size=(3000, 16)).astype(np.float32)
    first, again = find_clusters(X), find_clusters(X)
    assert (first.numbers == again.numbers).all()
    assert (first.distances == again.distances).all()
    assert first.numbers.max() <= MOST


def test_tiny_groups_join_others():
    X = clouds([400, 1, 400])
    assert np.bincount(find_clusters(X).numbers).tolist()[1:][-1] > 1


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_few_items_are_grouped_too(n):
    found = find_clusters(clouds([n]))
    assert sorted(set(found.numbers.tolist())) == list(range(1, len(set(found.numbers.tolist())) + 1))
    assert len(found.numbers) == n


def test_equal_items_are_in_one_group():
    assert find_clusters(np.ones((50, 4), np.float32)).numbers.tolist() == [1] * 50


def test_a_group_is_named_by_what_is_frequent_inside_and_rare_elsewhere():
    numbers = np.array([1] * 6 + [2] * 6)
    items = [{"place": "Rome", "camera": "X1"}] * 5 + [{"camera": "X1"}] + [{"place": "Paris", "camera": "X1"}] * 6
    first, second = name_clusters(numbers, items)
    assert (first.name, first.reason) == ("Rome", "place = Rome, 83 % here, 0 % elsewhere")
    assert (second.name, second.reason) == ("Paris", "place = Paris, 100 % here, 0 % elsewhere")


def test_a_group_without_anything_in_common_has_a_number():
    numbers = np.array([1] * 4 + [2] * 4)
    assert [tuple(one) for one in name_clusters(numbers, [{"kind": "all"}] * 8)] == [("Group 1", ""), ("Group 2", "")]


def test_lists_folders_and_years_give_names():
    numbers = np.array([1] * 4 + [2] * 4 + [3] * 4)
    items = [{"tags": ["red", "boat"]}, {"tags": ["boat"]}] * 2
    items += [{"path": f"trips/rome/{number}.jpg"} for number in range(4)]
    items += [{"taken": f"2019-0{number + 1}-01 10:00:00"} for number in range(4)]
    names = name_clusters(numbers, items)
    assert [one.name for one in names] == ["boat", "trips", "2019"]
    assert names[2].reason == "year = 2019, 100 % here, 0 % elsewhere"


def test_groups_of_one_name_are_told_apart():
    numbers = np.array([1, 1, 2, 2] + [3] * 20)
    items = [{"place": "Rome"}] * 4 + [{"place": "Paris"}] * 20
    names = [one.name for one in name_clusters(numbers, items)]
    assert names == ["Rome", "Rome (2)", "Paris"]


def test_a_share_is_never_said_to_be_all_or_none_where_it_is_not():
    numbers = np.array([1] * 300 + [2] * 300)
    items = [{"place": "Rome"}] * 299 + [{"place": "Oslo"}] * 2 + [{"place": "Paris"}] * 299
    assert [one.reason for one in name_clusters(numbers, items)] == [
        "place = Rome, over 99 % here, 0 % elsewhere",
        "place = Paris, over 99 % here, 0 % elsewhere",
    ]


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=70)
FIELDS = st.dictionaries(st.sampled_from(["path", "taken", "place", "tags", "sha256"]), PLAIN | st.lists(PLAIN))


@given(st.lists(st.tuples(st.integers(1, 4), FIELDS), min_size=1, max_size=20))
def test_whatever_metadata_says_every_group_has_a_name_of_its_own(described):
    numbers = np.array([number for number, _ in described])
    names = name_clusters(numbers, [fields for _, fields in described])
    assert len(names) == numbers.max()
    assert all(one.name.strip() for one in names)
    assert len({one.name for one in names}) == len(names)
