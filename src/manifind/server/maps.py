"""Maps of the collection: laid out by t-SNE once for each version, in a child process, and cached on disk."""

import hashlib
import os
import warnings
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from manifind.arrays import Floats
from manifind.collection.version import Version
from manifind.errors import needing
from manifind.files import atomic_write
from manifind.progress import Listener, Progress
from manifind.server.errors import RefusedError
from manifind.server.jobs import NICE, Jobs, JobState
from manifind.worker import call

_VERSION = 1  # of the layout: others are made anew
_DIMENSIONS = 50  # of the vectors, from which t-SNE usually starts
_PERPLEXITY = 30
_STAGES = ((250, {"exaggeration": 12, "momentum": 0.5}), (500, {"momentum": 0.8}))  # iterations and their options
_FEW = 5  # items that are simply put on a circle
_SEED = 0


class Maps:
    """folder: the cache; whatever is there can be deleted."""

    def __init__(self, folder: Path, jobs: Jobs) -> None:
        self._folder, self._jobs = folder, jobs
        self._running: dict[str, JobState] = {}
        self._lock = Lock()

    def get(self, version: Version, space: str) -> Floats | JobState:
        """(n, 2) places in the order of the items, or the job that makes them.

        One job at a time for a space, be it for an older version: clients that wait for it request again afterwards.
        """
        key = f"{version.manifest.fit} {version.manifest.commit} {space} {_VERSION}"
        file = self._folder / f"map-{hashlib.sha256(key.encode()).hexdigest()[:24]}.npy"
        points = _read(file, len(version))
        if points is not None:
            return points
        with self._lock:
            job = self._running.get(space)
            if job is None or job.is_over:
                job = self._running[space] = self._jobs.start("map", partial(_make, version, space, file))
        return job


def _make(version: Version, space: str, file: Path, listener: Listener) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows, vectors = version.items.rows, file.with_suffix(".vectors.npy")
    found = version.index.features(rows) if space == "features" else version.index.descriptors(rows)
    try:
        np.save(vectors, found, allow_pickle=False)
        call("manifind.server.maps:write_map", {"source": str(vectors), "target": str(file)}, listener=listener)
    finally:
        vectors.unlink(missing_ok=True)
    if _read(file, len(version)) is None:
        raise RefusedError(500, "what was laid out is no map", "please report it")


def _read(file: Path, n: int) -> Floats | None:
    try:
        points: Floats = np.load(file, allow_pickle=False)
    except (OSError, ValueError):
        return None
    fits = points.shape == (n, 2) and points.dtype == np.float32 and np.isfinite(points).all()
    return points if fits else None


def write_map(source: str, target: str, listener: Listener) -> None:
    """Lay out the vectors of an .npy file; called in a child process."""
    os.nice(NICE)
    points = layout(np.load(source, allow_pickle=False, mmap_mode="r"), listener)
    with atomic_write(Path(target)) as partial, partial.open("wb") as handle:
        np.save(handle, points, allow_pickle=False)


def layout(vectors: Floats, listener: Listener) -> Floats:
    """(n, 2) a place for each row, by t-SNE, within -1 and 1; the same always."""
    n, total, before = len(vectors), sum(rounds for rounds, _ in _STAGES), 0
    if n <= _FEW:
        angles = 2 * np.pi * np.arange(n) / max(n, 1)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    with needing("web", "openTSNE is not installed"):
        import openTSNE
    from sklearn.decomposition import PCA

    def report(iteration: int, error: float, _: Any) -> None:
        listener(Progress("map", min(before + iteration, total), total, f"divergence {error:.2f}"))

    listener(Progress("map", 0, total))
    reduced = PCA(min(_DIMENSIONS, *vectors.shape), random_state=_SEED).fit_transform(np.asarray(vectors))
    reduced = np.asarray(reduced, dtype=np.float32)
    shared = {"n_jobs": os.cpu_count() or 1, "random_state": _SEED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of others' libraries, about each other
        affinities = openTSNE.affinity.PerplexityBasedNN(reduced, min(_PERPLEXITY, (n - 1) / 3), **shared)
        start = openTSNE.initialization.pca(reduced, random_state=_SEED)
        embedding = openTSNE.TSNEEmbedding(start, affinities, **shared)
        for rounds, options in _STAGES:
            embedding.optimize(
                rounds, inplace=True, use_callbacks=True, callbacks=report, callbacks_every_iters=25, **options
            )
            before += rounds
    points = np.asarray(embedding)
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    return np.asarray((points - middle) / (np.abs(points - middle).max() or 1.0), dtype=np.float32)
