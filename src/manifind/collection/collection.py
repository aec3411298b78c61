"""An opened collection: search, add, remove and change items by the user's own ids, without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats
from manifind.collection.export import export
from manifind.collection.ids import as_list, check_ids
from manifind.collection.metadata import OWN_FIELDS, checked_fields
from manifind.collection.searchable import QueryRows, SearchableCollection, prepare_words
from manifind.collection.version import Version, open_version, read_commit, read_snapshot, verify_digests
from manifind.collection.writer import Change, RefittedMeanwhileError, commit_change, replaced
from manifind.errors import CollectionError, InputError
from manifind.index.ivf import quality_summary
from manifind.index.vector_index import to_array
from manifind.ranking import Ranking
from manifind.search.live_index import AddedItems, place
from manifind.text import count

if TYPE_CHECKING:
    from manifind.images.extractors import Extractor

_ATTEMPTS = 5  # to commit a change while others refit, before giving up
_SPACES = ("features", "descriptors")


class Collection(SearchableCollection):
    """A collection on disk, as it was when it was opened, changed here, or last refreshed.

    Every answer belongs to one version: a commit by another process shows after `refresh`. Open one with
    `manifind.load`; torch is not imported.
    """

    def __init__(self, version: Version, after_commit: Callable[[Collection], Any] | None = None) -> None:
        self._version, self._after_commit = version, after_commit
        self._moving = RLock()  # held while the version is replaced, so that no thread goes back to an older one
        self._extractors: dict[str | None, Extractor] = {}  # by the name that was given
        self._loading = Lock()

    @property
    def version(self) -> Version:
        """The version that all answers are given from at this moment."""
        return self._version

    @property
    def path(self) -> Path:
        """The directory of the collection."""
        return self._version.directory

    @property
    def manifest(self) -> dict[str, Any]:
        """Everything that the collection says of itself, as JSON has it."""
        return self._version.manifest.entries

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the model that was fitted."""
        return dict(self._version.manifest.settings)

    @property
    def info(self) -> dict[str, Any]:
        """What the fit reported, such as its seed and the neighbour agreement."""
        return dict(self._version.manifest.info)

    @property
    def changed(self) -> float:
        """Items that were added or removed since the fit, for each that was fitted."""
        manifest = self._version.manifest
        return (manifest.n_added + manifest.n_removed) / manifest.sizes.items

    @property
    def loss_curve(self) -> Floats:
        """The training loss, (steps, 3)."""
        return self._version.loss_curve

    @property
    def is_of_pictures(self) -> bool:
        """Whether it was made from a folder of pictures."""
        return isinstance(self._version.manifest.source.get("folder"), str)

    @property
    def ids(self) -> NDArray[Any]:
        """The ids of the items that are there, (n,), in the order of `features`."""
        return self._version.items.ids

    @property
    def segment_bytes(self) -> dict[str, int]:
        """The size of each file of the collection, by role."""
        return self._version.snapshot.sizes

    @property
    def features(self) -> Floats:
        """The learned features of the items that are there, (n, D), with rows of length 1."""
        version = self._version
        if len(version) == len(version.opened.features) == version.items.n_present:  # all that were fitted
            return to_array(version.learned.features)
        return version.index.features(version.items.rows)

    def __len__(self) -> int:
        return len(self._version)

    def __contains__(self, id_: Any) -> bool:
        return self._version.items.row_of(id_) is not None

    def __repr__(self) -> str:
        sizes = self._version.manifest.sizes
        widths = f"{sizes.dimension} -> {count(sizes.feature_dimension, 'dimension')}"
        return f"<Collection {self.path}: {count(len(self), 'item')}, {widths}>"

    def _load_extractor(self, given: str | None) -> Extractor:
        from manifind.images.extractors import extractor_of  # Pillow

        with self._loading:
            if given not in self._extractors:
                self._extractors[given] = extractor_of(self.manifest, str(self.path), given)
            return self._extractors[given]

    def _picture_of(self, id_: Any) -> Path:
        from manifind.images.files import picture_file, shown_folders

        picture = picture_file(shown_folders(self.manifest), self.metadata([id_])[0])
        if picture is None:
            problem = f"the picture of {id_!r} is not known here, so it cannot be cropped"
            raise InputError(problem, "give the file of the picture instead")
        return picture.file

    def _at_one_version(self) -> Collection:
        return Collection(self._version)

    def _of_descriptors(self, Q: Any, by: str, *, are_words: bool = False) -> QueryRows:
        learned = self._version.learned
        d = learned.descriptors.shape[1]
        descriptors = prepare_words(learned.preprocessor, Q, d) if are_words else learned.prepared(Q)
        features = learned.features_of(descriptors) if by == "features" else _none(len(descriptors))
        return QueryRows(features, descriptors)

    def _of_ids(self, ids: list[Any], by: str) -> QueryRows:
        version = self._version
        rows = np.array([version.items.known_row(id_) for id_ in ids], dtype=np.int64)
        has_descriptors = version.manifest.is_full or by != "features"
        descriptors = version.index.descriptors(rows) if has_descriptors else _none(len(rows))
        return QueryRows(version.index.features(rows), descriptors)

    def _ranked(self, rows: QueryRows, k: int, where: str | None, by: str) -> Ranking:
        """The way to every answer: filter, search, check, ids."""
        version = self._version
        if by not in _SPACES:
            raise InputError(f"by = {by!r}; expected one of {', '.join(map(repr, _SPACES))}")
        allowed = None if where is None else version.items.satisfying(where)
        if by == "descriptors":
            found = version.index.rank_by_descriptors(rows.descriptors, k, allowed)
        else:
            found = version.index.rank(rows.features, rows.descriptors, k, allowed)
        version.check_finite(found.scores, by)
        return Ranking(version.items.ids_of(found.ids), found.scores)

    def _transform(self, Q: Any) -> Floats:
        version = self._version
        with np.errstate(over="ignore", invalid="ignore"):  # damage is reported below
            features = version.learned.transform(Q)
        version.check_finite(features, "features")
        return features

    def metadata(self, ids: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the metadata of some items.

        Parameters
        ----------
        ids : sequence of str or int
            The items.

        Returns
        -------
        list of dict
            One dictionary for each item, empty where it has no metadata.
        """
        items = self._version.items
        return [dict(items.fields(items.known_row(id_))) for id_ in as_list(ids)]

    def find_id(self, text: str) -> Any:
        """Return the id of the one item that a typed text stands for.

        Parameters
        ----------
        text : str
            An id, the current path of an item's file, or the name of a file that only one item has.

        Returns
        -------
        str or int
            The id.

        Raises
        ------
        InputError
            Where no item, or more than one, is meant; the message suggests the nearest ids.
        """
        return self._version.items.find_id(text)

    def index_quality(self) -> dict[str, dict[str, Any]]:
        """Report how well descriptors and features are searched.

        Returns
        -------
        dict of dict
            Under "descriptors" and "features": the codes, the recall on a sample, the bytes per item.
        """
        indexes = self._version.learned.indexes().items()
        return {name: quality_summary(None if index is None else index.quality) for name, index in indexes}

    def add(
        self, X: Any, ids: Sequence[Any] | None = None, metadata: Sequence[Mapping[str, Any] | None] | None = None
    ) -> list[Any]:
        """Add items, which can be found at once; the features of other items do not change.

        Parameters
        ----------
        X : array-like of shape (a, d)
            Their descriptors.
        ids : sequence of str or int, default=None
            New ids, of the same kind as the others; None gives the next free numbers.
        metadata : sequence of dict, default=None
            Fields for each item, or None for none.

        Returns
        -------
        list of str or int
            The ids.
        """
        return self.change(X, ids, metadata)

    def remove(self, ids: Sequence[Any]) -> None:
        """Remove items: all of them, or none where one is not there.

        What the model has learned from them stays until the next fit.

        Parameters
        ----------
        ids : sequence of str or int
            The items.
        """
        self.change(removed=ids)

    def update(
        self, ids: Sequence[Any], X: Any = None, metadata: Sequence[Mapping[str, Any] | None] | None = None
    ) -> None:
        """Give items other descriptors, other metadata, or both; what is not given stays.

        Parameters
        ----------
        ids : sequence of str or int
            The items.
        X : array-like of shape (a, d), default=None
            Their new descriptors.
        metadata : sequence of dict, default=None
            For each item the fields to set; a field whose value is None is removed, others stay.
        """
        names = as_list(ids)
        if X is None and metadata is None:
            hint = "give X, metadata, or both; to take items away, call remove"
            raise InputError(f"neither descriptors nor metadata are given for {count(len(names), 'item')}", hint)
        if X is None:
            fields = checked_fields(metadata, len(names))
            self.change(described=dict(zip(self._known(ids), fields, strict=True)))
        else:
            self._new(ids, len(X))  # or what has no row would only be removed
            self.change(X, ids, metadata, removed=ids)

    def change(
        self,
        X: Any = None,
        ids: Sequence[Any] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        removed: Sequence[Any] = (),
        described: Mapping[Any, Mapping[str, Any] | None] | None = None,
        *,
        own_fields: bool = False,
    ) -> list[Any]:
        """Remove some items, add others and set metadata of some, in one commit.

        Parameters
        ----------
        X : array-like of shape (a, d), default=None
            Descriptors of items to add.
        ids : sequence of str or int, default=None
            Their ids; None gives the next free numbers.
        metadata : sequence of dict, default=None
            Their fields. An item that is removed and added under the same id keeps its other fields.
        removed : sequence of str or int, default=()
            Items to remove.
        described : dict, default=None
            Fields to set, by id. Here and in `metadata`, a value of None removes a field.
        own_fields : bool, default=False
            For `index` alone: whether the fields by which it recognises the files of pictures may be set.

        Returns
        -------
        list of str or int
            The ids of the items that were added.
        """
        gone, fields = self._known(removed), dict(described or {})
        checked = checked_fields(list(fields.values()), len(fields))
        new = dict(zip(self._known(list(fields)), checked, strict=True))
        protected = OWN_FIELDS if self.is_of_pictures and not own_fields else ()
        if X is None or len(X) == 0:
            nothing = not gone and not new
            return [] if nothing else self._commit(lambda _: Change(gone, None, None, None, new, protected))
        names = self._new(ids, len(X))
        given = None if metadata is None else checked_fields(metadata, len(X))
        return self._commit(lambda version: Change(gone, _placed(version, X), names, given, new, protected))

    def export(self, target: str | Path, to: str, codes: str = "sq8", *, overwrite: bool = False) -> list[Path]:
        """Write the features for other programs, or a compressed collection that only answers.

        Parameters
        ----------
        target : str or Path
            The file to write, or the directory of the compressed collection.
        to : {"npy", "parquet", "faiss", "compressed"}
            An array with the ids beside it, a table of id, vector and metadata, an index, or a collection.
        codes : {"sq8", "pq"}, default="sq8"
            For a compressed collection: a byte for each dimension, or one for eight.
        overwrite : bool, default=False
            Whether a collection at `target` may be replaced by the compressed one.

        Returns
        -------
        list of Path
            What was written.
        """
        return export(self._version, target, to, codes, overwrite)

    def refresh(self) -> bool:
        """Go on to the newest version on disk.

        Returns
        -------
        bool
            Whether there was a newer one.
        """
        with self._moving:
            before, self._version = self._version, self._newest()
            return self._version is not before

    def follow(self) -> None:
        """Go on to the newest version of the same collection.

        Raises
        ------
        CollectionError
            Where another collection has taken its place.
        """
        with self._moving:
            newest, name = self._newest(), self._version.manifest.collection
            if name is not None and newest.manifest.collection != name:  # one of format 1 has no name
                raise replaced(self.path)
            self._version = newest

    def _newest(self) -> Version:
        """What is on the disk now, which may be another collection."""
        row, commit = read_commit(self.path), self._version.manifest.commit
        is_newest = row is not None and row[0] == f'"{commit}"'
        return self._version if is_newest else _open(self.path, False, self._version)

    def _commit(self, make: Callable[[Version], Change]) -> list[Any]:
        """Commit a change, made for the version that is there when it is committed."""
        if not self._version.manifest.is_full:
            hint = "change the collection that it was exported from, and export that again"
            raise CollectionError(f"{self.path} is compressed: it only answers", hint)
        for _ in range(_ATTEMPTS):
            version = self._version
            change = make(version)
            try:
                done = commit_change(self.path, version.manifest, change)
                break
            except RefittedMeanwhileError:
                self.follow()
        else:
            raise CollectionError(f"{self.path} is refitted again and again", "try again later")
        with self._moving:
            if self._version is version and done.before == version.manifest.commit and len(version):
                self._version = version.after(change.placed, done)
            else:
                self.refresh()
        if self._after_commit is not None:
            self._after_commit(self)
        return done.ids

    def _known(self, ids: Sequence[Any]) -> list[Any]:
        """Ids as plain values, once each, all of them those of items."""
        listed = as_list(ids)
        names = list(check_ids(ids, len(listed))) if listed else []
        if any(self._version.items.row_of(name) is None for name in names):
            self.follow()  # it may have been added since
        for name in names:
            self._version.items.known_row(name)
        return names

    def _new(self, ids: Sequence[Any] | None, n: int) -> list[Any] | None:
        """Ids as plain values, of the kind that the others are; None for numbers that are still to be given."""
        has_texts = self._version.items.has_texts
        if ids is None:
            if has_texts:
                raise InputError("ids are not given, and those of this collection are texts", "give one for each item")
            return None
        names = list(check_ids(ids, n))
        if names and len(self) and isinstance(names[0], str) != has_texts:
            kind = "text" if has_texts else "whole number"
            raise InputError(f"the id {names[0]!r} is no {kind}, as the ids of {self.path} are")
        return names


def load(
    path: str | Path, verify: bool = False, *, after_commit: Callable[[Collection], Any] | None = None
) -> Collection:
    """Open a collection.

    Parameters
    ----------
    path : str or Path
        Its directory.
    verify : bool, default=False
        Whether to read every byte and compare digests, and not only sizes.
    after_commit : callable, default=None
        Called with the collection after each change that is made through it, such as ``manifind.refit_when(0.2)``.

    Returns
    -------
    Collection
        The collection, ready to be searched and changed.

    Raises
    ------
    CollectionError
        Where there is no collection, it is damaged, or a newer version of manifind wrote it.
    """
    return Collection(_open(path, verify), after_commit)


def _open(path: str | Path, verify: bool, before: Version | None = None) -> Version:
    while True:
        commit = read_commit(path)
        try:
            snapshot = read_snapshot(path)
            if verify:
                verify_digests(snapshot)
            return open_version(snapshot, before)
        except CollectionError:
            if read_commit(path) == commit:
                raise  # else its segments went because it was replaced in between


def _none(m: int) -> Floats:
    return np.empty((m, 0), dtype=np.float32)


def _placed(version: Version, X: Any) -> AddedItems:
    with np.errstate(over="ignore", invalid="ignore"):  # damage is reported below
        placed = place(version.learned, X, version.manifest.sizes.neighbors)
    # Committed, it would be refused by whoever opens the collection next.
    version.check_finite(placed.distances, "descriptors")
    version.check_finite(placed.features, "features")
    return placed
