"""How the scripts of this folder find the package, run its program, and hide what differs from run to run.

The package is `manifind`, or `gradnet` where the sources of this repository have only that, so that the same scripts
run before and after the restructuring.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "src"))
GOLDEN = HERE / "golden"
# What happens to be installed may be of another checkout: the sources decide.
PACKAGE = next(name for name in ("manifind", "gradnet") if (ROOT / "src" / name / "__init__.py").exists())
FORMER_OPTIONS = {"--extractor": "--describer"}  # what cases.py names by its present name
PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "FAISS_OPT_LEVEL": "avx2",
    "MKL_CBWR": "AVX2",
}
"""Instructions that all recent x86-64 processors have, so that learned numbers depend less on the machine."""
_MANY = 60  # a longer list of numbers is summed up
_FRAME = re.compile(r"[\s─━│┃┌┐└┘├┤┬┴┼╭╮╰╯╞╪╡╶╴┏┓┗┛┡┩┢┪┠┨┯┷┳┻╇╈╋]+")

os.environ["OMP_NUM_THREADS"] = "1"  # torch, which is imported later, sums in another order with more threads


def restart_portably() -> None:
    """Run this script anew with these variables, which libraries read when they are imported."""
    if any(os.environ.get(name) != value for name, value in PORTABLE.items()):
        path = os.pathsep.join(filter(None, (str(HERE / "portable"), os.environ.get("PYTHONPATH"))))
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **PORTABLE, "PYTHONPATH": path})


def environment(folder: Path) -> dict[str, str]:
    """One thread, no color, and data sets, caches and home inside the folder: the same on every machine."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    kept["PYTHONPATH"] = os.pathsep.join((str(ROOT / "src"), str(HERE / "portable")))
    inside = {"HOME": "home", "XDG_CACHE_HOME": "home/cache", "GRADNET_DATA": "data", "MANIFIND_DATA": "data"}
    fixed = {"COLUMNS": "600", "TERM": "dumb", "NO_COLOR": "1", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0"}
    threads = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    if PACKAGE != "gradnet":
        del inside["GRADNET_DATA"]  # still read, with a warning
    return {**kept, **fixed, **threads, **PORTABLE, **{name: str(folder / place) for name, place in inside.items()}}


class Program:
    """`python -m PACKAGE` in a folder, many times."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._output = folder.parent / f"{folder.name}-output"
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "preloaded.py")],
            cwd=folder, env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        for suffix in (".out", ".err"):
            self._output.with_suffix(suffix).unlink(missing_ok=True)

    def __call__(self, arguments: list[str]) -> dict[str, Any]:
        """What it prints and how it ends, normalised."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if PACKAGE == "gradnet":
            arguments = [FORMER_OPTIONS.get(one, one) for one in arguments]
        print(json.dumps([PACKAGE, arguments, str(self._output)]), file=self._process.stdin, flush=True)
        code = int(self._process.stdout.readline())
        out, err = (self._output.with_suffix(suffix).read_text() for suffix in (".out", ".err"))
        result: dict[str, Any] = {"command": " ".join(arguments), "exit": code}
        try:
            result["stdout"] = normalise(json.loads(out), self.folder)
        except ValueError:
            result["stdout"] = as_lines(out, self.folder)
        # Which bars of progress are drawn depends on the time, so that only the messages of a failure are pinned.
        result["stderr"] = as_lines(err, self.folder) if code else []
        return result


@contextmanager
def served(collection: str, folder: Path, *options: str) -> Iterator[str]:
    """The address of the search page of a collection while it is served."""
    command = [sys.executable, "-m", PACKAGE, "serve", collection, "--port", "0", *options]
    server = subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout is not None
        found = next((match for line in server.stdout if (match := re.search(r"http://[\d.]+:\d+", line))), None)
        if found is None:
            raise SystemExit(f"{' '.join(command)} printed no address")
        yield found[0]
    finally:
        server.terminate()
        server.wait(timeout=30)


def fetch(address: str, body: Any = None, method: str | None = None) -> tuple[int, str, str]:
    """Status, content type and text of an answer; asked again while the server starts."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"}, method=method)
    for remaining in range(50, -1, -1):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers["content-type"], answer.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            return error.code, error.headers["content-type"], error.read().decode("utf-8", "replace")
        except urllib.error.URLError:
            if not remaining:
                raise
            time.sleep(0.2)
    raise AssertionError("unreachable")


@cache
def volatile() -> dict[str, Any]:
    """What is masked: fields by name, and patterns within text."""
    return json.loads((HERE / "volatile.json").read_text())


def as_lines(text: str, folder: Path) -> list[str]:
    """The lines of a text without frames and repeated spaces, which depend on widths."""
    lines = (_FRAME.sub(" ", masked(line, folder)).strip() for line in text.splitlines())
    return [line for line in lines if line]


def masked(text: str, folder: Path) -> str:
    """A text without the temporary folder, the repository and what changes from run to run."""
    for place, name in ((folder, "FOLDER"), (folder.resolve(), "FOLDER"), (ROOT, "REPOSITORY")):
        text = text.replace(str(place), name)
    for pattern, shown in volatile()["patterns"].items():
        text = re.sub(pattern, shown, text)
    return text


def normalise(value: Any, folder: Path) -> Any:
    """A JSON value with volatile fields masked and long series of numbers summed up."""
    if isinstance(value, dict):
        if len(value) > _MANY and all(map(_is_number, value.values())):
            return _summary(list(value.values()))
        return {
            masked(name, folder): "VOLATILE"
            if name in volatile()["fields"] and entry is not None
            else normalise(entry, folder)
            for name, entry in value.items()
        }
    if isinstance(value, list):
        if len(value) > _MANY and all(map(_is_number, value)):
            return _summary(value)
        return [normalise(entry, folder) for entry in value]
    return masked(value, folder) if isinstance(value, str) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _summary(numbers: list[float]) -> dict[str, Any]:
    weighted = sum(place * number for place, number in enumerate(numbers, 1))
    return {"numbers": len(numbers), "first": numbers[:3], "sum": sum(numbers), "weighted sum": weighted}


@cache
def rename_map() -> dict[str, Any]:
    """The words, and what is kept in spite of them: patterns, fields by name, and whole keys."""
    return json.loads((HERE / "rename_map.json").read_text())


@cache
def _pattern() -> re.Pattern[str]:
    words = sorted(rename_map()["words"], key=len, reverse=True)
    return re.compile("|".join([*rename_map()["kept"], *map(re.escape, words)]))


def renamed(value: Any) -> Any:
    """A value as it was before, with the words of the rename map; as it is where the package has its old name."""
    if PACKAGE == "gradnet":
        return value
    if isinstance(value, dict):
        return {
            name if name in rename_map()["kept_keys"] else renamed(name): entry
            if name in rename_map()["kept_fields"]
            else renamed(entry)
            for name, entry in value.items()
        }
    if isinstance(value, list):
        return [renamed(entry) for entry in value]
    if not isinstance(value, str):
        return value
    return _pattern().sub(lambda found: rename_map()["words"].get(found[0], found[0]), value)


def write_json(path: Path, value: Any) -> None:
    """Sorted keys, so that a difference is a difference of content."""
    path.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
