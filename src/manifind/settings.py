"""The settings of GRAD-Net: the paper's values, and what each setting may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from manifind.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Part = TypeVar("Part", bound="DataclassInstance")

PAPER: dict[str, Any] = {
    "preprocess": "unit",
    "n_neighbors": 15,  # 60 on Paris
    "index": "exact",
    "graph": "mutual",
    "similarity": "euclidean",
    "n_anchors": 100,
    "n_codes": 5,
    "inputs": "both",
    "input_components": None,
    "layers": (1024, 256, 128),
    "layer": "diffusion",
    "self_loops": "identity",
    "negative_slope": 0.2,
    "dropout": 0.3,
    "output": "concat",
    "walk_weight": 0.0,
    "positives": "edges",
    "local_loss": "bpr",
    "local_weight": 1.0,
    "temperature": 1.0,
    "beta": math.exp(5),
    "global_coefficient": "detached",
    "global_weight": 1.0,
    "l2": 1e-5,
    "learning_rate": 3e-4,
    "milestones": (30 / 300, 100 / 300),
    "batch_size": 64,
    "epoch": "nodes",
    "epochs": 300,
    "max_steps": None,
    "training_nodes": None,
    "precision": "by device",
    "n_query_neighbors": None,
    "query_passes": 1,
    "truncation": None,
    "guard": False,
    "n_components": None,
}
"""GRAD-Net as the paper has it; docs/readings.md gives the reason for each point that it leaves open."""


class Constraint(NamedTuple):
    """A condition on a setting, and how to say it."""

    holds: Callable[[Any], bool]
    words: str


def one_of(*choices: str) -> Constraint:
    return Constraint(lambda value: value in choices, "one of " + ", ".join(map(repr, choices)))


def whole(least: int) -> Constraint:
    return Constraint(lambda value: _is_whole(value) and value >= least, f"a whole number of at least {least}")


def whole_between(least: int, most: int) -> Constraint:
    return Constraint(
        lambda value: _is_whole(value) and least <= value <= most, f"a whole number from {least} to {most}"
    )


def number(holds: Callable[[float], bool], words: str) -> Constraint:
    return Constraint(lambda v: _is_number(v) and holds(float(v)), words)


def whole_numbers(least: int) -> Constraint:
    def holds(value: Any) -> bool:
        is_sequence = isinstance(value, (tuple, list)) and len(value) > 0
        return is_sequence and all(_is_whole(v) and v >= least for v in value)

    return Constraint(holds, f"a sequence of whole numbers of at least {least}")


def shares() -> Constraint:
    def holds(value: Any) -> bool:
        return isinstance(value, (tuple, list)) and all(_is_number(v) and 0 < v < 1 for v in value)

    return Constraint(holds, "a sequence of numbers between 0 and 1")


def or_word(word: str, constraint: Constraint) -> Constraint:
    return Constraint(lambda value: value == word or constraint.holds(value), f"{constraint.words}, {word!r}")


def or_none(constraint: Constraint) -> Constraint:
    return Constraint(lambda value: value is None or constraint.holds(value), f"{constraint.words}, or None")


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # a whole number that no double can hold
        return False


def _is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral)


SHARE = number(lambda v: 0 < v < 1, "a number between 0 and 1")
POSITIVE = number(lambda v: v > 0, "a number above 0")
NOT_NEGATIVE = number(lambda v: v >= 0, "a number of at least 0")
TRUE_OR_FALSE = Constraint(lambda value: isinstance(value, bool), "True or False")

CONSTRAINTS: dict[str, Constraint] = {
    "preprocess": one_of("unit", "center", "whiten", "none"),
    "n_neighbors": or_none(whole(1)),
    "index": one_of("auto", "exact", "sq8", "pq"),
    "graph": one_of("mutual", "union"),
    "similarity": one_of("euclidean", "gaussian", "cosine", "cubed", "sharp"),
    "n_anchors": whole(1),
    "n_codes": whole(1),
    "inputs": one_of("both", "descriptors", "codes"),
    "input_components": or_none(whole(1)),
    "layers": whole_numbers(1),
    "layer": one_of("diffusion", "gcn"),
    "self_loops": one_of("identity", "renormalised"),
    "negative_slope": number(lambda v: 0 < v <= 1, "a number above 0 and at most 1"),
    "dropout": number(lambda v: 0 <= v < 1, "a number from 0 to below 1"),
    "output": one_of("concat", "last"),
    "walk_weight": NOT_NEGATIVE,
    "positives": one_of("edges", "walks"),
    "local_loss": one_of("bpr", "log"),
    "local_weight": NOT_NEGATIVE,
    "temperature": POSITIVE,
    "beta": POSITIVE,
    "global_coefficient": one_of("detached", "attached", "printed"),
    "global_weight": NOT_NEGATIVE,
    "l2": NOT_NEGATIVE,
    "learning_rate": POSITIVE,
    "milestones": shares(),
    "batch_size": or_none(whole(1)),
    "epoch": one_of("nodes", "edges"),
    "epochs": whole(0),
    "max_steps": or_none(or_word("auto", whole(0))),
    "training_nodes": or_none(whole(3)),
    "precision": one_of("auto", "by device", "float32", "bfloat16"),
    "n_query_neighbors": or_none(whole(1)),
    "query_passes": whole_between(1, 100),
    "truncation": or_none(whole(1)),
    "guard": TRUE_OR_FALSE,
    "n_components": or_none(whole(1)),
    "device": one_of("auto", "cpu", "cuda"),
    "device_memory": or_none(POSITIVE),
    "verbose": TRUE_OR_FALSE,
}


Constraints: TypeAlias = Mapping[str, Constraint]
NO_CONSTRAINTS: Constraints = {}
SOME_NEIGHBOURS: Constraints = {"n_neighbors": whole(1)}
"""What methods other than GRAD-Net must be told."""


def check_settings(settings: Mapping[str, Any], of_method: Constraints = NO_CONSTRAINTS) -> None:
    """Refuse the first setting that is not what it may be.

    of_method: what only one method has; a name that GRAD-Net has too may mean something else there.
    """
    for name, constraint in {**CONSTRAINTS, **of_method}.items():
        if name in settings and not constraint.holds(settings[name]):
            raise InputError(f"{name} = {settings[name]!r}; expected {constraint.words}")


def deciding(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator that decide what it fits: all but `verbose`, which only shows it."""
    return {name: value for name, value in parameters.items() if name != "verbose"}


def settings_for(part: type[Part], settings: Mapping[str, Any]) -> Part:
    """The settings that one part of the method takes: its fields carry the names of the settings."""
    return part(**{field.name: settings[field.name] for field in fields(part)})
