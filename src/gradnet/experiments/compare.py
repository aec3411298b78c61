"""A comparison: every method on one question, cell by cell, with what is already known taken from a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradnet.evaluation import Difference, compare
from gradnet.experiments.compare_cell import Cell, Scored
from gradnet.experiments.compare_methods import Method
from gradnet.experiments.compare_question import Question
from gradnet.experiments.compare_runner import Best, Options, main_score, open_runner
from gradnet.experiments.compare_store import Results
from gradnet.progress import Listener, ignore
from gradnet.wording import count

__all__ = ["TUNED", "Entry", "Options", "Row", "Table", "Tuned", "run_comparison"]

TUNED = "tuned with the labels"
"""What such a score is called wherever it is shown."""
_REFERENCE = "knn"


class Entry(NamedTuple):
    """A cell as it is shown. kept: whether it is from an earlier run. main: the score to show, if there is one.

    against: how far it is above k-NN, query by query; None where that is missing, or this is k-NN itself.
    """

    cell: Cell
    kept: bool
    main: Scored | None = None
    against: Difference | None = None


class Tuned(NamedTuple):
    """The best that the labels could choose. chosen: its settings, empty where the default is the best.

    tried: how many were run. unusable: how many of these were refused or failed.
    """

    entry: Entry
    chosen: dict[str, Any]
    tried: int
    unusable: int

    @property
    def words(self) -> str:
        """What was chosen out of how many, for people."""
        chosen = ", ".join(f"{name}={value!r}" for name, value in self.chosen.items())
        unusable = f", {self.unusable} of them refused or failed" if self.unusable else ""
        return f"{chosen or 'the default is the best'} ({count(self.tried, 'setting')} tried{unusable})"


class Row(NamedTuple):
    """One method: by default and, where it was tuned, with the settings that the labels chose."""

    method: str
    entry: Entry
    tuned: Tuned | None = None


class Table(NamedTuple):
    """One question answered by every method. measure, rule: of the score shown; None where no method was done."""

    name: str
    items: int
    dimension: int
    queries: int
    digest: str
    preprocess: str
    measure: str | None
    rule: str | None
    rows: list[Row]


def run_comparison(
    question: Question,
    methods: Sequence[Method],
    options: Options,
    results: Results,
    listener: Listener = ignore,
) -> Table:
    """Every method by default, then, if asked for, with settings tuned by the labels.

    Each runs in a process of its own; what one does cannot hurt another. Whatever is finished is in `results`
    at once, so that the same call after an interruption goes on where it was.
    """
    with open_runner(question, methods, options, results, listener) as runner:
        cells = [(method, *runner.cell(method, {})) for method in methods]
        best = {m.label: runner.tuned(m, cell) for m, cell, _ in cells} if options.tune else {}
    reference = next((cell for method, cell, _ in cells if method.address == _REFERENCE), None)
    rows = []
    for method, cell, kept in cells:
        entry = _entry(cell, kept, reference, options.measure)
        rows.append(
            Row(method.label, entry, _tuned(entry, best.get(method.label), reference, options.measure))
        )
    shown = next((row.entry.main.score for row in rows if row.entry.main), None)
    return Table(
        question.name,
        len(question.descriptors),
        question.descriptors.shape[1],
        question.n_queries,
        runner.digest,
        options.preprocess,
        shown.measure if shown else None,
        shown.rule if shown else None,
        rows,
    )


def _tuned(entry: Entry, best: Best | None, reference: Cell | None, measure: str | None) -> Tuned | None:
    if best is None:
        return None
    is_default = best.cell is entry.cell
    shown = entry if is_default else _entry(best.cell, best.kept, reference, measure)
    return Tuned(shown, best.chosen, best.tried, best.unusable)


def _entry(cell: Cell, kept: bool, reference: Cell | None, measure: str | None) -> Entry:
    main = main_score(cell, measure)
    base = None if reference is None or reference is cell else main_score(reference, measure)
    return Entry(cell, kept, main, compare(main.score, base.score) if main and base else None)
