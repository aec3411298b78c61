"""How `manifind reproduce` shows items: tables on the terminal, pages and pictures in a folder, JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import typer

from manifind.bench.html import new_figure
from manifind.bench.letters import LettersResult, draw_letters, run_letters
from manifind.bench.paper.declared import Artefact
from manifind.bench.paper.figures import FIGURES, Brief, draw_complexity, write_figure
from manifind.bench.paper.render import (
    CellValue,
    as_markdown,
    as_plain,
    cell_in_full,
    cell_values,
    footnotes,
    table_rows,
)
from manifind.bench.results import Results, cache_folder
from manifind.cli.terminal import note, say, show_json, show_table
from manifind.errors import InputError
from manifind.files import write_file

_LETTERS = "figure4"


class Drawn(NamedTuple):
    """A picture that is there. letters: what it shows, where it is Figure 4. per: how its points were counted."""

    name: str
    path: Path
    letters: LettersResult | None = None
    per: str = ""


def draw(name: str, brief: Brief, count: str, out: Path) -> Drawn:
    """One figure, in the file `out` if that is a .png, else in that folder."""
    path = out if out.suffix.lower() == ".png" else out / f"{name}.png"
    new_figure(1, 1)  # where matplotlib is missing, say so before a minute of work
    if name != _LETTERS:
        write_figure(FIGURES[name](brief), path)
        return Drawn(name, path)
    brief.refuse_set(name)
    short: dict[str, Any] = {"n_points": 300, "max_steps": 20} if brief.smoke else {}
    result = run_letters(count=count, seed=brief.seed, listener=brief.listener, **short)
    draw_letters(result, path)
    return Drawn(name, path, result, count)


def draw_all(brief: Brief, count: str, folder: Path) -> list[Drawn]:
    """Every figure that is no plot of results."""
    return [draw(name, brief, count, folder) for name in sorted((*FIGURES, _LETTERS))]


def show(drawn: Drawn, as_json: bool) -> None:
    """Where the picture is; of the letters also how precise each query is."""
    letters = drawn.letters
    rows = {} if letters is None else _precisions(letters)
    if as_json:
        show_json({name: list(values) for name, values in rows.items()} or {drawn.name: str(drawn.path)})
        return
    if rows:
        show_table(
            f"precision of the retrieved letter, 1,500 points per {drawn.per}",
            ("method", *"PAMI", "mean"),
            [(name, *(f"{v:.3f}" for v in (*values, sum(values) / 4))) for name, values in rows.items()],
            numeric=(*"PAMI", "mean"),
        )
    say(f"look at it: {drawn.path}")


def _precisions(letters: LettersResult) -> dict[str, list[float]]:
    return {"Euclidean": letters.euclidean_precision.tolist(), "GRAD-Net": letters.gradnet_precision.tolist()}


def open_results(path: Path | None, smoke: bool) -> Results:
    """The results file; of toy data one of its own, so that nothing of it is ever taken for a result."""
    if path is None:
        name = Path(tempfile.mkdtemp(prefix="manifind-smoke-")) if smoke else cache_folder() / "reproduce"
        path = name / "results.jsonl"
    results = Results(path)
    if results.damaged:
        note(f"{path}: damaged lines left out: {results.damaged}")
    return results


@contextmanager
def interruptible(results: Results) -> Iterator[None]:
    """Ctrl-C ends with how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"stopped; what is finished is kept in {results.path}: the same command goes on from there")
        raise typer.Exit(130) from None


def show_artefacts(name: str, artefacts: Sequence[Artefact], results: Results, out: Path | None, as_json: bool) -> None:
    """All of them; with `out` also as a page there."""
    page = None if out is None else write_pages(name, artefacts, results, out)
    if as_json:
        show_json([as_plain(one, results) for one in artefacts])
        return
    for one in artefacts:
        show_table(one.title, ["", *one.columns], table_rows(one, results), numeric=one.columns)
        for footnote in footnotes(one, results):
            say(f"- {footnote}")
    note(f"every query's values: {results.path}")
    if page is not None:
        say(f"look at it: {page}")


def write_pages(name: str, artefacts: Sequence[Artefact], results: Results, out: Path) -> Path:
    """A page with all of them, and the plots of those that have one; only the plot where `out` is a .png."""
    is_picture = out.suffix.lower() == ".png"
    for one in artefacts:
        if one.picture is not None:
            write_figure(draw_complexity(one, results), out if is_picture else out / one.picture)
    if is_picture:
        return out
    page = "\n".join(as_markdown(one, results) for one in artefacts)
    write_file(out / f"{name}.md", page.encode())
    return out / f"{name}.md"


def show_cell(artefacts: Sequence[Artefact], wanted: str, results: Results, as_json: bool) -> None:
    """Command, settings, seed, versions, data and every query's value behind a cell."""
    cell = _find_cell(artefacts, wanted, results)
    known = cell_in_full(cell, results)
    if as_json:
        show_json(known)
        return
    for record in known.pop("records"):
        scores = record.pop("scores", [])
        _say_all({name: value for name, value in record.items() if value not in ("", None)})
        for score in scores:
            _say_all({f"{score['measure']} of each query": score["per_query"]})
    _say_all({name: value for name, value in known.items() if value is not None})


def _say_all(values: dict[str, object]) -> None:
    for name, value in values.items():
        say(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")


def _find_cell(artefacts: Sequence[Artefact], wanted: str, results: Results) -> CellValue:
    cells = [cell for one in artefacts for cell in cell_values(one, results)]
    names = [cell.entry.name for cell in cells]
    found = [cell for cell in cells if wanted.lower() in cell.entry.name.lower()]
    exact = [cell for cell in found if cell.entry.name.lower() == wanted.lower()]
    if len(exact or found) != 1:
        raise InputError(
            f"{len(found)} cells have {wanted!r} in their name; expected one",
            f"name it as ROW / COLUMN, such as {names[0]!r}",
        )
    return (exact or found)[0]
