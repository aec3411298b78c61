"""Renders docs/methods.md between its markers from manifind.METHODS: what each method is, answers and costs."""

from __future__ import annotations

import inspect
from pathlib import Path

from manifind.baselines import METHODS
from manifind.bench.html import put_between

PAGE = Path(__file__).resolve().parent.parent / "docs" / "methods.md"


def render() -> str:
    """The page with its table as the code has it now."""
    return put_between(PAGE.read_text(), "methods", table())


def table() -> str:
    """A row for each method, in the order of METHODS."""
    rows = ["| name | what it is | unseen queries | cost |", "|---|---|---|---|"]
    for name, method in METHODS.items():
        file = Path(inspect.getfile(method)).relative_to(PAGE.parent.parent)
        what = (inspect.getdoc(method) or "").split("\n")[0].rstrip(".")
        unseen = "yes" if method.answers_unseen else "no"
        rows.append(f"| [`{name}`](../{file.as_posix()}) | {what} | {unseen} | {method.cost} |")
    return "\n".join(rows)


if __name__ == "__main__":
    PAGE.write_text(render())
    print(PAGE)
