"""Benchmark: one training step with the paper's settings against its own matrix products run alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import Case

if TYPE_CHECKING:
    from manifind.model.trainer import Trainer

LIMIT = 1.5  # of the ratio
_WARM_UP = 3


def cases(quick: bool) -> list[Case]:
    """Three processes; in each, rounds of steps and of products take turns, so that both meet the same load."""
    if quick:
        return [Case("300 x 32", {"n": 300, "d": 32, "steps": 2, "rounds": 1}, (0,))]
    return [Case("5,063 x 2,048", {"n": 5063, "d": 2048, "steps": 5, "rounds": 3}, (0, 0, 0))]


def run(n: int, d: int, steps: int, rounds: int, seed: int) -> dict[str, float]:
    """Median milliseconds of a step and of its products alone, and their ratio.

    steps: timed in each round, after which one more is recorded and its products run as often.
    """
    from matrix_products import RecordProducts, replay

    reports = paper_trainer(n, d, seed).steps()
    _milliseconds(lambda: next(reports), _WARM_UP)
    of_steps, of_products, found = [], [], []
    for _ in range(rounds):
        of_steps += _milliseconds(lambda: next(reports), steps)
        with RecordProducts() as recorded:
            next(reports)
        found = recorded.products
        replay(found)  # warms up
        of_products += _milliseconds(lambda: replay(recorded.products), steps)
    return {
        "step_ms": median(of_steps),
        "products_ms": median(of_products),
        "ratio": median(of_steps) / median(of_products),
        "products": len(found),
        "dense_gigaflops": sum(p.flops() for p in found if not p.is_sparse()) / 1e9,
        "sparse_gigaflops": sum(p.flops() for p in found if p.is_sparse()) / 1e9,
    }


def paper_trainer(n: int, d: int, seed: int) -> Trainer:
    """The trainer that `GradNet(**PAPER)` would use on a landmark cloud."""

    from landmark_cloud import make_landmark_cloud

    from manifind.graph.manifold import build_manifold
    from manifind.index.fit_context import FitContext
    from manifind.model.trainer import Trainer
    from manifind.settings import PAPER, GradNetSettings

    X = make_landmark_cloud(n, d).descriptors  # unit rows, as the paper's preprocessing leaves them
    manifold = build_manifold(X, GradNetSettings(**PAPER), FitContext(seed))
    return Trainer(manifold, GradNetSettings(**PAPER), FitContext(seed))


def _milliseconds(work: Callable[[], Any], times: int) -> list[float]:
    found = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        found.append(1000 * (time.perf_counter() - started))
    return found
