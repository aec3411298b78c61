"""Held-out queries: what a query loses by not having been in the graph."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Ints
from manifind.bench.cell import finished, fit_arguments, how_it_ran, peak_bytes
from manifind.bench.methods import Factory, make
from manifind.bench.paper.procedures import record
from manifind.bench.task import RetrievalTask
from manifind.errors import InputError
from manifind.evaluation.measures import Measure, score
from manifind.evaluation.relevance import NOTHING, Relevance
from manifind.progress import Listener, Progress, ignore
from manifind.search.feature_model import FeatureModel

FOLDS = 5
FOLDS_PROCEDURE = f"{__name__}:folds"
TWICE = ", QFE x 2"
"""Behind the name of a measure: the neighbours of the query found again in the learned space."""
_SHARE = 5  # 11 of the paper's 55


class Unseen(NamedTuple):
    """Scores of the same queries, each among the four fifths of the items that its fold leaves."""

    in_graph: float  # fitted on everything
    unseen: float  # fitted on the four fifths, the query asked afterwards
    thinner: float  # of the items in such a fit, asked from inside; what they lose, no query can win back


def folds(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    (measure,) = job["options"]["measures"]
    return finished(**measure_unseen(task, factory, job["settings"], measure, listener)._asdict())


def measure_unseen(
    task: RetrievalTask, factory: Factory, settings: dict[str, Any], measure: str, listener: Listener = ignore
) -> Unseen:
    """Five folds at random, the same for every method and every run.

    task: whose queries are items of the database, by position or by equal descriptors.
    """
    X, query_items = task.descriptors, positions_of(task)
    relevance, how = task.truth.relevance(task.query_items, measure)
    fold = np.random.default_rng(0).permutation(len(X)) % FOLDS
    members = [np.flatnonzero(fold == number) for number in range(FOLDS)]
    of_query = fold[query_items]
    listener(Progress("unseen queries", 0, FOLDS + 1))
    whole = make(factory, settings).fit(X).search(X[query_items], k=len(X)).ids
    unseen = np.full((len(query_items), len(X)), NOTHING, dtype=np.int64)
    inside = []
    for number, gone in enumerate(members):
        listener(Progress("unseen queries", number + 1, FOLDS + 1))
        kept = np.setdiff1d(np.arange(len(X)), gone)
        found = kept[make(factory, settings).fit(X[kept]).search(X[query_items], k=len(kept)).ids]
        out, stay = np.flatnonzero(of_query == number), np.flatnonzero(of_query != number)
        unseen[out, : len(kept)] = found[out]
        inside.append(_value(found[stay], _without(relevance, stay, [gone] * len(stay)), how))
    listener(Progress("unseen queries", FOLDS + 1, FOLDS + 1))
    everyone = _without(relevance, np.arange(len(query_items)), [members[number] for number in of_query])
    return Unseen(_value(whole, everyone, how), _value(unseen, everyone, how), float(np.mean(inside)))


def held_out(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Scores of the held-out fifth, drawn by the seed.

    Queries that are items leave the database with it, so that nothing of them is known. Options: `in_graph` has them
    in the fit, for comparison, asked among the same items; `twice` also asks by QFE x 2.
    """
    (measure,), in_graph = job["options"]["measures"], bool(job["options"].get("in_graph"))
    drawn = np.random.default_rng(job["seed"]).permutation(task.n_queries)
    out = np.sort(drawn[: task.n_queries // _SHARE])
    kept, known, queries, gone = _split(task, out, in_graph)
    started = time.perf_counter()
    method = make(factory, job["settings"])
    method.fit(task.descriptors[kept], **fit_arguments(method, known, listener))
    models = {measure: method}
    if job["options"].get("twice"):
        models[measure + TWICE] = asking_twice(method)
    relevance, how = task.truth.relevance(task.query_items, measure)
    left = _without(relevance, out, [gone] * len(out))
    scores = []
    for name, model in models.items():
        ids = kept[model.search(queries, k=len(kept)).ids]
        scores += score(ids, left, [how._replace(name=name)], "in the graph" if in_graph else "unseen")
    cost = {"seconds": time.perf_counter() - started, "peak": peak_bytes(), "settings": job["settings"]}
    return record(scores, list(models), **cost, ran=how_it_ran(method), held_out=out.tolist())


def asking_twice(model: Any) -> FeatureModel:
    """A fitted GRAD-Net that finds the neighbours of a query again, among its features."""
    learned: FeatureModel = model.contents().learned
    return replace(learned, queries=replace(learned.queries, passes=2))


def _split(task: RetrievalTask, out: Ints, in_graph: bool) -> tuple[Ints, NDArray[Any] | None, NDArray[Any], Ints]:
    """The items that are fitted, other queries of the fit, the queries `out` that are held out, items among these."""
    every_item, places = np.arange(len(task.descriptors)), find_items(task)
    if task.queries is not None and -1 in places:
        known = task.queries if in_graph else np.delete(task.queries, out, axis=0)
        return every_item, known, task.queries[out], np.empty(0, dtype=np.int64)
    gone = places[out]
    kept = every_item if in_graph else np.setdiff1d(every_item, gone)
    return kept, None, task.descriptors[gone], gone


def positions_of(task: RetrievalTask) -> Ints:
    """Which item of the database each query is; refused where one is none."""
    found = find_items(task)
    if -1 in found:
        query = found.tolist().index(-1)
        raise InputError(f"query {query} is no item of the database, so that it cannot be held out of it")
    return found


def find_items(task: RetrievalTask) -> Ints:
    """Which item each query is, by position or by equal descriptors; -1 for none."""
    if task.queries is None:
        return np.arange(len(task.descriptors)) if task.query_items is None else task.query_items
    place = {row.tobytes(): position for position, row in enumerate(np.ascontiguousarray(task.descriptors))}
    return np.array([place.get(row.tobytes(), -1) for row in np.ascontiguousarray(task.queries)], dtype=np.int64)


def _without(relevance: Relevance, rows: Ints, gone: Sequence[Ints]) -> Relevance:
    """Of some queries, with items removed, right or not. gone: the items of each query."""
    ignored = [np.union1d(relevance.ignored[row], items) for row, items in zip(rows, gone, strict=True)]
    return relevance._replace(relevant=[relevance.relevant[row] for row in rows], ignored=ignored)


def _value(ids: NDArray[Any], relevance: Relevance, how: Measure) -> float:
    return score(ids, relevance, [how], "not stated")[0].value
