"""`gradnet data`: which data sets there are, getting their files, and looking at what is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradnet.cli import data_shown as shown
from gradnet.cli.terminal import progress_bars, say, show_json
from gradnet.data.catalogue import CATALOGUE, find_set, licence_text
from gradnet.data.check import check_files
from gradnet.data.fetch import fetch
from gradnet.data.folder import VARIABLE, data_root
from gradnet.data.labelled import LABELLED_SETS, load_labelled_set, read_labelled
from gradnet.data.landmark_folder import landmark_files, read_landmark_folder
from gradnet.errors import InputError, MissingExtraError
from gradnet.progress import Listener

if TYPE_CHECKING:
    from gradnet.cli.baselines_shown import Contents

data_app = typer.Typer(
    help="Published data sets and your own: list, fetch and check them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
_Folder = Annotated[
    Path | None,
    typer.Option(help=f"Where data sets live; else {VARIABLE}, else this system's folder for caches."),
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
        show_json([shown.set_facts(dataset, root) for dataset in CATALOGUE.values()])
    else:
        shown.show_sets(CATALOGUE.values(), root)


@data_app.command("fetch")
def fetch_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set that `gradnet data list` shows.")],
    part: Annotated[
        list[str] | None,
        typer.Option(help="descriptors, ground-truth or images; may be given more than once."),
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
            f"say `gradnet data fetch {name} --part {dataset.parts[0]}`",
        )
    with progress_bars() as listener:
        root = data_root(folder) if dataset.files else Path()
        fetched = fetch(dataset, root, part or (), listener=listener)
    if as_json:
        show_json([shown.fetched_facts(one) for one in fetched])
    elif not dataset.files:
        say(f"{name} needs no files: {licence_text(dataset)}")
    else:
        shown.show_fetched(name, fetched)


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
            facts, usable = shown.state_facts(dataset, root, state), state.is_usable
            contents = _contents_of_set(source, root, window or dataset.window, listener) if usable else []
    if as_json:
        show_json({**facts, "usable": usable, "contents": [one.as_dict() for one in contents]})
    else:
        shown.show_state(facts)
        for one in contents:
            one.show()
    if not usable:
        raise typer.Exit(1)


def _is_path(source: Path) -> bool:
    return source.exists() or len(source.parts) > 1 or source.suffix != ""


def _contents_of_set(name: str, root: Path, window: int | None, listener: Listener) -> list[Contents]:
    from gradnet.cli import baselines_shown  # imports torch: only where something is scored

    if name in LABELLED_SETS:
        return baselines_shown.labelled(load_labelled_set(name, root, listener), window)
    return baselines_shown.landmarks(read_landmark_folder(root / name))


def _contents_of_path(path: Path, window: int | None, listener: Listener) -> list[Contents]:
    from gradnet.cli import baselines_shown

    if path.is_dir() and landmark_files(path):
        return baselines_shown.landmarks(read_landmark_folder(path))
    return baselines_shown.labelled(read_labelled(path, listener), window)
