"""A folder of images as a collection: made, and brought up to date, touching only what has changed."""

import itertools
from collections.abc import Callable, Mapping, Sequence
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
from manifind.collection.sync import IndexOutcome, check_removals
from manifind.collection.writer import check_target, write_collection
from manifind.errors import CollectionError, InputError
from manifind.files import sha256_of
from manifind.images import files as image_files
from manifind.images.describe import Described, describe_files
from manifind.images.extractors import Extractor, differences, extractor_of, has_network, make_extractor
from manifind.images.files import Found, Known, Matched
from manifind.io.tables import read_fields
from manifind.model.estimator import GradNet
from manifind.model.index_vectors import RefitPolicy, check_same_settings, refit_from, refuse_several_processes
from manifind.progress import Listener, Progress, ignore, in_one_piece
from manifind.text import count

_FEWEST = 3  # different pictures that a fit takes


@dataclass
class FolderOutcome(IndexOutcome):
    """What indexing a folder of images has done, or would do.

    Attributes
    ----------
    problems : list of tuple
        Path and reason of every file that could not be described.
    n_others : int
        Files that are not images.
    unmatched : list of str
        Paths in the metadata at which there is no image.
    notes : tuple of str
        What the extractor chose, such as which output of a model it takes.
    counts : dict
        As of `index_vectors`, and how many images were "moved", or "kept" since their files cannot be read now.
    """

    problems: list[tuple[str, str]] = field(default_factory=list)
    n_others: int = 0
    unmatched: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def index_folder(
    folder: str | Path,
    path: str | Path,
    extractor: Extractor | str | Callable[[list[Image.Image]], Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    *,
    metadata: str | Path | Mapping[str, Mapping[str, Any]] | None = None,
    refit: bool = False,
    refit_when: RefitPolicy | None = None,
    allow_removals: bool = False,
    dry_run: bool = False,
    listener: Listener = ignore,
) -> FolderOutcome:
    """Make a collection of the images in a folder, or bring one up to date.

    Ids are paths below the folder; a file that is moved or renamed keeps its id. An item is removed when its file is
    known to be gone. One whose file or folder cannot be read, or can no longer be decoded, stays as it is. An
    interrupted call goes on where it stopped when it is repeated.

    Parameters
    ----------
    folder : path
        The folder, with its folders. Hidden files are left out, and links to folders are not followed.
    path : path
        The collection directory.
    extractor : str, callable or Extractor, default=None
        What computes descriptors: "efficientnet", "pixels", "hf:OWNER/NAME", "fastembed:NAME", "FILE.onnx",
        "FILE.py:FUNCTION", several with "+" between them, or a function that takes a list of `PIL.Image.Image` and
        returns an array with one row for each. None takes what the collection was made with, "efficientnet" for a new
        one.
    settings : mapping, default=None
        Settings of `GradNet`. They cannot differ from those of an existing collection unless it is fitted anew.
    seed : int, default=None
        The same seed gives the same collection. None takes 0 for a new one, and the last seed for a refit.
    metadata : path or mapping, default=None
        Fields to filter by, merged into those that items have: a .csv or .jsonl file with a column `path`, or a mapping
        from paths below the folder to fields.
    refit : bool, default=False
        Whether an existing collection is fitted anew, starting from the old network.
    refit_when : float, str or callable, default=None
        Refit once this share of the fitted items has come or gone, or as another policy of `refit_when` says.
    allow_removals : bool, default=False
        Whether all items may be removed, or more than a third of 20 or more. If not, that is an error and nothing
        changes.
    dry_run : bool, default=False
        Only count what would be done.
    listener : callable, default=ignore
        Called with a `Progress` now and then, of the stages "reading", "pictures" and those of a fit.

    Returns
    -------
    FolderOutcome
        How many items were added, removed, changed, moved and left alone, every file that could not be described with
        the reason, and the collection.

    Raises
    ------
    InputError
        If the folder, the metadata or the settings are not valid, or too much would be removed.
    CollectionError
        If the collection was made with another extractor.
    """
    folder, target, settings = Path(folder), Path(path), settings or {}
    check_target(target)  # now, since describing may take long
    refuse_several_processes(f"{folder} is a folder of pictures")
    check_same_settings(target, settings, seed, refit)
    given = read_fields(metadata, ("path", "id")) if isinstance(metadata, str | Path) else metadata or {}
    collection = load(target) if is_collection(target) else None
    used = _extractor(extractor, collection)
    run = _Run(folder, collection, listener)
    is_new = collection is None
    outcome = FolderOutcome(n_others=len(run.inventory.others), collection=collection, is_new=is_new, notes=used.notes)
    if collection is not None:
        gone, allowed = run.matched.gone, dry_run or allow_removals
        outcome.needs_permission = check_removals(collection, gone, str(folder), len(run.known), allowed)
    work = work_folder(target)
    checkpoint = Checkpoint(None if dry_run else work / "pictures", used.identity)
    run.describe(_only_decoding(used) if dry_run else used, checkpoint)
    outcome.problems = sorted(run.inventory.problems)
    outcome.unmatched = run.add_fields({PurePosixPath(name).as_posix(): fields for name, fields in given.items()})
    outcome.counts = run.counts()
    if collection is None:
        new = run.matched.new
        _refuse_few(len({run.matched.digests[file.path] for file in new}), len(new), folder)
    if dry_run:
        return outcome
    if collection is None:
        source: dict[str, Any] = {"folder": image_files.path_text(str(folder.absolute())), "describer": used.identity}
        source |= {"extractor": list(used.addresses)} if used.addresses else {}
        source |= {"words": True} if used.addresses and used.texts is not None else {}
        collection = run.make(target, GradNet(**settings, random_state=seed or 0), source, work)
        outcome.collection = collection
    else:
        run.update(collection)
    image_files.remember_folder(collection.manifest, folder)
    checkpoint.clear()
    with suppress(OSError):
        work.rmdir()
    if not outcome.is_new:
        refit_from(0.0 if refit else refit_when, outcome, settings, seed, listener)
    return outcome


def _extractor(
    wanted: Extractor | str | Callable[[list[Image.Image]], Any] | None, collection: Collection | None
) -> Extractor:
    """The one that is wanted, which must be the collection's where there is one."""
    before = None if collection is None else (collection.manifest.get("source") or {}).get("describer")
    if collection is not None and (wanted is None or (wanted == "efficientnet" and has_network(before))):
        return extractor_of(collection.manifest, str(collection.path))
    made = wanted if isinstance(wanted, Extractor) else make_extractor(wanted or "efficientnet")
    if collection is None:
        return made
    if not isinstance(before, dict) or differences(before, made):
        name = before["describer"] if isinstance(before, dict) and "describer" in before else "a file of vectors"
        raise CollectionError(
            f"{collection.path} was made from {name!r}, and the extractor is now {made.identity['describer']!r}, "
            "or has other settings",
            "take the same extractor, or index into another collection",
        )
    return made


def _only_decoding(extractor: Extractor) -> Extractor:
    """For a run that does nothing: whether a file can be decoded decides whether it would be added."""
    return Extractor({}, extractor.longest, lambda pictures: np.ones((len(pictures), 1), dtype=np.float32))


def _refuse_few(n_different: int, n_pictures: int, folder: str | Path) -> None:
    if n_different < _FEWEST:
        raise InputError(
            f"{folder} has {count(n_pictures, 'picture')} that could be described; expected at least {_FEWEST} "
            "different ones",
            "give a folder with more pictures",
        )


class _Run:
    """One call, a step at a time: the folder is compared with the collection, described, and written.

    known: the items that come from files, by id; what was added as a vector has none, and is left alone.
    own: the user's fields, by the path of a picture. redescribed: those of items whose file has not changed, by id,
    where they are new.
    """

    def __init__(self, folder: Path, collection: Collection | None, listener: Listener) -> None:
        self._listener, self.inventory = listener, image_files.take_inventory(folder)
        ids = [] if collection is None else collection.ids.tolist()
        self._fields = {} if collection is None else dict(zip(ids, collection.metadata(ids), strict=True))
        self.known = {
            id_: Known(path, str(fields.get("sha256")), int(fields.get("bytes") or 0), int(fields.get("modified") or 0))
            for id_, fields in self._fields.items()
            if isinstance(path := fields.get("path"), str)
        }
        self.matched, self.done = self._compare(), Described()
        self.own: dict[str, Fields] = {}
        self.redescribed: dict[Any, Fields] = {}

    def _compare(self) -> Matched:
        inventory, done = self.inventory, itertools.count(1)
        for item in self.known.values():
            if item.path in inventory.others:
                inventory.refuse(item.path, "is no picture any more")
                inventory.others.discard(item.path)

        def digest(file: Found) -> str | None:
            self._listener(Progress("reading", next(done), len(inventory.pictures)))
            try:
                return sha256_of(file.file)
            except OSError as error:
                inventory.refuse(file.path, f"cannot be read: {error.strerror or error}")
                return None

        return image_files.match(inventory.pictures, self.known, digest, inventory.unreadable)

    def describe(self, extractor: Extractor, checkpoint: Checkpoint) -> None:
        """Describe new and changed files.

        New files that cannot be decoded are left out, and items whose changed file cannot be stay as they were.
        """
        matched = self.matched
        files = [*matched.new, *(file for _, file in matched.changed)]
        self.done = describe_files(files, matched.digests, extractor, checkpoint, self._listener)
        reasons = {file.path: self.done.refused.get(matched.digests[file.path]) for file in files}
        bad = {path: reason for path, reason in reasons.items() if reason is not None}
        self.inventory.problems += bad.items()
        matched.new = [file for file in matched.new if file.path not in bad]
        matched.unread += [id_ for id_, file in matched.changed if file.path in bad]
        matched.changed = [(id_, file) for id_, file in matched.changed if file.path not in bad]

    def add_fields(self, given: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Take the user's fields by the path of a picture; the paths that no picture has."""
        matched = self.matched
        unchanged = {id_: self.known[id_].path for id_ in (*matched.same, *matched.unread)}
        files = [*matched.new, *(file for _, file in (*matched.changed, *matched.moved))]
        paths = {*unchanged.values(), *(file.path for file in files)}
        unmatched = [path for path in given if path not in paths]
        if given and len(unmatched) == len(given):
            raise InputError(
                f"the metadata is of no picture in the folder; its first path is {unmatched[0]!r}",
                f"give paths below the folder, such as {min(paths, default='rome/1.jpg')!r}",
            )
        checked = zip(given, checked_fields(list(given.values()), len(given)), strict=True)
        self.own = {path: fields for path, fields in checked if fields is not None and path in paths}
        for path, fields in self.own.items():
            if taken := next((name for name in OWN_FIELDS if name in fields), None):
                raise InputError(
                    f"the metadata of {path!r} has a field {taken!r}, which is kept by manifind",
                    "give your own field another name",
                )
        for id_, path in unchanged.items():
            fields, before = self.own.get(path, {}), self._fields[id_]
            if any(before.get(name) != value for name, value in fields.items()):
                self.redescribed[id_] = _users_own(fields, before)
        return unmatched

    def counts(self) -> dict[str, int]:
        matched = self.matched
        return {
            "added": len(matched.new),
            "removed": len(matched.gone),
            "changed": len(matched.changed),
            "moved": len(matched.moved),
            "described": len(self.redescribed),
            "kept": len(matched.unread),
            "unchanged": sum(id_ not in self.redescribed for id_ in matched.same),
        }

    def make(self, target: Path, model: GradNet, source: dict[str, Any], work: Path) -> Collection:
        """The collection of all files that could be described."""
        rows, fields = self._described([(None, file) for file in self.matched.new])
        _refuse_few(len(np.unique(rows, axis=0)), len(rows), source["folder"])
        model.fit(rows, listener=self._listener, checkpoint=work / "fit")
        plain = [{name: value for name, value in one.items() if value is not None} for one in fields]
        with in_one_piece("saving", self._listener):
            write_collection(target, model.contents(), _new_ids(self.matched.new, set()), plain, source)
        return load(target)

    def update(self, collection: Collection) -> None:
        """Change the collection in one commit."""
        matched = self.matched
        rows, fields = self._described([*((None, file) for file in matched.new), *matched.changed])
        moved = {
            id_: {**_place_of(file), **_users_own(self.own.get(file.path, {}), self._fields[id_])}
            for id_, file in matched.moved
        }
        changed = [id_ for id_, _ in matched.changed]
        names = [*_new_ids(matched.new, set(self._fields) - set(matched.gone)), *changed]
        gone = [*matched.gone, *changed]
        collection.change(rows, names, fields, gone, {**self.redescribed, **moved}, own_fields=True)

    def _described(self, files: Sequence[tuple[Any, Found]]) -> tuple[Floats, list[Fields]]:
        """Rows and new metadata of files that could be described, each with the id of its item, None for a new one."""
        rows: list[Floats] = []
        all_fields: list[Fields] = []
        for id_, file in files:
            digest = self.matched.digests[file.path]
            before, own = self._fields.get(id_, {}), self.own.get(file.path, {})
            fields = image_files.picture_fields(self.done.fields[digest], before, own)
            rows.append(self.done.rows[digest])
            all_fields.append({**_place_of(file), "sha256": digest, **fields})
        return np.stack(rows) if rows else np.empty((0, 0), dtype=np.float32), all_fields


def _users_own(fields: Fields, before: Fields) -> Fields:
    """The user's fields for a picture that stays; where they replace fields of its file, these are the user's now."""
    if not fields.keys() & set(image_files.EXIF_FIELDS):
        return fields
    read = before.get("exif", image_files.EXIF_FIELDS)
    return {**fields, "exif": [name for name in read if name in before and name not in fields]}


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
