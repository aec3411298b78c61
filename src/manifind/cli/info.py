"""`manifind info`: what a collection holds, whether it is whole and can be trusted, in words or in numbers."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from manifind.cli.options import AsJson, CollectionPath, option
from manifind.cli.terminal import say, show_facts, show_json, show_table
from manifind.collection.collection import Collection, load
from manifind.collection.near_duplicates import NearDuplicates, find_near_duplicates
from manifind.datasets.catalogue import bytes_text
from manifind.errors import CollectionError
from manifind.graph.neighbour_agreement import trust_in_words
from manifind.images.files import shown_folders
from manifind.index.vector_index import EXACT_UP_TO
from manifind.text import count

_DRIFT = "Measure how far it has moved from its fit; takes about as long as a small fit."
_REFIT_FROM = 0.1  # of what was fitted has come or gone: enough to say how to learn from it


def info(
    collection: CollectionPath,
    verify: Annotated[bool, option("Read every byte and compare with the digests.", "--verify")] = False,
    index: Annotated[bool, option("Build the search indexes and show their recall and size.", "--index")] = False,
    drift: Annotated[bool, option(_DRIFT, "--drift")] = False,
    duplicates: Annotated[bool, option("List the items that are the same, or nearly.", "--duplicates")] = False,
    all_: Annotated[bool, option("Show every number and every setting, too.", "--all")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what a collection holds, how it was fitted, whether it can be trusted, and what has changed since."""
    opened = load(collection, verify=verify)
    measured: dict[str, Any] = {}
    if index:
        measured |= {f"index_of_{name}": found for name, found in opened.index_quality().items()}
    if drift:
        from manifind.model.refit import measure_drift  # imports torch

        measured |= {f"drift_{name}": found for name, found in measure_drift(opened)._asdict().items()}
    alike = _alike(opened, duplicates)
    if alike is not None:  # how many items could go so that one of each group stays
        spare = [sum(len(group) - 1 for group in groups) for groups in alike]
        measured |= dict(zip(("duplicates", "near_duplicates"), spare, strict=True))
    facts = {**_facts(opened, verify), **measured}
    if as_json:
        listed = alike._asdict() if alike is not None and duplicates else {}
        show_json({**facts, **listed, "settings": opened.settings})
        return
    say(str(collection))
    show_facts(_in_words(opened, verify, measured))
    if all_:
        show_table("every number", ("what", "value"), [(name, _text(value)) for name, value in facts.items()])
        show_table("settings", ("setting", "value"), [(name, str(value)) for name, value in opened.settings.items()])
    if alike is not None and duplicates:
        groups = [("same", group) for group in alike.same]
        groups += [("nearly", group) for group in alike.near if group not in alike.same]
        if groups:
            show_table("alike", ("how", "items"), [(how, ", ".join(map(str, group))) for how, group in groups])
    say("")
    for sentence in _next_steps(opened, all_):
        say(sentence)


def _alike(opened: Collection, wanted: bool) -> NearDuplicates | None:
    """Duplicates: counted without being asked for, unless that would take long."""
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


def _in_words(opened: Collection, verified: bool, measured: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """A sentence about each thing, and a word before it that names it."""
    size = bytes_text(sum(opened.segment_bytes.values()))
    yield "holds", f"{_contents(opened)}; {size} with all that was learned"
    yield _origin(opened)
    yield "fitted", _fit(opened)
    yield "trust", trust_in_words(opened.info)
    yield "since then", _changes(opened)
    if judged := opened.judgements.all():
        yield "judged", _judged(opened, len(judged))
    if "drift_changed" in measured:
        yield "drift", _drift(measured)
    if "duplicates" in measured:
        yield "duplicates", _duplicates(opened, measured)
    for name in ("descriptors", "features"):
        if f"index_of_{name}" in measured:
            yield name, _search_quality(measured[f"index_of_{name}"])
    yield "files", "every byte is as it was written" if verified else "complete by size; --verify reads every byte"


def _contents(opened: Collection) -> str:
    n, is_full = len(opened), opened.version.manifest.is_full
    ending = "" if is_full else ", compressed: it answers, and cannot be changed"
    if not opened.is_of_pictures:
        return f"{count(n, 'vector')}{ending}"
    folders = shown_folders(opened.manifest)
    if not folders:
        return f"{count(n, 'picture')} from a folder that is not known on this machine{ending}"
    gone = "" if folders[0].is_dir() else ", which is not there now"
    return f"{count(n, 'picture')} of {folders[0]}{gone}{ending}"


def _origin(opened: Collection) -> tuple[str, str]:
    manifest = opened.version.manifest
    width, name = count(manifest.sizes.dimension, "number"), _extractor(manifest.source).get("extractor")
    if name is None:
        return "vectors", f"{width} each, computed elsewhere"
    words = "understands words" if manifest.source.get("words") is True else "does not understand words"
    return "extractor", f"{name}, {width} for each picture; it {words}"


def _fit(opened: Collection) -> str:
    """What the fit has reported; that may be anything, or missing."""
    manifest, said = opened.version.manifest, opened.info
    parts = [count(manifest.sizes.items, "item")]
    parts += [count(said[f"{noun}s"], noun) for noun in ("edge", "step") if isinstance(said.get(f"{noun}s"), int)]
    seconds, device = said.get("seconds"), said.get("device")
    parts[-1] += f" in {seconds:,.1f} s" if isinstance(seconds, int | float) else ""
    parts[-1] += f" on {device}" if isinstance(device, str) else ""
    day = f"on {manifest.created.partition('T')[0]}"
    if not manifest.is_full:
        return f"{', '.join(parts)}; exported {day}"
    return f"{'anew ' if isinstance(said.get('refit'), dict) else ''}{day}: {', '.join(parts)}"


def _changes(opened: Collection) -> str:
    added, removed = opened.version.manifest.n_added, opened.version.manifest.n_removed
    if not opened.changed:
        return "nothing has come or gone"
    return f"{added:,} added, {removed:,} removed: {opened.changed:.1%} of what was fitted"


def _judged(opened: Collection, n: int) -> str:
    """What judged queries say of the learned features."""
    scores = opened.judgements.scores()
    if scores is None:
        return f"{count(n, 'query')}, none with an item that is right and one that is wrong"
    gain = scores.gain
    verdict = "which may be chance" if gain.low <= 0 <= gain.high else "which is beyond chance"
    return (
        f"{count(n, 'query')}: mAP over judged items {scores.gradnet.mean:.1f} by learned features, "
        f"{scores.knn.mean:.1f} by plain neighbours, {gain.mean:+.1f} ({gain.low:+.1f} to {gain.high:+.1f}), {verdict}"
    )


def _drift(measured: Mapping[str, Any]) -> str:
    fitted, added = measured["drift_agreement_fitted"], measured["drift_agreement_added"]
    if fitted is None or added is None:
        return "not measured: nothing was added since the fit, or there are too few items"
    return (
        f"of its nearest neighbours a fitted item keeps {fitted:.0%} in a new fit, and an added one {added:.0%}; "
        "if that is much less, a refit would place added items better"
    )


def _duplicates(opened: Collection, measured: Mapping[str, Any]) -> str:
    same, spare = measured["duplicates"], max(measured["duplicates"], measured["near_duplicates"])
    if not spare:
        return "none"
    noun, why = ("picture", "copies of") if opened.is_of_pictures else ("vector", "equal to")
    exact = f", {same:,} of them exact" if opened.is_of_pictures and same else ""
    return f"{count(spare, noun)} could be removed as {why} others{exact}; --duplicates lists them"


def _search_quality(quality: Mapping[str, Any]) -> str:
    if quality["codes"] == "exact":
        return "searched exactly"
    return (
        f"searched by codes {quality['codes']} of {quality['bytes_per_item']:.0f} bytes for an item, which find "
        f"{quality['recall']:.1%} of the true nearest"
    )


def _next_steps(opened: Collection, has_all: bool) -> Iterator[str]:
    path, is_full, folders = opened.path, opened.version.manifest.is_full, shown_folders(opened.manifest)
    if opened.is_of_pictures and not folders:
        yield f"to see its pictures: manifind serve {path} --images FOLDER"
    if is_full and opened.changed >= _REFIT_FROM:
        yield f"to learn from what has changed: manifind index {folders[0] if folders else 'SOURCE'} {path} --refit"
    yield f"search it with: manifind search {path} {'PICTURE --open' if opened.is_of_pictures else 'QUERY'}"
    if not has_all:
        yield f"every number and setting: manifind info {path} --all"
