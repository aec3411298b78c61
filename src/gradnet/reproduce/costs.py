"""Tasks that measure: memory and time of a pass against the number of items, and batches against whole graphs."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gradnet.experiments.compare_cell import DONE, peak_bytes
from gradnet.experiments.compare_methods import Factory, accepts, make
from gradnet.experiments.compare_question import Question
from gradnet.nn.losses import Loss
from gradnet.progress import Listener, Progress
from gradnet.reproduce.opened import open_network
from gradnet.training.learning import peak_gpu_bytes
from gradnet.training.sextets import Sextets, SextetSampler

_MEGABYTE = 1e6


def cost(question: Question, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Peak memory of the process, and seconds of a forward and backward pass, on the CPU.

    The memory that Python, the libraries and the descriptors take is told apart as what was there before `fit`.
    """
    del listener
    settings, before = _on("cpu", factory, job["settings"]), peak_bytes()
    started = time.perf_counter()
    seconds = _seconds_of_a_pass(question, factory, settings)
    values = {"fit, s": time.perf_counter() - started}
    measured = {"memory, MB": peak_bytes(), "before, MB": before}
    values |= {name: count / _MEGABYTE for name, count in measured.items() if count is not None}
    if seconds is not None:
        values["a pass, s"] = seconds
    return {"state": DONE, "reason": "", "hint": "", "settings": settings, "values": values}


def gpu_cost(question: Question, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The most memory of a GPU that torch holds for the same fit there, without what CUDA itself takes."""
    settings = _on("cuda", factory, job["settings"])
    make(factory, settings).fit(question.descriptors, queries=question.queries, listener=listener)
    values = {"GPU memory, MB": (peak_gpu_bytes() or 0) / _MEGABYTE}
    return {"state": DONE, "reason": "", "hint": "", "settings": settings, "values": values}


def _on(device: str, factory: Factory, settings: dict[str, Any]) -> dict[str, Any]:
    return {**settings, "device": device} if accepts(factory, "device") else settings


def _seconds_of_a_pass(question: Question, factory: Factory, settings: dict[str, Any]) -> float | None:
    """None where a method has no passes."""
    X, Q = question.descriptors, question.queries
    method, marks = make(factory, settings), []

    def listen(report: Progress) -> None:
        if report.stage == "training":
            marks.append(time.perf_counter())

    if "listener" in inspect.signature(method.fit).parameters:
        method.fit(X, queries=Q, listener=listen)
        return float(np.median(np.diff(marks)))
    started = time.perf_counter()
    method.fit(X, queries=Q)
    if not accepts(factory, "steps") or not accepts(factory, "learning_rate"):
        return None
    middle = time.perf_counter()
    make(factory, {**settings, "steps": 0}).fit(X, queries=Q)
    preparing = time.perf_counter() - middle
    return (middle - started - preparing) / int(settings["steps"])


def batches_against_whole(
    question: Question, factory: Factory, job: dict[str, Any], listener: Listener
) -> dict[str, Any]:
    """How many times faster a loss and its gradients are from the batch's own nodes than from the whole graph."""
    settings = make(factory, job["settings"]).get_params()
    opened = open_network(question, settings, listener)
    sampler = SextetSampler(opened.manifold.affinity, np.random.default_rng(job["seed"]))
    draws = [sampler.draw(settings["batch_size"]) for _ in range(job["options"]["repetitions"])]
    batch = float(np.median([_seconds(opened.trainer.batch_loss, one) for one in draws]))
    whole = float(np.median([_seconds(opened.trainer.whole_graph_loss, one) for one in draws]))
    values = {"a batch, s": batch, "the whole graph, s": whole, "times faster": whole / batch}
    return {"state": DONE, "reason": "", "hint": "", "settings": job["settings"], "values": values}


def _seconds(loss: Callable[[Sextets, bool], Loss], sextets: Sextets) -> float:
    started = time.perf_counter()
    loss(sextets, True).total.backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - started
