"""What a cell can run: tasks by name, each found by its address in the process of a method."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from gradnet.experiments.compare_methods import accepts, load_factory
from gradnet.reproduce.declared import Run

BY_METHOD, ALWAYS, NEVER = "by method", "always", "never"


class Task(NamedTuple):
    """address: "module:function". seeded: whether another seed can give another result.

    on_gpu: it measures a GPU, and is not run where there is none.
    """

    address: str
    seeded: str
    on_gpu: bool = False


def _task(place: str, seeded: str, on_gpu: bool = False) -> Task:
    return Task(f"gradnet.reproduce.{place}", seeded, on_gpu)


TASKS: dict[str, Task] = {
    "score": _task("scored:score", BY_METHOD),
    "curve": _task("learning_curve:learning_curve", BY_METHOD),
    "held-out": _task("held_out:held_out", ALWAYS),  # the seed also draws who is held out
    "facts": _task("facts:facts", NEVER),
    "left-out": _task("facts:left_out", NEVER),
    "batches": _task("costs:batches_against_whole", NEVER),
    "cost": _task("costs:cost", NEVER),
    "gpu cost": _task("costs:gpu_cost", NEVER, on_gpu=True),
}


TIMED = ("batches", "cost")
"""Those whose values are seconds, which depend on what else the machine does."""


def load_task(name: str) -> Callable[..., dict[str, Any]]:
    """The function itself: of question, method, job and listener."""
    module, _, function = TASKS[name].address.partition(":")
    task: Callable[..., dict[str, Any]] = getattr(import_module(module), function)
    return task


def seeds_of(run: Run, n_seeds: int) -> range:
    """The seeds that a run is made with: only the first where none would change its result."""
    seeded = TASKS[run.task].seeded
    if seeded == BY_METHOD:
        seeded = ALWAYS if accepts(load_factory(run.method), "random_state") else NEVER
    return range(n_seeds if seeded == ALWAYS else 1)


def job_of(run: Run, seed: int) -> dict[str, Any]:
    """What the process is told. settings: with the seed, where the method has one."""
    settings = dict(run.settings)
    if accepts(load_factory(run.method), "random_state"):
        settings["random_state"] = seed
    return {"settings": settings, "options": dict(run.options), "seed": seed}
