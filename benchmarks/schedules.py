"""Which default schedule? Many trainings on four sets, judged without labels; scores are only written down.

`python benchmarks/schedules.py graphs FOLDER` builds the graphs (needs faiss, and GRADNET_DATA for three of
the sets); `python benchmarks/schedules.py train FOLDER SET` then trains on them, on a GPU where there is one,
and prints one line of JSON per schedule: the loss on fresh sextets without dropout, which needs no label,
and the score. docs/results/schedules.json holds what the exploratory script before this one saw.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from gradnet import PAPER, GradNet
from gradnet.config import settings_for
from gradnet.data.digits import load_digits
from gradnet.data.labelled import read_labelled
from gradnet.descriptors.preprocess import fit_preprocessor
from gradnet.graph.manifold import GraphSettings, Manifold, build_manifold
from gradnet.methods.gradnet import pick_device
from gradnet.nn.losses import LossSettings
from gradnet.nn.network import NetworkSettings
from gradnet.training.sextets import SextetSampler
from gradnet.training.trainer import Schedule, Trainer

SETS = {  # file under GRADNET_DATA, which of its arrays, preprocessing, window of the bullseye score
    "digits": (None, 0, "unit", None),
    "orl": ("orl/orl_aligned_32x32.npz", 0, "center", 15),
    "mpeg7": ("mpeg7/mpeg7.npz", 1, "center", 40),
    "coil20": ("coil20/coil20_32x32.npz", 0, "unit", None),
}
LAYERS = ((1024, 256, 128), (512, 256, 128), (256, 256, 128))
STEPS_AND_RATES = ((60, 1e-3), (60, 3e-3), (60, 5e-3), (100, 1e-3), (100, 3e-3), (200, 3e-4), (200, 1e-3))
LATE, EARLY = (0.5, 0.75), (0.3, 0.6, 0.8)
SECOND_GRID = (  # around the choice: layers, sextets, steps, rate, milestones
    ((256, 256, 128), 4096, 100, 2e-3, LATE),
    ((256, 256, 128), 4096, 100, 2e-3, EARLY),
    ((256, 256, 128), 4096, 100, 3e-3, EARLY),
    ((256, 256, 128), 4096, 100, 1.5e-3, LATE),
    ((256, 256, 128), 4096, 150, 1.5e-3, LATE),
    ((256, 256, 128), 4096, 150, 2e-3, EARLY),
    ((256, 256, 128), 8192, 100, 2e-3, LATE),
    ((256, 256, 128), 8192, 100, 3e-3, EARLY),
    ((128, 128, 128), 4096, 100, 2e-3, LATE),
    ((128, 128, 128), 4096, 100, 3e-3, LATE),
    ((128, 256, 128), 4096, 100, 3e-3, LATE),
    ((256, 128, 128), 4096, 100, 2e-3, LATE),
    ((256, 256, 256), 4096, 100, 2e-3, LATE),
    ((256, 256, 128), 2048, 100, 2e-3, LATE),
    ((64, 64, 64), 4096, 100, 3e-3, LATE),
    ((256, 256, 128), 4096, 80, 3e-3, LATE),
    ((256, 256, 128), 16384, 100, 2e-3, LATE),
)
SEEDS = (0, 1)
FRESH = 20_000


def build_graphs(folder: Path) -> None:
    for name, (file, array, preprocess, _) in SETS.items():
        if file is None:
            X, labels = load_digits().descriptors, load_digits().labels
        else:
            data = read_labelled(Path(os.environ["GRADNET_DATA"]) / file)[array]
            X, labels = data.descriptors.astype(np.float32), data.labels
        X = fit_preprocessor(preprocess, X)(X)
        for seed in SEEDS:
            made = build_manifold(X, settings_for(GraphSettings, GradNet().get_params()), seed)
            sparse.save_npz(folder / f"{name}-{seed}-affinity.npz", made.affinity)
            np.savez(folder / f"{name}-{seed}.npz", inputs=made.inputs, labels=labels)


def train(folder: Path, name: str) -> None:
    for seed in SEEDS:
        report(folder, name, seed, {**PAPER}, "paper")
        first = (
            (layers, b, *pair, LATE) for layers, b, pair in product(LAYERS, (1024, 4096), STEPS_AND_RATES)
        )
        for layers, batch_size, steps, rate, milestones in (*first, *SECOND_GRID):
            tried = {"layers": layers, "batch_size": batch_size, "max_steps": steps, "learning_rate": rate}
            report(folder, name, seed, {**tried, "milestones": milestones, "epochs": 10**6}, "tried")


def report(folder: Path, name: str, seed: int, settings: dict[str, Any], kind: str) -> None:
    with np.load(folder / f"{name}-{seed}.npz") as arrays:
        inputs, labels = arrays["inputs"], arrays["labels"]
    affinity = sparse.csr_array(sparse.load_npz(folder / f"{name}-{seed}-affinity.npz"))
    parameters = GradNet(**settings).get_params()
    parts = [settings_for(part, parameters) for part in (NetworkSettings, LossSettings, Schedule)]
    trainer = Trainer(Manifold(affinity, inputs[:0], None, inputs), *parts, seed, pick_device("auto"))
    steps = sum(1 for _ in trainer.steps())
    fresh = SextetSampler(affinity, np.random.default_rng(999)).draw(FRESH)
    with torch.no_grad():
        loss = trainer.whole_graph_loss(fresh, dropout=False).total.item()
    score = score_of(torch.cat(trainer.features(), 1).cpu().numpy(), labels, SETS[name][3])
    line = {"set": name, "settings": kind, "seed": seed, "steps": steps, "fresh_loss": loss, "score": score}
    print(json.dumps({**{key: parameters[key] for key in ("layers", "batch_size", "learning_rate")}, **line}))


def score_of(H: np.ndarray, labels: np.ndarray, window: int | None) -> float:
    """The score without faiss, which a machine with a GPU may not have."""
    from gradnet.evaluation import bullseye, mean_average_precision

    H = H / np.linalg.norm(H, axis=1, keepdims=True)
    ids = np.argsort(-(H @ H.T), axis=1, kind="stable")
    return (bullseye(ids, labels, window) if window else mean_average_precision(ids, labels)).value


if __name__ == "__main__":
    if sys.argv[1] == "graphs":
        build_graphs(Path(sys.argv[2]))
    else:
        train(Path(sys.argv[2]), sys.argv[3])
