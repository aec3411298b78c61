"""Checkpoints: the work done so far, in a folder, to continue from after an interruption; a cache, never a result."""

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

EVERY = 20.0  # seconds between saves; where the last one took longer than one, that many times as long
_FORMAT = 1  # of what the stages save: in another one, it is another job
_JOB = "manifind-job.json"
_PARTIAL = ".manifind-"
_OWN = re.compile(r"manifind-job\.json|[a-z]+-[0-9a-f]{64}\.npz|\.manifind-[0-9a-f]{16}")


class Checkpoint:
    """A folder where the stages of a job leave arrays, to find them again when the same job is run once more.

    It is a cache: what is damaged or from another job counts as absent, and where nothing can be written nothing
    is saved. folder: made where it is missing; None saves nothing. job: what is computed, as JSON has it. seed: one
    that was drawn for this run; `seed` is then the one that the first run of the job drew.
    """

    def __init__(self, folder: str | Path | None, job: Mapping[str, Any], seed: int = 0) -> None:
        self._folder = None if folder is None else Path(folder)
        self._writable = self._folder  # None from the first failure on
        self._next = time.monotonic() + EVERY
        drawn = _drawn_before(self._folder, job)
        self.seed = seed if drawn is None else drawn
        self._identity = _identity(job, self.seed)
        if drawn is None:
            _remove(self._files())
            record = {"job": job, "seed": self.seed, "sha256": self._identity}
            self._put(lambda file: file.write(json.dumps(record, indent=1, default=str).encode()), lambda _: _JOB)
        _remove(self._files(_PARTIAL))  # a process that was killed may have left one

    def due(self) -> bool:
        """Whether the last save is long enough ago for the next to cost little beside the work."""
        return self._writable is not None and time.monotonic() >= self._next

    def load(self, stage: str) -> Arrays | None:
        """What the stage saved last; None where there is nothing of use."""
        for path in self._files(f"{stage}-"):
            with suppress(Exception), path.open("rb") as file:  # whatever is wrong with it, the work can be done again
                if self._name(stage, file) == path.name:
                    file.seek(0)
                    with np.load(file, allow_pickle=False) as saved:
                        return {name: saved[name] for name in saved.files}
        return None

    def save(self, stage: str, arrays: Arrays) -> None:
        """Save arrays of a stage, which is named in small letters, in place of what it saved before."""
        began = time.monotonic()
        saved = self._put(
            lambda file: np.savez(file, **arrays),  # type: ignore[arg-type]  # no array is called allow_pickle
            lambda file: self._name(stage, file),
        )
        if saved is not None:
            _remove(path for path in self._files(f"{stage}-") if path.name != saved)
        now = time.monotonic()
        self._next = now + EVERY * max(1.0, now - began)

    def clear(self) -> None:
        """Remove what was saved, and the folder if nothing else is in it."""
        _remove(self._files())
        if self._folder is not None:
            with suppress(OSError, ValueError):
                self._folder.rmdir()

    def _put(self, fill: Callable[[BufferedRandom], object], name: Callable[[BufferedRandom], str]) -> str | None:
        """Make a file that is there with all that `fill` writes, or not at all; its name, or None where that fails."""
        if self._writable is None:
            return None
        partial = self._writable / f"{_PARTIAL}{secrets.token_hex(8)}"
        try:
            self._writable.mkdir(parents=True, exist_ok=True)
            with partial.open("x+b") as file:
                fill(file)
                saved = name(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._writable / saved)
            return saved
        except Exception:  # a full disk speaks through whichever layer notices it first
            self._writable = None
            return None
        finally:
            with suppress(OSError, ValueError):  # ValueError: a path with a zero byte
                partial.unlink()

    def _name(self, stage: str, file: BufferedReader | BufferedRandom) -> str:
        """What a file of the stage with this content is called, so that no other one is taken for it."""
        file.seek(0)
        start = hashlib.sha256(f"{self._identity} {stage} ".encode())
        return f"{stage}-{hashlib.file_digest(file, start.copy).hexdigest()}.npz"

    def _files(self, prefix: str = "") -> list[Path]:
        """Files of ours whose names begin so, newest first."""
        if self._folder is None:
            return []
        try:
            ours = [path for path in self._folder.iterdir() if _OWN.fullmatch(path.name) and path.is_file()]
            ours.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
        except (OSError, ValueError):
            return []
        return [path for path in ours if path.name.startswith(prefix)]


def installed_versions() -> dict[str, str]:
    """Versions of whatever has a say in the bits of a result."""
    found = dict.fromkeys(("manifind", "numpy", "scipy", "torch", "faiss-cpu"), "unknown")
    for name in found:
        with suppress(PackageNotFoundError):  # faiss goes by another name outside PyPI
            found[name] = version(name)
    return found


def _drawn_before(folder: Path | None, job: Mapping[str, Any]) -> int | None:
    """The seed in the folder of the same job; None where there is no such folder."""
    if folder is None:
        return None
    with suppress(Exception):  # absent, damaged or foreign: all the same
        path = folder / _JOB
        record = json.loads(path.read_bytes()) if path.is_file() else {}
        if record["sha256"] == _identity(job, record["seed"]):
            return int(record["seed"])
    return None


def _identity(job: Mapping[str, Any], seed: int) -> str:
    text = json.dumps([_FORMAT, job, seed], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


NO_CHECKPOINT = Checkpoint(None, {})  # for callers who want nothing saved
