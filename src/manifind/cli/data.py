"""`manifind data`: which data sets there are, getting their files, what they hold, and what k-NN scores on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from manifind.cli.options import AsJson, DataFolder, argument, option
from manifind.cli.scores import scores_as_dicts, show_with_rules
from manifind.cli.terminal import say, show_json, show_table
from manifind.datasets.catalogue import CATALOGUE, DataSet, data_root, find_set, items_text, licence_text, size_text
from manifind.datasets.check import DIFFERS, MISSING, SetState, check_files, is_available
from manifind.datasets.download import Fetched, fetch
from manifind.datasets.labelled import Labelled
from manifind.datasets.landmarks import Landmarks, read_pair
from manifind.errors import InputError, MissingExtraError
from manifind.progress import Listener, progress_bars

if TYPE_CHECKING:
    from manifind.bench.sources import Baseline

data_app = typer.Typer(
    help="Published data sets and your own: list, fetch and check them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


@data_app.command("list")
def list_sets(folder: DataFolder = None, as_json: AsJson = False) -> None:
    """Show every data set of the catalogue, what it holds, and whether it is here."""
    try:
        root = data_root(folder)
    except MissingExtraError:  # the catalogue can be read without a place to put things
        root = None
    # None where no folder is known to look in
    here = {name: None if root is None else is_available(one, root) for name, one in CATALOGUE.items()}
    if as_json:
        show_json([_set_facts(one) | {"here": here[name]} for name, one in CATALOGUE.items()])
        return
    words = {None: "?", True: "yes", False: "no"}
    rows = [(name, items_text(one), one.title, size_text(one), words[here[name]]) for name, one in CATALOGUE.items()]
    title = f"data sets under {root}" if root else "data sets"
    show_table(title, ("name", "items", "what", "to fetch", "here"), rows, numeric=("items",))
    terms = [(name, one.truth, one.source, licence_text(one)) for name, one in CATALOGUE.items()]
    show_table("where they come from", ("name", "ground truth", "source", "terms as stated"), terms)


@data_app.command("fetch")
def fetch_set(
    name: Annotated[str, argument("NAME", "A data set that `manifind data list` shows.")],
    part: Annotated[
        list[str] | None, option("descriptors, ground-truth or images; may be given more than once.")
    ] = None,
    folder: DataFolder = None,
    as_json: AsJson = False,
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
        rows = [(one.file.path, one.outcome, str(one.folder or one.path)) for one in fetched]
        show_table(name, ("file", "outcome", "where"), rows)
        say(f"look at it with: manifind data check {name}")


@data_app.command("check")
def check(
    source: Annotated[
        str, argument("NAME-OR-PATH", "A data set of the catalogue, or labelled data of yours: a folder, .csv or .npz.")
    ],
    window: Annotated[int | None, option("With labels: the bullseye score of k-NN in this window, too.", min=1)] = None,
    folder: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Look at a data set: its files and their digests, what they hold, and what plain k-NN scores on them.

    A name of the catalogue comes before a folder of the same name; write ./orl for the folder. Your own
    data is labelled (a folder for each class, a .csv of file and label, an .npz with labels), or a folder
    with vectors and published ground truth (gnd_*.json, .pkl, .mat, or text files).
    """
    from manifind.bench.sources import is_path  # imports torch

    usable, facts = True, {"source": source}
    with progress_bars() as listener:
        if is_path(source):
            contents = _contents(source, None, window, listener)
        else:
            dataset = find_set(source)
            root = data_root(folder) if dataset.files else Path()
            state = check_files(dataset, root, listener)
            facts, usable = _state_facts(dataset, root, state), state.is_usable
            contents = _contents(source, root, window or dataset.window, listener) if usable else []
    if as_json:
        show_json({**facts, "usable": usable, "contents": [one.as_dict() for one in contents]})
    else:
        _show_state(facts)
        for one in contents:
            one.show()
    if not usable:
        raise typer.Exit(1)


class SetContents(NamedTuple):
    """One reading of a set: its facts, and the scores of k-NN."""

    name: str
    facts: dict[str, Any]
    baselines: list[Baseline]

    def as_dict(self) -> dict[str, Any]:
        """Everything, for programs; per-query values by row number."""
        scores = [
            {"preprocess": one.preprocess, **row}
            for one in self.baselines
            for row in scores_as_dicts(one.scores, [str(i) for i in range(len(one.scores[0].per_query))])
        ]
        return {"name": self.name, **self.facts, "knn": scores}

    def show(self) -> None:
        """A line of facts, a table of scores, and the rules they were counted by."""
        say(f"{self.name}: " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.facts.items()))
        if not self.baselines:
            say("no two items share a label, so there is nothing to find")
            return
        scores = [((one.preprocess,), score) for one in self.baselines for score in one.scores]
        show_with_rules(f"plain k-NN on {self.name}", ("descriptors",), scores)


def _contents(source: str, root: Path | None, window: int | None, listener: Listener) -> list[SetContents]:
    """What there is, scored by k-NN. root: the folder of a set of the catalogue; None where the source is a path."""
    from manifind.bench.sources import label_baselines, landmark_baselines, read_source

    sets, pairs = read_source(source, root, listener)
    found = [SetContents(one.name, _label_facts(one), [*label_baselines(one, window)]) for one in sets or ()]
    for files in pairs:
        data, name = read_pair(files), f"{files.vectors.name} with {files.truth.name}"
        found.append(SetContents(name, _list_facts(data), [*landmark_baselines(data)]))
    return found


def _label_facts(data: Labelled) -> dict[str, Any]:
    sizes = np.bincount(data.labels)
    return {
        "items": len(data.labels),
        "dimension": data.descriptors.shape[1],
        "type": str(data.descriptors.dtype),
        "classes": len(data.classes),
        "smallest_class": int(sizes.min()),
        "largest_class": int(sizes.max()),
    }


def _list_facts(data: Landmarks) -> dict[str, Any]:
    return {
        "items": len(data.descriptors),
        "dimension": data.descriptors.shape[1],
        "queries": len(data.queries),
        "distractors": data.distractors,
        "images_of_the_lists_missing": data.missing[0],
        "queries_of_the_lists_missing": data.missing[1],
    }


def _set_facts(dataset: DataSet) -> dict[str, Any]:
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
    }


def _fetched_facts(one: Fetched) -> dict[str, Any]:
    return {
        "file": one.file.path,
        "part": one.file.part,
        "path": str(one.path),
        "outcome": one.outcome,
        "sha256": one.sha256,
        "folder": None if one.folder is None else str(one.folder),
    }


def _state_facts(dataset: DataSet, root: Path, state: SetState) -> dict[str, Any]:
    """The files of a set and how each of them is."""
    columns = ("file", "part", "required", "state", "detail")
    files = [(one.file.path, one.file.part, one.required, one.state, one.detail) for one in state.files]
    return {
        "source": dataset.name,
        "folder": str(root / dataset.name) if dataset.files else None,
        "files": [dict(zip(columns, file, strict=True)) for file in files],
        "other_form": [str(path) for path in state.other_form],
    }


def _show_state(facts: dict[str, Any]) -> None:
    """The files as a table, then one line for each that needs something done."""
    files = facts.get("files", [])
    if not files:
        say(f"{facts['source']} has no files to check" if "files" in facts else f"{facts['source']}:")
        return
    rows = [(one["file"], one["part"], "yes" if one["required"] else "no", one["state"]) for one in files]
    show_table(facts["folder"], ("file", "part", "needed", "state"), rows)
    if facts["other_form"]:
        first, *others = facts["other_form"]
        say(f"here in another form: {first}{f' and {len(others)} more' if others else ''}")
        return
    for one in files:
        if one["detail"] and (one["required"] or one["state"] == DIFFERS):
            say(f"{one['file']}: {one['detail']}")
    if any(one["required"] and one["state"] == MISSING for one in files):
        say(f"`manifind data fetch {facts['source']}` tries to get what is missing")
