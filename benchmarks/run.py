"""Runs the benchmarks, each repetition in a fresh process, keeps their numbers and renders the page.

`benchmarks/run.py` runs all of them into docs/results/performance.jsonl; names after it choose some.
`--only-missing` leaves out what the file has from this machine, these versions, this code and these parameters.
`--quick` runs tiny forms, to see that everything works, in a folder that is not docs/.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from measuring import environment, is_measured, run_case
from render import DOCS, render, results_path

from manifind.bench.results import Results
from manifind.errors import ManifindError

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
    given = parser.parse_args()
    unknown = set(given.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    if given.quick and given.out and given.out.resolve() == DOCS:
        parser.error("--quick measures nothing that belongs in docs/; give another --out, or none")
    names = [name for name in BENCHMARKS if name in given.names or not given.names]
    if given.quick and not given.out:
        with tempfile.TemporaryDirectory() as folder:
            run(names, True, given.only_missing, Path(folder))
    else:
        run(names, given.quick, given.only_missing, given.out or DOCS)


def run(names: list[str], quick: bool, only_missing: bool, folder: Path) -> None:
    """The cases of the benchmarks, one after the other; the page at the end."""
    here = str(Path(__file__).resolve().parent)  # where the children find the benchmarks
    os.environ.update(environment(), PYTHONPATH=os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")])))
    results = Results(results_path(folder))
    for name in names:
        for case in import_module(name).cases(quick):
            if only_missing and is_measured(name, case, results):
                print(f"{name}, {case.name}: measured already")
                continue
            started = time.perf_counter()
            try:
                for number, values in enumerate(run_case(name, case, results), 1):
                    shown = ", ".join(f"{key} {value:.4g}" for key, value in values.items())
                    seconds = time.perf_counter() - started
                    print(f"{name}, {case.name}, {number} of {len(case.seeds)}: {shown} ({seconds:.0f} s)", flush=True)
            except ManifindError as error:
                sys.exit(str(error))
    render(folder)


if __name__ == "__main__":
    main()
