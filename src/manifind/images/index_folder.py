"""A folder of images as a collection: made, and brought up to date, touching only what has changed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from manifind.arrays import Floats
from manifind.checkpoint import Checkpoint
from manifind.collection.collection import Collection, load
from manifind.collection.database import is_collection, work_folder
from manifind.collection.metadata import OWN_FIELDS, Fields, checked_fields
from manifind.collection.sync import needs_permission, refuse_removals
from manifind.collection.writer import check_target, write_collection
from manifind.errors import CollectionError, InputError
from manifind.files import sha256_of
from manifind.images.decode import Picture
from manifind.images.decoders import Decoders
from manifind.images.extractors import Extractor, extractor_of, make_extractor
from manifind.images.files import (
    EXIF_FIELDS,
    Found,
    Inventory,
    Known,
    Matched,
    match,
    path_text,
    picture_fields,
    remember_folder,
    take_inventory,
)
from manifind.model.estimator import GradNet
from manifind.progress import Listener, Progress, ignore, in_one_piece
from manifind.text import count

_AT_ONCE = 32  # pictures that are described together
_STAGE = "described"


@dataclass
class Described:
    """rows: a descriptor by digest. said: size, kind, date and place by digest. refused: the reason by digest.

    problems: path and reason of every file that has such a content.
    """

    rows: dict[str, Floats] = field(default_factory=dict)
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)


def describe_files(
    files: Sequence[Found],
    digests: Sequence[str],
    describer: Extractor,
    checkpoint: Checkpoint,
    listener: Listener = ignore,
    n_processes: int | None = None,
) -> Described:
    """The descriptors of files whose contents have these digests; equal contents are described once.

    checkpoint: what an interrupted run has described, and a place to keep what this one does.
    """
    done = Described()
    _restore(done, checkpoint)
    wanted: dict[str, Found] = {}
    for file, digest in zip(files, digests, strict=True):
        if digest not in done.rows:
            wanted.setdefault(digest, file)
    n_done, total = len(files) - len(wanted), len(files)
    listener(Progress("pictures", n_done, total))
    started, before = time.monotonic(), n_done
    with Decoders(n_processes or os.cpu_count() or 1, describer.longest) as decoders:
        decoded = decoders.decode([file.file for file in wanted.values()])
        for batch in _batches(zip(wanted.items(), decoded, strict=True)):
            _describe_batch(batch, describer, done)
            n_done += len(batch)
            if checkpoint.due():
                _keep(done, checkpoint)
            rate = (n_done - before) / max(time.monotonic() - started, 1e-3)
            listener(Progress("pictures", n_done, total, f"{rate:.1f} a second"))
    # Every file with a bad content, not only the one that was looked at.
    done.problems = [
        (file.path, done.refused[digest]) for file, digest in zip(files, digests, strict=True) if digest in done.refused
    ]
    return done


def _batches(pairs: Iterator[Any]) -> Iterator[list[Any]]:
    batch = []
    for pair in pairs:
        batch.append(pair)
        if len(batch) == _AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _describe_batch(
    batch: list[tuple[tuple[str, Found], Picture | str]], describer: Extractor, done: Described
) -> None:
    pictures = []
    for (digest, _), found in batch:
        if isinstance(found, str):
            done.refused[digest] = found
        elif found.sha256 != digest:  # else this content would be kept as the descriptor of another
            done.refused[digest] = "was changed while it was being read; index again when it is finished"
        else:
            pictures.append((digest, found))
    if not pictures:
        return
    rows = describer([picture.pixels for _, picture in pictures])
    for (digest, picture), row in zip(pictures, rows, strict=True):
        done.rows[digest] = row
        done.said[digest] = picture.fields


def _keep(done: Described, checkpoint: Checkpoint) -> None:
    said = json.dumps([done.said[digest] for digest in done.rows])
    checkpoint.save(
        _STAGE,
        {
            "digests": np.array(list(done.rows)),
            "rows": np.stack(list(done.rows.values())),
            "said": np.frombuffer(said.encode(), dtype=np.uint8),
        },
    )


def _restore(done: Described, checkpoint: Checkpoint) -> None:
    kept = checkpoint.load(_STAGE)
    if kept is None:
        return
    said = json.loads(kept["said"].tobytes())
    for digest, row, one in zip(kept["digests"].tolist(), kept["rows"], said, strict=True):
        done.rows[digest], done.said[digest] = row, one


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
    describer: Extractor | str | Callable[[list[Image.Image]], Any] | None = None,
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
    wanted: Extractor | str | Callable[[list[Image.Image]], Any] | None, collection: Collection | None
) -> Extractor:
    """The one that was asked for, which must be the collection's where there is one."""
    if wanted is None and collection is not None:
        return extractor_of(collection.manifest, str(collection.path))
    made = wanted if isinstance(wanted, Extractor) else make_extractor(wanted or "efficientnet")
    if collection is not None:
        _refuse_another(collection, made)
    return made


def _refuse_another(collection: Collection, describer: Extractor) -> None:
    source = (collection.manifest.get("source") or {}).get("describer")
    if source != describer.identity:
        made = source["describer"] if isinstance(source, dict) and "describer" in source else "a file of vectors"
        raise CollectionError(
            f"{collection.path} was made from {made!r}, and is now to be described by "
            f"{describer.identity['describer']!r}, or with other settings",
            "describe it as before, or index into another collection",
        )


def _only_decoding(describer: Extractor) -> Extractor:
    """For a run that does nothing: whether a file can be decoded decides whether it would be added."""
    return Extractor({}, describer.longest, lambda pictures: np.ones((len(pictures), 1), dtype=np.float32))


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
    known, ids = {}, collection.ids.tolist()
    for id_, said in zip(ids, collection.metadata(ids), strict=True):
        if isinstance(path := said.get("path"), str):
            size, modified = said.get("bytes"), said.get("modified")
            known[id_] = Known(path, str(said.get("sha256")), int(size or 0), int(modified or 0))
    return known


def _describe(matched: Matched, describer: Extractor, checkpoint: Checkpoint, listener: Listener) -> Described:
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
                f"the metadata of {path!r} has a field {taken!r}, which is kept by manifind",
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
    files: Sequence[Found], before: Sequence[Fields], matched: Matched, done: Described, own: Mapping[str, Fields]
) -> tuple[Floats, list[Fields]]:
    """Rows and new metadata of files that could be described. before: the metadata that their items had."""
    digests = [matched.digests[file.path] for file in files]
    rows = np.stack([done.rows[digest] for digest in digests]) if files else np.empty((0, 0), dtype=np.float32)
    fields = [
        {**_place_of(file), "sha256": digest, **picture_fields(done.said[digest], had, own.get(file.path, {}))}
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
