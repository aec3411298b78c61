"""Renders tables between markers: docs/methods.md from manifind.METHODS, docs/readings.md from GradNet's settings."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

from manifind.baselines import METHODS
from manifind.bench.html import put_between
from manifind.settings import PAPER, GradNetSettings, meanings_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "methods.md"
READINGS = PAGE.with_name("readings.md")


def render() -> str:
    """The page of methods with its table as the code has it now."""
    return _with_table(PAGE, "methods", table())


def render_readings() -> str:
    """The page of readings with the table of settings as the code has it now."""
    return _with_table(READINGS, "settings", settings_table())


def _with_table(page: Path, name: str, rows: str) -> str:
    return put_between(page.read_text(), name, rows)


def settings_table() -> str:
    """A row for each setting of GRAD-Net, in the order of their declaration."""
    rows, meanings = ["| setting | default | paper | what it is |", "|---|---|---|---|"], meanings_of(GradNetSettings)
    for one in fields(GradNetSettings):
        paper = f"`{_value(PAPER[one.name])}`" if one.name in PAPER else ""
        rows.append(f"| `{one.name}` | `{_value(one.default)}` | {paper} | {meanings[one.name]} |")
    return "\n".join(rows)


def _value(value: object) -> str:
    parts = value if isinstance(value, tuple) else (value,)
    texts = [f"{part:.4g}" if isinstance(part, float) else repr(part) for part in parts]
    return f"({', '.join(texts)})" if isinstance(value, tuple) else texts[0]


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
    for page, text in ((PAGE, render()), (READINGS, render_readings())):
        page.write_text(text)
        print(page)
