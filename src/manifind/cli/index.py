"""`manifind index`: a collection that holds what a folder of images or a file of vectors holds, made or updated."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from manifind.cli.options import SEEDS, DoneAsJson, FormerExtractor, argument, option
from manifind.cli.terminal import note, say, show_json, show_table, speaks_for_all
from manifind.errors import InputError, ManifindError
from manifind.graph.neighbour_agreement import LittleToLearnWarning, NeighbourAgreement
from manifind.graph.preprocess import whitening_warning
from manifind.model.index_vectors import index_vectors
from manifind.progress import ignore, progress_bars
from manifind.settings import PAPER
from manifind.text import are, count

if TYPE_CHECKING:
    from manifind.collection.sync import IndexOutcome
    from manifind.model.index_folder import FolderOutcome

_SETTINGS = (
    "preprocess", "n_neighbors", "graph", "max_steps", "n_components", "training_nodes", "device", "device_memory",
)  # fmt: skip
_MOST_PROBLEMS = 20  # on the screen; all of them are in the JSON
_FLAGS = {
    "set n_neighbors to": "give --n-neighbors",
    "refit=True": "--refit",
    "allow_removals=True": "--allow-removals",
}
_SOURCE = "A folder of pictures, or vectors: .npy, .npz, .parquet, .h5, .mat, .fvecs or .csv."
_METADATA = "Fields of your own, .csv or .jsonl, joined by a column `id`, for pictures `path`; they are merged."
_REMOVALS = "Let all items go that SOURCE no longer has; else not all of them, nor more than a third."
_EXTRACTOR = (
    "For pictures: efficientnet (if not given), pixels, hf:OWNER/NAME, hf:FOLDER, fastembed:NAME, timm:NAME, "
    "open_clip:MODEL/TAG, FILE.onnx, FILE.py:FUNCTION; several with + between them stand side by side."
)
_MULTI_SCALE = "For pictures: describe each at three sizes; three times slower."
_REFIT_WHEN = "Fit anew once this share of the fitted items has come or gone, or once 'judged < 70', their mAP."
_PREPROCESS = "unit (rows to length 1), center (mean removed first), none, or whiten, which is not advised."


def index(
    source: Annotated[Path, argument("SOURCE", _SOURCE)],
    collection: Annotated[Path, argument("COLLECTION", "The collection directory to make, or to bring up to date.")],
    metadata: Annotated[Path | None, option(_METADATA)] = None,
    allow_removals: Annotated[bool, option(_REMOVALS, "--allow-removals")] = False,
    extractor: Annotated[str | None, option(_EXTRACTOR)] = None,
    describer: FormerExtractor = None,
    multi_scale: Annotated[bool, option(_MULTI_SCALE, "--multi-scale")] = False,
    refit: Annotated[bool, option("Fit a collection that exists anew, from where it stands.", "--refit")] = False,
    refit_when: Annotated[str | None, option(_REFIT_WHEN, metavar="POLICY")] = None,
    dry_run: Annotated[bool, option("Say what would happen, and do nothing.", "--dry-run")] = False,
    preprocess: Annotated[str | None, option(_PREPROCESS)] = None,
    n_neighbors: Annotated[int | None, option("Neighbours of each item in the graph; else 30.")] = None,
    graph: Annotated[str | None, option("mutual (both ends list each other) or union (either does).")] = None,
    max_steps: Annotated[int | None, option("Most training steps; else as many as the size asks for.")] = None,
    n_components: Annotated[int | None, option("Most dimensions of the learned features.")] = None,
    training_nodes: Annotated[
        int | None, option("A larger graph is trained on a part of so many; else 100,000.")
    ] = None,
    device: Annotated[str | None, option("auto, cpu or cuda.")] = None,
    device_memory: Annotated[
        float | None, option("Most GB of a GPU's memory to take; else 70 % of what is free.")
    ] = None,
    seed: Annotated[int | None, option("The same seed gives the same collection; else 0.", **SEEDS)] = None,
    paper: Annotated[bool, option("Start from the paper's settings: much slower.", "--paper")] = False,
    as_json: DoneAsJson = False,
) -> None:
    """Learn features for a folder of pictures, or for a file of vectors, and keep them as a collection.

    Of pictures, ids are paths below the folder; a file that is moved or renamed keeps its id. Each file is described
    or listed with the reason. Of vectors, ids come from the file where it has them (an array `ids` or `names`, a column
    `id`), else they are positions.

    Run again, it adds what is new in SOURCE, drops what is gone from it and leaves the rest alone: items that are added
    get features from their neighbours, at once and without training. With --refit it then fits all of them anew,
    starting from the old network, while others go on searching. An interrupted fit goes on where it stopped.
    A setting that is left out keeps the default of GradNet, or what the collection was made with.
    """
    extractor = extractor or describer
    if refit_when is not None:
        from manifind.model.refit import policy_of  # imports torch

        policy_of(refit_when)  # a policy that is none is refused before any work
    if not source.is_dir() and (extractor is not None or multi_scale):
        raise InputError(
            f"{source} is not a folder of pictures, so there is nothing to extract descriptors from",
            "leave --extractor and --multi-scale out",
        )
    values = (preprocess, n_neighbors, graph, max_steps, n_components, training_nodes, device, device_memory)
    given = {name: value for name, value in zip(_SETTINGS, values, strict=True) if value is not None}
    options: dict[str, Any] = {"settings": (PAPER if paper else {}) | given, "metadata": metadata, "seed": seed}
    options |= {"refit": refit, "refit_when": refit_when, "allow_removals": allow_removals, "dry_run": dry_run}
    folder: FolderOutcome | None = None
    bars = progress_bars() if speaks_for_all() else nullcontext(ignore)
    with warnings.catch_warnings(), bars as options["listener"], _hints_name_flags():
        warnings.simplefilter("ignore", LittleToLearnWarning)  # printed below, as a note
        if source.is_dir():
            outcome: IndexOutcome = (folder := _index_folder(source, collection, extractor, multi_scale, options))
        else:
            outcome = index_vectors(source, collection, **options)
    if not speaks_for_all():
        return
    if as_json:
        facts = _vector_facts(outcome, dry_run) if folder is None else _folder_facts(folder)
        show_json({"collection": str(collection), "dry_run": dry_run, **facts})
    else:
        _show(collection, outcome, folder, dry_run)
    if outcome.is_new and outcome.collection is not None:
        info = outcome.collection.info
        if sentence := NeighbourAgreement(info["neighbour_agreement"], info["trust"]).warning():
            note(f"note: {sentence}")
        if sentence := whitening_warning(outcome.collection.version.learned.preprocessor):
            note(f"note: {sentence}")


def _index_folder(
    folder: Path, collection: Path, extractor: str | None, multi_scale: bool, options: dict[str, Any]
) -> FolderOutcome:
    from manifind.images.extractors import make_extractor  # imports Pillow and torch
    from manifind.model.index_folder import index_folder

    wanted = make_extractor(extractor or "efficientnet", multi_scale=True) if multi_scale else extractor
    return index_folder(folder, collection, wanted, **options)


@contextmanager
def _hints_name_flags() -> Iterator[None]:
    """Lets the way out of an error name flags rather than arguments of Python."""
    try:
        yield
    except ManifindError as error:
        hint = error.hint
        for argument, flag in _FLAGS.items():
            hint = hint.replace(argument, flag)
        if hint == error.hint:
            raise
        raise type(error)(error.problem, hint) from error


def _vector_facts(outcome: IndexOutcome, dry_run: bool) -> dict[str, Any]:
    info = {} if outcome.collection is None or dry_run else outcome.collection.info
    if outcome.is_new:
        return {"fitted": outcome.counts["added"], **info}
    facts: dict[str, Any] = {**outcome.counts, "refitted": outcome.refitted}
    if outcome.collection is None or dry_run:
        return {**facts, "needs_allow_removals": outcome.needs_permission}
    return {**facts, "changed_since_fit": outcome.collection.changed, **info}


def _folder_facts(outcome: FolderOutcome) -> dict[str, Any]:
    return {
        **outcome.counts,
        "refitted": outcome.refitted,
        "needs_allow_removals": outcome.needs_permission,
        "metadata_without_picture": outcome.unmatched,
        "other_files": outcome.n_others,
        "problems": [{"path": path, "reason": reason} for path, reason in outcome.problems],
    }


def _show(target: Path, outcome: IndexOutcome, folder: FolderOutcome | None, dry_run: bool) -> None:
    counts, would = outcome.counts, "would be " if dry_run else ""
    if outcome.is_new and folder is None:
        say(f"{target}: {count(counts['added'], 'item')} {would}fitted{_fit_in_words(outcome, dry_run)}")
    else:
        parts = [f"{n} {name}" for name, n in counts.items() if n and name not in ("unchanged", "kept")]
        say(f"{target}: {would}{', '.join(parts) or 'nothing to do'}; {counts['unchanged']} unchanged")
    if dry_run and outcome.needs_permission:
        say("so many removals need --allow-removals")
    if folder is not None:
        _show_files(folder)
    if dry_run:
        return
    if outcome.refitted:
        say(f"fitted anew{_fit_in_words(outcome, dry_run)}")
    elif outcome.collection is not None and outcome.collection.changed:
        say(f"{outcome.collection.changed:.1%} of what was fitted has changed; --refit learns from it")
    say(f"search it with: manifind search {target} {'QUERY' if folder is None else 'PICTURE'}")


def _show_files(outcome: FolderOutcome) -> None:
    """What the extractor chose, and files of a folder that are not as they should be."""
    for sentence in outcome.notes:
        say(sentence)
    if kept := outcome.counts["kept"]:
        say(f"{kept} kept as before, since their files cannot be read or decoded now")
    if outcome.unmatched:
        first, more = outcome.unmatched[0], len(outcome.unmatched) - 1
        say(f"the metadata has {first!r}{f' and {more} more' if more else ''}, and there is no such picture")
    if outcome.problems:
        rows = outcome.problems[:_MOST_PROBLEMS]
        show_table(f"{len(outcome.problems)} left out", ("file", "because it"), rows)
        if more := len(outcome.problems) - len(rows):
            say(f"and {more} more: --json lists all")
    if outcome.n_others:
        say(f"left alone: {count(outcome.n_others, 'file')} that {are(outcome.n_others)} not pictures")


def _fit_in_words(outcome: IndexOutcome, dry_run: bool) -> str:
    if dry_run or outcome.collection is None:
        return ""
    info = outcome.collection.info
    return (
        f", {count(info['dimension'], 'dimension')} in, {info['feature_dimension']} out, "
        f"{count(info['edges'], 'edge')}, {count(info['steps'], 'step')} in {info['seconds']:.1f} s"
    )
