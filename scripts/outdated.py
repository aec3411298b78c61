"""Lists the results under docs/results that other code made than today's, in docs/results/outdated.md.

A result is outdated where the digest of the code that it reaches (`manifind.bench.code_digest`) is no longer the one
that it was recorded with. `scripts/outdated.py` renders the page; a test fails where the page is not the list of today.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import other_readings

from manifind.bench.cell import TRIAL
from manifind.bench.html import markdown_table, put_between
from manifind.bench.paper.procedures import PROCEDURES
from manifind.bench.results import Results
from manifind.bench.runner import task_code
from manifind.bench.suite import PROCEDURES as OF_THE_SUITE

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "results"
PAGE = FOLDER / "outdated.md"
_PROCEDURES = {
    "letters": "results:measure_letters",
    "cutoff": "cutoff:run_missing",
    "tuning": "tuning:run_missing",
    **OF_THE_SUITE,
    **{f"reproduce {name}": address for name, address in other_readings.PROCEDURES.items()},
}
_KEPT = 8  # digits of a digest that are shown


class Task(NamedTuple):
    """What was run: a procedure with a method, or a benchmark."""

    file: str
    kind: str
    method: str | None
    benchmark: str | None = None

    @property
    def code(self) -> str:
        """The digest of the code that would run it today."""
        if self.benchmark is not None:
            from measuring import todays_code

            return str(todays_code(self.benchmark))
        procedure = PROCEDURES.get(self.kind.removeprefix("reproduce ")) or _PROCEDURES.get(self.kind, TRIAL)
        return task_code(procedure, self.method)


def recorded() -> Iterator[tuple[Task, str | None]]:
    """Every result that is committed, with the digest that it was recorded with; None where it has none."""
    for file in sorted(FOLDER.glob("*.jsonl")):
        for key, record, _ in Results(file).items():
            yield Task(file.name, key["kind"], key.get("method"), key.get("benchmark")), record.get("code")


def outdated() -> Counter[tuple[Task, str | None]]:
    """How many results of each task and digest are not of today's code."""
    sys.path.extend(str(ROOT / folder) for folder in ("scripts", "benchmarks") if str(ROOT / folder) not in sys.path)
    return Counter((task, code) for task, code in recorded() if code != task.code)


def table(found: Counter[tuple[Task, str | None]]) -> str:
    """The list in markdown."""
    rows: list[list[Any]] = []
    for (task, code), number in sorted(found.items(), key=str):
        what = f"{task.kind} {task.benchmark or task.method or ''}".strip()
        rows.append([f"[{task.file}]({task.file})", what, f"`{code[:_KEPT]}`" if code else "not recorded", str(number)])
    return markdown_table(["file", "task", "made by code", "results"], rows, n_texts=3) if rows else "None."


def rendered_pages() -> dict[Path, str]:
    """The page as it should read."""
    return {PAGE: put_between(PAGE.read_text(), "outdated", table(outdated()))}


if __name__ == "__main__":
    for page, text in rendered_pages().items():
        page.write_text(text)
