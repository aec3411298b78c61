"""What `gradnet data` shows: each answer once as plain values for programs and once as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gradnet.cli.terminal import say, show_table
from gradnet.data.catalogue import items_text, licence_text, size_text
from gradnet.data.check import DIFFERS, MISSING, SetState, is_here
from gradnet.data.dataset import DataSet
from gradnet.data.fetch import Fetched


def set_facts(dataset: DataSet, root: Path | None) -> dict[str, Any]:
    """One entry of the catalogue. here: None where no folder is known to look in."""
    return {
        "name": dataset.name,
        "title": dataset.title,
        "items": dataset.items,
        "items_are_about": dataset.about,
        "queries": dataset.queries,
        "truth": dataset.truth,
        "source": dataset.source,
        "licence": dataset.licence,
        "parts": list(dataset.parts),
        "default_parts": [part for part in dataset.default_parts if part in dataset.parts],
        "bytes": dataset.size,
        "here": None if root is None else is_here(dataset, root),
    }


def show_sets(datasets: Iterable[DataSet], root: Path | None) -> None:
    """The catalogue as a table."""
    here = {None: "?", True: "yes", False: "no"}
    chosen = list(datasets)
    rows = [
        (
            one.name,
            items_text(one),
            one.title,
            size_text(one),
            here[None if root is None else is_here(one, root)],
        )
        for one in chosen
    ]
    title = f"data sets under {root}" if root else "data sets"
    show_table(title, ("name", "items", "what", "to fetch", "here"), rows, numeric=("items",))
    terms = [(one.name, one.truth, one.source, licence_text(one)) for one in chosen]
    show_table("where they come from", ("name", "ground truth", "source", "terms as stated"), terms)


def fetched_facts(one: Fetched) -> dict[str, Any]:
    """One fetched file."""
    return {
        "file": one.file.path,
        "part": one.file.part,
        "path": str(one.path),
        "outcome": one.outcome,
        "sha256": one.sha256,
        "folder": None if one.folder is None else str(one.folder),
    }


def show_fetched(name: str, fetched: Sequence[Fetched]) -> None:
    """The fetched files as a table, and what to do next."""
    rows = [(one.file.path, one.outcome, str(one.folder or one.path)) for one in fetched]
    show_table(name, ("file", "outcome", "where"), rows)
    say(f"look at it with: gradnet data check {name}")


def state_facts(dataset: DataSet, root: Path, state: SetState) -> dict[str, Any]:
    """The files of a set and how each of them is."""
    return {
        "source": dataset.name,
        "folder": str(root / dataset.name) if dataset.files else None,
        "files": [
            {
                "file": one.file.path,
                "part": one.file.part,
                "required": one.required,
                "state": one.state,
                "detail": one.detail,
            }
            for one in state.files
        ],
        "other_form": [str(path) for path in state.other_form],
    }


def show_state(facts: dict[str, Any]) -> None:
    """The files as a table, then one line for each that needs something done."""
    files = facts.get("files", [])
    if not files:
        say(f"{facts['source']} has no files to check" if "files" in facts else f"{facts['source']}:")
        return
    show_table(
        facts["folder"],
        ("file", "part", "needed", "state"),
        [(one["file"], one["part"], "yes" if one["required"] else "no", one["state"]) for one in files],
    )
    if facts["other_form"]:
        first, *others = facts["other_form"]
        say(f"here in another form: {first}{f' and {len(others)} more' if others else ''}")
        return
    for one in files:
        if one["detail"] and (one["required"] or one["state"] == DIFFERS):
            say(f"{one['file']}: {one['detail']}")
    if any(one["required"] and one["state"] == MISSING for one in files):
        say(f"`gradnet data fetch {facts['source']}` tries to get what is missing")
