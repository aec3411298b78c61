"""Benchmark: what training on a part of the graph costs on labelled sets, small enough to be trained on whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from measuring import QUICK, Case

if TYPE_CHECKING:
    from manifind.bench.task import RetrievalTask

SETS = ("digits", "Oxford5k CaffeNet-128")
PARTS = {"all": 1, "a half": 2, "a fifth": 5}


def cases(quick: bool) -> list[Case]:
    """Each set that is there with each part, three seeds; the quick form half of the digits alone."""
    from manifind.errors import DataError

    if quick:
        return [Case("digits, a half", {"dataset": "digits", "share": 2, "settings": QUICK}, (0,))]
    found = []
    for name in SETS:
        try:
            _task(name)
        except DataError as error:
            print(f"part_scores: {name} is left out, {error.problem}")
            continue
        found += [
            Case(f"{name}, {part}", {"dataset": name, "share": share, "settings": {}}, (0, 1, 2))
            for part, share in PARTS.items()
        ]
    return found


def run(dataset: str, share: int, settings: dict[str, object], seed: int) -> dict[str, float]:
    """The score of a network trained on one in `share` of the nodes, and how many those were."""
    from manifind.bench.cell import trial
    from manifind.model.estimator import GradNet
    from manifind.progress import ignore

    task, measure = _task(dataset)
    nodes = len(task.descriptors) // share
    fit = {**settings, "training_nodes": nodes, "random_state": seed}
    return {"score": trial(task, GradNet, {"settings": fit}, ignore)["values"][measure], "nodes": nodes}


def _task(name: str) -> tuple[RetrievalTask, str]:
    """What is asked of a set, and the measure of the answers."""
    from manifind.bench.suite import SUITES, read_member

    member = next(member for member in SUITES["local"] if member.name == name)
    return read_member(member), member.measure
