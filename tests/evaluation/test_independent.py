"""Another evaluator, ir_measures over trec_eval, gives the same numbers where it has the same measure."""

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, P, R, Rprec

from evaluation.drawn import padded, published
from manifind.evaluation.measures import Measure, at_cutoffs, average_precision, score
from manifind.evaluation.protocols import evaluate_labels
from manifind.evaluation.relevance import classic

CUTOFFS = (1, 3, 10)
THEIRS = {"mAP": AP, **{f"P@{k}": P @ k for k in CUTOFFS}, **{f"R@{k}": R @ k for k in CUTOFFS}}


def by_trec_eval(rankings, right, measures):
    """{(query, measure): value} of every query that has something to find."""
    qrels = {str(q): {str(i): 1 for i in items} for q, items in enumerate(right) if items}
    run = {  # falling scores, since trec_eval ranks equal ones by name
        str(q): {str(item): float(-place) for place, item in enumerate(ranking)} for q, ranking in enumerate(rankings)
    }
    found = ir_measures.pytrec_eval.iter_calc(list(measures), qrels, run)
    return {(int(one.query_id), str(one.measure)): one.value for one in found}


def assert_agrees(scores, rankings, right):
    theirs = by_trec_eval(rankings, right, THEIRS.values())
    assert {s.measure for s in scores} == set(THEIRS)
    for ours in scores:
        for query, value in enumerate(ours.per_query):
            if right[query]:
                expected = theirs[query, str(THEIRS[ours.measure])]
                assert value / 100 == pytest.approx(expected, abs=1e-9), (ours.measure, query)
            else:
                assert np.isnan(value)


def random_rankings(n, m, rng):
    """Full ones, and ones cut anywhere behind the first item."""
    return [rng.permutation(n)[: rng.choice([n, rng.integers(2, n + 1)])].tolist() for _ in range(m)]


@pytest.mark.parametrize("seed", range(8))
def test_scores_over_labels_are_those_of_trec_eval(seed):
    rng = np.random.default_rng(seed)
    n, m = 40, 25
    labels = rng.integers(0, 12, n)
    query_items = rng.integers(0, n, m)
    rankings = random_rankings(n, m, rng)
    right = [set(np.flatnonzero(labels == labels[q]).tolist()) - {q} for q in query_items.tolist()]
    without_query = [[i for i in r if i != q] for r, q in zip(rankings, query_items.tolist(), strict=True)]
    scores = evaluate_labels(padded(rankings), labels, query_items=query_items, cutoffs=CUTOFFS)
    assert_agrees(scores, without_query, right)


@pytest.mark.parametrize("seed", range(8))
def test_scores_of_queries_from_outside_are_those_of_trec_eval(seed):
    rng = np.random.default_rng(seed)
    labels, query_labels = rng.integers(0, 8, 40), rng.integers(0, 10, 25)
    rankings = random_rankings(40, 25, rng)
    right = [set(np.flatnonzero(labels == label).tolist()) for label in query_labels]
    scores = evaluate_labels(padded(rankings), labels, query_labels=query_labels, cutoffs=CUTOFFS)
    assert_agrees(scores, rankings, right)


@pytest.mark.parametrize("seed", range(8))
def test_classic_lists_with_junk_taken_out_beforehand_are_those_of_trec_eval(seed):
    rng = np.random.default_rng(seed)
    n, m = 40, 25
    roles = rng.choice(["ok", "junk", "wrong"], size=(m, n), p=[0.15, 0.25, 0.6])
    truth = published(n, {name: [np.flatnonzero(r == name) for r in roles] for name in ("ok", "junk")})
    rankings = random_rankings(n, m, rng)
    right = [set(one.tolist()) for one in truth.lists["ok"]]
    clean = [[i for i in r if roles[q, i] != "junk"] for q, r in enumerate(rankings)]
    assert all(clean), "trec_eval leaves out queries that rank nothing"
    rectangles = [Measure("mAP", "rectangles", average_precision), *at_cutoffs(CUTOFFS)]
    assert_agrees(score(padded(rankings), classic(truth), rectangles, "not stated"), clean, right)


def test_precision_and_recall_meet_at_the_number_of_right_items():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 8)
    ids = np.stack([rng.permutation(40) for _ in range(40)])
    scores = {s.measure: s.per_query for s in evaluate_labels(ids, labels, cutoffs=(7,))}
    np.testing.assert_allclose(scores["P@7"], scores["R@7"])
    right = [set(np.flatnonzero(labels == labels[q]).tolist()) - {q} for q in range(40)]
    rankings = [[i for i in row if i != q] for q, row in enumerate(ids.tolist())]
    theirs = by_trec_eval(rankings, right, [Rprec])
    for query, value in enumerate(scores["P@7"]):
        assert value / 100 == pytest.approx(theirs[query, "Rprec"], abs=1e-9)
