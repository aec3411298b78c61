"""Maps and groups of the collection: t-SNE and k-means in a child process, cached on disk, kept through small changes.

What is cached is the place of each item by its position, which no other item ever has. So whatever goes from a
collection, or comes back, needs nothing new; few items that come are placed beside those that are nearest.
"""

import hashlib
import os
import warnings
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from manifind.arrays import Doubles, Floats, Ints
from manifind.collection.clusters import Clusters, find_clusters
from manifind.collection.version import Version
from manifind.errors import needing
from manifind.files import atomic_write
from manifind.progress import Listener, Progress
from manifind.server.errors import RefusedError
from manifind.server.jobs import NICE, Jobs, JobState
from manifind.worker import call

_VERSION = 2  # of the layout: others are made anew
_DIMENSIONS = 50  # of the vectors, from which t-SNE usually starts
_PERPLEXITY = 30
_STAGES = ((250, {"exaggeration": 12, "momentum": 0.5}), (500, {"momentum": 0.8}))  # iterations and their options
_FEW = 5  # items that are simply put on a circle
_SEED = 0
_NEW_SHARE = 0.1  # of all items, that may be placed beside others
_ASIDE = 0.004  # how far from the nearest a new item is put, so that both are seen
_GOLDEN = np.pi * (3 - 5**0.5)  # an angle whose multiples never meet
_CLUSTERS = "clusters"  # a third kind beside the two spaces of maps


class Maps:
    """folder: the cache; whatever is there can be deleted."""

    def __init__(self, folder: Path, jobs: Jobs) -> None:
        self._folder, self._jobs = folder, jobs
        self._running: dict[str, JobState] = {}
        self._lock = Lock()

    def get(self, version: Version, space: str) -> Floats | JobState:
        """(n, 2) places in the order of the items, or the job that makes them."""
        return self._kept(version, space, "map")

    def clusters(self, version: Version) -> Clusters | JobState:
        """The group of each item in the order of the items, or the job that finds them."""
        found = self._kept(version, _CLUSTERS, "clusters")
        if isinstance(found, JobState):
            return found
        return Clusters(found[:, 0].astype(np.int64), found[:, 1])

    def _kept(self, version: Version, what: str, kind: str) -> Floats | JobState:
        """Two numbers of each item, or the job that makes them.

        One job at a time for each, be it for an older version: clients that wait for it request again afterwards.
        """
        key = f"{version.manifest.fit} {what} {_VERSION}"
        file = self._folder / f"map-{hashlib.sha256(key.encode()).hexdigest()[:24]}.npy"
        places, known = _of_items(_read(file), version.items.positions)
        if known.all():
            return places
        with self._lock:
            job = self._running.get(what)
            if job is None or job.is_over:
                job = self._running[what] = self._jobs.start(kind, partial(_make, version, what, file))
        return job


def _make(version: Version, what: str, file: Path, listener: Listener) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    positions, before = version.items.positions, _read(file)
    places, known = _of_items(before, positions)
    if 0 < (~known).sum() <= _NEW_SHARE * len(version):
        places[~known] = _beside(version, what, places, known)
    else:
        places = _made_anew(version, what, file, listener)
    table = np.column_stack([positions, places]).astype(np.float64)
    table = table[np.argsort(positions)]
    with atomic_write(file) as partial, partial.open("wb") as handle:
        np.save(handle, table, allow_pickle=False)


def _made_anew(version: Version, what: str, file: Path, listener: Listener) -> Floats:
    vectors, made = file.with_suffix(".vectors.npy"), file.with_suffix(".made.npy")
    found = version.index.descriptors if what == "descriptors" else version.index.features
    function = "write_clusters" if what == _CLUSTERS else "write_map"
    try:
        np.save(vectors, found(version.items.rows), allow_pickle=False)
        call(f"manifind.server.maps:{function}", {"source": str(vectors), "target": str(made)}, listener=listener)
        places = _load(made)
    finally:
        for part in (vectors, made):
            part.unlink(missing_ok=True)
    if places is None or places.shape != (len(version), 2):
        raise RefusedError(500, "what was laid out is no map", "please report it")
    return np.asarray(places, dtype=np.float32)


def _beside(version: Version, what: str, places: Floats, known: Any) -> Floats:
    """Places of the items that are not known: those of the nearest known ones, or a little beside them."""
    rows, index = version.items.rows, version.index
    allowed = np.zeros(index.n_fitted + index.n_added, dtype=np.bool_)
    allowed[rows[known]] = True
    descriptors = index.descriptors(rows[~known]) if version.manifest.is_full else np.empty((0, 0), np.float32)
    if what == "descriptors":
        found = index.rank_by_descriptors(descriptors, 1, allowed)
    else:
        found = index.rank(index.features(rows[~known]), descriptors, 1, allowed)
    nearest = places[np.searchsorted(rows, found.ids[:, 0])]
    if what == _CLUSTERS:
        return nearest
    angles = _GOLDEN * np.arange(len(nearest))
    aside = _ASIDE * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.clip(nearest + aside, -1, 1).astype(np.float32)


def _of_items(table: Doubles | None, positions: Ints) -> tuple[Floats, Any]:
    """(n, 2) the values at some positions, and (n,) which are known. table: (m, 3) rising positions and values."""
    if table is None or not len(table):
        return np.zeros((len(positions), 2), np.float32), np.zeros(len(positions), np.bool_)
    at = np.searchsorted(table[:, 0], positions).clip(max=len(table) - 1)
    return table[at, 1:].astype(np.float32), table[at, 0] == positions


def _read(file: Path) -> Doubles | None:
    """The table of a file, if it is one."""
    table = _load(file)
    if table is None or table.shape[1] != 3 or table.dtype != np.float64:
        return None
    return table if (np.diff(table[:, 0]) > 0).all() and np.abs(table).max(initial=0) < 1 << 53 else None


def _load(file: Path) -> Any:
    """A matrix of finite numbers from a file; None where it holds something else."""
    try:
        found = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    is_matrix = isinstance(found, np.ndarray) and found.ndim == 2 and found.dtype.kind == "f"
    return found if is_matrix and np.isfinite(found).all() else None


def write_clusters(source: str, target: str, listener: Listener) -> None:
    """Find the groups of the vectors of an .npy file; called in a child process."""
    os.nice(NICE)
    listener(Progress("groups", 0, 1))
    found = find_clusters(np.load(source, allow_pickle=False, mmap_mode="r"))
    np.save(target, np.column_stack([found.numbers, found.distances]).astype(np.float32), allow_pickle=False)


def write_map(source: str, target: str, listener: Listener) -> None:
    """Lay out the vectors of an .npy file; called in a child process."""
    os.nice(NICE)
    points = layout(np.load(source, allow_pickle=False, mmap_mode="r"), listener)
    np.save(target, points, allow_pickle=False)


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
