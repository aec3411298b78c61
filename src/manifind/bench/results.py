"""The results file: one line of JSON a cell, with the machine and versions behind it."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from manifind.bench.cell import DONE, read_cell
from manifind.errors import InputError, system_errors_as
from manifind.threads import usable_cores

_PACKAGES = ("manifind", "numpy", "scipy", "scikit-learn", "torch", "faiss-cpu")


def versions() -> dict[str, str]:
    """Of Python and of what the methods compute with."""
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


def machine() -> dict[str, Any]:
    """What the seconds depend on."""
    return {"processor": _processor(), "cores": usable_cores(), "threads": os.environ.get("OMP_NUM_THREADS", "not set")}


def provenance(command: str, digest: str, code: str) -> dict[str, Any]:
    """command: runs this alone. digest, code: SHA-256 of the task, and of the definitions that it reaches.

    load: how many processes ran or waited in the last minute, this one among them: what seconds are worth.
    """
    from manifind.model.training import gpu_name  # imports torch

    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    here = {**machine(), "gpu": gpu_name(), "load": load}
    return {"command": command, "data": digest, "versions": versions(), "machine": here, "code": code}


def _processor() -> str:
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


_BEGIN = b'{"key": '


class Results:
    """The finished cells and trials in a file; of two with the same key the later one counts.

    damaged: how many lines could not be read, as after an interruption in the middle of one.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.damaged, self._count = path, 0, 0
        self._lock = Lock()  # several threads may finish something
        self._records: dict[str, tuple[dict[str, Any], int]] = {}  # by the text of the key, numbered
        content = _content(path)  # read, and opened for writing, before anything long begins
        self._ends_in_the_middle = bool(content) and not content.endswith(b"\n")
        for line in content.splitlines():
            self._read(line)

    def get(self, key: dict[str, Any]) -> dict[str, Any] | None:
        return self._records.get(_text(key), (None,))[0]

    def items(self) -> Iterator[tuple[dict[str, Any], dict[str, Any], int]]:
        """Every key in the order of its first record, its last record, and a number that is larger for later ones."""
        return ((json.loads(text), record, number) for text, (record, number) in self._records.items())

    def add(self, key: dict[str, Any], record: dict[str, Any]) -> None:
        with self._lock:
            self._add(key, record)

    def _add(self, key: dict[str, Any], record: dict[str, Any]) -> None:
        self._remember(key, record)
        line = json.dumps({"key": key, "record": record}, default=str) + "\n"
        with _keeping_in(self.path), self.path.open("ab", buffering=0) as stream:
            stream.write((("\n" if self._ends_in_the_middle else "") + line).encode())
            os.fsync(stream.fileno())
        self._ends_in_the_middle = False

    def _remember(self, key: dict[str, Any], record: dict[str, Any]) -> None:
        self._count += 1
        self._records[_text(key)] = record, self._count

    def _read(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            entry = json.loads(line)
            _check(entry["key"]["kind"], entry["record"])
            self._remember(entry["key"], entry["record"])
        except (KeyError, TypeError, ValueError):  # what json and UTF-8 complain of are ValueErrors
            self.damaged += 1


def default_results(digest: str) -> Path:
    return cache_folder() / "compare" / f"{digest[:16]}.jsonl"


def cache_folder() -> Path:
    try:
        import pooch

        return Path(pooch.os_cache("manifind"))
    except ImportError:
        return Path.home() / ".cache" / "manifind"


def _content(path: Path) -> bytes:
    with _keeping_in(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as stream:
            stream.seek(0)
            content = stream.read()
    first = content.lstrip().split(b"\n", 1)[0]  # it may have been cut anywhere
    if not first.startswith(_BEGIN[: len(first)]):
        raise InputError(
            f"{path} holds something else than results of manifind",
            "name another file with --results, which will be made",
        )
    return content


def _keeping_in(path: Path) -> AbstractContextManager[None]:
    return system_errors_as(InputError, f"results cannot be kept in {path}", "name another file with --results")


def _check(kind: str, record: dict[str, Any]) -> None:
    """Refuse what is neither a cell nor a trial."""
    if record["state"] != DONE or kind == "cell":
        read_cell(record)
    elif not record["values"] or not all(isinstance(value, float) for value in record["values"].values()):
        raise ValueError(record["values"])


def _text(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)
