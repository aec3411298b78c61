"""From a manifold to learned features: walks, training, and what is put beside the network's layers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from gradnet.arrays import Floats
from gradnet.checkpoint import NO_CHECKPOINT, Checkpoint
from gradnet.config import settings_for
from gradnet.descriptors.preprocess import unit_rows
from gradnet.descriptors.reduction import Reduced, reduce_features
from gradnet.errors import InputError
from gradnet.graph.manifold import Manifold
from gradnet.graph.transition import transition
from gradnet.graph.trust import LittleToLearnWarning, Trust
from gradnet.nn.losses import LossSettings
from gradnet.nn.network import NetworkSettings
from gradnet.nn.walk_features import WIDTH, Walks, beside, find_walks
from gradnet.progress import Listener, Progress
from gradnet.training.ranks import ALONE, Ranks
from gradnet.training.trainer import Schedule, Trainer

_LEAST_TRUST = 0.01  # what is learned keeps at least this part: ties of the descriptors are broken by it


class Lesson(NamedTuple):
    """What was learned. reduced: the nodes' features. curve: (steps, 3) losses. weights: of the network, by name."""

    reduced: Reduced
    curve: Floats
    weights: dict[str, Floats]


def learn_features(
    manifold: Manifold,
    nodes: Floats,
    trust: Trust,
    settings: Mapping[str, Any],
    seed: int,
    listener: Listener,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    *,
    start: Mapping[str, Floats] | None = None,
    ranks: Ranks = ALONE,
) -> Lesson:
    """Train on the manifold over some nodes, (N, d) preprocessed, and gather their features.

    trust: how much the graph is worth; the features lean on the descriptors by what is missing. settings: GradNet's.
    checkpoint: what an interrupted run did, and a place to keep what this one does. start: weights that the network
    begins with, by name; None draws them. ranks: the processes that train together.
    """
    device = pick_device(settings["device"])
    walks = _walks(manifold, seed, device, listener, checkpoint)
    trainer = Trainer(
        manifold,
        settings_for(NetworkSettings, settings),
        settings_for(LossSettings, settings),
        settings_for(Schedule, settings),
        seed,
        device,
        walks.ends(settings["index"]) if walks and settings["positives"] == "walks" else None,
        start,
        ranks,
    )
    curve = _train(trainer, listener, checkpoint)
    listener(Progress("features", 0, 1))
    parts = trainer.features()
    if walks and settings["walk_weight"] > 0:
        parts = beside(parts, walks.features(), settings["walk_weight"])
    if trust.share < 1:
        warnings.warn(str(trust.warning()), LittleToLearnWarning, stacklevel=4)
        share = max(trust.share, _LEAST_TRUST)
        parts = beside(parts, torch.from_numpy(unit_rows(nodes)).to(device), (1 - share) / share)
    reduced = reduce_features([part.cpu().numpy() for part in parts], settings["n_components"])
    weights = {name: w.detach().cpu().numpy() for name, w in trainer.network.named_parameters()}
    if reduced.basis is not None:
        weights["reduction"] = reduced.basis
    listener(Progress("features", 1, 1))
    return Lesson(reduced, curve, weights)


def pick_device(name: str) -> torch.device:
    """The device that `name` stands for; "auto" takes the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "device = 'cuda', but torch sees no GPU",
            "leave device at 'auto', or install a CUDA build of torch",
        )
    return torch.device(name)


def gpu_name() -> str | None:
    """What torch calls the GPU; None where there is none."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def peak_gpu_bytes() -> int | None:
    """The most memory that torch has held on the GPU; None where there is none."""
    return int(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else None


def _walks(
    manifold: Manifold, seed: int, device: torch.device, listener: Listener, checkpoint: Checkpoint
) -> Walks | None:
    if manifold.all_edges is None:
        return None
    return find_walks(transition(manifold.all_edges), WIDTH, seed, device, listener, checkpoint)


def _train(trainer: Trainer, listener: Listener, checkpoint: Checkpoint) -> Floats:
    """The losses of every step, (steps, 3)."""
    for report in trainer.steps(checkpoint):
        listener(Progress("training", report.step, report.total, f"loss {report.loss:.4f}"))
    return np.array(trainer.curve, dtype=np.float32).reshape(-1, 3)
