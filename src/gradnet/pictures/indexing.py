"""A folder of pictures as a collection: made, and brought up to date, touching only what has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from gradnet.arrays import Floats
from gradnet.checkpoint import Checkpoint
from gradnet.collection.collection import Collection, load
from gradnet.collection.database import is_collection, work_folder
from gradnet.collection.metadata import OWN_FIELDS, Fields, checked_fields
from gradnet.collection.sync import needs_permission, refuse_removals
from gradnet.collection.writer import check_target, write_collection
from gradnet.data.digests import sha256_of
from gradnet.errors import CollectionError, InputError
from gradnet.methods.gradnet import GradNet
from gradnet.pictures.asking import describer_of
from gradnet.pictures.describers import Describer, make_describer
from gradnet.pictures.extraction import Described, describe_files
from gradnet.pictures.files import path_text, remember_folder
from gradnet.pictures.folder import Found, Inventory, take_inventory
from gradnet.pictures.kinds import EXIF_FIELDS, picture_fields
from gradnet.pictures.matching import Known, Matched, match
from gradnet.progress import Listener, Progress, ignore, in_one_piece
from gradnet.wording import count

_FEWEST = 3  # different pictures that a fit takes


@dataclass
class Outcome:
    """What was done, or would be: how many of each, and every file that could not be described, with its reason.

    unmatched: paths in the metadata file at which there is no picture. needs_permission: whether so many items would go
    that this has to be allowed.
    """

    counts: dict[str, int] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    n_others: int = 0
    collection: Collection | None = None
    is_new: bool = False
    unmatched: list[str] = field(default_factory=list)
    needs_permission: bool = False


def index_folder(
    folder: str | Path,
    path: str | Path,
    describer: Describer | str | Callable[[list[Image.Image]], Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    *,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
    allow_removals: bool = False,
    listener: Listener = ignore,
    dry_run: bool = False,
) -> Outcome:
    """Make a collection of the pictures in a folder, or bring one up to date.

    An item goes when its file is known to be gone. One whose file or folder cannot be read, or can no longer be
    decoded, stays as it is.

    describer: as `make_describer` takes it; None: what the collection was made with, "efficientnet" for a new one.
    settings: GradNet's, for a new one. metadata: fields of your own by path below the folder; they are merged into what
    is there. allow_removals: whether all items may go, or more than a third of 20 or more. dry_run: only see what would
    be done. listener: hears of the stages "reading", "pictures" and those of a fit.
    """
    target = Path(path)
    check_target(target)
    work = work_folder(target)
    collection = load(target) if is_collection(target) else None
    describer = _describer(describer, collection)
    inventory, known = take_inventory(Path(folder)), {} if collection is None else _known(collection)
    matched = _compare(inventory, known, listener)
    outcome = Outcome({}, n_others=len(inventory.others), collection=collection, is_new=collection is None)
    if collection is not None:
        outcome.needs_permission = needs_permission(len(matched.gone), len(known))
        if not (dry_run or allow_removals):
            refuse_removals(collection, matched.gone, str(folder), len(known))
    checkpoint = Checkpoint(None if dry_run else work / "pictures", describer.identity)
    done = _describe(matched, _only_decoding(describer) if dry_run else describer, checkpoint, listener)
    outcome.problems = sorted([*inventory.problems, *done.problems])
    given = {PurePosixPath(name).as_posix(): fields for name, fields in (metadata or {}).items()}
    own = _own_fields(given, matched, known, outcome)
    unchanged = [*matched.same, *matched.unread]
    redescribed = {} if collection is None else _redescribed(collection, unchanged, known, own)
    outcome.counts = _counts(matched, redescribed)
    if collection is None:
        _refuse_few(len({matched.digests[file.path] for file in matched.new}), len(matched.new), folder)
    if dry_run:
        return outcome
    if collection is None:
        model = GradNet(**(settings or {}), random_state=seed)
        source = {"folder": path_text(str(Path(folder).absolute())), "describer": describer.identity}
        collection = _make(target, model, matched, done, own, source, work, listener)
        outcome.collection = collection
    else:
        _update(collection, matched, done, own, redescribed)
    remember_folder(collection.manifest, Path(folder))
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


def _only_decoding(describer: Describer) -> Describer:
    """For a run that does nothing: whether a file can be decoded decides whether it would be added."""
    return Describer({}, describer.longest, lambda pictures: np.ones((len(pictures), 1), dtype=np.float32))


def _compare(inventory: Inventory, known: Mapping[Any, Known], listener: Listener) -> Matched:
    done = 0
    for item in known.values():
        if item.path in inventory.others:
            inventory.refuse(item.path, "is no picture any more")
            inventory.others.discard(item.path)

    def digest(file: Found) -> str | None:
        nonlocal done
        done += 1
        listener(Progress("reading", done, len(inventory.pictures)))
        try:
            return sha256_of(file.file)
        except OSError as error:
            inventory.refuse(file.path, f"cannot be read: {error.strerror or error}")
            return None

    return match(inventory.pictures, known, digest, inventory.unreadable)


def _known(collection: Collection) -> dict[Any, Known]:
    """The items that come from files; what was added as a vector has none, and is left alone."""
    holdings = collection.version.holdings
    known = {}
    for id_, said in zip(holdings.ids.tolist(), collection.metadata(holdings.ids.tolist()), strict=True):
        if isinstance(path := said.get("path"), str):
            size, modified = said.get("bytes"), said.get("modified")
            known[id_] = Known(path, str(said.get("sha256")), int(size or 0), int(modified or 0))
    return known


def _describe(
    matched: Matched, describer: Describer, checkpoint: Checkpoint, listener: Listener
) -> Described:
    """The descriptors of new and changed files.

    New files that cannot be decoded are left out, and items whose changed file cannot be stay as they were.
    """
    files = [*matched.new, *(file for _, file in matched.changed)]
    digests = [matched.digests[file.path] for file in files]
    done = describe_files(files, digests, describer, checkpoint, listener)
    bad = {path for path, _ in done.problems}
    matched.new = [file for file in matched.new if file.path not in bad]
    matched.unread += [id_ for id_, file in matched.changed if file.path in bad]
    matched.changed = [(id_, file) for id_, file in matched.changed if file.path not in bad]
    return done


def _own_fields(
    metadata: Mapping[str, Mapping[str, Any]], matched: Matched, known: Mapping[Any, Known], outcome: Outcome
) -> dict[str, Fields]:
    """The user's fields by the path of a picture; paths that no picture has are listed in the outcome."""
    files = [*matched.new, *(file for _, file in (*matched.changed, *matched.moved))]
    paths = {file.path for file in files} | {known[id_].path for id_ in (*matched.same, *matched.unread)}
    outcome.unmatched = [path for path in metadata if path not in paths]
    if metadata and len(outcome.unmatched) == len(metadata):
        raise InputError(
            f"the metadata is of no picture in the folder; its first path is {outcome.unmatched[0]!r}",
            f"give paths below the folder, such as {min(paths, default='rome/1.jpg')!r}",
        )
    checked = zip(metadata, checked_fields(list(metadata.values()), len(metadata)), strict=True)
    found = {path: fields for path, fields in checked if fields is not None and path in paths}
    for path, fields in found.items():
        if taken := next((name for name in OWN_FIELDS if name in fields), None):
            raise InputError(
                f"the metadata of {path!r} has a field {taken!r}, which is kept by gradnet",
                "give your own field another name",
            )
    return found


def _redescribed(
    collection: Collection, ids: Sequence[Any], known: Mapping[Any, Known], own: Mapping[str, Fields]
) -> dict[Any, Fields]:
    """The user's fields of items whose file has not changed, by id, where they are new."""
    changes = [(id_, own[known[id_].path]) for id_ in ids if known[id_].path in own]
    before = collection.metadata([id_ for id_, _ in changes])
    return {
        id_: _users_own(fields, said)
        for (id_, fields), said in zip(changes, before, strict=True)
        if any(said.get(name) != value for name, value in fields.items())
    }


def _users_own(fields: Fields, before: Fields) -> Fields:
    """The user's fields for a picture that stays; those that its file said are the user's from now on."""
    if not fields.keys() & set(EXIF_FIELDS):
        return fields
    read = before.get("exif", EXIF_FIELDS)
    return {**fields, "exif": [name for name in read if name in before and name not in fields]}


def _counts(matched: Matched, redescribed: Mapping[Any, Fields]) -> dict[str, int]:
    return {
        "added": len(matched.new),
        "removed": len(matched.gone),
        "changed": len(matched.changed),
        "moved": len(matched.moved),
        "described": len(redescribed),
        "kept": len(matched.unread),
        "unchanged": sum(id_ not in redescribed for id_ in matched.same),
    }


def _make(
    target: Path,
    model: GradNet,
    matched: Matched,
    done: Described,
    own: Mapping[str, Fields],
    source: dict[str, Any],
    work: Path,
    listener: Listener,
) -> Collection:
    rows, fields = _described(matched.new, [{}] * len(matched.new), matched, done, own)
    _refuse_few(len(np.unique(rows, axis=0)), len(rows), source["folder"])
    model.fit(rows, listener=listener, checkpoint=work / "fit")
    plain = [{name: value for name, value in one.items() if value is not None} for one in fields]
    with in_one_piece("saving", listener):
        write_collection(target, model.contents(), _new_ids(matched.new, set()), plain, source)
    return load(target)


def _refuse_few(n_different: int, n_pictures: int, folder: str | Path) -> None:
    if n_different < _FEWEST:
        raise InputError(
            f"{folder} has {count(n_pictures, 'picture')} that could be described; expected at least {_FEWEST} "
            "different ones",
            "give a folder with more pictures",
        )


def _update(
    collection: Collection,
    matched: Matched,
    done: Described,
    own: Mapping[str, Fields],
    redescribed: Mapping[Any, Fields],
) -> None:
    taken = set(collection.ids.tolist()) - set(matched.gone)
    changed = [id_ for id_, _ in matched.changed]
    files = [*matched.new, *(file for _, file in matched.changed)]
    before = [*({} for _ in matched.new), *collection.metadata(changed)]
    rows, fields = _described(files, before, matched, done, own)
    had = collection.metadata([id_ for id_, _ in matched.moved])
    moved = {
        id_: {**_place_of(file), **_users_own(own.get(file.path, {}), said)}
        for (id_, file), said in zip(matched.moved, had, strict=True)
    }
    names = [*_new_ids(matched.new, taken), *changed]
    gone = [*matched.gone, *changed]
    collection.change(rows, names, fields, gone, {**redescribed, **moved}, own_fields=True)


def _described(
    files: Sequence[Found],
    before: Sequence[Fields],
    matched: Matched,
    done: Described,
    own: Mapping[str, Fields],
) -> tuple[Floats, list[Fields]]:
    """Rows and new metadata of files that could be described. before: the metadata that their items had."""
    digests = [matched.digests[file.path] for file in files]
    rows = (
        np.stack([done.rows[digest] for digest in digests]) if files else np.empty((0, 0), dtype=np.float32)
    )
    fields = [
        {
            **_place_of(file),
            "sha256": digest,
            **picture_fields(done.said[digest], had, own.get(file.path, {})),
        }
        for file, digest, had in zip(files, digests, before, strict=True)
    ]
    return rows, fields


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
