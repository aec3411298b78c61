"""A collection follows a source: what is new comes, what is gone goes, and the rest is not touched."""

import numpy as np
import pytest

import manifind
from collection.small_collection import NAMES, N, fit, random_rows
from manifind.collection.sync import carry_out, plan_sync
from manifind.errors import InputError

X = random_rows(N, 0)


@pytest.fixture(params=["unit", "center", "whiten", "none"])
def museum(request, tmp_path):
    fields = [{"i": i} for i in range(N)]
    return fit(preprocess=request.param).save(tmp_path / "c", NAMES, fields)


def sync(collection, rows, ids, metadata=None):
    plan = plan_sync(collection.version, rows, ids, metadata)
    carry_out(collection, plan, rows, ids, metadata)
    return plan


def is_nothing(plan):
    return not any(n for name, n in plan.counts().items() if name != "unchanged")


def test_the_same_source_in_any_order_and_type_is_nothing_to_do(museum):
    commit = museum.version.manifest.commit
    order = np.random.default_rng(0).permutation(N)
    plan = sync(museum, X[order].astype(np.float64), [NAMES[i] for i in order])
    assert is_nothing(plan)
    assert plan.n_same == N
    assert museum.version.manifest.commit == commit


def test_exactly_what_differs_is_touched(museum):
    rows, names = X.copy(), list(NAMES)
    rows[4] *= 2  # the same direction, another length
    rows[5] = 9
    names[7] = "renamed"
    source = np.concatenate([rows[10:], rows[:10], random_rows(2, 3)])
    ids = [*names[10:], *names[:10], "new 0", "new 1"]
    source, ids = source[1:], ids[1:]  # NAMES[10] is gone
    plan = sync(museum, source, ids)
    assert sorted(ids[row] for row in plan.new) == ["new 0", "new 1", "renamed"]
    assert sorted(ids[row] for row in plan.changed) == [NAMES[4], NAMES[5]]
    assert sorted(plan.gone) == sorted([NAMES[7], NAMES[10]])
    assert plan.described == []
    assert plan.n_same == N - 4
    assert sorted(museum.ids) == sorted(ids)
    assert museum.metadata([NAMES[5]]) == [{"i": 5}]  # what is said of it stays
    assert is_nothing(plan_sync(manifind.load(museum.path).version, source, ids, None))


def test_items_that_came_later_are_compared_too(museum):
    rows = np.concatenate([X, random_rows(2, 3)])
    ids = [*NAMES, "a", "b"]
    sync(museum, rows, ids)
    assert is_nothing(plan_sync(museum.version, rows, ids, None))
    rows[-1] += 1
    assert plan_sync(museum.version, rows, ids, None).changed == [N + 1]


def test_other_metadata_alone_leaves_descriptors_alone(museum, answers):
    before = answers(museum)
    fields = [{"i": i} for i in range(N)]
    fields[3] = {"i": 33}
    plan = sync(museum, X, NAMES, fields)
    assert plan.described == [3]
    assert plan.counts() == {"added": 0, "removed": 0, "changed": 0, "described": 1, "unchanged": N - 1}
    assert museum.metadata(NAMES[2:4]) == [{"i": 2}, {"i": 33}]
    assert answers(museum) == before


def test_ids_of_another_kind_are_refused(museum):
    with pytest.raises(InputError, match="is of another kind"):
        plan_sync(museum.version, X, list(range(N)), None)
