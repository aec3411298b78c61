"""What the paper claims in its text, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manifind.bench.paper import values as paper
from manifind.bench.paper.declared import Artefact, CellSpec, Drop, Run, Value
from manifind.bench.paper.tables import TRUNCATION, score_run
from manifind.bench.sets import SETS

_REPETITIONS = 5
_COLUMN = "value"


def claims() -> Artefact:
    """What only the text says, on the sets that it says it of."""
    return _claims(
        "claims",
        "Claims of the text",
        codes=["Oxford5k ResNet"],
        without_global="Oxford105k ResNet",
        batches=["Oxford105k ResNet"],
        truncated=["Oxford105k VGG", "Paris106k VGG", "Oxford105k ResNet", "Paris106k ResNet"],
        printed=True,
    )


def claims_here() -> Artefact:
    """The same on data that anybody can have."""
    grown = "Oxford5k CaffeNet, 100,000 items"
    return _claims(
        "local",
        "Claims of the text, on the sets here",
        codes=["ORL aligned", "MPEG-7 EfficientNet", "digits", "Paris subset"],
        without_global="Paris subset",
        batches=["Oxford5k CaffeNet", grown],
        truncated=["Oxford5k CaffeNet", grown],
        printed=False,
    )


def _claims(
    name: str,
    title: str,
    *,
    codes: Sequence[str],
    without_global: str,
    batches: Sequence[str],
    truncated: Sequence[str],
    printed: bool,
) -> Artefact:
    entries: list[CellSpec] = []
    for on in codes:
        measure = SETS[on].measure
        entries += [
            CellSpec(f"k-NN, {on}", _COLUMN, score_run(on, "knn"), Value(measure)),
            CellSpec(
                f"k-NN on Z alone, {on}",
                _COLUMN,
                score_run(on, "codes"),
                Value(measure),
                paper.CODES_ALONE if printed else None,
            ),
        ]
    entries.append(_global_loss(without_global, printed))
    entries += [_batches(on, printed) for on in batches]
    entries += [_truncated(on, printed and "VGG" in on) for on in truncated]
    notes = (
        "Times faster: a loss and its gradients from the nodes that 64 sextets need, against the whole graph, the "
        f"median of {_REPETITIONS} each.",
        f"Left out: right items that are not among the {TRUNCATION} nearest of any query, in percent of all.",
    )
    return Artefact(name, title, tuple(entries), notes)


def _global_loss(on: str, printed: bool) -> CellSpec:
    measure = SETS[on].measure
    run = score_run(on, "gradnet-paper", {"global_weight": 0.0})
    drop = Drop(measure, score_run(on, "gradnet-paper"))
    value = paper.DROP_WITHOUT_GLOBAL_LOSS if printed else None
    return CellSpec(f"what is lost without the global loss, {on}", _COLUMN, run, drop, value)


def _batches(on: str, printed: bool) -> CellSpec:
    run = Run("batches", on, "gradnet-paper", _whole_graph(on), {"repetitions": _REPETITIONS})
    value = paper.BATCHES_FASTER if printed else None
    return CellSpec(f"batches, times faster, {on}", _COLUMN, run, Value("times faster"), value)


def _whole_graph(on: str) -> dict[str, Any]:
    """The paper's settings for the set, but nothing truncated."""
    settings = dict(score_run(on, "gradnet-paper").settings)
    settings.pop("truncation", None)
    return settings


def _truncated(on: str, printed: bool) -> CellSpec:
    options = {"measures": [SETS[on].measure], "truncation": TRUNCATION}
    run = Run("left-out", on, "knn", {}, options)
    value = paper.LEFT_OUT_BY_TRUNCATION if printed else None
    return CellSpec(f"left out by truncation, %, {on}", _COLUMN, run, Value("right items left out"), value)
