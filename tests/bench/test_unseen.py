"""Held-out queries: what does not learn loses nothing, and what learns is asked without them."""

import numpy as np
import pytest

from manifind.baselines.query_expansion import KNN
from manifind.bench.held_out import FOLDS, measure_unseen
from manifind.bench.task import LabelTruth, ListTruth, RetrievalTask
from manifind.errors import InputError
from manifind.io.ground_truth import GroundTruth
from manifind.ranking import Ranking
from reference.graphs import clusters


def labelled(window=None):
    rng, labels = np.random.default_rng(0), np.arange(50) % 5
    X = (rng.normal(size=(5, 6))[labels] + 0.7 * rng.normal(size=(50, 6))).astype(np.float32)
    return RetrievalTask("mine", X, None, None, LabelTruth(labels, window))


def listed(**changes):
    X = clusters(40, 6, 4, seed=2)
    right = [np.flatnonzero(np.arange(40) % 4 == number) for number in range(4)]
    junk = [np.array([39])] * 4
    truth = GroundTruth({"ok": right, "junk": junk}, None, None, True)
    return RetrievalTask("town", X, X[:4].copy(), None, ListTruth(truth, "official", 0))._replace(**changes)


@pytest.mark.parametrize("measure", ["mAP", "bullseye@9 counted", "bullseye@9 left-out"])
def test_knn_learns_nothing_so_it_loses_nothing(measure):
    found = measure_unseen(labelled(9), KNN, {}, measure)
    assert found.unseen == pytest.approx(found.in_graph, abs=1e-9)
    assert found.thinner == pytest.approx(found.in_graph, abs=3)  # others are asked, in the mean over the folds
    assert 0 < found.in_graph < 100


def test_queries_of_lists_are_held_out_too():
    found = measure_unseen(listed(), KNN, {}, "mAP")
    assert found.unseen == pytest.approx(found.in_graph, abs=1e-9)


def test_a_query_that_is_no_item_cannot_be_held_out():
    task = listed(queries=np.ones((4, 6), dtype=np.float32))
    with pytest.raises(InputError, match="query 0 is no item"):
        measure_unseen(task, KNN, {}, "mAP")


def test_an_unknown_measure_is_refused_with_those_there_are():
    with pytest.raises(InputError, match=r"'R@5'.*'mAP', 'bullseye@9 counted'"):
        measure_unseen(labelled(9), KNN, {}, "R@5")


class Memory(KNN):
    """Knows what it was fitted on by heart, and puts those items first that it knows the label of."""

    sizes: list[int] = []

    def fit(self, X):
        type(self).sizes.append(len(X))
        self._known = {row.tobytes(): number for number, row in enumerate(X)}
        return super().fit(X)

    def search(self, Q=None, k=10):
        ids, scores = super().search(Q, k)
        if Q is None:
            return Ranking(ids, scores)
        is_known = np.array([row.tobytes() in self._known for row in Q])
        return Ranking(np.where(is_known[:, None], ids, ids[:, ::-1]), scores)


def test_each_fold_is_kept_out_of_one_fit_and_everything_is_in_the_first():
    Memory.sizes.clear()
    found = measure_unseen(labelled(), Memory, {}, "mAP")
    assert Memory.sizes == [50, *[40] * FOLDS]
    assert found.unseen < found.in_graph - 5  # whoever was not there is answered the wrong way round
