"""A function of a benchmark called in a process of its own, whose peak of memory is its own too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from typing import Any

from provenance import n_cores


def call(module: str, function: str, **arguments: Any) -> dict[str, float]:
    """What the function returns, from a fresh Python.

    The caller must be small: on Linux the peak that a process reports begins at that of its parent.
    """
    done = subprocess.run(
        [sys.executable, __file__, module, function, json.dumps(arguments)],
        env=os.environ | environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{module} with {arguments} failed with exit code {done.returncode}")
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def environment() -> dict[str, str]:
    """As many threads as cores for every library, none of which spins while it waits; no GPU."""
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    threads = dict.fromkeys(pools, str(n_cores()))
    return {**threads, "OMP_WAIT_POLICY": "passive", "CUDA_VISIBLE_DEVICES": ""}


if __name__ == "__main__":
    module, function, arguments = sys.argv[1:]
    print(json.dumps(getattr(import_module(module), function)(**json.loads(arguments))))
