"""One measured fit: seconds of the whole and of its parts, and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from measuring import peak_gigabytes
from warm_up import load_libraries

if TYPE_CHECKING:
    import numpy as np

    from manifind.model.estimator import GradNet


Use = Callable[["GradNet", "np.ndarray"], dict[str, float]]
"""What is done with a fitted model, and the numbers of that."""


def measure_fit(
    make: Callable[[], np.ndarray], settings: dict[str, Any], seed: int, use: Use | None = None
) -> dict[str, float]:
    """Numbers of `GradNet(**settings, random_state=seed).fit` on the descriptors that `make` returns.

    use: what is done afterwards, and counts for the peak too. memory_GB: the peak above what the process had,
    libraries loaded, before there were descriptors.
    """
    import numpy as np

    from manifind.model.estimator import GradNet
    from manifind.progress import Progress

    ended = []

    def listen(progress: Progress) -> None:
        if progress.stage == "training":
            ended.append(time.perf_counter())

    load_libraries()
    libraries = peak_gigabytes()
    X = make()
    started = time.perf_counter()
    model = GradNet(**settings, random_state=seed).fit(X, listener=listen)
    seconds = time.perf_counter() - started
    used = use(model, X) if use else {}
    return {
        "seconds": seconds,
        "graph_seconds": model.info_["seconds_graph"],
        "step_seconds": float(np.median(np.diff(ended))),
        "steps": model.info_["steps"],
        "edges": model.info_["edges"],
        "peak_GB": peak_gigabytes(),
        "memory_GB": peak_gigabytes() - libraries,
        **used,
    }
