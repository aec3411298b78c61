"""`manifind data`: which data sets there are, getting their files, and what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manifind.cli.terminal import say, show_json, show_table
from manifind.datasets.catalogue import (
    CATALOGUE,
    VARIABLE,
    DataSet,
    data_root,
    find_set,
    items_text,
    licence_text,
    size_text,
)
from manifind.datasets.check import DIFFERS, MISSING, SetState, check_files, is_available
from manifind.datasets.download import Fetched, fetch
from manifind.datasets.labelled import LABELLED_SETS, load_labelled_set, read_labelled
from manifind.datasets.landmarks import landmark_files, read_landmark_folder
from manifind.errors import InputError, MissingExtraError
from manifind.progress import Listener, progress_bars

if TYPE_CHECKING:
    from manifind.cli.data_baselines import SetContents

data_app = typer.Typer(
    help="Published data sets and your own: list, fetch and check them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
_Folder = Annotated[
    Path | None, typer.Option(help=f"Where data sets live; else {VARIABLE}, else this system's folder for caches.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


@data_app.command("list")
def list_sets(folder: _Folder = None, as_json: _AsJson = False) -> None:
    """Show every data set of the catalogue, what it holds, and whether it is here."""
    try:
        root = data_root(folder)
    except MissingExtraError:  # the catalogue can be read without a place to put things
        root = None
    if as_json:
        show_json([_set_facts(dataset, root) for dataset in CATALOGUE.values()])
    else:
        _show_sets(CATALOGUE.values(), root)


@data_app.command("fetch")
def fetch_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set that `manifind data list` shows.")],
    part: Annotated[
        list[str] | None, typer.Option(help="descriptors, ground-truth or images; may be given more than once.")
    ] = None,
    folder: _Folder = None,
    as_json: _AsJson = False,
) -> None:
    """Download the files of a data set that are not here yet, and unpack its archives.

    Without --part what the set needs: descriptors and ground truth, or pictures where it has no descriptors.
    """
    dataset = find_set(name)
    if dataset.files and not dataset.default_parts and not part:
        raise InputError(
            f"{name} has no part that is fetched unless it is asked for; it has {', '.join(dataset.parts)}",
            f"say `manifind data fetch {name} --part {dataset.parts[0]}`",
        )
    with progress_bars() as listener:
        root = data_root(folder) if dataset.files else Path()
        fetched = fetch(dataset, root, part or (), listener=listener)
    if as_json:
        show_json([_fetched_facts(one) for one in fetched])
    elif not dataset.files:
        say(f"{name} needs no files: {licence_text(dataset)}")
    else:
        _show_fetched(name, fetched)


@data_app.command("check")
def check(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME-OR-PATH",
            help="A data set of the catalogue, or labelled data of yours: a folder, .csv or .npz.",
        ),
    ],
    window: Annotated[
        int | None, typer.Option(min=1, help="With labels: the bullseye score of k-NN in this window, too.")
    ] = None,
    folder: _Folder = None,
    as_json: _AsJson = False,
) -> None:
    """Look at a data set: its files and their digests, what they hold, and what plain k-NN scores on them.

    A name of the catalogue comes before a folder of the same name; write ./orl for the folder. Your own
    data is labelled (a folder for each class, a .csv of file and label, an .npz with labels), or a folder
    with vectors and published ground truth (gnd_*.json, .pkl, .mat, or text files).
    """
    with progress_bars() as listener:
        if source not in CATALOGUE and _is_path(Path(source)):
            facts, usable = {"source": source}, True
            contents = _contents_of_path(Path(source), window, listener)
        else:
            dataset = find_set(source)
            root = data_root(folder) if dataset.files else Path()
            state = check_files(dataset, root, listener)
            facts, usable = _state_facts(dataset, root, state), state.is_usable
            contents = _contents_of_set(source, root, window or dataset.window, listener) if usable else []
    if as_json:
        show_json({**facts, "usable": usable, "contents": [one.as_dict() for one in contents]})
    else:
        _show_state(facts)
        for one in contents:
            one.show()
    if not usable:
        raise typer.Exit(1)


def _is_path(source: Path) -> bool:
    return source.exists() or len(source.parts) > 1 or source.suffix != ""


def _contents_of_set(name: str, root: Path, window: int | None, listener: Listener) -> list[SetContents]:
    from manifind.cli import data_baselines  # imports torch: only where something is scored

    if name in LABELLED_SETS:
        return data_baselines.labelled(load_labelled_set(name, root, listener), window)
    return data_baselines.landmarks(read_landmark_folder(root / name))


def _contents_of_path(path: Path, window: int | None, listener: Listener) -> list[SetContents]:
    from manifind.cli import data_baselines

    if path.is_dir() and landmark_files(path):
        return data_baselines.landmarks(read_landmark_folder(path))
    return data_baselines.labelled(read_labelled(path, listener), window)


def _set_facts(dataset: DataSet, root: Path | None) -> dict[str, Any]:
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
        "here": None if root is None else is_available(dataset, root),
    }


def _show_sets(datasets: Iterable[DataSet], root: Path | None) -> None:
    """The catalogue as a table."""
    here = {None: "?", True: "yes", False: "no"}
    chosen = list(datasets)
    rows = [
        (one.name, items_text(one), one.title, size_text(one), here[None if root is None else is_available(one, root)])
        for one in chosen
    ]
    title = f"data sets under {root}" if root else "data sets"
    show_table(title, ("name", "items", "what", "to fetch", "here"), rows, numeric=("items",))
    terms = [(one.name, one.truth, one.source, licence_text(one)) for one in chosen]
    show_table("where they come from", ("name", "ground truth", "source", "terms as stated"), terms)


def _fetched_facts(one: Fetched) -> dict[str, Any]:
    """One fetched file."""
    return {
        "file": one.file.path,
        "part": one.file.part,
        "path": str(one.path),
        "outcome": one.outcome,
        "sha256": one.sha256,
        "folder": None if one.folder is None else str(one.folder),
    }


def _show_fetched(name: str, fetched: Sequence[Fetched]) -> None:
    """The fetched files as a table, and what to do next."""
    rows = [(one.file.path, one.outcome, str(one.folder or one.path)) for one in fetched]
    show_table(name, ("file", "outcome", "where"), rows)
    say(f"look at it with: manifind data check {name}")


def _state_facts(dataset: DataSet, root: Path, state: SetState) -> dict[str, Any]:
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


def _show_state(facts: dict[str, Any]) -> None:
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
        say(f"`manifind data fetch {facts['source']}` tries to get what is missing")
