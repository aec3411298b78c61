"""A process that lays out a map of vectors: items that are near each other stand near each other."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from manifind.arrays import Floats
from manifind.errors import MissingExtraError
from manifind.files import atomic_write
from manifind.progress import Listener, Progress
from manifind.server.child import run

_DIMENSIONS = 50  # kept of the vectors: what t-SNE usually starts from
_PERPLEXITY = 30
_ROUNDS = (250, 500)  # with the groups pulled apart, and without
_FEW = 5  # items that are simply put on a circle
_SEED = 0


def main() -> None:
    """argv: a .npy file of vectors, and where the map goes."""
    source, target = sys.argv[1:3]

    def work(listener: Listener) -> None:
        points = layout(np.load(source, allow_pickle=False, mmap_mode="r"), listener)
        with atomic_write(Path(target)) as partial, partial.open("wb") as handle:
            np.save(handle, points, allow_pickle=False)

    run(work)


def layout(vectors: Floats, listener: Listener) -> Floats:
    """(n, 2) a place for each row, by t-SNE, within -1 and 1; the same always."""
    n = len(vectors)
    if n <= _FEW:
        angles = 2 * np.pi * np.arange(n) / max(n, 1)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    try:
        import openTSNE
    except ImportError as error:
        raise MissingExtraError("openTSNE is not installed", 'pip install "manifind[web]"') from error
    reduced = _leading(vectors)
    total = sum(_ROUNDS)

    def heard(iteration: int, error: float, embedding: Any) -> bool:
        del embedding
        heard.done = max(heard.done, iteration)  # type: ignore[attr-defined]
        listener(Progress("map", min(heard.before + iteration, total), total, f"divergence {error:.2f}"))  # type: ignore[attr-defined]
        return False

    heard.done, heard.before = 0, 0  # type: ignore[attr-defined]
    listener(Progress("map", 0, total))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of others' libraries, about each other
        affinities = openTSNE.affinity.PerplexityBasedNN(
            reduced, min(_PERPLEXITY, (n - 1) / 3), n_jobs=os.cpu_count() or 1, random_state=_SEED
        )
        start = openTSNE.initialization.pca(reduced, random_state=_SEED)
        callback: dict[str, Any] = {"callbacks": heard, "callbacks_every_iters": 25, "use_callbacks": True}
        embedding = openTSNE.TSNEEmbedding(start, affinities, n_jobs=os.cpu_count() or 1, random_state=_SEED)
        embedding.optimize(_ROUNDS[0], exaggeration=12, momentum=0.5, inplace=True, **callback)
        heard.before = _ROUNDS[0]  # type: ignore[attr-defined]
        embedding.optimize(_ROUNDS[1], momentum=0.8, inplace=True, **callback)
    return _within_one(np.asarray(embedding))


def _leading(vectors: Floats) -> Floats:
    from sklearn.decomposition import PCA

    d = min(_DIMENSIONS, *vectors.shape)
    return np.asarray(PCA(d, random_state=_SEED).fit_transform(np.asarray(vectors)), dtype=np.float32)


def _within_one(points: Any) -> Floats:
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    return np.asarray((points - middle) / (np.abs(points - middle).max() or 1.0), dtype=np.float32)


if __name__ == "__main__":
    main()
