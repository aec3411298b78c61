"""What a cell can run: scores, learning curves, costs, facts about a set."""

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Floats, Ints, check_descriptors
from manifind.bench.cell import TRIAL, finished, peak_bytes, run_cell, score_as_dict, with_interval
from manifind.bench.methods import Factory, accepts, load_factory, make
from manifind.bench.paper.declared import Run
from manifind.bench.task import LabelTruth, ListTruth, RetrievalTask
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
from manifind.model.network import precision_on
from manifind.model.sampling import Sextets, SextetSampler
from manifind.model.trainer import Trainer
from manifind.model.training import peak_gpu_bytes, pick_device
from manifind.progress import Listener, Progress
from manifind.settings import GradNetSettings

_DECIMALS = 4  # of a query's value, in percent: far below any difference that is shown


def score(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The record of a cell, with those measures alone that the options name."""
    cell = run_cell(task, factory, job["settings"], listener)
    kept = record([one.score for one in cell.scores], job["options"]["measures"])
    return {**cell.as_dict(), **kept}


def record(scores: Iterable[Score], measures: Sequence[str], **cost: Any) -> dict[str, Any]:
    """A finished record: the value of each measure, and what every query got."""
    chosen = [one for one in scores if one.measure in measures]
    kept = [score_as_dict(with_interval(one)) for one in chosen]
    for one in kept:
        one["per_query"] = [None if value is None else round(value, _DECIMALS) for value in one["per_query"]]
    return {**finished(**{one.measure: one.value for one in chosen}), "scores": kept, **cost}


def facts(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """How many classes, items, dimensions and queries there are; queries with one list are one class."""
    del factory, job, listener
    truth, (n, d) = task.truth, task.descriptors.shape
    classes = np.unique(truth.labels) if isinstance(truth, LabelTruth) else distinct_answers(truth)
    return finished(classes=len(classes), items=n, dimensions=d, queries=task.n_queries)


def left_out(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Percent of the right items that the union of the queries' nearest does not hold, and how large that union is."""
    del factory, listener
    X = unit_rows(check_descriptors(task.descriptors))
    kept = truncate(X, unit_rows(check_descriptors(task.query_rows)), job["options"]["truncation"])
    (measure,) = job["options"]["measures"]
    relevance, _ = task.truth.relevance(task.query_items, measure)
    right = np.concatenate(relevance.relevant)
    return finished(**{"right items left out": 100.0 * float(np.mean(~np.isin(right, kept))), "items kept": len(kept)})


def distinct_answers(truth: ListTruth) -> list[Ints]:
    """The right items of the queries, once where several queries have the same."""
    lists = (of_query for name, of_query in truth.lists.lists.items() if name != "junk")
    answers = (np.concatenate(of_query) for of_query in zip(*lists, strict=True))
    return list({frozenset(right.tolist()): right for right in answers}.values())


class TrainingProbe(NamedTuple):
    """A network before its first step, with what it is trained on."""

    task: RetrievalTask
    nodes: Nodes
    manifold: Manifold
    trainer: Trainer
    ran: dict[str, str]  # device and precision

    def features(self) -> tuple[Floats, Floats]:
        """Unit rows of the queries, (m, D), and of the items, (n, D), as they are now."""
        of_nodes = unit_rows(np.concatenate([part.cpu().numpy() for part in self.trainer.features()], axis=1))
        items = of_nodes[self.nodes.of_items]
        if self.task.queries is not None:
            return of_nodes[self.nodes.of_queries], items
        return (items if self.task.query_items is None else items[self.task.query_items]), items

    def rankings(self, k: int) -> Ints:
        """(m, k) items by the cosine of their features, as `GradNet.search` has them."""
        queries, items = self.features()
        return nearest(queries, items, k, "cosine").ids


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
    ran = {"device": budget.device, "precision": precision_on(settings.precision, budget.device)}
    return TrainingProbe(task, nodes, manifold, Trainer(manifold, settings, context), ran)


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
    return record(scores, measures, **cost, ran=probe.ran, epochs=list(curve), curve=list(curve.values()))


def scored_epochs(probe: TrainingProbe, listener: Listener) -> Iterator[int]:
    """Train, and stop where the network is to be looked at: 0, epochs that are scored, and the last."""
    yield 0
    for report in probe.trainer.steps(at_once=probe.trainer.steps_per_epoch):
        listener(Progress("training", report.step, report.total))
        is_scored = report.epoch <= _EVERY_EPOCH_UNTIL or report.epoch % _THEN_EVERY == 0
        is_end_of_epoch = report.step % probe.trainer.steps_per_epoch == 0
        if report.step == report.total or (is_end_of_epoch and is_scored):
            yield report.epoch


_MEGABYTE = 1e6


def cost(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Peak memory of the process, and seconds of a forward and backward pass, on the CPU.

    What Python, the libraries and the descriptors take is recorded separately, as the memory before `fit`.
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


PROCEDURES = {
    "score": f"{__name__}:score",
    "trial": TRIAL,
    "curve": f"{__name__}:learning_curve",
    "held-out": "manifind.bench.held_out:held_out",
    "facts": f"{__name__}:facts",
    "left-out": f"{__name__}:left_out",
    "batches": f"{__name__}:batches_against_whole",
    "cost": f"{__name__}:cost",
    "gpu cost": f"{__name__}:gpu_cost",
}
"""By name: where the runner finds them."""
_SEEDED_BY_METHOD = ("score", "trial", "curve")
ON_GPU = ("gpu cost",)
"""Those that measure a GPU, and are not run where there is none."""
TIMED = ("batches", "cost")
"""Those whose values are seconds, which depend on what else the machine does."""


def seeds_of(run: Run, n_seeds: int) -> range:
    """The seeds that a run is made with: only the first where none would change its result."""
    has_seed = run.procedure in _SEEDED_BY_METHOD and accepts(load_factory(run.method), "random_state")
    draws = run.procedure == "held-out"  # the seed also draws who is held out
    return range(n_seeds if has_seed or draws else 1)
