"""From a manifold to learned features: walks, training, and what is put beside the network's layers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from manifind.arrays import Floats, Ints
from manifind.checkpoint import NO_CHECKPOINT, Checkpoint
from manifind.errors import InputError
from manifind.graph.knn_graph import transition
from manifind.graph.manifold import Manifold
from manifind.graph.neighbour_agreement import LittleToLearnWarning, NeighbourAgreement
from manifind.graph.preprocess import Reduced, reduce_features, unit_rows
from manifind.graph.subgraph import sample_subgraph
from manifind.index.gpu import MemoryBudget
from manifind.model.distributed import ALONE, ProcessGroup
from manifind.model.sampling import nodes_in
from manifind.model.trainer import Schedule, Trainer
from manifind.model.walks import WIDTH, Walks, beside, bytes_of_walks, find_walks
from manifind.progress import Listener, Progress, in_one_piece
from manifind.settings import GradNetSettings

_FEWEST_NODES = 5000  # to train on: a GPU that has room for fewer is left alone
_LEAST_TRUST = 0.01  # what is learned keeps at least this part: ties of the descriptors are broken by it


class FitResult(NamedTuple):
    """What was learned. reduced: the nodes' features. curve: (steps, 3) losses. weights: of the network, by name.

    n_trained: nodes of the part of the graph that steps were taken on.
    """

    reduced: Reduced
    curve: Floats
    weights: dict[str, Floats]
    n_trained: int


def learn_features(
    manifold: Manifold,
    nodes: Floats,
    trust: NeighbourAgreement,
    settings: GradNetSettings,
    seed: int,
    room: MemoryBudget,
    listener: Listener,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    *,
    start: Mapping[str, Floats] | None = None,
    ranks: ProcessGroup = ALONE,
) -> FitResult:
    """Train on the manifold over some nodes, (N, d) preprocessed, and gather their features.

    trust: how much the graph is worth; the features lean on the descriptors by what is missing. settings: GradNet's.
    room: where to compute. checkpoint: what an interrupted run did, and a place to keep what this one does. start:
    weights that the network begins with, by name; None draws them. ranks: the processes that train together.
    """
    # Several processes must all see the same part, whatever room each of them has.
    to_train, part = _trained_on(manifold, settings, MemoryBudget(room.device) if ranks.are_several else room, seed)
    walks = _walks(manifold, seed, room, listener, checkpoint)
    ends = None
    if walks and settings.positives == "walks":
        ends = walks.ends(settings.index, part, listener)
    options = {"ends": ends, "start": start, "ranks": ranks, "part": part}
    trainer, curve = _trained(manifold, settings, seed, to_train, listener, checkpoint, options)
    if trust.share < 1:
        warnings.warn(str(trust.warning()), LittleToLearnWarning, stacklevel=4)
    with in_one_piece("features", listener):
        parts = trainer.features()
        weights = {name: w.detach().cpu().numpy() for name, w in trainer.network.named_parameters()}
        n_trained = trainer.S.shape[0]
        del trainer, ends, options  # where memory is short, features are what it is for
        if walks and settings.walk_weight > 0:
            parts = beside(parts, walks.features.to(parts[0].device), settings.walk_weight)
        if trust.share < 1:
            share = max(trust.share, _LEAST_TRUST)
            plain = torch.from_numpy(unit_rows(nodes)).to(parts[0].device)
            parts = beside(parts, plain, (1 - share) / share)
        reduced = reduce_features([part.cpu().numpy() for part in parts], settings.n_components)
    if reduced.basis is not None:
        weights["reduction"] = reduced.basis
    return FitResult(reduced, curve, weights, n_trained)


def make_trainer(
    manifold: Manifold, settings: GradNetSettings, seed: int, room: MemoryBudget, **options: Any
) -> Trainer:
    """A trainer with GradNet's settings. options: what `Trainer` has by name."""
    return Trainer(manifold, settings, seed, room, **options)


def _trained(
    manifold: Manifold,
    settings: GradNetSettings,
    seed: int,
    room: MemoryBudget,
    listener: Listener,
    checkpoint: Checkpoint,
    options: dict[str, Any],
) -> tuple[Trainer, Floats]:
    """A trainer after its last step, and the losses; on the CPU where a GPU turns out to have too little memory."""
    try:
        trainer = make_trainer(manifold, settings, seed, room, **options)
        return trainer, _train(trainer, listener, checkpoint)
    except torch.OutOfMemoryError:
        if options["ranks"].are_several:  # the others go on without
            raise
    warnings.warn("the GPU's memory did not hold the training, which begins again on the CPU", stacklevel=5)
    trainer = make_trainer(manifold, settings, seed, MemoryBudget(torch.device("cpu")), **options)
    return trainer, _train(trainer, listener, NO_CHECKPOINT)


def _trained_on(
    manifold: Manifold, settings: GradNetSettings, room: MemoryBudget, seed: int
) -> tuple[MemoryBudget, Ints | None]:
    """Where to train, and the nodes to train on, None for all: as many as the settings say and there is room for."""
    if settings.training_nodes is None:
        return room, None
    N, d = manifold.inputs.shape
    n_sextets = Schedule(settings, manifold.affinity).sextets
    fitting = nodes_in(room.bytes, n_sextets, d, settings.layers)
    if fitting < min(N, _FEWEST_NODES):
        room, fitting = MemoryBudget(torch.device("cpu")), N
    most = min(settings.training_nodes, fitting)
    return room, None if most >= N else sample_subgraph(manifold.affinity, most, seed)


def pick_device(name: str) -> torch.device:
    """The device that `name` stands for; "auto" takes the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "device = 'cuda', but torch sees no GPU", "leave device at 'auto', or install a CUDA build of torch"
        )
    return torch.device(name)


def gpu_name() -> str | None:
    """What torch calls the GPU; None where there is none."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def peak_gpu_bytes() -> int | None:
    """The most memory that torch has held on the GPU; None where there is none."""
    return int(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else None


def _walks(
    manifold: Manifold, seed: int, room: MemoryBudget, listener: Listener, checkpoint: Checkpoint
) -> Walks | None:
    if manifold.all_edges is None:
        return None
    device = room.device_for(bytes_of_walks(manifold.all_edges))
    return find_walks(transition(manifold.all_edges), WIDTH, seed, device, listener, checkpoint)


def _train(trainer: Trainer, listener: Listener, checkpoint: Checkpoint) -> Floats:
    """The losses of every step, (steps, 3)."""
    for report in trainer.steps(checkpoint):
        listener(Progress("training", report.step, report.total, f"loss {report.loss:.4f}"))
    return np.array(trainer.curve, dtype=np.float32).reshape(-1, 3)
