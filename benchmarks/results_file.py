"""The one results file: what was measured, on which machine, with which versions."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from case import Case


class ResultsFile:
    """Benchmarks by name, each with its machine, versions, date and cases.

    The cases of a benchmark are compared with each other, so they are all of one machine and of one set
    of versions: the first case from elsewhere replaces what was there.
    """

    def __init__(self, path: Path, provenance: dict[str, Any]) -> None:
        self._path, self._provenance = path, provenance
        self._benchmarks = read_benchmarks(path)

    def has(self, benchmark: str, case: Case) -> bool:
        """Whether the case was measured here, with these versions and these parameters."""
        if not self._is_ours(benchmark):
            return False
        found = self._benchmarks[benchmark]["cases"].get(case.name, {})
        same_parameters = found.get("parameters") == json.loads(json.dumps(case.parameters))
        return same_parameters and found["repetitions"] == len(case.seeds)

    def add(self, benchmark: str, case: Case, runs: list[dict[str, float]]) -> None:
        """Put a case into the file, at once: an interruption loses only what is being measured."""
        kept = self._benchmarks[benchmark]["cases"] if self._is_ours(benchmark) else {}
        kept[case.name] = {"parameters": case.parameters, "repetitions": len(runs), "numbers": summary(runs)}
        date = datetime.now(UTC).date().isoformat()
        self._benchmarks[benchmark] = {**self._provenance, "date": date, "cases": kept}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps({"benchmarks": self._benchmarks}, indent=1) + "\n")
        os.replace(new, self._path)

    def _is_ours(self, benchmark: str) -> bool:
        found = self._benchmarks.get(benchmark, {})
        return {key: found.get(key) for key in self._provenance} == self._provenance


def read_benchmarks(path: Path) -> dict[str, Any]:
    """The benchmarks in the file; none where there is no file."""
    benchmarks: dict[str, Any] = json.loads(path.read_text())["benchmarks"] if path.is_file() else {}
    return benchmarks


def summary(runs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Median, least and most of each number over the repetitions."""
    numbers = {key: [run[key] for run in runs] for key in runs[0]}
    return {key: {"median": median(v), "min": min(v), "max": max(v)} for key, v in numbers.items()}
