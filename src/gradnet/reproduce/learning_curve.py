"""The task of the ablation: a GRAD-Net of the paper's kind, scored again and again while it learns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from gradnet.experiments.compare_cell import peak_bytes
from gradnet.experiments.compare_methods import Factory, make
from gradnet.experiments.compare_question import Question
from gradnet.progress import Listener, Progress
from gradnet.reproduce.opened import Opened, open_network
from gradnet.reproduce.scored import record

_EVERY_EPOCH_UNTIL, _THEN_EVERY = 64, 10  # the paper's slowest variant needs 62 epochs


def learning_curve(
    question: Question, factory: Factory, job: dict[str, Any], listener: Listener
) -> dict[str, Any]:
    """The scores at the end, as a plain fit has them, and the first measure on the way.

    epochs, curve: that measure before training, after each epoch up to 64, then after every tenth and the last.
    """
    measures, curve = job["options"]["measures"], {}
    started = time.perf_counter()
    opened = open_network(question, make(factory, job["settings"]).get_params(), listener)
    for epoch in scored_epochs(opened, listener):
        scores = question.truth.scores(opened.rankings(len(question.descriptors)), question.asked)
        curve[epoch] = next(one.value for one in scores if one.measure == measures[0])
    cost = {"seconds": time.perf_counter() - started, "peak": peak_bytes(), "settings": job["settings"]}
    return record(scores, measures, **cost, epochs=list(curve), curve=list(curve.values()))


def scored_epochs(opened: Opened, listener: Listener) -> Iterator[int]:
    """Train, and stop where the network is to be looked at: 0, epochs that are scored, and the last."""
    yield 0
    for report in opened.trainer.steps(at_once=opened.trainer.steps_per_epoch):
        listener(Progress("training", report.step, report.total))
        is_end_of_epoch = report.step % opened.trainer.steps_per_epoch == 0
        if report.step == report.total or (is_end_of_epoch and _is_scored(report.epoch)):
            yield report.epoch


def _is_scored(epoch: int) -> bool:
    return epoch <= _EVERY_EPOCH_UNTIL or epoch % _THEN_EVERY == 0
