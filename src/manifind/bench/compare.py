"""`manifind.compare`: methods compared on a data set, on arrays with labels or on a collection, in one call."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from manifind.bench.comparison import TUNED, CompareOptions, Row, Table, Tuned, run_comparison
from manifind.bench.html import Html, cost_text, join, tag
from manifind.bench.methods import choose_methods
from manifind.bench.results import Results, default_results
from manifind.bench.sources import label_task, read_tasks
from manifind.bench.task import RetrievalTask
from manifind.collection.collection import Collection, load
from manifind.collection.database import is_collection
from manifind.collection.version import original_descriptors
from manifind.errors import InputError, MissingExtraError
from manifind.progress import Listener, ignore
from manifind.settings import check_settings

Data: TypeAlias = "str | os.PathLike[str] | Collection | tuple[ArrayLike, ArrayLike]"
Truth: TypeAlias = "str | os.PathLike[str] | ArrayLike"


class MethodComparison:
    """What `compare` found: a table for each task, shown by pandas and by Jupyter.

    Attributes
    ----------
    tables : list of Table
        One for each array, or each pair of vectors and ground truth, of the data. A table has the `name` of the
        task, its `measure`, the `rule` that is counted by, and `rows`.
    seed : int
        The seed that the methods were given.
    """

    def __init__(self, tables: Sequence[Table], seed: int) -> None:
        self.tables, self.seed = list(tables), seed

    def to_pandas(self) -> Any:
        """The comparison as a table of pandas.

        Returns
        -------
        pandas.DataFrame
            One row for each method, and one more for each that was tuned with the labels: `set`, `method`,
            `settings` ("default" or "tuned with the labels"), `state`, `measure`, `score`, `low` and `high` (its
            95 % interval), `against_knn`, `against_low` and `against_high`, `prepare_s`, `query_ms`, `peak_MB` and
            `reason`, which says why a method has no score.

        Raises
        ------
        MissingExtraError
            Where pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("to_pandas needs pandas, which is not installed", "pip install pandas") from error
        return pd.DataFrame([line for table in self.tables for row in table.rows for line in _lines(table, row)])

    def _repr_html_(self) -> str:
        return join(*map(_html, self.tables))

    def __repr__(self) -> str:
        return "\n\n".join(map(_text, self.tables))


def compare(
    data: Data,
    methods: str | Sequence[str] = "all",
    *,
    truth: Truth | None = None,
    measure: str | None = None,
    window: int | None = None,
    protocol: str | None = None,
    only: str | None = None,
    preprocess: str = "unit",
    tune: bool = False,
    tune_budget: int | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    results: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    retry: bool = False,
    folder: str | os.PathLike[str] | None = None,
    listener: Listener = ignore,
) -> MethodComparison:
    """Compare retrieval methods on the same data: score, interval, difference to k-NN, time and memory.

    Each method runs in a process of its own, so that one that fails has a row that says why. What is finished is
    saved, so that the same call goes on after an interruption and runs nothing twice.

    Parameters
    ----------
    data : str, path, Collection or tuple of (X, labels)
        A data set of the catalogue by name, a file or folder of vectors with labels or ground truth, a collection,
        or arrays: X of shape (n, d) and a label for each row; rows that share a label should find each other.
    methods : str or sequence of str, default="all"
        Names of `manifind.METHODS`, in a list or with commas between them; a class of your own is "FILE.py:CLASS".
    truth : path or array-like of shape (n,), default=None
        For a collection: a file of published lists, or a label for each of its items in the order of `ids`. None
        looks for files `gnd_*` beside it.
    measure : str, default=None
        The score to show and to tune by, such as "bullseye@40 counted". None takes the usual one, mostly mAP.
    window : int, default=None
        With labels: the bullseye score in this window, too.
    protocol : {"official", "landmarks"}, default=None
        With published lists: the official queries, or every right image of a landmark in turn. None takes the
        official ones where they have vectors.
    only : str, default=None
        Of several arrays or ground truths, those with this text in their name.
    preprocess : {"unit", "center", "whiten", "none"}, default="unit"
        What is done to the descriptors, for all methods alike.
    tune : bool, default=False
        Search each method's settings with the labels, too. The rows of that flatter: nobody without labels can choose
        so.
    tune_budget : int, default=None
        Most settings to try for a method. None tries all of its grid.
    seed : int, default=0
        The same seed gives the same scores.
    time_limit : float, default=None
        Most seconds for a method; then it has failed. None for no limit.
    results : path, default=None
        The file that finished cells are saved in. None takes one in the system's folder for caches.
    fresh : bool, default=False
        Run everything, whatever is saved.
    retry : bool, default=False
        Run again what failed before.
    folder : path, default=None
        Where the data sets live. None takes the environment variable MANIFIND_DATA, else the folder for caches.
    listener : callable, default=ignore
        Called with a `Progress` as the work goes on.

    Returns
    -------
    MethodComparison
        Has `to_pandas()`, and is shown as a table by Jupyter.

    Raises
    ------
    InputError
        Where the data, a method or an option is not usable.
    DataError
        Where the files of a data set are missing.
    """
    from manifind.baselines import METHODS

    check_settings({"preprocess": preprocess})
    chosen = choose_methods(methods if isinstance(methods, str) else ",".join(methods), list(METHODS))
    options = CompareOptions(
        time_limit, fresh, retry, preprocess=preprocess, seed=seed, measure=measure, tune=tune, budget=tune_budget
    )
    root, file = (None if path is None else Path(path) for path in (folder, results))
    tables = [
        run_comparison(task, chosen, options, Results(file or default_results(task.digest())), listener)
        for task in _tasks(data, truth, window, protocol, only, root, listener)
    ]
    return MethodComparison(tables, seed)


def _tasks(
    data: Any,
    truth: Any,
    window: int | None,
    protocol: str | None,
    only: str | None,
    folder: Path | None,
    listener: Listener,
) -> list[RetrievalTask]:
    if isinstance(data, Collection):
        data = data.path
    is_path = isinstance(data, str | os.PathLike)
    if is_path and (truth is None or isinstance(truth, str | os.PathLike)):
        lists = None if truth is None else Path(truth)
        return read_tasks(os.fspath(data), folder, window, protocol, only, listener, lists)
    if protocol is not None or only is not None:
        raise InputError("protocol and only are for files, and this data has labels", "leave them out")
    if is_path:
        if not is_collection(Path(data)):
            raise InputError(f"truth is for a collection, and {data} is none", "give arrays as (X, labels)")
        collection = load(data)
        return [_labelled(collection.path.stem, original_descriptors(collection.version), truth, window)]
    if not isinstance(data, tuple) or len(data) != 2:
        raise InputError(
            f"data is of type {type(data).__name__}; expected a name, a path, a collection or (X, labels)",
            "put arrays into a pair: compare((X, labels))",
        )
    if truth is not None:
        raise InputError("truth is for a collection, and this data has labels", "leave it out")
    return [_labelled("arrays", data[0], data[1], window)]


def _labelled(name: str, X: Any, labels: Any, window: int | None) -> RetrievalTask:
    rows, names = np.asarray(X), np.asarray(labels)
    if rows.ndim != 2 or names.shape != (len(rows),) or not len(rows):
        raise InputError(
            f"descriptors of shape {rows.shape} with labels of shape {names.shape}; expected (n, d) and (n,)",
            "give one label for each row",
        )
    numbers = np.unique(names, return_inverse=True)[1].reshape(-1).astype(np.int64)  # equal where the labels are
    return label_task(name, rows, numbers, window)


def _lines(table: Table, row: Row) -> Iterator[dict[str, Any]]:
    """A row as plain values, and another where it was tuned."""
    entries = {"default": row.entry} | ({} if row.tuned is None else {TUNED: row.tuned.entry})
    for settings, (cell, _, main, against) in entries.items():
        seconds, milliseconds, megabytes = cell.costs
        yield {
            "set": table.name,
            "method": row.method,
            "settings": settings,
            "state": cell.state,
            "measure": table.measure,
            "score": main and main.score.value,
            "low": main and main.low,
            "high": main and main.high,
            "against_knn": against and against.mean,
            "against_low": against and against.low,
            "against_high": against and against.high,
            "prepare_s": seconds,
            "query_ms": milliseconds,
            "peak_MB": megabytes,
            "reason": cell.reason,
        }


def title(table: Table) -> str:
    return f"{table.name}: {table.size}, descriptors {table.preprocess}"


def shown_cells(table: Table) -> list[list[str]]:
    """The table as text, its head first."""
    head = ["method", table.measure or "score", "95 % interval", "against k-NN", "prepare, s", "query, ms", "peak, MB"]
    rows = [_cells(row) for row in table.rows]
    if any(row.tuned for row in table.rows):
        head.append(TUNED)
        rows = [[*cells, _tuned_text(row.tuned)] for cells, row in zip(rows, table.rows, strict=True)]
    return [head, *rows]


def _cells(row: Row) -> list[str]:
    cell, _, main, against = row.entry
    if main is None:
        return [row.method, cell.state, *[""] * 5]
    difference = ""
    if against is not None:  # in brackets where the queries cannot tell the two apart
        is_clear = against.low > 0 or against.high < 0
        difference = f"{against.mean:+.2f}" if is_clear else f"({against.mean:+.2f})"
    costs = ("not known" if value is None else cost_text(value) for value in cell.costs)
    return [row.method, f"{main.score.value:.2f}", f"{main.low:.1f}-{main.high:.1f}", difference, *costs]


def _tuned_text(tuned: Tuned | None) -> str:
    if tuned is None:
        return ""
    return tuned.entry.cell.state if tuned.entry.main is None else f"{tuned.entry.main.score.value:.2f}"


def notes(table: Table) -> list[str]:
    """Why methods have no score, what tuning chose, and what the columns mean."""
    lines = [line for row in table.rows for line in _reasons(row)]
    if table.rule is not None:
        lines.append(f"rule: {table.rule}; queries in the graph")
    lines.append("95 % interval: bootstrap over the queries, 10,000 resamples")
    if any(row.entry.against for row in table.rows):
        lines.append("against k-NN: mean difference query by query, in brackets where its 95 % interval contains 0")
    lines.append("query: all asked at once, full rankings, divided by their number; peak: of the whole process")
    if any(row.tuned for row in table.rows):
        lines.append(f"{TUNED}: chosen by the very score that it shows, which flatters; the default saw no label")
    return lines


def _reasons(row: Row) -> Iterator[str]:
    if row.entry.cell.reason:
        yield f"{row.method} {row.entry.cell.why}"
    if row.tuned is not None:
        yield f"{row.method} {TUNED}: {row.tuned.words}"
        if row.tuned.chosen and row.tuned.entry.cell.reason:
            yield f"{row.method} {TUNED} {row.tuned.entry.cell.why}"


def _html(table: Table) -> Html:
    head, *body = shown_cells(table)
    heads = tag("tr", *(tag("th", cell) for cell in head))
    rows = (tag("tr", *(tag("td", cell) for cell in row)) for row in body)
    shown = tag("table", tag("caption", title(table)), tag("thead", heads), tag("tbody", *rows))
    return join(shown, tag("ul", *(tag("li", note) for note in notes(table))))


def _text(table: Table) -> str:
    rows = shown_cells(table)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join([title(table), *lines, *notes(table)])
