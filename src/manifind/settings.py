"""The settings of GRAD-Net: meaning, default, constraint and value in the paper; all else follows from these."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, dataclass_transform

from manifind.errors import InputError

if TYPE_CHECKING:
    from numpy.random import RandomState

T = TypeVar("T")


class Constraint(NamedTuple):
    """A condition on a setting, how to say it, and the choices where there are only some."""

    holds: Callable[[Any], bool]
    words: str
    choices: tuple[str, ...] = ()


def one_of(*choices: str) -> Constraint:
    return Constraint(lambda value: value in choices, "one of " + ", ".join(map(repr, choices)), choices)


def whole(least: int, most: int | None = None) -> Constraint:
    words = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    return Constraint(lambda v: _is_whole(v) and v >= least and (most is None or v <= most), words)


def number(holds: Callable[[float], bool], words: str) -> Constraint:
    return Constraint(lambda v: _is_number(v) and holds(float(v)), words)


def sequence(of: Constraint, words: str, least: int = 0) -> Constraint:
    def holds(value: Any) -> bool:
        return isinstance(value, (tuple, list)) and len(value) >= least and all(map(of.holds, value))

    return Constraint(holds, words)


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
UP_TO_ONE = number(lambda v: 0 < v <= 1, "a number above 0 and at most 1")
POSITIVE = number(lambda v: v > 0, "a number above 0")
NOT_NEGATIVE = number(lambda v: v >= 0, "a number of at least 0")
BELOW_ONE = number(lambda v: 0 <= v < 1, "a number from 0 to below 1")
STEPS = Constraint(lambda v: v == "auto" or whole(0).holds(v), f"{whole(0).words}, 'auto'")
SHARES = sequence(SHARE, "a sequence of numbers between 0 and 1")
WIDTHS = sequence(whole(1), "a sequence of whole numbers of at least 1", least=1)
TRUE_OR_FALSE = Constraint(lambda value: isinstance(value, bool), "True or False")
PREPROCESS = one_of("unit", "center", "whiten", "none")
GRAPH = one_of("mutual", "union")
SIMILARITY = one_of("euclidean", "gaussian", "cosine", "cubed", "sharp")
GRADNET_SIMILARITY = one_of(*SIMILARITY.choices, "adaptive")
INPUTS = one_of("both", "descriptors", "codes")

_AS_DEFAULT, _NOT_IN_PAPER = object(), object()


def setting(default: Any, constraint: Constraint | None = None, *, paper: Any = _AS_DEFAULT) -> Any:
    """A field of an estimator. paper: its value there where that is not the default."""
    in_paper = default if paper is _AS_DEFAULT else paper
    return field(default=default, metadata={"constraint": constraint, "paper": in_paper})


@dataclass_transform(kw_only_default=True, eq_default=False)
def estimator(cls: type[T]) -> type[T]:
    """A class whose fields are its settings, stored as they are given and checked by `fit`, as scikit-learn has it."""
    return dataclass(kw_only=True, eq=False, repr=False)(cls)  # repr and equality are scikit-learn's


@estimator
class GradNetSettings:
    """All settings of GRAD-Net; `docs/readings.md` gives the reasons for those that the paper leaves open.

    preprocess: Preprocessing, also of queries: "unit" scales rows to length 1, "center" removes the mean first,
        "whiten" also makes all directions vary alike.
    n_neighbors: Neighbours of an item in the graph, itself not counted; None for 30, or all others where there are
        fewer.
    index: How neighbours are found: exactly, by codes of a byte for each dimension ("sq8") or for eight ("pq"), or
        "auto", by size.
    graph: "mutual" keeps an edge where both ends list each other, "union" where either does.
    similarity: Weight of an edge: "euclidean" is 1 / (1 + distance), "cubed" the cube of the cosine; "sharp", a narrow
        Gaussian, leaves few of many neighbours a weight; "adaptive" is sharp on manifolds of few dimensions, and wider
        and by shared neighbours in many. With these two unseen queries take "gaussian".
    kernel_width: Width of the Gaussian of "adaptive", as a share of the mean distance to the neighbours; None for what
        suits the set.
    n_anchors: Anchors of the global graph, found by k-means.
    n_codes: Anchors that code an item.
    inputs: What the network sees of an item.
    input_components: Leading dimensions of a descriptor that the network sees; None for all.
    layers: Widths of the layers.
    layer: Kind of the layers; "gcn" has no second order.
    self_loops: I + S, or Kipf's form of it.
    negative_slope: Slope of LeakyReLU below zero.
    dropout: Share of a layer's outputs dropped.
    output: Layers that make the features.
    walk_weight: Weight of where walks along the graph end, next to 1 for the network's features.
    walk_alpha: How often a walk goes on rather than beginning anew.
    descriptor_weight: Weight of the descriptors, next to 1 for the network's features; None for what suits the graph
        where the similarity is "adaptive", else 0.
    positives: What a sample learns to be near: neighbours, or ends of walks from it.
    local_loss: The local loss; "log" as the paper prints it.
    local_weight: Weight of the local loss.
    temperature: Temperature of the local loss.
    beta: Steepness of the global loss.
    global_coefficient: Coefficient in the global loss.
    global_weight: Weight of the global loss.
    l2: Weight of the squared parameters.
    learning_rate: Adam's rate.
    milestones: Shares of the training after which the rate is halved.
    batch_size: Sextets a step; None for eight to each node, at most 16,384.
    epoch: An epoch has as many steps as batches of these.
    epochs: Epochs of the training.
    max_steps: Most steps; "auto" for 150, fewer beyond 20,000 items; None for no limit.
    training_nodes: A larger graph is trained on a sample of so many nodes, and the features are computed for all; None
        trains on all.
    precision: Precision of the first layer's product; "auto" for the faster one here, "by device" for bfloat16 on a GPU
        alone.
    n_query_neighbors: Neighbours through which an unseen query joins; None for n_neighbors.
    query_passes: 2 repeats this in the learned space.
    truncation: Keep only items among this many nearest of some query known to `fit`.
    guard: Measure whether neighbours are more than noise, and rely on the descriptors where they are not.
    n_components: Most dimensions of `features_`; None keeps all.
    device: Where to compute.
    device_memory: Most GB of a GPU's memory to use; None for 70 % of what is free. A graph that does not fit is trained
        on a sample, and the rest is computed on the CPU.
    random_state: Seed; the same one gives the same result.
    verbose: Whether `fit` shows its progress: bars in a terminal and in a notebook, a line a minute in a log.
    """

    preprocess: str = setting("unit", PREPROCESS)
    n_neighbors: int | None = setting(None, or_none(whole(1)), paper=15)
    index: str = setting("auto", one_of("auto", "exact", "sq8", "pq"), paper="exact")
    graph: str = setting("union", GRAPH, paper="mutual")
    similarity: str = setting("adaptive", GRADNET_SIMILARITY, paper="euclidean")
    kernel_width: float | None = setting(None, or_none(POSITIVE))
    n_anchors: int = setting(100, whole(1))
    n_codes: int = setting(5, whole(1))
    inputs: str = setting("descriptors", INPUTS, paper="both")
    input_components: int | None = setting(None, or_none(whole(1)))
    layers: Sequence[int] = setting((256, 256, 128), WIDTHS, paper=(1024, 256, 128))
    layer: str = setting("diffusion", one_of("diffusion", "gcn"))
    self_loops: str = setting("identity", one_of("identity", "renormalised"))
    negative_slope: float = setting(0.2, UP_TO_ONE)
    dropout: float = setting(0.0, BELOW_ONE, paper=0.3)
    output: str = setting("concat", one_of("concat", "last"))
    walk_weight: float = setting(2.0, NOT_NEGATIVE, paper=0.0)
    walk_alpha: float = setting(0.99, SHARE)
    descriptor_weight: float | None = setting(None, or_none(NOT_NEGATIVE), paper=0.0)
    positives: str = setting("walks", one_of("edges", "walks"), paper="edges")
    local_loss: str = setting("bpr", one_of("bpr", "log"))
    local_weight: float = setting(1.0, NOT_NEGATIVE)
    temperature: float = setting(0.3, POSITIVE, paper=1.0)
    beta: float = setting(math.exp(5), POSITIVE)
    global_coefficient: str = setting("detached", one_of("detached", "attached", "printed"))
    global_weight: float = setting(3.0, NOT_NEGATIVE, paper=1.0)
    l2: float = setting(1e-5, NOT_NEGATIVE)
    learning_rate: float = setting(3e-3, POSITIVE, paper=3e-4)
    milestones: Sequence[float] = setting((), SHARES, paper=(30 / 300, 100 / 300))
    batch_size: int | None = setting(None, or_none(whole(1)), paper=64)
    epoch: str = setting("nodes", one_of("nodes", "edges"))
    epochs: int = setting(300, whole(0))
    max_steps: int | str | None = setting("auto", or_none(STEPS), paper=None)
    training_nodes: int | None = setting(100_000, or_none(whole(3)), paper=None)
    precision: str = setting("auto", one_of("auto", "by device", "float32", "bfloat16"), paper="by device")
    n_query_neighbors: int | None = setting(7, or_none(whole(1)), paper=None)
    query_passes: int = setting(1, whole(1, 100))
    truncation: int | None = setting(None, or_none(whole(1)))
    guard: bool = setting(True, TRUE_OR_FALSE, paper=False)
    n_components: int | None = setting(512, or_none(whole(1)), paper=None)
    device: str = setting("auto", one_of("auto", "cpu", "cuda"), paper=_NOT_IN_PAPER)
    device_memory: float | None = setting(None, or_none(POSITIVE), paper=_NOT_IN_PAPER)
    random_state: int | RandomState | None = setting(None, paper=_NOT_IN_PAPER)
    verbose: bool = setting(False, TRUE_OR_FALSE, paper=_NOT_IN_PAPER)


def meanings_of(cls: Any) -> dict[str, str]:
    """What each setting means, from the entries `name: meaning` in the docstring of the class."""
    entries = re.findall(r"^(\w+): (.+(?:\n    .+)*)", inspect.cleandoc(cls.__doc__ or ""), re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def constraints_of(cls: Any) -> dict[str, Constraint]:
    """The constraints of an estimator's settings, by name; a class that changes a default keeps its base's."""
    found = {}
    for base in reversed(cls.__mro__):
        for one in base.__dict__.get("__dataclass_fields__", {}).values():
            if (constraint := one.metadata.get("constraint")) is not None:
                found[one.name] = constraint
    return {one.name: found[one.name] for one in fields(cls) if one.name in found}


CONSTRAINTS = constraints_of(GradNetSettings)

PAPER: dict[str, Any] = {
    one.name: one.metadata["paper"] for one in fields(GradNetSettings) if one.metadata["paper"] is not _NOT_IN_PAPER
}
"""GRAD-Net's settings as the paper has them: a dict of keyword arguments, `GradNet(**PAPER)`.

On Paris the paper has 60 for `n_neighbors`. `docs/readings.md` gives the reason for each point that it leaves open.
"""


def check_settings(settings: Mapping[str, Any], of: Any = GradNetSettings) -> None:
    """Refuse the first setting that breaks its constraint. of: the class that declares them."""
    for name, constraint in constraints_of(of).items():
        if name in settings:
            check_value(name, settings[name], constraint)


def check_value(name: str, value: Any, constraint: Constraint) -> None:
    """Refuse a value that breaks its constraint."""
    if not constraint.holds(value):
        raise InputError(f"{name} = {value!r}; expected {constraint.words}")


def fit_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator that decide what it fits: all but `verbose`, which only shows it."""
    return {name: value for name, value in parameters.items() if name != "verbose"}


def documented(cls: type[T]) -> type[T]:
    """The class with an entry for each setting in place of the line `{settings}` of its docstring."""
    entries, meanings = [], meanings_of(GradNetSettings)
    for one in fields(cls):  # type: ignore[arg-type]
        constraint = one.metadata["constraint"]
        kind = str(one.type).replace(" | ", " or ")
        if constraint is not None and constraint.choices:
            kind = "{" + ", ".join(map(repr, constraint.choices)) + "}"
        meaning = fill(meanings.get(one.name, ""), 112, initial_indent=" " * 4, subsequent_indent=" " * 4)
        entries.append(f"{one.name} : {kind}, default={one.default!r}\n{meaning}")
    before, _, after = (cls.__doc__ or "").partition("{settings}")
    margin = before.rpartition("\n")[2]  # Python 3.13 takes it off
    cls.__doc__ = before + indent("\n".join(entries), margin).lstrip() + after
    return cls
