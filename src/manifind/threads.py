"""How many threads compute, so that a machine that others use too is shared and not fought over.

Threads of OpenMP spin while they wait for each other, unless they are told to sleep before their library is loaded.
On a core that another program uses, a thread that spins waits for one that does not run: a fit may take five times as
long.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager

# As type checkers know it: every program imports this first, and what it imports here would take long.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_POLICY = "OMP_WAIT_POLICY"
_LIBRARIES = {"torch", "faiss", "sklearn"}  # each loads OpenMP, which reads the policy only then
_WATCHED = 0.05  # seconds
_STATISTICS = "/proc/stat"
_IDLE = (3, 4)  # columns of a core's times: idle, and idle while it waits for a disk


class BusyMachineWarning(UserWarning):
    """Fewer threads compute than there are cores, since others use these."""


def let_threads_sleep() -> None:
    """Tell OpenMP that threads sleep while they wait, unless the user says something or it is too late."""
    if not _LIBRARIES & sys.modules.keys():
        os.environ.setdefault(_POLICY, "passive")


def usable_cores() -> int:
    """The cores that this process may use, of which a container may have fewer than the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def idle_cores() -> float:
    """How many of the usable cores others leave idle just now; all of them where nobody says."""
    before = _times()
    time.sleep(_WATCHED)
    after = _times()
    idle = 0.0
    for core, (total, unused) in after.items():
        passed = total - before[core][0] if core in before else 0
        idle += (unused - before[core][1]) / passed if passed > 0 else 1.0
    return idle if after else float(usable_cores())


def _times() -> dict[str, tuple[int, int]]:
    """Of each usable core what it has spent in all and unused, in hundredths of a second."""
    if not os.path.isfile(_STATISTICS) or not hasattr(os, "sched_getaffinity"):
        return {}
    mine, found = {f"cpu{core}" for core in os.sched_getaffinity(0)}, {}
    with open(_STATISTICS) as file:
        lines = file.read().splitlines()
    for line in lines:
        name, *values = line.split()
        if name in mine:
            numbers = [int(value) for value in values]
            found[name] = (sum(numbers[:8]), sum(numbers[column] for column in _IDLE))  # guests are counted twice
    return found


@contextmanager
def cores_shared() -> Iterator[None]:
    """Compute with as many threads as cores are idle, one at least, where nothing says how threads wait."""
    if _POLICY in os.environ or (free := round(idle_cores())) >= usable_cores():
        yield
        return
    import warnings

    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="openmp")
    wanted, had = max(1, free), max((one["num_threads"] for one in libraries.info()), default=1)
    if had <= wanted:
        yield
        return
    busy = usable_cores() - free
    warnings.warn(
        f"other programs keep {busy} of {usable_cores()} cores busy, so that this computes with {wanted} in place of "
        f"{had} threads; import manifind before torch and scikit-learn, or set {_POLICY}=passive before Python "
        "starts, and all of them share the cores",
        BusyMachineWarning,
        stacklevel=4,
    )
    with libraries.limit(limits=wanted):
        yield
