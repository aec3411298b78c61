"""`manifind info`: what a collection holds and whether it is whole."""

from collections.abc import Mapping
from typing import Annotated, Any

from manifind.cli.options import AsJson, CollectionPath, option
from manifind.cli.terminal import show_json, show_table
from manifind.collection.collection import Collection, load
from manifind.collection.near_duplicates import NearDuplicates, find_near_duplicates
from manifind.errors import CollectionError
from manifind.index.vector_index import EXACT_UP_TO

_DRIFT = "Measure how far it has moved from its fit; takes about as long as a small fit."


def info(
    collection: CollectionPath,
    verify: Annotated[bool, option("Read every byte and compare with the digests.", "--verify")] = False,
    index: Annotated[bool, option("Build the search indexes and show their recall and size.", "--index")] = False,
    drift: Annotated[bool, option(_DRIFT, "--drift")] = False,
    duplicates: Annotated[bool, option("List the items that are the same, or nearly.", "--duplicates")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is in a collection: items, graph, training, settings, size on disk."""
    opened = load(collection, verify=verify)
    facts = _facts(opened, verify)
    if index:
        facts |= {f"index_of_{name}": found for name, found in opened.index_quality().items()}
    if drift:
        from manifind.model.refit import measure_drift  # imports torch

        facts |= {f"drift_{name}": found for name, found in measure_drift(opened)._asdict().items()}
    alike = _alike(opened, duplicates)
    if alike is not None:  # how many items could go so that one of each group stays
        spare = [sum(len(group) - 1 for group in groups) for groups in alike]
        facts |= dict(zip(("duplicates", "near_duplicates"), spare, strict=True))
    if as_json:
        listed = alike._asdict() if alike is not None and duplicates else {}
        show_json({**facts, **listed, "settings": opened.settings})
        return
    show_table(str(collection), ("what", "value"), [(name, _text(value)) for name, value in facts.items()])
    show_table("settings", ("setting", "value"), [(name, str(value)) for name, value in opened.settings.items()])
    if alike is not None and duplicates:
        groups = [("same", group) for group in alike.same]
        groups += [("nearly", group) for group in alike.near if group not in alike.same]
        show_table("alike", ("how", "items"), [(how, ", ".join(map(str, group))) for how, group in groups])


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


def _facts(opened: Collection, verified: bool) -> dict[str, Any]:
    total, manifest = sum(opened.segment_bytes.values()), opened.version.manifest
    losses = opened.loss_curve[:, 0].tolist() or [None]
    return {
        **opened.info,
        "kind": manifest.kind,
        "items": len(opened),
        "fitted": manifest.sizes.items,
        "added_since_fit": manifest.n_added,
        "removed_since_fit": manifest.n_removed,
        "changed_since_fit": opened.changed,
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "bytes": total,
        "bytes_per_item": total // max(len(opened), 1),
        **_extractor(manifest.source),
        "created": manifest.created,
        "versions": manifest.versions,
        "contents": "verified" if verified else "sizes checked",
    }


def _extractor(source: Mapping[str, Any]) -> dict[str, str]:
    """What described the pictures, by name; nothing for a collection of vectors."""
    recorded, identity = source.get("extractor"), source.get("describer")
    if isinstance(recorded, list):
        return {"extractor": "+".join(map(str, recorded))}
    return {"extractor": str(identity.get("name", identity.get("describer")))} if isinstance(identity, dict) else {}


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {entry}" for name, entry in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
