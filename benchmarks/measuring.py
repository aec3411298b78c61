"""Measurements of time and memory: cases, each repetition in a process of its own, and their summary."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from operator import itemgetter
from statistics import median
from typing import Any, TypeAlias

from manifind.bench.cell import DONE, finished, peak_bytes
from manifind.bench.results import Results, machine, versions
from manifind.bench.runner import CellJob, RunOptions, open_runner, task_code
from manifind.errors import ManifindError
from manifind.progress import Listener
from manifind.threads import usable_cores

_KIND = "performance"
_PROCEDURE = "measuring:measured"
_Found: TypeAlias = tuple[int, dict[str, Any], dict[str, Any]]  # number, key and record
QUICK = {"max_steps": 2, "layers": [32, 16]}
"""Settings of GradNet for quick forms: a short training of a small network."""


@dataclass(frozen=True)
class Case:
    """One row of a benchmark: `run(**parameters, seed=...)` in a fresh process for each of `seeds`."""

    name: str
    parameters: dict[str, Any]  # plain JSON values
    seeds: tuple[int, ...]  # one for each repetition; the same again where only time varies


def run_case(benchmark: str, case: Case, results: Results) -> Iterator[dict[str, float]]:
    """The numbers of each repetition, which are in the results file already. benchmark: a module with `run`."""
    notes = {"date": datetime.now(UTC).date().isoformat(), "memory_GB": _memory()}
    procedure, command = _PROCEDURE, f"benchmarks/run.py {benchmark}"
    about = {"kind": _KIND, "benchmark": benchmark, "case": case.name, "settings": case.parameters}
    options = {"function": f"{benchmark}:run"}
    with open_runner(None, results, RunOptions(fresh=True)) as runner:
        for repetition, seed in enumerate(case.seeds):
            key = {**about, "seed": seed, "repetition": repetition}
            arguments = {"settings": case.parameters, "options": options, "seed": seed}
            job = CellJob(key, procedure, None, arguments, benchmark, command, notes, _also_runs(benchmark))
            record, _ = runner.get(job)
            if record["state"] != DONE:
                raise ManifindError(f"{benchmark}, {case.name} {record['state']}: {record['reason']}", record["hint"])
            yield record["values"]


def _also_runs(benchmark: str) -> tuple[str, ...]:
    """Whose code counts besides the procedure's: what is measured is GRAD-Net, in whatever way it is called."""
    return f"{benchmark}:run", "manifind.model.estimator:GradNet"


def todays_code(benchmark: str) -> str:
    """The digest of the code that would be measured now."""
    return task_code(_PROCEDURE, None, _also_runs(benchmark))


def measured(task: None, factory: None, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The numbers that a function gives for the settings and the seed."""
    module, _, name = job["options"]["function"].partition(":")
    return finished(**getattr(import_module(module), name)(**job["settings"], seed=job["seed"]))


def is_measured(benchmark: str, case: Case, results: Results) -> bool:
    """Whether all repetitions are there, from this machine, these versions, this code and these parameters."""
    found = read_benchmarks(results).get(benchmark)
    here = {"machine": _machine(machine(), _memory()), "versions": versions(), "code": todays_code(benchmark)}
    if found is None or any(found[name] != value for name, value in here.items()) or case.name not in found["cases"]:
        return False
    known, parameters = found["cases"][case.name], json.loads(json.dumps(case.parameters))
    return bool((known["parameters"], known["repetitions"]) == (parameters, len(case.seeds)))


def read_benchmarks(results: Results) -> dict[str, Any]:
    """By name: machine, versions and date of each benchmark, and its cases with their numbers.

    The cases of a benchmark are compared with each other, so they are all of one machine, one set of versions and one
    code, those of the latest record; what is from elsewhere, or of other parameters, is left out.
    """
    groups: dict[str, list[_Found]] = {}
    for key, record, number in results.items():
        if key["kind"] == _KIND and record["state"] == DONE:
            groups.setdefault(key["benchmark"], []).append((number, key, record))
    return {name: _benchmark(found) for name, found in groups.items()}


def _benchmark(found: list[_Found]) -> dict[str, Any]:
    _, _, latest = max(found, key=itemgetter(0))
    cases: dict[str, list[_Found]] = {}
    for one in found:
        if _about(one[2]) == _about(latest):
            cases.setdefault(one[1]["case"], []).append(one)
    return {**_about(latest), "date": latest["date"], "cases": {name: _case(own) for name, own in cases.items()}}


def _case(found: list[_Found]) -> dict[str, Any]:
    parameters = max(found, key=itemgetter(0))[1]["settings"]
    records = [record for _, key, record in found if key["settings"] == parameters]
    repetitions = sum(record.get("repetitions", 1) for record in records)
    return {"parameters": parameters, "repetitions": repetitions, "numbers": summary(records)}


def _about(record: dict[str, Any]) -> dict[str, Any]:
    about = {"versions": record["versions"], "code": record.get("code")}
    return {"machine": _machine(record["machine"], record["memory_GB"]), **about}


def summary(records: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Median, least and most of each number over the repetitions.

    A record of several repetitions has their median among its `values`, and `least` and `most` beside them.
    """
    numbers = {}
    for name in records[0]["values"]:
        values, least, most = (
            [record.get(kind, record["values"])[name] for record in records] for kind in ("values", "least", "most")
        )
        numbers[name] = {"median": median(values), "min": min(least), "max": max(most)}
    return numbers


def environment() -> dict[str, str]:
    """As many threads as cores for every library, none of which spins while it waits; no GPU."""
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    threads = dict.fromkeys(pools, str(usable_cores()))
    return {**threads, "OMP_WAIT_POLICY": "passive", "CUDA_VISIBLE_DEVICES": ""}


def peak_gigabytes() -> float:
    """The most memory that this process has had, libraries and all, in 10^9 bytes."""
    return (peak_bytes() or 0) / 1e9


def _machine(of: dict[str, Any], memory: int) -> dict[str, Any]:
    return {"cores": of["cores"], "processor": of["processor"], "memory_GB": memory}


def _memory() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)
