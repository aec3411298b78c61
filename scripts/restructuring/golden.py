"""Pins what users see: `golden.py write FOLDER` writes it, `golden.py compare [FOLDER]` compares it with golden/.

It runs every verb in a temporary folder, with fixed seeds and small settings, and typical mistakes; asks the search
page for its OpenAPI document; and renders the pages of docs. cases.py says what is run, volatile.json what is masked,
and rename_map.json which words of golden/ are replaced before they are compared.

golden/ was written by the last version before the restructuring: `git worktree add ../before fe6b406^`, the scripts of
this folder copied there, and there `golden.py write FOLDER`. All processes are held to instructions that every recent
processor has, and to float32. Where learned numbers differ in their last digits all the same, since libraries choose
their blocks by the processor's caches, let the earlier version write a FOLDER on this machine, and compare with that.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, FILES, INTENDED, MAKE_SERVED, ORDER, SERVED, make_files
from program import (
    GOLDEN,
    PACKAGE,
    ROOT,
    Program,
    as_lines,
    environment,
    fetch,
    normalise,
    renamed,
    restart_portably,
    served,
    write_json,
)

RENDERERS = (
    "reproduction.py", "levers.py --render", "results.py --render", "methods_page.py", "data_table.py", "paper_map.py",
)  # fmt: skip
"""Scripts that render pages from kept results, within seconds; a script that has been moved is named here anew."""

CONVERTED = {f"docs/results/{name}.json" for name in ("performance", "levers", "letters")}
"""Results files that results_to_lines.py has converted into lines of JSON."""

SHOWN = 12  # differences of a file that are printed
TOLERANCE = 1e-5  # relative; of float32 sums in another order


def collect(verbs: list[str]) -> Iterator[tuple[str, Any]]:
    """The name and the content of each golden file, as it is made."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        make_files(folder)
        yield from of_the_program(folder, verbs)
        if not verbs:
            yield "files", {file: as_lines((folder / file).read_text(), folder) for file in FILES}
        if not verbs or "methods" in verbs:
            yield "methods", _as_json(answers_of_methods(folder))
        if not verbs or "pages" in verbs:
            yield "pages", pages(folder)


def of_the_program(folder: Path, verbs: list[str]) -> Iterator[tuple[str, Any]]:
    """What the verbs print, and what the page answers."""
    with Program(folder) as run:
        for verb in (verb for verb in ORDER if not verbs or verb in verbs):
            yield verb, {f"{i:02} {case}": run(shlex.split(case)) for i, case in enumerate(CASES[verb])}
        if not verbs or "help" in verbs:
            yield "help", helps(run)
        if not verbs or "serve" in verbs:
            run(shlex.split(MAKE_SERVED))
            yield from of_the_page(folder)


def answers_of_methods(folder: Path) -> dict[str, Any]:
    """The best items of each method for three items of a small labelled set, with its default settings."""
    package = import_module(PACKAGE)
    rows = np.load(folder / "labelled.npz")["vectors"]
    found = {}
    for name, method in package.METHODS.items():
        quick = {"max_steps": 3, "n_neighbors": 3} if name.startswith("gradnet") else {}
        quick |= {"random_state": 0} if "random_state" in signature(method).parameters else {}
        images = {"images": np.arange(len(rows)) // 2} if "images" in signature(method.fit).parameters else {}
        ranking = method(**quick).fit(rows, **images).search(k=4)
        found[name] = {"ids": ranking.ids[:3].tolist(), "scores": ranking.scores[:3].tolist()}
    return found


def helps(run: Program) -> dict[str, list[str]]:
    """What --help prints for the program and for every verb that it names."""
    top = run(["--help"])["stdout"]
    shown = {"": top}
    for verb in verbs_in(top):
        shown[verb] = run([verb, "--help"])["stdout"]
        shown |= {f"{verb} {one}": run([verb, one, "--help"])["stdout"] for one in verbs_in(shown[verb])}
    return shown


def verbs_in(lines: list[str]) -> list[str]:
    """The verbs that a page of help lists under Commands."""
    return [line.split()[0] for line in lines[lines.index("Commands") + 1 :]] if "Commands" in lines else []


def of_the_page(folder: Path) -> Iterator[tuple[str, Any]]:
    """The OpenAPI document, and answers of a page that serves a collection."""
    answers: dict[str, Any] = {}
    with served("served", folder) as address:
        document = json.loads(fetch(f"{address}/api/v1/openapi.json")[2])
        for method, path, body in SERVED:
            status, kind, text = fetch(address + path, body, method)
            name = f"{method} {path}" + (f" {json.dumps(body)}" if body else "")
            answers[name] = {"status": status, "type": kind, "answer": _answer(path, kind, text, folder)}
    with served("served", folder, "--allow-edit") as address:
        editable = json.loads(fetch(f"{address}/api/v1/openapi.json")[2])
        answers["editable"] = {
            "the same OpenAPI document": editable == document,
            "collection": normalise(json.loads(fetch(f"{address}/api/v1/collection")[2]), folder),
        }
    yield "serve", answers
    document["info"]["version"] = "VOLATILE"
    yield "openapi", document


def _answer(path: str, kind: str, text: str, folder: Path) -> Any:
    if kind.startswith("application/json"):
        return normalise(json.loads(text), folder)
    if path == "/metrics":  # its values are times and counts of this run
        return sorted({line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")})
    return sorted(set(re.findall(r'\bid="([^"]+)"', text)))


def pages(folder: Path) -> dict[str, Any]:
    """The Git object of every page and results file, and which of them the scripts render as they are committed.

    A digest alone could not be renamed: the object lets `compare` read the text as it was.
    """
    copy = folder / "repository"
    for part in ("src", "scripts", "docs", "tests", "README.md", "pyproject.toml"):
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, _parent(copy) / part)
    where = {**environment(folder), "PYTHONPATH": os.pathsep.join(map(str, (copy / "src", copy / "tests")))}
    for command in RENDERERS:
        script, *options = command.split()
        done = subprocess.run(
            [sys.executable, str(copy / "scripts" / script), *options],
            cwd=copy, env=where, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"scripts/{command} failed: {done.stderr}")
    found = {}
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "results").iterdir()]
    for file in sorted(file for file in files if file.suffix in (".md", ".json", ".jsonl")):
        name = file.relative_to(ROOT).as_posix()
        content = file.read_bytes()
        found[name] = {"object": _object_id(content), "rendered": (copy / name).read_bytes() == content}
    return found


def _parent(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _object_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def compare(verbs: list[str], folder: Path) -> int:
    """Print what is not as the folder has it; how many files differ."""
    wrong = 0
    for name, now in collect(verbs):
        before = renamed(json.loads((folder / f"{name}.json").read_text()))
        # What is written is what JSON keeps of it.
        found = _pages_changed(before, now) if name == "pages" else list(differences(before, _as_json(now)))
        for line in [line for line in found if intention(name, line)]:
            found.remove(line)
            print(f"{name}: intended: {intention(name, line)}")
        wrong += bool(found)
        print(f"{name}: {f'{len(found)} differences' if found else 'equal'}", flush=True)
        for line in found[:SHOWN]:
            print(f"  {line}")
    return wrong


def intention(name: str, difference: str) -> str | None:
    """Why a difference is meant to be; None where it is not."""
    return next((why for where, why in INTENDED.items() if f"{name}{difference}".startswith(where)), None)


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def differences(before: Any, now: Any, where: str = "") -> Iterator[str]:
    """Where two values differ; numbers may differ by a rounding."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            if key not in now or key not in before:
                yield f"{where} / {key}: {'missing' if key not in now else 'new'}"
            else:
                yield from differences(before[key], now[key], f"{where} / {key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{where} [{place}]")
    elif isinstance(before, float) and isinstance(now, int | float):
        if not math.isclose(before, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f"{where}: {before} before, {now} now"
    elif before != now:
        yield f"{where}: {_short(before)} before, {_short(now)} now"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}..."


def _pages_changed(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Pages that are missing, that scripts no longer render, or whose text is not the old one renamed.

    Documents outside docs/results may be rewritten: of them only rendering is compared.
    """
    found = _converted_changed({name: old["object"] for name, old in before.items() if name in CONVERTED})
    for name, old in before.items():
        if name in CONVERTED:
            continue
        if name not in now:
            found += [f"{name}: missing"]
        elif old["rendered"] and not now[name]["rendered"]:
            found += [f"{name}: rendered, it is not as committed"]
        elif name.startswith("docs/results/") and old["object"] != now[name]["object"]:
            found += _lines_changed(name, old["object"])
    return found


def _converted_changed(old: dict[str, str]) -> list[str]:
    """Results files that do not begin with what the script makes of the old ones."""
    with tempfile.TemporaryDirectory() as folder:
        for name, blob in old.items():
            shown = subprocess.run(
                ["git", "cat-file", "blob", blob], cwd=ROOT, capture_output=True, text=True, check=True
            )
            text = shown.stdout.replace('"gradnet": "0.1.0"', '"manifind": "0.1.0"')  # among the versions
            (Path(folder) / Path(name).name).write_text(text)
        script = Path(__file__).parent / "results_to_lines.py"
        where = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        subprocess.run([sys.executable, str(script), folder], env=where, check=True)
        found = []
        for name in (f"{name}l" for name in old):
            expected, now = (Path(folder) / Path(name).name).read_text(), (ROOT / name).read_text()
            if not now.startswith(expected):
                found.append(f"{name}: not what the old file says")
        return found


def _lines_changed(name: str, old: str) -> list[str]:
    shown = subprocess.run(["git", "cat-file", "blob", old], cwd=ROOT, capture_output=True, text=True)
    if shown.returncode:
        return [f"{name}: the Git object {old} is not here; fetch the whole history"]
    now = (ROOT / name).read_text().splitlines()
    before = [renamed(line) for line in shown.stdout.splitlines()]
    if len(before) != len(now):
        return [f"{name}: {len(before)} lines before, {len(now)} now"]
    return [
        f"{name}:{i}: {_short(one)} before, {_short(other)} now"
        for i, (one, other) in enumerate(zip(before, now, strict=True), 1)
        if one != other
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("folder", nargs="?", type=Path, default=GOLDEN, help="where it is written, or was")
    parser.add_argument(
        "--verbs",
        default="",
        help="only these, with commas between; search, export, remove, info and publish need index, too",
    )
    given = parser.parse_args()
    restart_portably()
    verbs = [verb for verb in given.verbs.split(",") if verb]
    begun = time.monotonic()
    if given.action == "compare":
        sys.exit(1 if compare(verbs, given.folder) else 0)
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, content in collect(verbs):
        write_json(given.folder / f"{name}.json", content)
        print(f"{given.folder / name}.json, {time.monotonic() - begun:.0f} s of {PACKAGE}", flush=True)


if __name__ == "__main__":
    main()
