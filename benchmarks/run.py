"""Runs the benchmarks, each repetition in a fresh process, keeps their numbers and renders the page.

`benchmarks/run.py` runs all of them into docs/results/performance.json; names after it choose some.
`--only-missing` leaves out what the file has from this machine, these versions and these parameters.
`--quick` runs tiny forms, to see that everything works, in a folder that is not docs/.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from importlib import import_module
from pathlib import Path

from case import Case
from fresh_process import call
from provenance import provenance
from render import DOCS, render, results_path
from results_file import ResultsFile

BENCHMARKS = (
    "fit_sizes",
    "paper_step",
    "default_vs_paper",
    "variants",
    "growth",
    "noise_memory",
    "query",
    "busy",
    "living",
    "adding",
    "serving",
    "raw_sockets",
    "efficient",
    "against_efficient",
    "training_part",
    "part_scores",
)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="tiny forms, only to see that they work")
    parser.add_argument("--only-missing", action="store_true", help="leave out what is measured already")
    parser.add_argument("--out", type=Path, help="folder for page, results and images; docs/ if not given")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    if asked.quick and asked.out and asked.out.resolve() == DOCS:
        parser.error("--quick measures nothing that belongs in docs/; give another --out, or none")
    names = [name for name in BENCHMARKS if name in asked.names or not asked.names]
    if asked.quick and not asked.out:
        with tempfile.TemporaryDirectory() as folder:
            run(names, True, asked.only_missing, Path(folder))
    else:
        run(names, asked.quick, asked.only_missing, asked.out or DOCS)


def run(names: list[str], quick: bool, only_missing: bool, folder: Path) -> None:
    """The cases of the benchmarks, one after the other; the page at the end."""
    results = ResultsFile(results_path(folder), provenance())
    for name in names:
        for case in import_module(name).cases(quick):
            if only_missing and results.has(name, case):
                print(f"{name}, {case.name}: measured already")
            else:
                results.add(name, case, _repeat(name, case))
    render(folder)


def _repeat(name: str, case: Case) -> list[dict[str, float]]:
    runs = []
    for seed in case.seeds:
        started = time.perf_counter()
        runs.append(call(name, "run", **case.parameters, seed=seed))
        shown = ", ".join(f"{key} {value:.4g}" for key, value in runs[-1].items())
        print(f"{name}, {case.name}, {len(runs)} of {len(case.seeds)}: {shown}", end="", flush=True)
        print(f" ({time.perf_counter() - started:.0f} s in all)", flush=True)
    return runs


if __name__ == "__main__":
    main()
