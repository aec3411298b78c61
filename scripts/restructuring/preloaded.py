"""Runs the program many times as `python -m PACKAGE` does, from one process that has imported the libraries already.

Each line of standard input is a JSON list: the package, its arguments, and a file for the output. Importing torch
takes longer than most commands do. Only libraries are imported here, nothing of the package itself.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from importlib import import_module
from pathlib import Path


def main() -> None:
    for name in ("numpy", "scipy.sparse", "sklearn.base", "faiss", "torch", "typer", "rich.progress"):
        import_module(name)
    for line in sys.stdin:
        package, arguments, place = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(package, arguments, Path(place))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(package: str, arguments: list[str], place: Path) -> None:
    """Run the program in this child and end it."""
    for name, number in (("out", 1), ("err", 2)):
        target = os.open(place.with_suffix(f".{name}"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, number)
    sys.argv = [package, *arguments]
    code = 0
    try:
        runpy.run_module(package, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
