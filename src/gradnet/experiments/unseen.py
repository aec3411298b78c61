"""How much a query loses by not having been in the graph: every item is held out once, in one of five folds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradnet.arrays import Ints
from gradnet.errors import InputError
from gradnet.evaluation.hits import NOTHING
from gradnet.evaluation.judgements import Judgements
from gradnet.evaluation.scoring import Measure, score
from gradnet.experiments.compare_methods import Factory, make
from gradnet.experiments.compare_question import Question
from gradnet.progress import Listener, Progress, ignore

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
    question: Question, factory: Factory, settings: dict[str, Any], measure: str, listener: Listener = ignore
) -> Unseen:
    """Five folds at random, the same for every method and every run.

    question: whose queries are items of the database, by position or by equal descriptors.
    """
    X, asked = question.descriptors, positions_of(question)
    judgements, how = question.truth.judged(question.asked, measure)
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
        inside.append(_value(found[stay], _without(judgements, stay, fold, np.full(len(stay), number)), how))
    listener(Progress("unseen queries", FOLDS + 1, FOLDS + 1))
    everyone = _without(judgements, np.arange(len(asked)), fold, of_query)
    return Unseen(_value(whole, everyone, how), _value(unseen, everyone, how), float(np.mean(inside)))


def positions_of(question: Question) -> Ints:
    """Which item of the database each query is."""
    if question.queries is None:
        return np.arange(len(question.descriptors)) if question.asked is None else question.asked
    place = {
        row.tobytes(): position for position, row in enumerate(np.ascontiguousarray(question.descriptors))
    }
    found = [place.get(row.tobytes(), -1) for row in np.ascontiguousarray(question.queries)]
    if -1 in found:
        raise InputError(
            f"query {found.index(-1)} is no item of the database, so that it cannot be held out of it"
        )
    return np.array(found, dtype=np.int64)


def _without(judgements: Judgements, rows: Ints, fold: Ints, left_out: Ints) -> Judgements:
    """Of some queries, with the items of a fold removed, right or not. left_out: (m,) the fold of each."""
    members = [np.flatnonzero(fold == number) for number in range(FOLDS)]
    ignored = [
        np.union1d(judgements.ignored[row], members[number])
        for row, number in zip(rows, left_out, strict=True)
    ]
    relevant = [judgements.relevant[row] for row in rows]
    return judgements._replace(relevant=relevant, ignored=ignored)


def _value(ids: NDArray[Any], judgements: Judgements, how: Measure) -> float:
    return score(ids, judgements, [how], "not stated")[0].value
