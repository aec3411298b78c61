"""Maps of the collection: laid out once for each version, in a process of its own, and kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from manifind.arrays import Floats
from manifind.progress import Listener
from manifind.server.errors import RefusedError
from manifind.server.jobs import Job, Jobs, in_process
from manifind.server.views import View

SPACES = ("descriptors", "features")
_VERSION = 1  # of the layout: others are made anew


class Maps:
    """folder: where they are kept; whatever lies there can go."""

    def __init__(self, folder: Path, jobs: Jobs) -> None:
        self._folder, self._jobs = folder, jobs
        self._running: dict[str, Job] = {}
        self._lock = Lock()

    def get(self, view: View, space: str) -> Floats | Job:
        """(n, 2) places in the order of the items, or the job that makes them.

        One job at a time for a space, be it for an older version: whoever waits for it asks again afterwards.
        """
        file = self._file(view, space)
        points = _read(file, len(view.version))
        if points is not None:
            return points
        with self._lock:
            job = self._running.get(space)
            if job is None or job.is_over:
                job = self._running[space] = self._jobs.start("map", self._work(view, space, file))
        return job

    def _file(self, view: View, space: str) -> Path:
        key = f"{view.version.manifest.fit} {view.version.manifest.commit} {space} {_VERSION}"
        return self._folder / f"map-{hashlib.sha256(key.encode()).hexdigest()[:24]}.npy"

    def _work(self, view: View, space: str, file: Path) -> Callable[[Listener], Any]:
        def work(listener: Listener) -> None:
            self._folder.mkdir(parents=True, exist_ok=True)
            index = view.version.index
            rows = index.features(view.rows) if space == "features" else index.descriptors(view.rows)
            vectors = file.with_suffix(".vectors.npy")
            try:
                np.save(vectors, rows, allow_pickle=False)
                in_process("manifind.server.map_process", [str(vectors), str(file)], listener)
            finally:
                vectors.unlink(missing_ok=True)
            if _read(file, len(view.version)) is None:
                raise RefusedError(500, "what was laid out is no map", "please report it")

        return work


def _read(file: Path, n: int) -> Floats | None:
    try:
        points: Floats = np.load(file, allow_pickle=False)
    except (OSError, ValueError):
        return None
    fits = points.shape == (n, 2) and points.dtype == np.float32 and np.isfinite(points).all()
    return points if fits else None
