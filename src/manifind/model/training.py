"""From a manifold to learned features: walks, training, and what is put beside the network's layers."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from manifind.arrays import Floats, Ints
from manifind.checkpoint import NO_CHECKPOINT
from manifind.errors import InputError
from manifind.graph.knn_graph import transition
from manifind.graph.manifold import Manifold
from manifind.graph.neighbour_agreement import LittleToLearnWarning, NeighbourAgreement
from manifind.graph.preprocess import reduce_features, unit_rows
from manifind.graph.subgraph import sample_subgraph
from manifind.index.fit_context import FitContext, MemoryBudget
from manifind.model.sampling import nodes_in
from manifind.model.trainer import Schedule, Trainer
from manifind.model.walks import WIDTH, Walks, beside, bytes_of_walks, find_walks
from manifind.progress import Progress, in_one_piece
from manifind.settings import GradNetSettings

_FEWEST_NODES = 5000  # to train on: a GPU that holds fewer is left alone
_LEAST_SHARE = 0.01  # what is learned keeps at least this part: ties of the descriptors are broken by it


class FitResult(NamedTuple):
    """What was learned. features: of the nodes. energy_kept: the share of their energy that the reduction holds.

    curve: (steps, 3) losses. weights: of the network, by name. n_trained: nodes that steps were taken on.
    walk_lengths: (N,) as `Walks` has them; None where no features are of walks.
    """

    features: Floats
    energy_kept: float
    curve: Floats
    weights: dict[str, Floats]
    n_trained: int
    walk_lengths: Floats | None


def learn_features(
    manifold: Manifold,
    nodes: Floats,
    agreement: NeighbourAgreement,
    settings: GradNetSettings,
    context: FitContext,
    start: Mapping[str, Floats] | None = None,
) -> FitResult:
    """Train on the manifold over some nodes, (N, d) preprocessed, and gather their features.

    agreement: how much the graph is worth; the features rely on the descriptors for what is missing. start: weights
    that the network begins with, by name; None draws them.
    """
    to_train, subgraph = _trained_on(manifold, settings, context)
    walks = _walks(manifold, settings, context)
    ends = walks.ends(settings.index, subgraph, context) if walks and settings.positives == "walks" else None
    options = {"ends": ends, "start": start, "subgraph": subgraph}
    trainer = _trained(manifold, settings, replace(context, budget=to_train), options)
    curve = np.array(trainer.curve, dtype=np.float32).reshape(-1, 3)
    if agreement.share < 1:
        warnings.warn(str(agreement.warning()), LittleToLearnWarning, stacklevel=4)
    with in_one_piece("features", context.listener):
        parts = trainer.features()
        weights = {name: w.detach().cpu().numpy() for name, w in trainer.network.named_parameters()}
        n_trained = trainer.S.shape[0]
        del trainer, ends, options  # where memory is short, features are what it is for
        lengths = None
        if walks and settings.walk_weight > 0:
            lengths = walks.lengths[:, 0].cpu().numpy()
            parts = beside(parts, walks.features.to(parts[0].device), settings.walk_weight)
        if (weight := _descriptor_weight(manifold, agreement, settings)) > 0:
            parts = beside(parts, torch.from_numpy(unit_rows(nodes)).to(parts[0].device), weight)
        features, basis, kept = reduce_features([part.cpu().numpy() for part in parts], settings.n_components)
    if basis is not None:
        weights["reduction"] = basis
    return FitResult(features, kept, curve, weights, n_trained, lengths)


def _descriptor_weight(manifold: Manifold, agreement: NeighbourAgreement, settings: GradNetSettings) -> float:
    """How much the descriptors weigh, next to 1 for all else: as suits the graph, and more where neighbours are noise.

    Of an agreement worth the share r, features are 1 part of r and descriptors one of 1 - r.
    """
    chosen = settings.descriptor_weight
    if chosen is None:
        chosen = 0.0 if manifold.shape is None else manifold.shape.descriptor_weight
    suited = chosen / (1 + settings.walk_weight)
    share = max(agreement.share, _LEAST_SHARE)
    return (1 + suited) / share - 1


def _trained(manifold: Manifold, settings: GradNetSettings, context: FitContext, options: dict[str, Any]) -> Trainer:
    """A trainer after its last step; on the CPU where a GPU turns out to have too little memory."""
    try:
        trainer = Trainer(manifold, settings, context, **options)
        for report in trainer.steps():
            context.listener(Progress("training", report.step, report.total, f"loss {report.loss:.4f}"))
        return trainer
    except torch.OutOfMemoryError:
        if context.processes.are_several:  # the others go on without
            raise
    warnings.warn("the GPU's memory did not hold the training, which begins again on the CPU", stacklevel=5)
    on_cpu = replace(context, budget=MemoryBudget(), checkpoint=NO_CHECKPOINT)
    return _trained(manifold, settings, on_cpu, options)


def _trained_on(manifold: Manifold, settings: GradNetSettings, context: FitContext) -> tuple[MemoryBudget, Ints | None]:
    """Where to train, and the nodes to train on, None for all: as many as the settings say and the budget holds."""
    budget = context.budget
    if context.processes.are_several:  # all must see the same subgraph, whatever memory each of them has
        budget = MemoryBudget(budget.device)
    if settings.training_nodes is None:
        return budget, None
    N, d = manifold.inputs.shape
    n_sextets = Schedule(settings, manifold.affinity).sextets
    fitting = nodes_in(budget.bytes, n_sextets, d, settings.layers)
    if fitting < min(N, _FEWEST_NODES):
        budget, fitting = MemoryBudget(), N
    most = min(settings.training_nodes, fitting)
    return budget, None if most >= N else sample_subgraph(manifold.affinity, most, context.seed)


def _walks(manifold: Manifold, settings: GradNetSettings, context: FitContext) -> Walks | None:
    if manifold.all_edges is None:
        return None
    device = context.budget.device_for(bytes_of_walks(manifold.all_edges))
    return find_walks(transition(manifold.all_edges), WIDTH, torch.device(device), context, settings.walk_alpha)


def pick_device(name: str) -> str:
    """The device that `name` stands for; "auto" takes the GPU where there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        hint = "leave device at 'auto', or install a CUDA build of torch"
        raise InputError("device = 'cuda', but torch sees no GPU", hint)
    return name


def gpu_name() -> str | None:
    """What torch calls the GPU; None where there is none."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def peak_gpu_bytes() -> int | None:
    """The most memory that torch has held on the GPU; None where there is none."""
    return int(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else None
