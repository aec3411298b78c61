"""Other readings of the paper, and what they are measured by: the procedures of scripts/readings.py.

A reading that is no setting of `GradNet` takes the place of a function or class of the package for one fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from manifind.arrays import Floats, Ints, check_descriptors
from manifind.bench.cell import finished, fit_arguments, trial
from manifind.bench.held_out import positions_of
from manifind.bench.methods import Factory, make
from manifind.bench.paper.procedures import TrainingProbe, open_training_probe
from manifind.bench.task import LabelTruth, RetrievalTask
from manifind.evaluation.measures import score
from manifind.graph.knn_graph import renormalised
from manifind.graph.manifold import build_manifold
from manifind.graph.preprocess import fit_preprocessor, unit_rows
from manifind.index.exact import settle
from manifind.index.fit_context import FitContext
from manifind.model import network, sampling, trainer
from manifind.model.sampling import ROUNDS, Sextets, SextetSampler
from manifind.progress import Listener
from manifind.ranking import Ranking
from manifind.search.feature_model import FeatureModel, weighted_features

E_MINUS_5 = math.exp(-5)
LOOKED_AT = (0, 1, 10)
"""Epochs after which features are compared."""


class CommonNeighbourSampler(SextetSampler):
    """O_global as printed, j in N_i and j in N_k: k is another neighbour of j than i, and l any neighbour of k.

    Where j has no other neighbour, k is any node, as in our reading.
    """

    def draw(self, b: int) -> Sextets:
        i, k = self._connected[self._integers(len(self._connected), (2, b))]
        ij = self._edge(i)
        j = self._columns[ij]
        wrong = np.flatnonzero(self._degrees[j] > 1)
        for _ in range(ROUNDS):
            k[wrong] = self._columns[self._edge(j[wrong])]
            wrong = wrong[k[wrong] == i[wrong]]
        kl = self._edge(k)
        l = self._columns[kl]  # noqa: E741 - the paper's letter
        u, v = self._stranger(i, np.stack([i, j, k, l])), self._stranger(k, np.stack([k, l, i, j]))
        return Sextets(np.stack([i, j, k, l, u, v]), self._values[ij], self._values[kl])


def activate_unnormalised(
    Y: Tensor, slope: float, dropout: float, generator: torch.Generator | None, n_wanted: int
) -> tuple[Tensor, Tensor]:
    """As `layers.activate`, but only the copies for the features have unit rows; the same entries are dropped."""
    active = F.leaky_relu(Y, slope)
    kept = torch.ones_like(active)
    if generator is not None:
        kept = (torch.rand(Y.shape, generator=generator) >= dropout) / (1 - dropout)
    return active * kept, F.normalize(active[:n_wanted]) * kept[:n_wanted]


READINGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "common neighbour": lambda: patch.object(sampling, "SextetSampler", CommonNeighbourSampler),
    # S = D^-1/2 (A + I) D^-1/2; the layer still adds I, since self_loops is "identity"
    "self": lambda: patch.object(trainer, "transition", renormalised),
    "unnormalised": lambda: patch.object(network, "activate", activate_unnormalised),
}


def fit_reading(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The scores of a fit under one of READINGS."""
    with READINGS[job["options"]["reading"]]():
        return trial(task, factory, job, listener)


def right_edges(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Of the edges of the mutual graph, how many join two items of one label; and the mean cosine of two items."""
    settings, X = make(factory, {**job["settings"], "inputs": "descriptors"}), check_descriptors(task.descriptors)
    prepared = fit_preprocessor(settings.preprocess, X)(X)
    A = build_manifold(prepared, settings, FitContext(listener=listener)).affinity.tocoo()
    labels = task.truth.labels if isinstance(task.truth, LabelTruth) else np.empty(0)
    share = 100 * np.mean(labels[A.row] == labels[A.col])
    return finished(**{"right, %": share, "edges": A.nnz / 2, "cosine": mean_cosine(prepared)})


def mean_cosine(X: Floats) -> float:
    """Between two different rows."""
    n, sums = len(X), unit_rows(X).sum(axis=0, dtype=np.float64)
    return float((np.square(sums).sum() - n) / (n * (n - 1)))


def first_epochs(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The score, and the mean cosine between two items' features, before training and after some epochs."""
    probe = _probe(task, factory, job, listener)
    per_epoch, values = probe.trainer.steps_per_epoch, _looked_at(probe, 0, job["options"]["measure"])
    for report in probe.trainer.steps(at_once=per_epoch):
        if report.step in [epoch * per_epoch for epoch in LOOKED_AT]:
            values |= _looked_at(probe, report.epoch, job["options"]["measure"])
        if report.step == LOOKED_AT[-1] * per_epoch:
            break
    return finished(**values)


def _looked_at(probe: TrainingProbe, epoch: int, measure: str) -> dict[str, float]:
    rankings = probe.rankings(len(probe.task.descriptors))
    scores = probe.task.truth.scores(rankings, probe.task.query_items)
    value = next(one.value for one in scores if one.measure == measure)
    return {f"score {epoch}": value, f"cosine {epoch}": mean_cosine(probe.features()[1])}


def loss_terms(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The terms of the loss before the first step, of a thousand sextets, with lambda = e^-5."""
    probe = _probe(task, factory, job, listener)
    sextets = SextetSampler(probe.manifold.affinity, np.random.default_rng(job["seed"])).draw(1000)
    with torch.no_grad():
        _, local, global_ = (float(part) for part in probe.trainer.whole_graph_loss(sextets, True))
        decay = E_MINUS_5 * float(probe.trainer.network.squared_norm())
    return finished(**{"local": local, "global": global_, "decay": decay, "ratio": decay / (local + global_)})


def _probe(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> TrainingProbe:
    return open_training_probe(task, make(factory, job["settings"]).get_params(), listener)


WEIGHTS: Mapping[str, Callable[[Floats], Floats]] = {
    "distance": lambda distances: np.asarray(1 / (1 + distances), dtype=np.float32),
    "cosine": lambda distances: np.maximum(1 - distances**2 / 2, 0),  # of unit rows
    "equal": np.ones_like,
}


def expand(model: FeatureModel, prepared: Floats, weights: str) -> Ranking:
    """All items by QFE with these weights; "twice, ..." weighs the neighbours in the learned space by them."""
    k, twice, first = model.queries.n_neighbors, weights.startswith("twice"), weights
    if twice:
        first, weights = "distance", weights.removeprefix("twice, ")
    near = model.node_neighbours(prepared, k)
    h = weighted_features(model.features, near.ids, WEIGHTS[first](near.distances))
    if twice:
        ids = model.rank(h, prepared, k).ids
        h = weighted_features(model.features, ids, WEIGHTS[weights](-settle(h, model.features, ids, "euclidean")))
    return model.rank(h, prepared, len(model.features))


def drawn_queries(task: RetrievalTask, measure: str, draw: str, rng: np.random.Generator) -> Ints:
    """Queries to hold out: a fifth, as many as there are landmarks, or one of each landmark."""
    order = rng.permutation(task.n_queries)
    relevance, _ = task.truth.relevance(task.query_items, measure)
    of_landmark = {relevance.relevant[query].tobytes(): query for query in order}  # one for each list of right items
    if draw == "landmarks":
        return np.array([*of_landmark.values()])
    return order[: len(order) // 5 if draw == "fifth" else len(of_landmark)]


def hold_out(task: RetrievalTask, out: Ints, measure: str) -> tuple[Ints, Ints, Callable[[Ints], float]]:
    """The items that stay, those that go, and the score of rankings of what stays for those that go."""
    gone = positions_of(task)[out]
    kept = np.setdiff1d(np.arange(len(task.descriptors)), gone)
    relevance, how = task.truth.relevance(task.query_items, measure)
    ignored = [np.union1d(relevance.ignored[query], gone) for query in out]
    left = relevance._replace(relevant=[relevance.relevant[query] for query in out], ignored=ignored)
    return kept, gone, lambda ids: score(kept[ids], left, [how], "unseen")[0].value


def expansions(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Scores of a held-out fifth, drawn by the seed, for each way to weigh its neighbours; all of one fit."""
    measure = job["options"]["measure"]
    out = drawn_queries(task, measure, "fifth", np.random.default_rng(job["seed"]))
    kept, gone, score_of = hold_out(task, out, measure)
    method = make(factory, job["settings"]).fit(task.descriptors[kept], listener=listener)
    model: FeatureModel = method.contents().learned
    prepared = model.prepared(task.descriptors[gone])
    ways = (*WEIGHTS, "twice, distance", "twice, equal")
    return finished(**{way: score_of(expand(model, prepared, way).ids) for way in ways})


def draws(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The mean score of held-out queries over some draws, and its deviation where they are several."""
    options, values = job["options"], []
    rng = np.random.default_rng(job["seed"])
    for _ in range(options["draws"]):
        out = drawn_queries(task, options["measure"], options["draw"], rng)
        kept, gone, score_of = hold_out(task, out, options["measure"])
        method = make(factory, job["settings"])
        method.fit(task.descriptors[kept], **fit_arguments(method, None, listener))
        values.append(score_of(method.search(task.descriptors[gone], k=len(kept)).ids))
    spread = {"deviation": float(np.std(values))} if len(values) > 1 else {}
    return finished(mean=float(np.mean(values)), **spread)


PROCEDURES = {
    "reading": f"{__name__}:fit_reading",
    "right edges": f"{__name__}:right_edges",
    "first epochs": f"{__name__}:first_epochs",
    "start": f"{__name__}:loss_terms",
    "qfe": f"{__name__}:expansions",
    "draws": f"{__name__}:draws",
}
"""By name: where the runner finds them."""
