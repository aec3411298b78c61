"""Lists what the package offers: `inventory.py write FILE`, and `inventory.py compare BEFORE` says what is missing.

Verbs and options come from --help, routes from the page that is served, settings and public names from the package,
tests from pytest, and sizes from the sources. `compare` applies rename_map.json to BEFORE and ends with 1 if anything
but tests is missing; deleted_tests.md has the reason for every test that is gone.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from cases import INTENDED_DEFAULTS
from golden import helps, verbs_in
from program import GOLDEN, HERE, PACKAGE, ROOT, Program, fetch, renamed, served, write_json

SIZES = "sizes"
TESTS = "tests"
_QUIET = "addopts=--strict-markers --import-mode=importlib"  # a second -q would print counts only
UNLISTED = ("/", "/api", "/healthz", "/metrics", "/static/description.js", "/api/v1/openapi.json")
"""Routes that the OpenAPI document leaves out."""


def inventory() -> dict[str, Any]:
    """Everything, by kind."""
    package = import_module(PACKAGE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        with Program(folder) as run:
            pages = helps(run)
        small = {"n_neighbors": 3, "max_steps": 2}
        package.GradNet(**small).fit(_rows()).save(folder / "small")
        routes = _routes(folder)
    return {
        "verbs": sorted(name for name, page in pages.items() if name and not verbs_in(page)),
        "options": {name: _options(page) for name, page in pages.items() if not verbs_in(page)},
        "routes": routes,
        "settings": {name: _parameters(method) for name, method in package.METHODS.items()},
        "public names": {name: _members(getattr(package, name)) for name in package.__all__},
        TESTS: _tests(),
        SIZES: _sizes(),
    }


def _rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)


def _options(page: list[str]) -> list[str]:
    """The arguments and options of a verb, with all their names."""
    found: list[str] = []
    for line in page:
        if match := re.match(r"(?:\* )?((?:-{1,2}[\w-]+ )+|\[?[A-Za-z][\w.-]*\]? )<", line):
            found.append(match[1].strip())
    return sorted(found)


def _routes(folder: Path) -> list[str]:
    """Methods, paths and parameters of the page."""
    with served("small", folder) as address:
        document = json.loads(fetch(f"{address}/api/v1/openapi.json")[2])
        found = [f"GET {path}" for path in UNLISTED if fetch(address + path)[0] == 200]
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            names = sorted(one["name"] for one in told.get("parameters", []))
            found.append(f"{method.upper()} {path} ({', '.join(names)})")
    return sorted(found)


def _parameters(thing: Any) -> dict[str, str]:
    """The parameters of a constructor or a function, with their defaults."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {
        one.name: "required" if one.default is one.empty else re.sub(r" at 0x\w+", "", repr(one.default))
        for one in parameters
        if one.name != "self"
    }


def _members(thing: Any) -> dict[str, Any]:
    """The parameters of a function; the methods and properties of a class, each with its parameters."""
    if not inspect.isclass(thing):
        return _parameters(thing) if callable(thing) else {}
    own = {name: getattr(thing, name) for name in dir(thing) if not name.startswith("_")}
    members = {name: _parameters(member) if callable(member) else {} for name, member in own.items()}
    return members if issubclass(thing, Exception) else {"constructor": _parameters(thing), **members}


def _tests() -> dict[str, Any]:
    """By folder of tests: how many are collected, and the names of their functions."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-o", _QUIET],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    counts: Counter[str] = Counter()
    functions: dict[str, set[str]] = defaultdict(set)
    for line in done.stdout.splitlines():
        if match := re.match(r"tests/(?:([\w-]+)/)?.*?(\w+)\.py::(?:\w+::)*(\w+)", line):
            subject = match[1] or "."
            counts[subject] += 1
            functions[subject].add(match[3])
    if done.returncode or not counts:
        raise SystemExit(f"pytest --collect-only ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return {subject: {"count": counts[subject], "functions": sorted(functions[subject])} for subject in sorted(counts)}


def _sizes() -> dict[str, Any]:
    """Modules and lines of src, the longest and shortest of them, and class names that exist twice."""
    source = ROOT / "src" / PACKAGE
    texts = {file.relative_to(source).as_posix(): file.read_text() for file in source.rglob("*.py")}
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    classes = Counter(
        node.name for text in texts.values() for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)
    )
    ordered = sorted((count, name) for name, count in lines.items() if not name.endswith("__.py"))
    return {
        "modules": len(lines),
        "lines": sum(lines.values()),
        "longest": {name: count for count, name in reversed(ordered[-10:])},
        "shortest": {name: count for count, name in ordered[:10]},
        "modules under 40 lines outside cli": sum(c < 40 for c, name in ordered if not name.startswith("cli/")),
        "classes that exist twice": sorted(name for name, count in classes.items() if count > 1),
    }


def compare(before: dict[str, Any], now: dict[str, Any]) -> int:
    """Print what is missing and new; how much is missing, tests aside."""
    old, new = (
        _flat({kind: each[kind] for kind in each if kind not in (SIZES, TESTS)}) for each in (renamed(before), now)
    )
    for line in sorted((old - new) & set(INTENDED_DEFAULTS)):
        print(f"intended:{line}, now {INTENDED_DEFAULTS[line]}")
    missing = sorted(old - new - set(INTENDED_DEFAULTS))
    for line in missing:
        print(f"missing: {line}")
    for line in sorted(new - old):
        print(f"new: {line}")
    _compare_tests(before[TESTS], now[TESTS])
    for kind in ("modules", "lines", "modules under 40 lines outside cli", "classes that exist twice"):
        print(f"{kind}: {before[SIZES][kind]} before, {now[SIZES][kind]} now")
    print(f"longest: {json.dumps(now[SIZES]['longest'])}\nshortest: {json.dumps(now[SIZES]['shortest'])}")
    print(f"{len(missing)} missing" if missing else "nothing is missing")
    return len(missing)


def _flat(value: Any, where: str = "") -> set[str]:
    """Every entry with its place, as a line. A default that has changed is one missing and one new."""
    if isinstance(value, dict):
        return {f"{where}"}.union(*(_flat(entry, f"{where} / {name}") for name, entry in value.items()))
    if isinstance(value, list):
        return {f"{where} / {entry}" for entry in value}
    return {f"{where} = {value}"}


def _compare_tests(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Counts by subject, and functions that are gone without a reason in deleted_tests.md.

    A test that has moved to another folder under its name is not gone.
    """
    for subject in sorted({*before, *now}):
        counts = [each.get(subject, {"count": 0})["count"] for each in (before, now)]
        print(f"tests of {subject}: {counts[0]} before, {counts[1]} now")
    old, new = ({name for one in each.values() for name in one["functions"]} for each in (before, now))
    reasons = (HERE / "deleted_tests.md").read_text()
    told = set(re.findall(r"`(\w+)`", reasons))
    for name in sorted(name for name in old if not {name, renamed(name)} & (new | told)):
        print(f"gone without a reason in deleted_tests.md: {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("file", nargs="?", type=Path, default=GOLDEN / "inventory.json")
    given = parser.parse_args()
    if given.action == "write":
        write_json(given.file, inventory())
    elif compare(json.loads(given.file.read_text()), json.loads(json.dumps(inventory()))):
        sys.exit(1)


if __name__ == "__main__":
    main()
