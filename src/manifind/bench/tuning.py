"""Tuning by judged queries: a few settings are tried, and one is taken if its gain is beyond chance.

The judged items of each query are ranked by a fit with each setting, and scored. Which setting is best, and what that
is worth, must not be seen on the same queries: so some of them choose, and the others are scored, in turns.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from manifind.arrays import Doubles
from manifind.checkpoint import Checkpoint
from manifind.collection.collection import Collection
from manifind.collection.database import work_folder
from manifind.collection.judgements import JudgedQuery, score_judged
from manifind.errors import InputError
from manifind.evaluation.measures import Score
from manifind.evaluation.protocols import Difference, compare
from manifind.model.refit import fit_apart, refit
from manifind.progress import Listener, Progress, ignore
from manifind.text import count

SPACE: tuple[dict[str, Any], ...] = (
    {"similarity": "adaptive", "kernel_width": 0.15},
    {"similarity": "adaptive", "kernel_width": 0.27},
    {"similarity": "adaptive", "kernel_width": 0.35},
    {"n_neighbors": 10},
    {"n_neighbors": 15},
    {"n_neighbors": 60},
    {"walk_weight": 0.0},
    {"walk_weight": 6.0},
    {"walk_alpha": 0.9},
    {"preprocess": "center"},
    {"preprocess": "center", "n_neighbors": 15},
)
"""What is tried beside the settings that the collection has."""

FEWEST = 8  # judged queries: with fewer, no gain could be told from chance
_FOLDS, _REPEATS = 5, 20
_Judged: TypeAlias = Sequence[tuple[JudgedQuery, dict[Any, bool]]]


@dataclass(frozen=True)
class TuningOutcome:
    """What a tuning found.

    Attributes
    ----------
    n_queries : int
        Judged queries that counted.
    chosen : dict
        The settings that were taken; empty where those of the collection stay.
    best : dict
        The settings with the best score over all queries, whether they were taken or not.
    gain : Difference
        What choosing is worth on queries that it has not seen, in points of mAP, with its 95 % interval.
    scores : list of tuple
        Each setting that was tried, and its mAP over all judged queries, None where it does not fit the items (more
        neighbours than there are); the first is the collection's own.
    refitted : bool
        Whether the collection was fitted anew.
    """

    n_queries: int
    chosen: dict[str, Any]
    best: dict[str, Any]
    gain: Difference
    scores: list[tuple[dict[str, Any], float | None]]
    refitted: bool

    @property
    def words(self) -> str:
        """What was done and what it is worth, in a sentence."""
        gain = f"{self.gain.mean:+.1f} mAP on queries not seen (95 %: {self.gain.low:+.1f} to {self.gain.high:+.1f})"
        over = f"over {count(self.n_queries, 'judged query')}"
        if not self.chosen:
            return f"the settings stay as they are: choosing others would have gained {gain} {over}"
        return f"{settings_in_words(self.chosen)}: {gain} {over}"


class Choice(NamedTuple):
    """Which candidate is best over all queries, and what choosing is worth on queries that were not seen."""

    best: int
    gain: Difference

    @property
    def is_beyond_chance(self) -> bool:
        """Whether something else than the first candidate is best, and all of the interval lies above nothing."""
        return self.best > 0 and self.gain.low > 0


def tune(
    collection: Collection, space: Sequence[dict[str, Any]] = SPACE, *, apply: bool = True, listener: Listener = ignore
) -> TuningOutcome:
    """Choose settings by the judged queries of a collection, and fit it anew where that gains.

    Parameters
    ----------
    collection : Collection
        A full collection with judged queries.
    space : sequence of dict
        Settings of `GradNet` to try, each beside the settings that the collection has.
    apply : bool, default=True
        Whether to fit the collection anew with the settings that were chosen.
    listener : callable, default=ignore
        Called with a `Progress` now and then.

    Returns
    -------
    TuningOutcome
        What was chosen, and what it is worth.

    Raises
    ------
    InputError
        Where too few queries are judged.
    """
    usable = collection.judgements.usable()
    if len(usable) < FEWEST:
        n = count(len(usable), "judged query")
        hint = "judge results on the page (serve --allow-edit), or give a table: manifind tune COLLECTION --judged FILE"
        raise InputError(f"{n} with a right and a wrong result; expected at least {FEWEST}", hint)
    candidates = [{}, *space]
    scores = _score_candidates(collection, usable, candidates, listener)
    choice = choose([np.zeros(len(usable)) if one is None else one for one in scores])
    best = candidates[choice.best]
    chosen = best if choice.is_beyond_chance else {}
    if chosen and apply:
        refit(collection, listener=listener, **chosen)
    means = [None if one is None else float(one.mean()) for one in scores]
    tried = list(zip(candidates, means, strict=True))
    return TuningOutcome(len(usable), chosen, best, choice.gain, tried, bool(chosen) and apply)


def choose(values: Sequence[Doubles], seed: int = 0) -> Choice:
    """The best of some candidates, and the gain of choosing, by repeated cross-validation.

    values: of each candidate, (m,) over the same queries; the first is what is there already. In each fold the
    candidate that is best on the other queries answers, so that a gain that is but luck in choosing does not count.
    """
    table = np.stack(values)
    m = table.shape[1]
    rng, unseen = np.random.default_rng(seed), np.zeros(m)
    for _ in range(_REPEATS):
        fold = rng.permutation(m) % min(_FOLDS, m)
        for number in range(min(_FOLDS, m)):
            out = fold == number
            best = int(table[:, ~out].mean(axis=1).argmax())
            unseen[out] += table[best, out] / _REPEATS
    own = Score("mAP", "over the judged items of each query", "not stated", table[0], np.ones(m))
    return Choice(int(table.mean(axis=1).argmax()), compare(own._replace(per_query=unseen), own))


def settings_in_words(settings: dict[str, Any]) -> str:
    """Settings as the command line says them."""
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "as it is"


def _score_candidates(
    collection: Collection, usable: _Judged, candidates: Sequence[dict[str, Any]], listener: Listener
) -> list[Doubles | None]:
    """How well a fit with each candidate answers each query; an interrupted tuning goes on where it was.

    None where the settings do not fit the items.
    """
    judged = [[query.name, sorted((str(item), right) for item, right in found.items())] for query, found in usable]
    job = {"tuning": collection.version.manifest.commit, "judged": judged, "candidates": list(candidates)}
    checkpoint = Checkpoint(work_folder(collection.path) / "tuning", job)
    known = dict(checkpoint.load("scores") or {})
    own = np.asarray(score_judged(collection, usable).per_query)
    for number, settings in enumerate(candidates[1:], 1):
        listener(Progress("tuning", number - 1, len(candidates) - 1, settings_in_words(settings)))
        if str(number) not in known:
            known[str(number)] = _fit_and_score(collection, usable, settings)
            checkpoint.save("scores", known)
    listener(Progress("tuning", len(candidates) - 1, len(candidates) - 1))
    checkpoint.clear()
    found = (known[str(number)] for number in range(1, len(candidates)))
    return [own, *(one if len(one) else None for one in found)]


def _fit_and_score(collection: Collection, usable: _Judged, settings: dict[str, Any]) -> Doubles:
    """The score of each query; empty where the settings do not fit the items."""
    with tempfile.TemporaryDirectory(prefix="manifind-") as folder:
        try:
            candidate = fit_apart(collection, Path(folder) / "candidate.manifind", **settings)
        except InputError:
            return np.empty(0)
        return np.asarray(score_judged(candidate, usable).per_query)
