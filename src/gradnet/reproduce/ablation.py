"""Table 4 of the paper as data: 22 variants of GRAD-Net, how soon each learns and how well."""

from __future__ import annotations

from typing import Any

from gradnet.reproduce import paper_values as paper
from gradnet.reproduce.declared import Artefact, Drop, Entry, EpochsTo, Run, Show, Value
from gradnet.reproduce.sets import SETS
from gradnet.reproduce.tables import paper_settings, score_run

VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "w/o local loss": {"local_weight": 0.0},
    "w/o global loss": {"global_weight": 0.0},
    "w/o weight penalty": {"l2": 0.0},
    "w/o Z": {"inputs": "descriptors"},
    "w/o original features": {"inputs": "codes"},
    "layers 1024, 256, 128, 128": {"layers": [1024, 256, 128, 128]},
    "layers 1024, 256": {"layers": [1024, 256]},
    "layers 512, 128, 64": {"layers": [512, 128, 64]},
    "GCN w/o 2nd order": {"layer": "gcn"},
    "w/o concatenation": {"output": "last"},
    **{f"k = {k}": {"n_neighbors": k} for k in (8, 20, 25, 32, 64)},
    "Gaussian similarity": {"similarity": "gaussian"},
    "cosine similarity": {"similarity": "cosine"},
    **{f"batch = {size}": {"batch_size": size} for size in (32, 128, 256, 1024)},
}
"""By the name of the row: what differs from the paper's settings."""
COLUMNS = ("epochs", "score", "drop")


def table4(on: str | None = None) -> Artefact:
    """Epochs to a score, the score after the last epoch, and how far that is below the base."""
    name = on or "Oxford5k ResNet"
    measure, target = SETS[name].measure, None if on else paper.TARGET_4
    runs = {row: _run(name, settings) for row, settings in VARIANTS.items()}
    knn = score_run(name, "knn")
    entries = []
    for row, run in runs.items():
        printed = None if on else paper.TABLE_4[row]
        shows: tuple[Show, ...] = (
            EpochsTo(measure, target, runs["base"], knn),
            Value(measure),
            Drop(measure, runs["base"]),
        )
        for column, show in zip(COLUMNS, shows, strict=True):
            if row == "base" and column == "drop":
                entries.append(Entry(row, column, None))
                continue
            values = _printed(printed, column)
            entries.append(Entry(row, column, run, show, *values))
    reached = (
        f"mAP {target:g}"
        if target
        else f"k-NN's score and {EpochsTo.SHARE:.0%} of what the base gains over it"
    )
    notes = (
        f"Score: {measure}, of the model after the last epoch. Epochs: until {reached} is first reached, counted "
        "after each epoch up to 64 and then every tenth; never where one of the trials does not reach it. "
        "Drop: below the base.",
    )
    return Artefact("table4", f"Table 4: ablation on {name}", tuple(entries), notes, on=on)


def _run(on: str, settings: dict[str, Any]) -> Run:
    ours = {**paper_settings(on), **settings}
    return Run("curve", on, "gradnet-paper", ours, {"measures": [SETS[on].measure]})


def _printed(row: paper.Ablation | None, column: str) -> tuple[float | str | None, float | None]:
    if row is None:
        return None, None
    if column == "score":
        return row.score, row.deviation
    if column == "drop":
        return row.drop, None
    return "never" if row.epochs is None else row.epochs, None
