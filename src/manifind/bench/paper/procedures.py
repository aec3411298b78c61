"""What a cell can run: scores, learning curves, costs, facts about a set."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Floats, Ints, check_descriptors
from manifind.bench.cell import DONE, peak_bytes, run_cell, score_as_dict, with_interval
from manifind.bench.methods import Factory, accepts, load_factory, make
from manifind.bench.paper.declared import Run
from manifind.bench.runner import finished
from manifind.bench.task import LabelTruth, RetrievalTask
from manifind.errors import InputError
from manifind.evaluation.measures import Score
from manifind.graph.duplicates import Nodes, gather_nodes, truncate
from manifind.graph.manifold import Manifold, build_manifold
from manifind.graph.preprocess import fit_preprocessor, unit_rows
from manifind.index.exact import nearest
from manifind.index.fit_context import FitContext
from manifind.index.gpu import find_memory_budget
from manifind.model.estimator import draw_seed
from manifind.model.losses import Loss
from manifind.model.sampling import Sextets, SextetSampler
from manifind.model.trainer import Trainer
from manifind.model.training import peak_gpu_bytes, pick_device
from manifind.progress import Listener, Progress
from manifind.settings import GradNetSettings

_DECIMALS = 4  # of a query's value, in percent: far below any difference that is told


def score(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The record of a cell, with those measures alone that the options name."""
    cell = run_cell(task, factory, job["settings"], listener)
    kept = record([one.score for one in cell.scores], job["options"]["measures"])
    return {**cell.as_dict(), **kept}


def record(scores: Iterable[Score], measures: Sequence[str], **cost: Any) -> dict[str, Any]:
    """A finished record: the value of each measure, and what every query got."""
    chosen = [one for one in scores if one.measure in measures]
    return {
        "state": DONE,
        "reason": "",
        "hint": "",
        "values": {one.measure: one.value for one in chosen},
        "scores": [_shortened(score_as_dict(with_interval(one))) for one in chosen],
        **cost,
    }


def _shortened(score: dict[str, Any]) -> dict[str, Any]:
    values = [None if value is None else round(value, _DECIMALS) for value in score["per_query"]]
    return {**score, "per_query": values}


def facts(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """How many classes, items, dimensions and queries there are; queries with one list are one class."""
    del factory, job, listener
    return finished(
        classes=_n_classes(task),
        items=len(task.descriptors),
        dimensions=task.descriptors.shape[1],
        queries=task.n_queries,
    )


def left_out(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Percent of the right items that the union of the queries' nearest does not hold, and how large that union is."""
    del factory, listener
    X = unit_rows(check_descriptors(task.descriptors))
    queries = task.descriptors[task.query_items] if task.queries is None else task.queries
    kept = truncate(X, unit_rows(check_descriptors(queries)), job["options"]["truncation"])
    (measure,) = job["options"]["measures"]
    relevance, _ = task.truth.relevance(task.query_items, measure)
    right = np.concatenate(relevance.relevant)
    return finished(**{"right items left out": 100.0 * float(np.mean(~np.isin(right, kept))), "items kept": len(kept)})


def _n_classes(task: RetrievalTask) -> int:
    if isinstance(task.truth, LabelTruth):
        return len(np.unique(task.truth.labels))
    lists = task.truth.lists.lists
    right = [name for name in lists if name != "junk"]
    together = [
        frozenset(np.concatenate([lists[name][query] for name in right]).tolist())
        for query in range(task.truth.lists.n_queries)
    ]
    return len(set(together))


class TrainingProbe(NamedTuple):
    """A network before its first step, with what it is trained on."""

    task: RetrievalTask
    nodes: Nodes
    manifold: Manifold
    trainer: Trainer

    def features(self) -> tuple[Floats, Floats]:
        """Unit rows of the queries, (m, D), and of the items, (n, D), as they are now."""
        of_nodes = unit_rows(np.concatenate([part.cpu().numpy() for part in self.trainer.features()], axis=1))
        items = of_nodes[self.nodes.of_items]
        if self.task.queries is not None:
            return of_nodes[self.nodes.of_queries], items
        return (items if self.task.query_items is None else items[self.task.query_items]), items

    def rankings(self, k: int) -> Ints:
        """(m, k) items by the cosine of their features, as `GradNet.search` has them."""
        asked, items = self.features()
        return nearest(asked, items, k, "cosine").ids


def open_training_probe(task: RetrievalTask, parameters: dict[str, Any], listener: Listener) -> TrainingProbe:
    """What `GradNet(**settings).fit` would train; refused where more than the network makes its features."""
    needed = {"walk_weight": 0.0, "positives": "edges", "guard": False, "n_components": None}
    for name, value in {**needed, "truncation": None}.items():
        if parameters[name] != value:
            raise InputError(
                f"{name} = {parameters[name]!r}; a network can be looked at while it learns with {value!r}"
            )
    settings = GradNetSettings(**parameters)
    X = check_descriptors(task.descriptors)
    prepare = fit_preprocessor(settings.preprocess, X)
    queries = X[:0] if task.queries is None else check_descriptors(task.queries, "queries", X.shape[1])
    nodes = gather_nodes(prepare(queries), prepare(X), None)
    seed = draw_seed(settings.random_state)
    budget = find_memory_budget(pick_device(settings.device), settings.device_memory)
    context = FitContext(seed, budget, listener=listener)
    manifold = build_manifold(nodes.descriptors, settings, context)
    trainer = Trainer(manifold, settings, context)
    return TrainingProbe(task, nodes, manifold, trainer)


_EVERY_EPOCH_UNTIL, _THEN_EVERY = 64, 10  # the paper's slowest variant needs 62 epochs


def learning_curve(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The scores at the end, as a plain fit has them, and the first measure on the way.

    epochs, curve: that measure before training, after each epoch up to 64, then after every tenth and the last.
    """
    measures, curve = job["options"]["measures"], {}
    started = time.perf_counter()
    probe = open_training_probe(task, make(factory, job["settings"]).get_params(), listener)
    for epoch in scored_epochs(probe, listener):
        scores = task.truth.scores(probe.rankings(len(task.descriptors)), task.query_items)
        curve[epoch] = next(one.value for one in scores if one.measure == measures[0])
    cost = {"seconds": time.perf_counter() - started, "peak": peak_bytes(), "settings": job["settings"]}
    return record(scores, measures, **cost, epochs=list(curve), curve=list(curve.values()))


def scored_epochs(probe: TrainingProbe, listener: Listener) -> Iterator[int]:
    """Train, and stop where the network is to be looked at: 0, epochs that are scored, and the last."""
    yield 0
    for report in probe.trainer.steps(at_once=probe.trainer.steps_per_epoch):
        listener(Progress("training", report.step, report.total))
        is_end_of_epoch = report.step % probe.trainer.steps_per_epoch == 0
        if report.step == report.total or (is_end_of_epoch and _is_scored(report.epoch)):
            yield report.epoch


def _is_scored(epoch: int) -> bool:
    return epoch <= _EVERY_EPOCH_UNTIL or epoch % _THEN_EVERY == 0


_MEGABYTE = 1e6


def cost(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Peak memory of the process, and seconds of a forward and backward pass, on the CPU.

    The memory that Python, the libraries and the descriptors take is told apart as what was there before `fit`.
    """
    del listener
    settings, before = _on("cpu", factory, job["settings"]), peak_bytes()
    started = time.perf_counter()
    seconds = _seconds_of_a_pass(task, factory, settings)
    values = {"fit, s": time.perf_counter() - started}
    measured = {"memory, MB": peak_bytes(), "before, MB": before}
    values |= {name: count / _MEGABYTE for name, count in measured.items() if count is not None}
    if seconds is not None:
        values["a pass, s"] = seconds
    return {**finished(**values), "settings": settings}


def gpu_cost(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The most memory of a GPU that torch holds for the same fit there, without what CUDA itself takes."""
    settings = _on("cuda", factory, job["settings"])
    make(factory, settings).fit(task.descriptors, queries=task.queries, listener=listener)
    values = {"GPU memory, MB": (peak_gpu_bytes() or 0) / _MEGABYTE}
    return {**finished(**values), "settings": settings}


def _on(device: str, factory: Factory, settings: dict[str, Any]) -> dict[str, Any]:
    return {**settings, "device": device} if accepts(factory, "device") else settings


def _seconds_of_a_pass(task: RetrievalTask, factory: Factory, settings: dict[str, Any]) -> float | None:
    """None where a method has no passes."""
    X, Q = task.descriptors, task.queries
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
    task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener
) -> dict[str, Any]:
    """How many times faster a loss and its gradients are from the batch's own nodes than from the whole graph."""
    settings = make(factory, job["settings"]).get_params()
    probe = open_training_probe(task, settings, listener)
    sampler = SextetSampler(probe.manifold.affinity, np.random.default_rng(job["seed"]))
    draws = [sampler.draw(settings["batch_size"]) for _ in range(job["options"]["repetitions"])]
    batch = float(np.median([_seconds(probe.trainer.batch_loss, one) for one in draws]))
    whole = float(np.median([_seconds(probe.trainer.whole_graph_loss, one) for one in draws]))
    values = {"a batch, s": batch, "the whole graph, s": whole, "times faster": whole / batch}
    return {**finished(**values), "settings": job["settings"]}


def _seconds(loss: Callable[[Sextets, bool], Loss], sextets: Sextets) -> float:
    started = time.perf_counter()
    loss(sextets, True).total.backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - started


BY_METHOD, ALWAYS, NEVER = "by method", "always", "never"


class Procedure(NamedTuple):
    """address: "module:function". seeded: whether another seed can give another result.

    on_gpu: it measures a GPU, and is not run where there is none.
    """

    address: str
    seeded: str
    on_gpu: bool = False


def _procedure(place: str, seeded: str, on_gpu: bool = False) -> Procedure:
    return Procedure(f"manifind.bench.{place}", seeded, on_gpu)


PROCEDURES: dict[str, Procedure] = {
    "score": _procedure("paper.procedures:score", BY_METHOD),
    "trial": _procedure("cell:trial", BY_METHOD),
    "curve": _procedure("paper.procedures:learning_curve", BY_METHOD),
    "held-out": _procedure("held_out:held_out", ALWAYS),  # the seed also draws who is held out
    "facts": _procedure("paper.procedures:facts", NEVER),
    "left-out": _procedure("paper.procedures:left_out", NEVER),
    "batches": _procedure("paper.procedures:batches_against_whole", NEVER),
    "cost": _procedure("paper.procedures:cost", NEVER),
    "gpu cost": _procedure("paper.procedures:gpu_cost", NEVER, on_gpu=True),
}


TIMED = ("batches", "cost")
"""Those whose values are seconds, which depend on what else the machine does."""


def seeds_of(run: Run, n_seeds: int) -> range:
    """The seeds that a run is made with: only the first where none would change its result."""
    seeded = PROCEDURES[run.procedure].seeded
    if seeded == BY_METHOD:
        seeded = ALWAYS if accepts(load_factory(run.method), "random_state") else NEVER
    return range(n_seeds if seeded == ALWAYS else 1)


def arguments_of(run: Run, seed: int) -> dict[str, Any]:
    """What the procedure gets. settings: with the seed, where the method has one."""
    settings = dict(run.settings)
    if accepts(load_factory(run.method), "random_state"):
        settings["random_state"] = seed
    return {"settings": settings, "options": dict(run.options), "seed": seed}
