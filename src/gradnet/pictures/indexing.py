"""A folder of pictures as a collection: made, and brought up to date, touching only what has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from gradnet.arrays import Floats
from gradnet.checkpoint import Checkpoint
from gradnet.collection.collection import Collection, load
from gradnet.collection.database import is_collection
from gradnet.collection.layout import work_folder
from gradnet.collection.writer import check_target, write_collection
from gradnet.data.digests import sha256_of
from gradnet.errors import CollectionError, InputError
from gradnet.methods.gradnet import GradNet
from gradnet.pictures.asking import describer_of
from gradnet.pictures.describers import Describer, make_describer
from gradnet.pictures.extraction import Described, describe_files
from gradnet.pictures.folder import Found, Inventory, take_inventory
from gradnet.pictures.matching import Known, Matched, match
from gradnet.progress import Listener, Progress, ignore, in_one_piece

_FEWEST = 3  # different pictures that a fit takes


@dataclass
class Outcome:
    """What was done, or would be: how many of each, and every file that could not be described, with its reason."""

    counts: dict[str, int] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    n_others: int = 0
    collection: Collection | None = None
    is_new: bool = False


def index_folder(
    folder: str | Path,
    path: str | Path,
    describer: Describer | str | Callable[[list[Image.Image]], Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    *,
    listener: Listener = ignore,
    dry_run: bool = False,
) -> Outcome:
    """Make a collection of the pictures in a folder, or bring one up to date.

    describer: as `make_describer` takes it; None: what the collection was made with, "efficientnet" for a new one.
    settings: GradNet's, for a new one. listener: hears of the stages "reading", "pictures" and those of a fit.
    """
    target, work = Path(path), work_folder(Path(path))
    check_target(target)
    collection = load(target) if is_collection(target) else None
    describer = _describer(describer, collection)
    inventory = take_inventory(Path(folder))
    matched = _compare(inventory, collection, listener)
    outcome = Outcome(_counts(matched), inventory.problems, inventory.n_others, collection)
    if dry_run:
        return outcome
    files = [*matched.new, *(file for _, file in matched.changed)]
    checkpoint = Checkpoint(work / "pictures", describer.identity)
    done = describe_files(
        files, [matched.digests[file.path] for file in files], describer, checkpoint, listener
    )
    outcome.problems = sorted([*inventory.problems, *done.problems])
    if collection is None:
        model, ids = GradNet(**(settings or {}), random_state=seed), _new_ids(matched.new, set())
        made = _make(target, model, matched, done, ids, describer, folder, work, listener)
        outcome.is_new, outcome.collection = True, made
    else:
        _update(collection, matched, done)
    outcome.counts = _counts(matched, done)
    checkpoint.clear()
    with suppress(OSError):
        work.rmdir()
    return outcome


def _describer(
    wanted: Describer | str | Callable[[list[Image.Image]], Any] | None, collection: Collection | None
) -> Describer:
    """The one that was asked for, which must be the collection's where there is one."""
    if wanted is None and collection is not None:
        return describer_of(collection.manifest, str(collection.path))
    made = wanted if isinstance(wanted, Describer) else make_describer(wanted or "efficientnet")
    if collection is not None:
        _refuse_another(collection, made)
    return made


def _refuse_another(collection: Collection, describer: Describer) -> None:
    source = (collection.manifest.get("source") or {}).get("describer")
    if source != describer.identity:
        made = (
            source["describer"] if isinstance(source, dict) and "describer" in source else "a file of vectors"
        )
        raise CollectionError(
            f"{collection.path} was made from {made!r}, and is now to be described by "
            f"{describer.identity['describer']!r}, or with other settings",
            "describe it as before, or index into another collection",
        )


def _compare(inventory: Inventory, collection: Collection | None, listener: Listener) -> Matched:
    known = {} if collection is None else _known(collection)
    done = 0

    def digest(file: Found) -> str:
        nonlocal done
        done += 1
        listener(Progress("reading", done, len(inventory.pictures)))
        try:
            return sha256_of(file.file)
        except OSError as error:
            inventory.problems.append((file.path, f"cannot be read: {error.strerror or error}"))
            return ""

    matched = match(inventory.pictures, known, digest)
    matched.new = [file for file in matched.new if matched.digests[file.path]]
    return matched


def _known(collection: Collection) -> dict[Any, Known]:
    holdings = collection.version.holdings
    known = {}
    for id_, said in zip(holdings.ids.tolist(), collection.metadata(holdings.ids.tolist()), strict=True):
        values = (said.get("path"), said.get("sha256"), said.get("bytes"), said.get("modified"))
        known[id_] = Known(str(values[0]), str(values[1]), int(values[2] or 0), int(values[3] or 0))
    return known


def _counts(matched: Matched, done: Described | None = None) -> dict[str, int]:
    bad = set() if done is None else {path for path, _ in done.problems}
    unreadable = sum(file.path in bad for _, file in matched.changed)
    return {
        "added": sum(file.path not in bad for file in matched.new),
        "removed": len(matched.gone) + unreadable,
        "changed": len(matched.changed) - unreadable,
        "moved": len(matched.moved),
        "unchanged": len(matched.same),
    }


def _make(
    target: Path,
    model: GradNet,
    matched: Matched,
    done: Described,
    ids: Sequence[str],
    describer: Describer,
    folder: str | Path,
    work: Path,
    listener: Listener,
) -> Collection:
    rows, kept, fields = _described(matched.new, ids, matched, done)
    if len(np.unique(rows, axis=0)) < _FEWEST:
        raise InputError(
            f"{folder} has {len(rows)} pictures that could be described; expected at least {_FEWEST} different ones",
            "give a folder with more pictures",
        )
    model.fit(rows, listener=listener, checkpoint=work / "fit")
    source = {"folder": str(Path(folder).absolute()), "describer": describer.identity}
    with in_one_piece("saving", listener):
        write_collection(target, model.contents(), kept, fields, source)
    return load(target)


def _update(collection: Collection, matched: Matched, done: Described) -> None:
    ids = _new_ids(matched.new, set(collection.ids.tolist()) - set(matched.gone))
    files = [*matched.new, *(file for _, file in matched.changed)]
    rows, names, fields = _described(files, [*ids, *(id_ for id_, _ in matched.changed)], matched, done)
    gone = [*matched.gone, *(id_ for id_, _ in matched.changed)]
    said = dict(
        zip(
            (id_ for id_, _ in matched.moved), collection.metadata([i for i, _ in matched.moved]), strict=True
        )
    )
    moved = {id_: {**said[id_], **_place_of(file)} for id_, file in matched.moved}
    collection.change(rows, names, fields, gone, moved)


def _described(
    files: Sequence[Found], ids: Sequence[Any], matched: Matched, done: Described
) -> tuple[Floats, list[Any], list[dict[str, Any]]]:
    """Rows, ids and metadata of the files that could be described."""
    good = [
        (file, id_) for file, id_ in zip(files, ids, strict=True) if matched.digests[file.path] in done.rows
    ]
    digests = [matched.digests[file.path] for file, _ in good]
    rows = np.stack([done.rows[digest] for digest in digests]) if good else np.empty((0, 0), dtype=np.float32)
    fields = [
        {**_place_of(file), "sha256": digest, **done.said[digest]}
        for (file, _), digest in zip(good, digests, strict=True)
    ]
    return rows, [id_ for _, id_ in good], fields


def _place_of(file: Found) -> dict[str, Any]:
    return {"path": file.path, "bytes": file.bytes, "modified": file.modified}


def _new_ids(files: Sequence[Found], taken: set[Any]) -> list[str]:
    """The path, and behind it a number where an item that was moved away still goes by it."""
    ids, taken = [], set(taken)
    for file in files:
        id_, number = file.path, 2
        while id_ in taken:
            id_, number = f"{file.path} ({number})", number + 1
        taken.add(id_)
        ids.append(id_)
    return ids
