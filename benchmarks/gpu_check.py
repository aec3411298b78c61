"""Does training on a GPU give what it gives on the CPU? Needs torch with CUDA, SciPy and scikit-learn; no faiss.

Prints one JSON line: the largest relative difference of losses and of gradients between the devices with dropout
off, whether the same seed gives the same losses twice on the GPU, and the milliseconds of a step on both.
Run from the repository: PYTHONPATH=src python benchmarks/gpu_check.py
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors

from gradnet.config import PAPER, settings_for
from gradnet.graph.affinity import mutual_affinity
from gradnet.graph.manifold import Manifold, input_features
from gradnet.graph.sparse_coding import anchor_codes
from gradnet.nn.losses import LossSettings
from gradnet.nn.network import NetworkSettings
from gradnet.training.sextets import SextetSampler
from gradnet.training.trainer import Schedule, Trainer

N, D, K = 5063, 512, 15


def make_manifold() -> Manifold:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(100, D))[rng.integers(0, 100, N)] + rng.normal(size=(N, D))).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    distances, ids = NearestNeighbors(n_neighbors=K + 1, algorithm="brute").fit(X).kneighbors(X)
    A = mutual_affinity(ids[:, 1:].astype(np.int64), (1 / (1 + distances[:, 1:])).astype(np.float32))
    anchors = X[rng.choice(N, 80, replace=False)]  # few enough to be searched without faiss
    Z = anchor_codes(X, anchors, 5)
    return Manifold(A, anchors, Z, input_features(X, Z, "both"))


def make_trainer(manifold: Manifold, device: str, steps: int) -> Trainer:
    settings = PAPER | {"max_steps": steps}
    parts = (settings_for(part, settings) for part in (NetworkSettings, LossSettings, Schedule))
    return Trainer(manifold, *parts, 0, torch.device(device))


def compare(manifold: Manifold) -> dict[str, float]:
    sextets = SextetSampler(manifold.affinity, np.random.default_rng(1)).draw(64)
    found = []
    for device in ("cpu", "cuda"):
        trainer = make_trainer(manifold, device, 1)
        loss = trainer.batch_loss(sextets, dropout=False).total
        loss.backward()
        found.append((loss.item(), [p.grad.cpu() for p in trainer.network.parameters()]))
    (cpu, cpu_gradients), (gpu, gpu_gradients) = found
    differences = [
        ((a - b).norm() / a.norm()).item() for a, b in zip(cpu_gradients, gpu_gradients, strict=True)
    ]
    return {"loss_difference": abs(cpu - gpu) / abs(cpu), "gradient_difference": max(differences)}


def milliseconds_a_step(manifold: Manifold, device: str, steps: int) -> tuple[float, list[float]]:
    losses, started = [], 0.0
    for report in make_trainer(manifold, device, steps + 3).steps():
        losses.append(report.loss)
        if report.step == 3:  # the first steps warm up
            started = time.perf_counter()
    return 1000 * (time.perf_counter() - started) / steps, losses


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("torch sees no GPU here")
    manifold = make_manifold()
    gpu, first = milliseconds_a_step(manifold, "cuda", 50)
    again = milliseconds_a_step(manifold, "cuda", 50)[1]
    result = compare(manifold) | {
        "gpu": torch.cuda.get_device_name(),
        "same_seed_same_losses": first == again,
        "largest_drift": max(abs(a - b) for a, b in zip(first, again, strict=True)),
        "gpu_ms": gpu,
        "cpu_ms": milliseconds_a_step(manifold, "cpu", 5)[0],
    }
    print(json.dumps(result))
