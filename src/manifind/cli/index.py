"""`manifind index`: a collection that holds what a file of vectors holds, made or brought up to date."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from manifind.arrays import check_descriptors
from manifind.cli.terminal import note, say, show_json, silence, speaks_for_all
from manifind.collection.collection import Collection, load
from manifind.collection.database import is_collection, work_folder
from manifind.collection.ids import check_ids
from manifind.collection.reader import read_manifest
from manifind.collection.sync import carry_out, needs_permission, plan_sync, refuse_removals
from manifind.collection.writer import check_target
from manifind.errors import InputError, ManifindError
from manifind.graph.neighbour_agreement import LittleToLearnWarning
from manifind.io.tables import read_fields
from manifind.io.vectors import read_vectors
from manifind.progress import Listener, in_one_piece, progress_bars
from manifind.settings import PAPER
from manifind.text import count


def refit_if_wanted(
    collection: Collection, settings: dict[str, Any], refit: bool, refit_when: float | None, listener: Listener
) -> bool:
    """Whether it was fitted anew. refit: in any case. refit_when: the share of changes from which on."""
    if not refit and (refit_when is None or collection.changed < refit_when):
        return False
    from manifind.model.refit import refit as fit_anew  # imports torch

    with flags_named():
        fit_anew(collection, listener=listener, checkpoint=work_folder(collection.path), **settings)
    return True


@contextmanager
def flags_named() -> Iterator[None]:
    """Lets an error about n_neighbors speak of the flag."""
    try:
        yield
    except ManifindError as error:
        if "n_neighbors" not in error.problem:
            raise
        hint = error.hint.replace("set n_neighbors to", "give --n-neighbors")
        raise type(error)(error.problem, hint) from error


def index(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="A folder of pictures, or vectors: .npy, .npz, .parquet, .h5, .mat, .fvecs or .csv."
        ),
    ],
    collection: Annotated[
        Path, typer.Argument(metavar="COLLECTION", help="The collection directory to make, or to bring up to date.")
    ],
    metadata: Annotated[
        Path | None,
        typer.Option(
            help="Fields of your own, .csv or .jsonl, joined by a column `id`, for pictures `path`; they are merged."
        ),
    ] = None,
    allow_removals: Annotated[
        bool,
        typer.Option(
            "--allow-removals",
            help="Let all items go that SOURCE no longer has; else not all of them, nor more than a third.",
        ),
    ] = False,
    describer: Annotated[
        str | None,
        typer.Option(help="For pictures: efficientnet (if not given), pixels, FILE.onnx, or FILE.py:FUNCTION."),
    ] = None,
    multi_scale: Annotated[
        bool, typer.Option("--multi-scale", help="For pictures: describe each at three sizes; three times slower.")
    ] = False,
    refit: Annotated[
        bool, typer.Option("--refit", help="Fit a collection that exists anew, from where it stands.")
    ] = False,
    refit_when: Annotated[
        float | None, typer.Option(min=1e-9, help="Fit anew once this share of the fitted items has come or gone.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and do nothing.")] = False,
    preprocess: Annotated[
        str | None, typer.Option(help="unit (rows to length 1), center (mean removed first), whiten or none.")
    ] = None,
    n_neighbors: Annotated[int | None, typer.Option(help="Neighbours of each item in the graph; else 30.")] = None,
    graph: Annotated[
        str | None, typer.Option(help="mutual (both ends list each other) or union (either does).")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Most training steps; else as many as the size asks for.")
    ] = None,
    n_components: Annotated[int | None, typer.Option(help="Most dimensions of the learned features.")] = None,
    training_nodes: Annotated[
        int | None, typer.Option(help="A larger graph is trained on a part of so many; else 100,000.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    device_memory: Annotated[
        float | None, typer.Option(help="Most GB of a GPU's memory to take; else 70 % of what is free.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same collection; else 0.")
    ] = None,
    paper: Annotated[bool, typer.Option("--paper", help="Start from the paper's settings: much slower.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
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
    check_target(collection)  # now, since fitting may take long
    _refuse_together(source, collection)
    given = {
        "preprocess": preprocess,
        "n_neighbors": n_neighbors,
        "graph": graph,
        "max_steps": max_steps,
        "n_components": n_components,
        "training_nodes": training_nodes,
        "device": device,
        "device_memory": device_memory,
    }
    settings: dict[str, Any] = {
        **(PAPER if paper else {}),
        **{name: value for name, value in given.items() if value is not None},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LittleToLearnWarning)  # said below, in a plain sentence
        if is_collection(collection) and (settings or seed is not None) and not refit:
            _refuse_other_settings(collection, settings, seed)
        if source.is_dir():
            from manifind.cli.index_folder import index_pictures  # imports Pillow and torch

            index_pictures(
                source,
                collection,
                metadata,
                allow_removals,
                describer,
                multi_scale,
                settings,
                seed,
                refit,
                refit_when,
                dry_run,
                as_json,
            )
            return
        if describer is not None or multi_scale:
            raise InputError(
                f"{source} is no folder of pictures, so nothing is there to describe",
                "leave --describer and --multi-scale out",
            )
        told = _index_vectors(source, collection, metadata, allow_removals, settings, seed, refit, refit_when, dry_run)
    _show(collection, told, dry_run, as_json)


def _refuse_other_settings(target: Path, settings: dict[str, Any], seed: int | None) -> None:
    """A command may be repeated as it is; what its collection was made with can only change in a fit."""
    manifest = read_manifest(target)
    made = manifest["settings"]
    other = {
        name: f"{name} = {made.get(name)!r}"
        for name, value in sorted(settings.items())
        if name not in made or _as_kept(value) != made[name]
    }
    if seed is not None and not _is_seed_of(manifest["info"], seed):
        other["seed"] = "another seed"
    if other:
        raise InputError(
            f"{target} exists, and {', '.join(other)} can only change when it is fitted anew: "
            f"it was made with {', '.join(other.values())}",
            "give --refit too, or leave these settings out",
        )


def _is_seed_of(info: dict[str, Any], seed: int) -> bool:
    from manifind.model.estimator import draw_seed  # imports torch

    return bool(info.get("seed") == draw_seed(seed))


def _as_kept(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value  # JSON knows no tuples


def _refuse_together(source: Path, collection: Path) -> None:
    """Several processes make a new collection of vectors, and nothing else."""
    if os.environ.get("WORLD_SIZE", "1") != "1" and (source.is_dir() or is_collection(collection)):
        what = f"{source} is a folder of pictures" if source.is_dir() else f"{collection} exists"
        raise InputError(
            f"several processes make a new collection from a file of vectors, and {what}",
            "run it without torchrun, or export the vectors first",
        )


def _index_vectors(
    source: Path,
    target: Path,
    metadata: Path | None,
    allow_removals: bool,
    settings: dict[str, Any],
    seed: int | None,
    refit: bool,
    refit_when: float | None,
    dry_run: bool,
) -> dict[str, Any]:
    vectors = read_vectors(source)
    ids = check_ids(vectors.ids, len(vectors.rows))
    fields = None if metadata is None else _fields_of(ids, metadata)
    if is_collection(target):
        options = {**settings, **({} if seed is None else {"seed": seed})}
        return _update(target, source, vectors.rows, ids, fields, allow_removals, options, refit, refit_when, dry_run)
    if dry_run:
        return {"fitted": len(ids)}
    return _make(target, vectors.rows, ids, fields, settings, seed or 0)


def _make(
    target: Path, rows: Any, ids: Sequence[Any], fields: Any, settings: dict[str, Any], seed: int
) -> dict[str, Any]:
    from manifind.model.estimator import GradNet  # imports torch: not before the file is known to be good

    model = GradNet(**settings, random_state=seed)
    with progress_bars() if speaks_for_all() else silence() as listener, flags_named():
        model.fit(rows, listener=listener, checkpoint=work_folder(target))
        if not speaks_for_all():
            raise typer.Exit
        with in_one_piece("saving", listener):
            saved = model.save(target, ids, fields)
    if sentence := model.neighbour_agreement_.warning():
        note(f"note: {sentence}")
    return {"fitted": len(ids), **saved.info}


def _update(
    target: Path,
    source: Path,
    rows: Any,
    ids: Sequence[Any],
    fields: Any,
    allow_removals: bool,
    settings: dict[str, Any],
    refit: bool,
    refit_when: float | None,
    dry_run: bool,
) -> dict[str, Any]:
    opened = load(target)
    X = check_descriptors(rows, "X", opened.manifest["shape"]["dimension"])
    plan = plan_sync(opened.version, X, ids, fields)
    needs = needs_permission(len(plan.gone), len(opened))
    if dry_run:
        return {**plan.counts(), "refitted": refit, "needs_allow_removals": needs}
    if not allow_removals:
        refuse_removals(opened, plan.gone, str(source), len(opened))
    carry_out(opened, plan, X, ids, fields)
    with progress_bars() as listener:
        refitted = refit_if_wanted(opened, settings, refit, refit_when, listener)
    return {**plan.counts(), "refitted": refitted, "changed_since_fit": opened.changed, **opened.info}


def _fields_of(ids: Sequence[Any], file: Path) -> list[dict[str, Any] | None]:
    said = read_fields(file)
    unknown = next((name for name in said if name not in set(map(str, ids))), None)
    if unknown is not None:
        raise InputError(f"{file} speaks of the id {unknown!r}, which no vector has", "leave that line out")
    return [said.get(str(id_)) for id_ in ids]


def _show(target: Path, told: dict[str, Any], dry_run: bool, as_json: bool) -> None:
    if as_json:
        show_json({"collection": str(target), "dry_run": dry_run, **told})
        return
    would = "would be " if dry_run else ""
    if "fitted" in told:
        say(f"{target}: {count(told['fitted'], 'item')} {would}fitted" + ("" if dry_run else _fit_in_words(told)))
    else:
        parts = [f"{told[name]} {name}" for name in ("added", "removed", "changed", "described") if told[name]]
        say(f"{target}: {would}{', '.join(parts) or 'nothing to do'}; {told['unchanged']} unchanged")
    if dry_run and told.get("needs_allow_removals"):
        say("so many removals need --allow-removals")
    if told.get("refitted") and not dry_run:
        say(f"fitted anew{_fit_in_words(told)}")
    elif told.get("changed_since_fit"):
        say(f"{told['changed_since_fit']:.1%} of what was fitted has changed; --refit learns from it")
    if not dry_run:
        say(f"search it with: manifind search {target} QUERY")


def _fit_in_words(told: dict[str, Any]) -> str:
    return (
        f", {count(told['dimension'], 'dimension')} in, {told['feature_dimension']} out, "
        f"{count(told['edges'], 'edge')}, {count(told['steps'], 'step')} in {told['seconds']:.1f} s"
    )
