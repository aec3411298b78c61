"""How `manifind reproduce` shows items: tables on the terminal, pages and pictures in a folder, JSON."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manifind.bench.html import new_figure, write_figure
from manifind.bench.letters import draw_letters, run_letters
from manifind.bench.paper.declared import Artefact
from manifind.bench.paper.figures import FIGURES, Brief, draw_results
from manifind.bench.paper.render import as_markdown, as_plain, cell_in_full, cell_values, footnotes, table_rows
from manifind.bench.paper.runner import Wanted, outdated_runs
from manifind.bench.results import Results, cache_folder
from manifind.cli.terminal import note, say, show_json, show_table
from manifind.errors import InputError
from manifind.files import write_file
from manifind.text import count

_LETTERS = "figure4"


def draw(name: str, brief: Brief, count: str, out: Path) -> tuple[Path, dict[str, list[float]]]:
    """One figure, in the file `out` if that is a .png, else in that folder; of Figure 4 also how precise each query is.

    count: how the points of Figure 4 are counted.
    """
    path = out if out.suffix.lower() == ".png" else out / f"{name}.png"
    new_figure(1, 1)  # where matplotlib is missing, say so before a minute of work
    if name != _LETTERS:
        write_figure(FIGURES[name](brief), path)
        return path, {}
    brief.refuse_set(name)
    short: dict[str, Any] = {"n_points": 300, "max_steps": 20} if brief.smoke else {}
    found = run_letters(count=count, seed=brief.seed, listener=brief.listener, **short)
    draw_letters(found, path)
    return path, {"Euclidean": found.euclidean_precision.tolist(), "GRAD-Net": found.gradnet_precision.tolist()}


def draw_all(brief: Brief, count: str, folder: Path) -> None:
    """Every figure that is no plot of results."""
    for name in sorted((*FIGURES, _LETTERS)):
        draw(name, brief, count, folder)


def show_drawn(name: str, path: Path, precisions: dict[str, list[float]], count: str, as_json: bool) -> None:
    """Where the picture is; of the letters also how precise each query is."""
    if as_json:
        show_json(precisions or {name: str(path)})
        return
    if precisions:
        rows = [(name, *(f"{v:.3f}" for v in (*values, sum(values) / 4))) for name, values in precisions.items()]
        title = f"precision of the retrieved letter, 1,500 points per {count}"
        show_table(title, ("method", *"PAMI", "mean"), rows, numeric=(*"PAMI", "mean"))
    say(f"look at it: {path}")


def open_results(path: Path | None, smoke: bool) -> Results:
    """The results file; of toy data one of its own, so that nothing of it is ever taken for a result."""
    if path is None:
        name = Path(tempfile.mkdtemp(prefix="manifind-smoke-")) if smoke else cache_folder() / "reproduce"
        path = name / "results.jsonl"
    results = Results(path)
    if results.damaged:
        note(f"{path}: damaged lines left out: {results.damaged}")
    return results


def note_outdated(wanted: Sequence[Wanted], results: Results) -> None:
    """Say how many of the saved results that are shown were made by other code."""
    if found := outdated_runs(wanted, results):
        note(f"{count(len(found), 'result')} of an earlier version of the code; --outdated runs them again")


def show_artefacts(name: str, artefacts: Sequence[Artefact], results: Results, out: Path | None, as_json: bool) -> None:
    """All of them; with `out` also as a page there."""
    page = None if out is None else _write_pages(name, artefacts, results, out)
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


def _write_pages(name: str, artefacts: Sequence[Artefact], results: Results, out: Path) -> Path:
    """A page with all of them, and the plots of those that have one; only the plot where `out` is a .png."""
    is_picture = out.suffix.lower() == ".png"
    for one in artefacts:
        if one.picture is not None:
            write_figure(draw_results(one, results), out if is_picture else out / one.picture)
    if is_picture:
        return out
    page = "\n".join(as_markdown(one, results) for one in artefacts)
    write_file(out / f"{name}.md", page.encode())
    return out / f"{name}.md"


def show_cell(artefacts: Sequence[Artefact], wanted: str, results: Results, as_json: bool) -> None:
    """Command, settings, seed, versions, data and every query's value behind a cell."""
    cells = [cell for one in artefacts for cell in cell_values(one, results)]
    found = [cell for cell in cells if wanted.lower() in cell.entry.name.lower()]
    exact = [cell for cell in found if cell.entry.name.lower() == wanted.lower()]
    if len(exact or found) != 1:
        raise InputError(
            f"{len(found)} cells have {wanted!r} in their name; expected one",
            f"name it as ROW / COLUMN, such as {cells[0].entry.name!r}",
        )
    known = cell_in_full((exact or found)[0], results)
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
