"""Measures other readings of the paper beside ours, into docs/results/readings.jsonl, and renders docs/readings.md.

`scripts/readings.py` runs every reading with three seeds, seed after seed: hours on one core. `--limit` begins nothing
more after so many seconds; `--outdated` runs again what other code made; `--render` only renders. Readings that are no
settings of `GradNet`, and what else is measured, are in scripts/other_readings.py.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import other_readings
from other_readings import E_MINUS_5, LOOKED_AT

from manifind.arrays import Floats
from manifind.bench.html import markdown_table, put_between
from manifind.bench.paper.declared import Run
from manifind.bench.paper.procedures import PROCEDURES
from manifind.bench.paper.runner import PaperRunOptions, Wanted, run_missing
from manifind.bench.paper.tables import score_run
from manifind.bench.results import Results
from manifind.bench.sets import SETS, BenchmarkSet, read_set
from manifind.bench.task import RetrievalTask
from manifind.progress import progress_bars

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results" / "readings.jsonl"
REPRODUCED = ROOT / "docs" / "results" / "reproduction.jsonl"
PAGE = ROOT / "docs" / "readings.md"
SEEDS = (0, 1, 2)
REPRODUCTION = ("curve", "score")
"""Procedures whose results are in REPRODUCED."""

FACES, PARIS, SCORE = "ORL aligned", "Paris subset", "bullseye@15 counted"
PER_PIXEL, BYTES, PADDED = f"{FACES}, per pixel", f"{FACES}, / 255", f"{PARIS}, 2,048 dimensions"
BASE: dict[str, Any] = {"preprocess": "center", "n_neighbors": 8}
SHORT: dict[str, Any] = {"n_neighbors": 60, "max_steps": 300}  # on Paris, in place of 6,000 steps


class Cell(NamedTuple):
    """One value of a run, its mean over the seeds that are known."""

    run: Run
    value: str = SCORE
    digits: int = 1


class Table(NamedTuple):
    """What is shown between two marks of the page. rows: by their texts; None for a cell that stays empty."""

    head: tuple[str, ...]
    rows: dict[str, tuple[Cell | None, ...]]


def fitted(on: str = FACES, **settings: Any) -> Cell:
    """The score of a fit with the paper's settings but these."""
    return Cell(Run("trial", on, "gradnet-paper", settings))


def faces(**settings: Any) -> Cell:
    """The score on centred rows with eight neighbours, which the readings are compared by."""
    return fitted(**{**BASE, **settings})


def altered(reading: str, **settings: Any) -> Cell:
    """The same with a reading that is no setting."""
    return Cell(Run("reading", FACES, "gradnet-paper", {**BASE, **settings}, {"reading": reading}))


def ablated(**settings: Any) -> Cell:
    """A row of Table 4 on the same set, on unit rows: it is in the results of the reproduction."""
    return Cell(Run("curve", FACES, "gradnet-paper", settings, {"measures": [SCORE]}))


def reproduced(on: str, **settings: Any) -> Cell:
    """A row of Table 2, which is in the same results."""
    return Cell(score_run(on, "gradnet-paper", settings))


def pixels(on: str, preprocess: str, trained: Cell | None = None) -> tuple[Cell, ...]:
    """Trained, untrained, k-NN, and how alike two rows are."""
    settings: dict[str, Any] = {"preprocess": preprocess, "n_neighbors": 8}
    untrained = fitted(on, **settings, max_steps=0)
    knn, alike = Run("trial", on, "knn", {"preprocess": preprocess}), Run("right edges", on, "gradnet-paper", settings)
    return trained or fitted(on, **settings), untrained, Cell(knn), Cell(alike, "cosine", 2)


def edges(preprocess: str, k: int) -> Cell:
    return Cell(Run("right edges", FACES, "gradnet-paper", {"preprocess": preprocess, "n_neighbors": k}), "right, %")


def first_epochs(on: str, preprocess: str, trained: Cell | None) -> tuple[Cell | None, ...]:
    """Scores after some epochs and after all, then mean cosines between two items' features; with the paper's k."""
    run = Run("first epochs", on, "gradnet-paper", {"preprocess": preprocess}, {"measure": SCORE})
    scores = (Cell(run, f"score {epoch}") for epoch in LOOKED_AT)
    return *scores, trained, *(Cell(run, f"cosine {epoch}", 2) for epoch in LOOKED_AT)


def expanded_by(weights: str) -> tuple[Cell, ...]:
    """Scores of unseen faces and landmarks."""
    of_faces = Run("qfe", FACES, "gradnet-paper", BASE, {"measure": SCORE})
    of_landmarks = Run("qfe", PARIS, "gradnet-paper", SHORT, {"measure": "mAP"})
    return Cell(of_faces, weights), Cell(of_landmarks, weights)


def held_out_by(draw: str) -> tuple[Cell, ...]:
    """Scores of unseen landmarks, of many draws where a fit costs little."""
    many, one = ({"measure": "mAP", "draw": draw, "draws": n} for n in (40, 1))
    cheap = (Run("draws", PARIS, method, {}, many) for method in ("knn", "efficient"))
    return tuple(Cell(run, "mean") for run in (Run("draws", PARIS, "gradnet-paper", SHORT, one), *cheap))


def at_the_start(on: str, **settings: Any) -> tuple[Cell, ...]:
    run = Run("start", on, "gradnet-paper", settings)
    return tuple(Cell(run, value, 2) for value in ("local", "global", "decay", "ratio"))


OURS = reproduced(FACES, **BASE)
TABLES: dict[str, Table] = {
    "pixels": Table(
        ("descriptors", "trained", "untrained", "k-NN", "mean cosine"),
        {
            "unit rows": pixels(FACES, "unit", ablated(n_neighbors=8)),
            "centred, then unit rows": pixels(FACES, "center", OURS),
            "each pixel standardised, then unit rows": pixels(PER_PIXEL, "unit"),
            "pixels / 255, rows as they are": pixels(BYTES, "none"),
        },
    ),
    "trained": Table(
        ("", "trained", "untrained"),
        {
            f"{on}, {name}": (reproduced(on, **settings), reproduced(on, **settings, max_steps=0))
            for on in (FACES, "ORL")
            for name, settings in {"unit rows, k = 15": {}, "centred, k = 8": BASE}.items()
        },
    ),
    "collapse": Table(
        ("k = 15", *(f"epoch {epoch}" for epoch in (*LOOKED_AT, 300)), *(f"cosine, {epoch}" for epoch in LOOKED_AT)),
        {
            f"{FACES}, unit rows": first_epochs(FACES, "unit", ablated()),
            f"{FACES}, centred": first_epochs(FACES, "center", faces(n_neighbors=15)),
            "ORL, unit rows": first_epochs("ORL", "unit", reproduced("ORL")),
            "ORL, centred": first_epochs("ORL", "center", None),
        },
    ),
    "k": Table(
        ("k", "score, centred rows", "score, unit rows", "right edges, centred rows", "right edges, unit rows"),
        {
            "4": (faces(n_neighbors=4), None, edges("center", 4), edges("unit", 4)),
            "8": (OURS, ablated(n_neighbors=8), edges("center", 8), edges("unit", 8)),
            "15": (faces(n_neighbors=15), ablated(), edges("center", 15), edges("unit", 15)),
        },
    ),
    "self": Table(("NN_k", "score"), {"others alone": (OURS,), "the item too": (altered("self", n_neighbors=7),)}),
    "passed": Table(("passed on", "score"), {"unit rows": (OURS,), "activations": (altered("unnormalised"),)}),
    "global": Table(
        ("k in O_global", "score"), {"any node": (OURS,), "a neighbour of j": (altered("common neighbour"),)}
    ),
    "beta": Table(
        ("beta", "centred rows", "unit rows"),
        {
            "e^5 = 148.4": (OURS, ablated(n_neighbors=8)),
            "10^5": (faces(beta=1e5), fitted(n_neighbors=8, beta=1e5)),
            "10^5, `local_weight=130`": (None, fitted(n_neighbors=8, beta=1e5, local_weight=130.0)),
        },
    ),
    "l2": Table(("lambda", "score"), {"10^-5": (OURS,), "e^-5 = 0.0067": (faces(l2=E_MINUS_5),)}),
    "start": Table(
        ("d", "local", "global", "e^-5 of the squared weights", "times both losses"),
        {
            "512": at_the_start(PARIS, n_neighbors=60),
            "1,024": at_the_start(FACES, **BASE),
            "2,048": at_the_start(PADDED, n_neighbors=60),
            "10,304": at_the_start("ORL", **BASE),
        },
    ),
    "epoch": Table(("an epoch", "score"), {"nodes / 64": (OURS,), "edges / 64": (faces(epoch="edges"),)}),
    "weights": Table(
        ("s_qi", FACES, PARIS),
        {
            "1 / (1 + distance)": expanded_by("distance"),
            "cosine": expanded_by("cosine"),
            "all alike": expanded_by("equal"),
        },
    ),
    "twice": Table(
        ("neighbours in the learned space", FACES, PARIS),
        {
            "not looked for: QFE": expanded_by("distance"),
            "weighed by 1 / (1 + distance)": expanded_by("twice, distance"),
            "all alike, their mean": expanded_by("twice, equal"),
        },
    ),
    "draws": Table(
        ("queries held out", "QFE", "k-NN", "Efficient"),
        {
            "a fifth, at random": held_out_by("fifth"),
            "11, at random": held_out_by("eleven"),
            "11, one of each landmark": held_out_by("landmarks"),
        },
    ),
}
"""By the marks between which they stand."""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--render", action="store_true", help="render what is known, run nothing")
    parser.add_argument("--outdated", action="store_true", help="run again what other code made")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which to stop")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the results file")
    given = parser.parse_args()
    if not given.render:
        run_readings(Results(given.out), given.limit, given.outdated)
    if given.out == RESULTS:
        PAGE.write_text(rendered_pages()[PAGE])


def run_readings(results: Results, limit: float, outdated: bool = False) -> None:
    """Every run that the file lacks; what is cut off is the last seed."""
    folders = [str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))  # for the processes that run the functions below
    SETS.update({one.name: one for one in derived_sets()})
    PROCEDURES.update(other_readings.PROCEDURES)
    until = time.monotonic() + limit
    with progress_bars() as listener:
        for seed in SEEDS:
            mine = [Wanted(run, seed, "scripts/readings.py") for run in runs() if seed in seeds_of(run)]
            options = PaperRunOptions(seconds=until - time.monotonic(), outdated=outdated)
            run_missing(mine, results, options, listener)


def runs() -> list[Run]:
    """What the tables need and the reproduction does not have, each once."""
    cells = [cell for table in TABLES.values() for row in table.rows.values() for cell in row if cell]
    return list({repr(cell.run): cell.run for cell in cells if cell.run.procedure not in REPRODUCTION}.values())


def seeds_of(run: Run) -> Sequence[int]:
    """One where a seed changes nothing or little, or where a fit takes too long."""
    is_fact = run.procedure in ("right edges", "start") or run.method != "gradnet-paper"
    return SEEDS[:1] if is_fact or run.settings.get("epoch") == "edges" else SEEDS


def derived_sets() -> Iterator[BenchmarkSet]:
    """Sets whose descriptors are others of the same pictures."""
    changes: dict[str, tuple[str, Callable[[Floats], Floats]]] = {
        PER_PIXEL: (FACES, standardised),
        BYTES: (FACES, lambda X: X / np.float32(255)),
        PADDED: (PARIS, lambda X: np.pad(X, ((0, 0), (0, 2048 - X.shape[1])))),
    }
    for name, (base, change) in changes.items():
        yield replace(SETS[base], name=name, find=partial(_find_changed, SETS[base], change))


def _find_changed(
    base: BenchmarkSet, change: Callable[[Floats], Floats], folder: Path | None
) -> Callable[[], RetrievalTask]:
    task = read_set(base, folder)
    return lambda: task._replace(descriptors=change(task.descriptors.astype(np.float32)))


def standardised(X: Floats) -> Floats:
    """Each column with mean 0 and deviation 1; a constant one stays at 0."""
    deviation = X.std(axis=0)
    return np.asarray((X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1), dtype=np.float32)


def rendered_pages() -> dict[Path, str]:
    """The page, with its tables as they should be."""
    known, text = (Results(RESULTS), Results(REPRODUCED)), PAGE.read_text()
    for name, table in TABLES.items():
        text = put_between(text, name, rendered(table, known))
    return {PAGE: text}


def rendered(table: Table, known: Sequence[Results]) -> str:
    """A row for each reading; a column has the same seeds in all its rows, and its head says how many."""
    columns = [column_of(cells, known) for cells in zip(*table.rows.values(), strict=True)]
    names, heads = list(table.rows), [name + seeds for name, (seeds, _) in zip(table.head[1:], columns, strict=True)]
    rows = zip(names, *(values for _, values in columns), strict=True)
    return markdown_table([table.head[0], *heads], [list(row) for row in rows])


def column_of(cells: Sequence[Cell | None], known: Sequence[Results]) -> tuple[str, list[str]]:
    """How many seeds, for the head, and the mean of each cell over the seeds that all cells have."""
    values = [{} if cell is None else _values(cell, known) for cell in cells]
    shared = sorted(set(SEEDS).intersection(*(one for one in values if one)))
    is_drawn = any(cell is not None and len(seeds_of(cell.run)) > 1 for cell in cells)
    counted = f" ({len(shared)} seed{'s' if len(shared) > 1 else ''})" if is_drawn else ""
    return counted, [_shown(cell, [one[s] for s in shared if one]) for cell, one in zip(cells, values, strict=True)]


def _values(cell: Cell, known: Sequence[Results]) -> dict[int, dict[str, float]]:
    """What the run gave, by seed."""
    records = {seed: record for results in known for seed in SEEDS if (record := results.get(cell.run.key(seed)))}
    return {seed: record["values"] for seed, record in records.items() if record["state"] == "done"}


def _shown(cell: Cell | None, values: list[dict[str, float]]) -> str:
    if cell is None:
        return ""
    if not values:
        return "not run"
    numbers = [one[cell.value] for one in values]
    deviation = np.std(numbers, ddof=1) if len(numbers) > 1 else values[0].get("deviation")
    mean = round(float(np.mean(numbers)), cell.digits) + 0.0  # no "-0.00"
    return f"{mean:.{cell.digits}f}" + ("" if deviation is None else f" ± {deviation:.{cell.digits}f}")


if __name__ == "__main__":
    main()
