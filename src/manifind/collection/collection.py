"""An opened collection: search, add, remove and change items by the user's own ids, without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats
from manifind.collection.export import export
from manifind.collection.find_ids import unknown_item
from manifind.collection.ids import check_ids
from manifind.collection.metadata import OWN_FIELDS, checked_fields
from manifind.collection.reader import read_commit, read_snapshot, verify_digests
from manifind.collection.transactions import Change, RefittedMeanwhileError, commit_change, replaced
from manifind.collection.version import Version, open_version
from manifind.errors import CollectionError, InputError
from manifind.index.ivf import told
from manifind.index.vector_index import to_array
from manifind.ranking import Ranking
from manifind.search.live_index import AddedItems, place
from manifind.text import count

_ATTEMPTS = 5  # to bring in a change while others refit, before it is said that this cannot go on


class Collection:
    """A collection on disk, as it was when it was opened, changed here, or last refreshed.

    Every answer belongs to one version: a commit by somebody else shows after `refresh`.

    ids: the user's ids of the items that are there. settings: of the model. info: what was fitted.
    features: (n, D) of the same items.
    """

    def __init__(self, version: Version, after_commit: Callable[[Collection], Any] | None = None) -> None:
        self._version, self._after_commit = version, after_commit
        self._moving = RLock()  # held by whoever replaces the version, so that none goes back to an older one

    @property
    def version(self) -> Version:
        """What all answers are given from at this moment."""
        return self._version

    @property
    def path(self) -> Path:
        return self._version.directory

    @property
    def manifest(self) -> dict[str, Any]:
        return self._version.manifest

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.manifest["settings"])

    @property
    def info(self) -> dict[str, Any]:
        return dict(self.manifest["info"])

    @property
    def changed(self) -> float:
        """Items that have come or gone since the fit, for each that was fitted."""
        counts = self.manifest["changes"]
        return float((counts["added"] + counts["removed"]) / self.manifest["shape"]["items"])

    @property
    def loss_curve(self) -> Floats:
        return self._version.loss_curve

    @property
    def is_of_pictures(self) -> bool:
        """Whether it was made from a folder of pictures."""
        return isinstance((self.manifest.get("source") or {}).get("folder"), str)

    @property
    def ids(self) -> NDArray[Any]:
        return self._version.holdings.ids

    @property
    def segment_bytes(self) -> dict[str, int]:
        return self._version.snapshot.sizes

    @property
    def features(self) -> Floats:
        version = self._version
        if version.holdings.present.all() and not len(version.holdings.later):
            return to_array(version.learned.features)
        return version.shelf.features(version.shelf.rows)

    def __len__(self) -> int:
        return len(self._version)

    def __contains__(self, id_: Any) -> bool:
        return self._version.holdings.row_of(id_) is not None

    def __repr__(self) -> str:
        shape = self.manifest["shape"]
        sizes = f"{shape['dimension']} -> {count(shape['feature_dimension'], 'dimension')}"
        return f"<Collection {self.path}: {count(len(self), 'item')}, {sizes}>"

    def search(self, Q: Any, k: int = 10, where: str | None = None) -> Ranking:
        """The k best items for each row of Q, (m, d) descriptors; `ids` of the answer are the user's.

        where: a condition on metadata, such as "year >= 1990 and place = 'Rome'"; fewer than k satisfy it, fewer
        are answered.
        """
        version = self._version
        prepared = version.learned.prepared(Q)
        return version.rank(version.learned.features_of(prepared), prepared, k, where)

    def search_ids(self, ids: Sequence[Any], k: int = 10, where: str | None = None) -> Ranking:
        """The k best items for items of the collection, each of which finds itself too."""
        version = self._version
        rows = np.array([self._row(version, value) for value in ids], dtype=np.int64)
        descriptors = version.shelf.descriptors(rows) if version.snapshot.is_full else np.empty((len(rows), 0))
        return version.rank(version.shelf.features(rows), descriptors.astype(np.float32), k, where)

    def transform(self, Q: Any) -> Floats:
        """Features, (m, D), of any descriptors."""
        version = self._version
        with np.errstate(over="ignore", invalid="ignore"):  # damage is named below
            features = version.learned.transform(Q)
        version.check_finite(features, "features")
        return features

    def metadata(self, ids: Sequence[Any]) -> list[dict[str, Any]]:
        """What is said of some items."""
        version = self._version
        return [dict(version.holdings.fields(self._row(version, value))) for value in ids]

    def index_quality(self) -> dict[str, dict[str, Any]]:
        """How well descriptors and features are searched: codes, recall on a sample, bytes per item."""
        return {name: told(found) for name, found in self._version.learned.index_quality().items()}

    def add(
        self, X: Any, ids: Sequence[Any] | None = None, metadata: Sequence[Mapping[str, Any] | None] | None = None
    ) -> list[Any]:
        """Add items, (a, d) descriptors, which can be found at once; nobody else's features change.

        ids: new ones; the next free numbers where they are not given. Returns the ids.
        """
        return self.change(X, ids, metadata)

    def remove(self, ids: Sequence[Any]) -> None:
        """Remove items: none of them is found any more."""
        self.change(removed=ids)

    def update(
        self, ids: Sequence[Any], X: Any = None, metadata: Sequence[Mapping[str, Any] | None] | None = None
    ) -> None:
        """Give items other descriptors, other metadata, or both; what is not given stays.

        metadata: for each item the fields to set; a field whose value is None is taken away, others stay.
        """
        if X is None and metadata is None:
            raise InputError(
                f"neither descriptors nor metadata are given for {count(len(ids), 'item')}",
                "give X, metadata, or both; to take items away, call remove",
            )
        if X is None:
            fields = checked_fields(metadata, len(ids))
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
        """Remove some items, add others and describe some, in one commit. Returns the ids of those that were added.

        metadata: fields to set; an item that is removed and added under the same id keeps its other fields.
        described: fields to set, by id. In both, None takes a field away. own_fields: for `index` alone, which may set
        the fields by which it knows the files of pictures again.
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

        def placed(version: Version) -> Change:
            return Change(gone, _placed(version, X), names, given, new, protected)

        return self._commit(placed)

    def export(self, target: str | Path, to: str, codes: str = "sq8", *, overwrite: bool = False) -> list[Path]:
        """Write the features for other programs: to "npy", "parquet", "faiss", or "compressed" for one to serve.

        overwrite: whether a collection at `target` may be replaced by the compressed one.
        """
        return export(self._version, target, to, codes, overwrite)

    def refresh(self) -> bool:
        """Go on to the newest version; whether there was a newer one."""
        with self._moving:
            before, self._version = self._version, self._newest()
            return self._version is not before

    def follow(self) -> None:
        """Go on to the newest version of the same collection; an error where another one has taken its place."""
        with self._moving:
            newest = self._newest()
            name = self.manifest.get("collection")  # none in version 1
            if name is not None and newest.manifest.get("collection") != name:
                raise replaced(self.path)
            self._version = newest

    def _newest(self) -> Version:
        """What is on the disk now, which may be another collection."""
        is_newest = _same(self._version.commit, read_commit(self.path))
        return self._version if is_newest else _open(self.path, False, self._version)

    def _commit(self, make: Callable[[Version], Change]) -> list[Any]:
        """Commit a change, made for the version that is there when it is committed."""
        self._refuse_if_compressed()
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
            if self._version is version and done.before == version.commit and len(version):
                self._version = version.after(change, done)
            else:
                self.refresh()
        if self._after_commit is not None:
            self._after_commit(self)
        return done.ids

    def _refuse_if_compressed(self) -> None:
        if not self._version.snapshot.is_full:
            raise CollectionError(
                f"{self.path} is compressed: it only answers",
                "change the collection that it was exported from, and export that again",
            )

    def _row(self, version: Version, value: Any) -> int:
        row = version.holdings.row_of(value)
        if row is None:
            raise unknown_item(version, value.item() if isinstance(value, np.generic) else value)
        return row

    def _known(self, ids: Sequence[Any]) -> list[Any]:
        """Ids as plain values, once each, all of them those of items."""
        names = list(check_ids(ids, len(ids))) if len(ids) else []
        if any(self._version.holdings.row_of(name) is None for name in names):
            self.follow()  # it may have come since
        for name in names:
            self._row(self._version, name)
        return names

    def _new(self, ids: Sequence[Any] | None, n: int) -> list[Any] | None:
        """Ids as plain values, of the kind that the others are; None for numbers that are still to be given."""
        has_texts = self._version.holdings.has_texts
        if ids is None:
            if has_texts:
                raise InputError("ids are not given, and those of this collection are texts", "give one for each item")
            return None
        names = list(check_ids(ids, n))
        if names and len(self) and isinstance(names[0], str) != has_texts:
            raise InputError(
                f"the id {names[0]!r} is no {'text' if has_texts else 'whole number'}, as the ids of {self.path} are"
            )
        return names


def load(
    path: str | Path, verify: bool = False, *, after_commit: Callable[[Collection], Any] | None = None
) -> Collection:
    """Open the collection at `path`. verify: read every byte and compare digests, not only sizes.

    after_commit: called with the collection after each change that is made through it, such as
    `manifind.refit_when(0.2)`.
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


def _placed(version: Version, X: Any) -> AddedItems:
    with np.errstate(over="ignore", invalid="ignore"):  # damage is named below
        placed = place(version.learned, X, version.manifest["shape"]["neighbors"])
    # Committed, it would be refused by whoever opens the collection next.
    version.check_finite(placed.distances, "descriptors")
    version.check_finite(placed.features, "features")
    return placed


def _same(commit: Any, row: Any) -> bool:
    return row is not None and row[0] == f'"{commit}"'
