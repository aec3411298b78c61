"""Held-out queries: what a query loses by not having been in the graph."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Ints
from manifind.bench.cell import fit_arguments, peak_bytes
from manifind.bench.methods import Factory, make
from manifind.bench.paper.procedures import record
from manifind.bench.task import RetrievalTask
from manifind.errors import InputError
from manifind.evaluation.measures import Measure, Score, score
from manifind.evaluation.relevance import NOTHING, Relevance
from manifind.progress import Listener, Progress, ignore
from manifind.search.feature_model import FeatureModel

FOLDS = 5


class Unseen(NamedTuple):
    """Scores of the same queries, each among the four fifths of the items that its fold leaves.

    in_graph: fitted on everything. unseen: fitted on the four fifths, the query asked afterwards.
    thinner: of the items that stand in such a fit, asked from inside; what they lose, no query can win back.
    """

    in_graph: float
    unseen: float
    thinner: float


def measure_unseen(
    task: RetrievalTask, factory: Factory, settings: dict[str, Any], measure: str, listener: Listener = ignore
) -> Unseen:
    """Five folds at random, the same for every method and every run.

    task: whose queries are items of the database, by position or by equal descriptors.
    """
    X, asked = task.descriptors, positions_of(task)
    relevance, how = task.truth.relevance(task.query_items, measure)
    fold = np.random.default_rng(0).permutation(len(X)) % FOLDS
    of_query = fold[asked]
    listener(Progress("unseen queries", 0, FOLDS + 1))
    whole = make(factory, settings).fit(X).search(X[asked], k=len(X)).ids
    unseen = np.full((len(asked), len(X)), NOTHING, dtype=np.int64)
    inside = []
    for number in range(FOLDS):
        listener(Progress("unseen queries", number + 1, FOLDS + 1))
        kept, out = np.flatnonzero(fold != number), np.flatnonzero(of_query == number)
        found = kept[make(factory, settings).fit(X[kept]).search(X[asked], k=len(kept)).ids]
        unseen[out, : len(kept)] = found[out]
        stay = np.flatnonzero(of_query != number)
        inside.append(_value(found[stay], _without(relevance, stay, fold, np.full(len(stay), number)), how))
    listener(Progress("unseen queries", FOLDS + 1, FOLDS + 1))
    everyone = _without(relevance, np.arange(len(asked)), fold, of_query)
    return Unseen(_value(whole, everyone, how), _value(unseen, everyone, how), float(np.mean(inside)))


def positions_of(task: RetrievalTask) -> Ints:
    """Which item of the database each query is."""
    if task.queries is None:
        return np.arange(len(task.descriptors)) if task.query_items is None else task.query_items
    place = {row.tobytes(): position for position, row in enumerate(np.ascontiguousarray(task.descriptors))}
    found = [place.get(row.tobytes(), -1) for row in np.ascontiguousarray(task.queries)]
    if -1 in found:
        raise InputError(f"query {found.index(-1)} is no item of the database, so that it cannot be held out of it")
    return np.array(found, dtype=np.int64)


def _without(relevance: Relevance, rows: Ints, fold: Ints, left_out: Ints) -> Relevance:
    """Of some queries, with the items of a fold removed, right or not. left_out: (m,) the fold of each."""
    members = [np.flatnonzero(fold == number) for number in range(FOLDS)]
    ignored = [np.union1d(relevance.ignored[row], members[number]) for row, number in zip(rows, left_out, strict=True)]
    relevant = [relevance.relevant[row] for row in rows]
    return relevance._replace(relevant=relevant, ignored=ignored)


def _value(ids: NDArray[Any], relevance: Relevance, how: Measure) -> float:
    return score(ids, relevance, [how], "not stated")[0].value


_SHARE = 5  # 11 of the paper's 55
TWICE = ", QFE x 2"
"""Behind the name of a measure: the neighbours of the query found again in the learned space."""


def held_out(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Scores of the held-out fifth, drawn by the seed.

    Queries that are items leave the database with it, so that nothing of them is known. Options: `in_graph` has them
    in the fit, for comparison, asked among the same items; `twice` also asks by QFE x 2.
    """
    (measure,), in_graph = job["options"]["measures"], bool(job["options"].get("in_graph"))
    drawn = np.random.default_rng(job["seed"]).permutation(task.n_queries)
    asked = _asked(task, np.sort(drawn[: task.n_queries // _SHARE]), in_graph)
    started = time.perf_counter()
    method = make(factory, job["settings"])
    method.fit(asked.database, **fit_arguments(method, asked.known, listener))
    answers = {measure: method}
    if job["options"].get("twice"):
        answers[measure + TWICE] = asking_twice(method)
    scores = [_score(task, asked, one, name, measure, in_graph) for name, one in answers.items()]
    cost = {"seconds": time.perf_counter() - started, "peak": peak_bytes(), "settings": job["settings"]}
    return record(scores, list(answers), **cost, held_out=asked.out.tolist())


def asking_twice(model: Any) -> FeatureModel:
    """A fitted GRAD-Net that finds the neighbours of a query again, among its features."""
    learned: FeatureModel = model.contents().learned
    return replace(learned, queries=replace(learned.queries, passes=2))


class _Asked(NamedTuple):
    """out: which queries are held out. database: what is fitted, its items `kept` of all. known: queries of the fit.

    queries: the held-out ones. gone: items that are among them.
    """

    out: Ints
    database: NDArray[Any]
    kept: Ints
    known: NDArray[Any] | None
    queries: NDArray[Any]
    gone: Ints


def _asked(task: RetrievalTask, out: Ints, in_graph: bool) -> _Asked:
    X, Q = task.descriptors, task.queries
    everything, nothing = np.arange(len(X)), np.empty(0, dtype=np.int64)
    if Q is not None and not _are_items(task):
        known = Q if in_graph else np.delete(Q, out, axis=0)
        return _Asked(out, X, everything, known, Q[out], nothing)
    gone = positions_of(task)[out]
    kept = everything if in_graph else np.setdiff1d(everything, gone)
    return _Asked(out, X[kept], kept, None, X[gone], gone)


def _are_items(task: RetrievalTask) -> bool:
    """Whether all queries are items too, by equal descriptors, as whole images that ask for their like are."""
    try:
        positions_of(task)
    except InputError:
        return False
    return True


def _score(task: RetrievalTask, asked: _Asked, answering: Any, name: str, measure: str, in_graph: bool) -> Score:
    ids = asked.kept[answering.search(asked.queries, k=len(asked.kept)).ids]
    relevance, how = task.truth.relevance(task.query_items, measure)
    where = "in the graph" if in_graph else "unseen"
    return score(ids, _of(relevance, asked.out, asked.gone), [how._replace(name=name)], where)[0]


def _of(relevance: Relevance, out: Ints, gone: Ints) -> Relevance:
    """Of these queries alone, with the items that are gone neither right nor wrong."""
    relevant = [relevance.relevant[row] for row in out]
    ignored = [np.union1d(relevance.ignored[row], gone) for row in out]
    return relevance._replace(relevant=relevant, ignored=ignored)
