"""`manifind info`: what a collection holds and whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from manifind.cli.terminal import show_json, show_table
from manifind.collection.collection import Collection, load
from manifind.errors import CollectionError
from manifind.images.near_duplicates import NearDuplicates, find_near_duplicates
from manifind.index.vector_index import EXACT_UP_TO


def info(
    collection: Annotated[Path, typer.Argument(metavar="COLLECTION", help="A collection made by `manifind index`.")],
    verify: Annotated[bool, typer.Option("--verify", help="Read every byte and compare with the digests.")] = False,
    index: Annotated[
        bool, typer.Option("--index", help="Build the search indexes and show their recall and size.")
    ] = False,
    drift: Annotated[
        bool,
        typer.Option("--drift", help="Measure how far it has moved from its fit; takes about as long as a small fit."),
    ] = False,
    duplicates: Annotated[
        bool, typer.Option("--duplicates", help="List the items that are the same, or nearly.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what is in a collection: items, graph, training, settings, size on disk."""
    opened = load(collection, verify=verify)
    facts = _facts(opened, verify)
    if index:
        facts |= {f"index_of_{name}": found for name, found in opened.index_quality().items()}
    if drift:
        facts |= {f"drift_{name}": found for name, found in _drift(opened).items()}
    alike = _alike(opened, duplicates)
    if alike is not None:
        facts |= {"duplicates": _spare(alike.same), "near_duplicates": _spare(alike.near)}
    if as_json:
        listed = alike._asdict() if alike is not None and duplicates else {}
        show_json({**facts, **listed, "settings": opened.settings})
        return
    show_table(str(collection), ("what", "value"), [(name, _text(value)) for name, value in facts.items()])
    show_table("settings", ("setting", "value"), [(name, str(value)) for name, value in opened.settings.items()])
    if alike is not None and duplicates:
        rows = [("same", *_listed(group)) for group in alike.same]
        rows += [("nearly", *_listed(group)) for group in alike.near if group not in alike.same]
        show_table("alike", ("how", "items"), rows)


def _alike(opened: Collection, wanted: bool) -> NearDuplicates | None:
    """Duplicates: always shown for pictures, unless that would take long."""
    is_full = opened.version.manifest.is_full
    if wanted and not is_full:
        raise CollectionError(
            f"{opened.path} is compressed: it has no descriptors to compare",
            "ask the collection that it was exported from",
        )
    shows = wanted or ("source" in opened.manifest and len(opened) <= EXACT_UP_TO)
    return find_near_duplicates(opened) if shows and is_full else None


def _spare(groups: list[list[Any]]) -> int:
    """How many items could go so that one of each group stays."""
    return sum(len(group) - 1 for group in groups)


def _listed(group: list[Any]) -> tuple[str]:
    return (", ".join(map(str, group)),)


def _drift(opened: Collection) -> dict[str, Any]:
    from manifind.model.drift import measure_drift  # imports torch

    return measure_drift(opened)._asdict()


def _facts(opened: Collection, verified: bool) -> dict[str, Any]:
    total = sum(opened.segment_bytes.values())
    first, last = (opened.loss_curve[0, 0], opened.loss_curve[-1, 0]) if len(opened.loss_curve) else (None, None)
    manifest = opened.version.manifest
    return {
        **opened.info,
        "kind": manifest.kind,
        "items": len(opened),
        "fitted": manifest.sizes.items,
        "added_since_fit": manifest.n_added,
        "removed_since_fit": manifest.n_removed,
        "changed_since_fit": opened.changed,
        "loss_first": None if first is None else float(first),
        "loss_last": None if last is None else float(last),
        "bytes": total,
        "bytes_per_item": total // max(len(opened), 1),
        "created": manifest.created,
        "versions": manifest.versions,
        "contents": "verified" if verified else "sizes checked",
    }


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {entry}" for name, entry in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
