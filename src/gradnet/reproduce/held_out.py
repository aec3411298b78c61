"""The task of unseen queries: a fifth of the queries is kept out of the fit and asked afterwards."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradnet.arrays import Ints
from gradnet.errors import InputError
from gradnet.evaluation import Score
from gradnet.evaluation.judgements import Judgements
from gradnet.evaluation.scoring import score
from gradnet.experiments.compare_cell import fit_arguments, peak_bytes
from gradnet.experiments.compare_methods import Factory, make
from gradnet.experiments.compare_question import Question
from gradnet.experiments.unseen import positions_of
from gradnet.progress import Listener
from gradnet.reproduce.scored import record
from gradnet.search.learned import Learned

_SHARE = 5  # 11 of the paper's 55
TWICE = ", QFE x 2"
"""Behind the name of a measure: the neighbours of the query found again in the learned space."""


def held_out(question: Question, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Scores of the held-out fifth, drawn by the seed.

    Queries that are items leave the database with it, so that nothing of them is known. Options: `in_graph` has them
    in the fit, for comparison, asked among the same items; `twice` also asks by QFE x 2.
    """
    (measure,), in_graph = job["options"]["measures"], bool(job["options"].get("in_graph"))
    drawn = np.random.default_rng(job["seed"]).permutation(question.n_queries)
    asked = _asked(question, np.sort(drawn[: question.n_queries // _SHARE]), in_graph)
    started = time.perf_counter()
    method = make(factory, job["settings"])
    method.fit(asked.database, **fit_arguments(method, asked.known, listener))
    answers = {measure: method}
    if job["options"].get("twice"):
        answers[measure + TWICE] = asking_twice(method)
    scores = [_score(question, asked, one, name, measure, in_graph) for name, one in answers.items()]
    cost = {"seconds": time.perf_counter() - started, "peak": peak_bytes(), "settings": job["settings"]}
    return record(scores, list(answers), **cost, held_out=asked.out.tolist())


def asking_twice(model: Any) -> Learned:
    """A fitted GRAD-Net that finds the neighbours of a query again, among its features."""
    learned: Learned = model.contents().learned
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


def _asked(question: Question, out: Ints, in_graph: bool) -> _Asked:
    X, Q = question.descriptors, question.queries
    everything, nothing = np.arange(len(X)), np.empty(0, dtype=np.int64)
    if Q is not None and not _are_items(question):
        known = Q if in_graph else np.delete(Q, out, axis=0)
        return _Asked(out, X, everything, known, Q[out], nothing)
    gone = positions_of(question)[out]
    kept = everything if in_graph else np.setdiff1d(everything, gone)
    return _Asked(out, X[kept], kept, None, X[gone], gone)


def _are_items(question: Question) -> bool:
    """Whether all queries are items too, by equal descriptors, as whole images that ask for their like are."""
    try:
        positions_of(question)
    except InputError:
        return False
    return True


def _score(
    question: Question, asked: _Asked, answering: Any, name: str, measure: str, in_graph: bool
) -> Score:
    ids = asked.kept[answering.search(asked.queries, k=len(asked.kept)).ids]
    judgements, how = question.truth.judged(question.asked, measure)
    where = "in the graph" if in_graph else "unseen"
    return score(ids, _of(judgements, asked.out, asked.gone), [how._replace(name=name)], where)[0]


def _of(judgements: Judgements, out: Ints, gone: Ints) -> Judgements:
    """Of these queries alone, with the items that are gone neither right nor wrong."""
    relevant = [judgements.relevant[row] for row in out]
    ignored = [np.union1d(judgements.ignored[row], gone) for row in out]
    return judgements._replace(relevant=relevant, ignored=ignored)
