"""Benchmark: a fit beside other programs, with threads that sleep while they wait, that spin, and in a plain script."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from measuring import QUICK, Case, environment

WAITING = {
    "sleep": {"OMP_WAIT_POLICY": "passive"},
    "spin briefly": {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "3000"},
    "spin": {"OMP_WAIT_POLICY": "active"},
    "a script": {},
    "a script, torch first": {},
}
OTHERS = (0, 1, 2)
"""How many other programs keep a core busy."""

_STEPS = 60
_CODE = """
import json, sys, time
if sys.argv[2] == "torch first":
    import torch
from manifind import GradNet
from manifind.datasets.labelled import load_digits
X = load_digits().descriptors
GradNet(max_steps=2, random_state=0).fit(X)
started = time.perf_counter()
GradNet(**json.loads(sys.argv[1]), random_state=0).fit(X)
print(time.perf_counter() - started)
"""


def cases(quick: bool) -> list[Case]:
    """Every way of waiting beside every number of other programs, on digits; the quick form waits in one way only."""
    settings = QUICK if quick else {"max_steps": _STEPS}
    return [
        Case(
            f"{waiting}, {others}",
            {"waiting": waiting, "others": others, "settings": settings},
            (0,) * (1 if quick else 2),
        )
        for waiting in (["sleep"] if quick else WAITING)
        for others in OTHERS
    ]


def run(waiting: str, others: int, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Seconds of the fit while the others run; how threads wait is decided when a process begins."""
    import json

    del seed  # only the time varies
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(others)]
    try:
        time.sleep(0.2)
        done = subprocess.run(
            [sys.executable, "-c", _CODE, json.dumps(settings), waiting.partition(", ")[2]],
            env=_surroundings(waiting),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return {"seconds": float(done.stdout)}


def _surroundings(waiting: str) -> dict[str, str]:
    """The variables of the process; those of a script say nothing of threads."""
    variables = os.environ | environment() | WAITING[waiting]
    if waiting.startswith("a script"):
        variables = {name: value for name, value in variables.items() if not name.endswith(("_NUM_THREADS", "_POLICY"))}
    return variables
