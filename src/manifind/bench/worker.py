"""The process in which one method runs.

FOLDER holds a task and `job.json`. Each message is one line of JSON on standard output: how far it is, or
the result of one of the job's runs.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from manifind.bench.cell import FAILED, REFUSED
from manifind.bench.methods import load_factory
from manifind.bench.task import read_task
from manifind.errors import InputError, ManifindError, MissingExtraError
from manifind.progress import Listener, Progress

_PAUSE = 0.2  # seconds between two messages of progress


def main(folder: Path) -> None:
    """Run the job in the folder and tell of it."""
    messages = _take_standard_output()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = json.loads((folder / "job.json").read_bytes())
    run_one = _prepared(folder, job, teller(messages))
    for settings in job["runs"]:
        tell(messages, {"result": run_one(settings)})


def tell(messages: TextIO, message: dict[str, Any]) -> None:
    """One line, at once."""
    messages.write(json.dumps(message, default=str) + "\n")
    messages.flush()


def teller(messages: TextIO) -> Listener:
    """A listener that passes on what it hears, though not more than a few times a second."""
    last = {"at": 0.0}

    def listen(report: Progress) -> None:
        now = time.monotonic()
        if report.done >= report.total or now - last["at"] > _PAUSE:
            last["at"] = now
            tell(messages, {"progress": [report.stage, report.done, report.total, report.note]})

    return listen


def outcome(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What came of a run: its result, or why there is none."""
    try:
        return run()
    except (InputError, MissingExtraError) as error:
        return {"state": REFUSED, "reason": error.problem, "hint": error.hint}
    except ManifindError as error:
        return {"state": FAILED, "reason": error.problem, "hint": error.hint}
    except MemoryError as error:
        return {"state": FAILED, "reason": f"ran out of memory: {error}", "hint": ""}
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}, line {where.lineno}"
        return {"state": FAILED, "reason": f"{type(error).__name__}: {error} ({place})", "hint": ""}


def _prepared(folder: Path, job: dict[str, Any], listener: Listener) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What runs the method once; where it cannot even be loaded, that is the outcome of every run."""
    task, factory_of = read_task(folder), cache(load_factory)
    module, _, name = job["procedure"].partition(":")
    procedure = getattr(import_module(module), name)

    def run(settings: dict[str, Any]) -> dict[str, Any]:
        record: dict[str, Any] = procedure(task, factory_of(job["method"]), settings, listener)
        return record

    return lambda settings: outcome(lambda: run(settings))


def _take_standard_output() -> TextIO:
    """The stream of messages; whatever a method prints goes to standard error instead."""
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return messages


def _end_with_parent() -> None:
    """Wait until nobody holds the other end of standard input: then nobody waits for an answer."""
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
