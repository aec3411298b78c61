"""Tests of the tasks that cells run: scores, learning curves, held-out queries, facts and costs."""

import numpy as np
import pytest

from manifind.baselines import METHODS
from manifind.bench.held_out import TWICE, _split, held_out
from manifind.bench.paper.procedures import (
    batches_against_whole,
    cost,
    facts,
    learning_curve,
    left_out,
    open_training_probe,
    score,
)
from manifind.bench.task import LabelTruth, RetrievalTask
from manifind.errors import InputError
from manifind.progress import ignore

SHORT = {"epochs": 3, "n_anchors": 10, "n_neighbors": 5, "layers": [16, 8], "batch_size": 64}
PAPER_NET = METHODS["gradnet-paper"]
BULLSEYE = "bullseye@15 counted"


def job(settings=None, seed=0, **options):
    return {"settings": settings or {}, "options": options, "seed": seed}


def test_a_score_keeps_the_wanted_measures_alone_with_every_query_s_value(faces):
    record = score(faces, METHODS["knn"], job(measures=[BULLSEYE]), ignore)
    (kept,) = record["scores"]
    assert list(record["values"]) == [kept["measure"]] == [BULLSEYE]
    assert len(kept["per_query"]) == len(faces.descriptors)
    assert record["values"][BULLSEYE] == pytest.approx(np.mean(kept["per_query"]), abs=1e-3)
    assert record["seconds"] > 0


def test_revisited_lists_keep_all_three_levels(revisited):
    levels = [f"mAP {level}" for level in ("easy", "medium", "hard")]
    assert list(score(revisited, METHODS["knn"], job(measures=levels), ignore)["values"]) == levels


@pytest.mark.parametrize("which", ["faces", "buildings"])
def test_a_curve_ends_where_a_plain_fit_ends(which, request):
    task = request.getfixturevalue(which)
    measure = BULLSEYE if which == "faces" else "mAP"
    given = job({**SHORT, "random_state": 5}, measures=[measure])
    curve, plain = (run(task, PAPER_NET, given, ignore) for run in (learning_curve, score))
    assert curve["epochs"] == [0, 1, 2, 3]
    assert curve["curve"][-1] == curve["values"][measure]
    assert curve["values"][measure] == pytest.approx(plain["values"][measure], abs=1e-6)
    np.testing.assert_allclose(curve["scores"][0]["per_query"], plain["scores"][0]["per_query"], atol=1e-3)


@pytest.mark.parametrize("setting", [{"walk_weight": 1.0}, {"positives": "walks"}, {"guard": True}, {"truncation": 9}])
def test_a_network_with_more_than_layers_in_its_features_cannot_be_looked_at(faces, setting):
    with pytest.raises(InputError, match="a network can be looked at while it learns"):
        open_training_probe(faces, PAPER_NET(**{**SHORT, **setting}).get_params(), ignore)


def line(n=20):
    """Points along a line, alternately of two classes: what is near is of the other class."""
    X = np.stack([np.arange(n), np.ones(n)], axis=1).astype(np.float32)
    return RetrievalTask("line", X, None, None, LabelTruth(np.arange(n) % 2, None))


def test_a_held_out_item_is_neither_asked_among_nor_found():
    task = line()
    record = held_out(task, METHODS["knn"], job({"preprocess": "none"}, seed=1, measures=["mAP"]), ignore)
    out = record["held_out"]
    assert len(out) == 4
    kept = np.setdiff1d(np.arange(20), out)
    for item, value in zip(out, record["scores"][0]["per_query"], strict=True):
        order = kept[np.argsort(np.abs(kept - item), kind="stable")]
        right = order % 2 == item % 2
        precision = np.cumsum(right) / np.arange(1, len(order) + 1)
        assert value == pytest.approx(100 * precision[right].mean(), abs=1e-3)


def test_another_seed_holds_out_others_and_the_same_seed_the_same():
    draws = [
        held_out(line(), METHODS["knn"], job(seed=seed, measures=["mAP"]), ignore)["held_out"] for seed in (0, 0, 1)
    ]
    assert draws[0] == draws[1] != draws[2]


def test_in_the_graph_the_same_queries_are_asked_among_the_same_items():
    unseen, known = (
        held_out(line(), METHODS["knn"], job({"preprocess": "none"}, measures=["mAP"], **options), ignore)
        for options in ({}, {"in_graph": True})
    )
    assert unseen["values"] == pytest.approx(known["values"]), "k-NN does not care where a query was"
    assert (unseen["scores"][0]["queries"], known["scores"][0]["queries"]) == ("unseen", "in the graph")


def test_queries_beside_the_database_are_kept_out_of_the_graph(buildings):
    options = {"measures": ["mAP"], "twice": True}
    record = held_out(buildings, PAPER_NET, job({**SHORT, "random_state": 0}, **options), ignore)
    assert len(record["held_out"]) == 12 // 5
    assert list(record["values"]) == ["mAP", f"mAP{TWICE}"]
    assert all(0 < value <= 100 for value in record["values"].values())


def test_queries_that_are_items_too_leave_the_database(buildings):
    task = buildings._replace(queries=buildings.descriptors[[3, 14, 25, 36, 47]])
    lists = {name: lists[:5] for name, lists in task.truth.lists.lists.items()}
    truth = task.truth._replace(lists=task.truth.lists._replace(lists=lists, queries=None))
    (out,) = held_out(task._replace(truth=truth), METHODS["knn"], job(measures=["mAP"]), ignore)["held_out"]
    kept, _, _, gone = _split(task, np.array([out]), in_graph=False)
    assert gone.tolist() == [[3, 14, 25, 36, 47][out]]
    assert len(kept) == len(buildings.descriptors) - 1


def test_facts_count_classes_items_dimensions_and_queries(faces, buildings):
    of_faces, of_buildings = (facts(one, METHODS["knn"], job(), ignore)["values"] for one in (faces, buildings))
    assert of_faces == {"classes": 12, "items": 132, "dimensions": 16, "queries": 132}
    assert of_buildings == {"classes": 12, "items": 120, "dimensions": 16, "queries": 12}


def test_truncation_leaves_out_what_no_query_has_among_its_nearest(buildings):
    def left(top):
        return left_out(buildings, METHODS["knn"], job(measures=["mAP"], truncation=top), ignore)["values"]

    assert left(120) == {"right items left out": 0, "items kept": 120}
    right = np.concatenate(buildings.truth.lists.lists["ok"])
    X, Q = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (buildings.descriptors, buildings.queries))
    kept = np.unique(np.argsort(-Q @ X.T, axis=1)[:, :2])
    assert left(2)["right items left out"] == pytest.approx(100 * (~np.isin(right, kept)).mean())
    assert left(2)["items kept"] == len(kept)


@pytest.mark.parametrize(
    ("method", "settings", "has_passes"),
    [("gradnet-paper", {**SHORT, "max_steps": 4}, True), ("gss", {"steps": 2}, True), ("efficient", {}, False)],
)
def test_a_cost_has_memory_and_where_there_are_passes_their_time(buildings, method, settings, has_passes):
    values = cost(buildings, METHODS[method], job(settings), ignore)["values"]
    assert values["memory, MB"] >= values["before, MB"] > 0
    assert ("a pass, s" in values) == has_passes


def test_batches_are_compared_with_the_whole_graph(faces):
    values = batches_against_whole(faces, PAPER_NET, job(SHORT, repetitions=2), ignore)["values"]
    assert values["times faster"] == pytest.approx(values["the whole graph, s"] / values["a batch, s"])
