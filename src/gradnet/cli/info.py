"""`gradnet info`: what a collection holds and whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gradnet.cli.terminal import show_json, show_table
from gradnet.collection.collection import Collection, load


def info(
    collection: Annotated[
        Path, typer.Argument(metavar="COLLECTION", help="A collection made by `gradnet index`.")
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every byte and compare with the digests.")
    ] = False,
    index: Annotated[
        bool, typer.Option("--index", help="Build the search indexes and show their recall and size.")
    ] = False,
    drift: Annotated[
        bool,
        typer.Option(
            "--drift", help="Measure how far it has moved from its fit; takes about as long as a small fit."
        ),
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
    if as_json:
        show_json({**facts, "settings": opened.settings})
        return
    show_table(str(collection), ("what", "value"), [(name, _text(value)) for name, value in facts.items()])
    show_table(
        "settings", ("setting", "value"), [(name, str(value)) for name, value in opened.settings.items()]
    )


def _drift(opened: Collection) -> dict[str, Any]:
    from gradnet.methods.drift import measure_drift  # imports torch

    return measure_drift(opened)._asdict()


def _facts(opened: Collection, verified: bool) -> dict[str, Any]:
    total = sum(opened.segment_bytes.values())
    first, last = (
        (opened.loss_curve[0, 0], opened.loss_curve[-1, 0]) if len(opened.loss_curve) else (None, None)
    )
    counts = opened.manifest["changes"]
    return {
        **opened.info,
        "kind": opened.manifest["kind"],
        "items": len(opened),
        "fitted": opened.manifest["shape"]["items"],
        "added_since_fit": counts["added"],
        "removed_since_fit": counts["removed"],
        "changed_since_fit": opened.changed,
        "loss_first": None if first is None else float(first),
        "loss_last": None if last is None else float(last),
        "bytes": total,
        "bytes_per_item": total // max(len(opened), 1),
        "created": opened.manifest.get("created"),
        "versions": opened.manifest["versions"],
        "contents": "verified" if verified else "sizes checked",
    }


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {entry}" for name, entry in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
