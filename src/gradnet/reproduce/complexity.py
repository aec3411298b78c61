"""The numbers of Figure 8 as data: memory, and the time of a pass, against the number of items."""

from __future__ import annotations

from typing import Any

from gradnet.reproduce.declared import Artefact, Entry, Run, Value
from gradnet.reproduce.sets import CAFFENET, GROWN_TO, RESNET_105K
from gradnet.reproduce.tables import TRUNCATION

_STEPS = {"max_steps": 6}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "GRAD-Net": ("gradnet-paper", {"n_neighbors": 15, **_STEPS}),
    "GRAD-Net, truncated": ("gradnet-paper", {"n_neighbors": 15, "truncation": TRUNCATION, **_STEPS}),
    "Efficient": ("efficient", {}),
    "GSS": ("gss", {"steps": 2}),
}
MEMORY, GPU, PASS = "memory, MB", "GPU memory, MB", "a pass, s"
QUANTITIES = {
    MEMORY: tuple(METHODS),
    GPU: ("GRAD-Net", "GRAD-Net, truncated"),  # our GSS and Efficient compute on the CPU
    PASS: ("GRAD-Net", "GRAD-Net, truncated", "GSS"),
}
"""What is measured, and of which methods: Efficient has no passes."""


def figure8() -> Artefact:
    """Oxford5k with more and more of Oxford105k's distractors."""
    sets = {items: f"{RESNET_105K}, {items:,} items" for items in GROWN_TO}
    return _complexity(
        "figure8", "Oxford105k's distractors", {5_063: "Oxford5k ResNet", **sets}, "figure8.png"
    )


def figure8_here() -> Artefact:
    """Oxford5k's weak descriptors with synthetic distractors."""
    sets = {items: f"{CAFFENET}, {items:,} items" for items in GROWN_TO}
    return _complexity("local", "synthetic distractors", {5_063: CAFFENET, **sets}, "figure8_here.png")


def _complexity(name: str, distractors: str, sets: dict[int, str], picture: str) -> Artefact:
    entries = tuple(
        Entry(f"{method}: {quantity}", f"{items:,} items", _run(quantity, method, on), Value(quantity))
        for quantity, methods in QUANTITIES.items()
        for method in methods
        for items, on in sets.items()
    )
    notes = (
        "Memory: the most that the whole process had, Python, libraries and descriptors among it; of a "
        "GPU, what torch held there. A pass: forward and "
        f"backward, {TRUNCATION} nearest of each query where truncated; of GRAD-Net the median, of GSS the mean.",
    )
    title = f"Figure 8: memory and time, Oxford5k with {distractors}"
    return Artefact(name, title, entries, notes, picture=picture)


def _run(quantity: str, method: str, on: str) -> Run:
    name, settings = METHODS[method]
    return Run("gpu cost" if quantity == GPU else "cost", on, name, settings)
