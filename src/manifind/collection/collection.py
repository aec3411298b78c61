"""A collection that can be changed: items are added, removed and described by the user's own ids, without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manifind.collection.history import UndoStep, read_steps
from manifind.collection.ids import as_list, check_ids
from manifind.collection.judgements import Judgements
from manifind.collection.metadata import OWN_FIELDS, checked_fields, with_labels
from manifind.collection.opened import OpenedCollection, open_newest
from manifind.collection.version import Version
from manifind.collection.writer import Change, RefittedMeanwhileError, commit_change, commit_undo
from manifind.errors import CollectionError, InputError
from manifind.search.live_index import AddedItems, place
from manifind.text import count

_ATTEMPTS = 5  # to commit a change while others refit, before giving up


class Collection(OpenedCollection):
    """A collection on disk, as it was when it was opened, changed here, or last refreshed.

    Every answer belongs to one version: a commit by another process shows after `refresh`. Open one with
    `manifind.load`; torch is not imported.
    """

    def __init__(self, version: Version, after_commit: Callable[[Collection], Any] | None = None) -> None:
        super().__init__(version)
        self._after_commit = after_commit

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
            self.change(described=dict(zip(self.known_ids(ids), fields, strict=True)))
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
        label: str | None = None,
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
        label : str, default=None
            What the change does, for who may want to undo it; None for how many items it removes, adds and describes.

        Returns
        -------
        list of str or int
            The ids of the items that were added.
        """
        gone, fields = self.known_ids(removed), dict(described or {})
        checked = checked_fields(list(fields.values()), len(fields))
        new = dict(zip(self.known_ids(list(fields)), checked, strict=True))
        protected = OWN_FIELDS if self.is_of_pictures and not own_fields else ()
        if X is None or len(X) == 0:
            nothing = not gone and not new
            return [] if nothing else self._commit(lambda _: Change(gone, None, None, None, new, protected, label))
        names = self._new(ids, len(X))
        given = None if metadata is None else checked_fields(metadata, len(X))
        return self._commit(lambda version: Change(gone, _placed(version, X), names, given, new, protected, label))

    def set_labels(
        self, ids: Sequence[Any], add: Sequence[str] = (), remove: Sequence[str] = (), *, field: str = "tags"
    ) -> None:
        """Add labels to items, and take others away: tags, albums, or another field that holds a list of texts.

        Parameters
        ----------
        ids : sequence of str or int
            The items.
        add, remove : sequence of str, default=()
            Labels; what an item has already, or does not have, stays as it is.
        field : str, default="tags"
            The field of the metadata.
        """
        names = self.known_ids(ids)
        change = with_labels(field, add, remove)
        done = [f"{verb} {', '.join(map(repr, some))}" for verb, some in (("added", add), ("removed", remove)) if some]
        label = f"{' and '.join(done)}: {field} of {count(len(names), 'item')}"
        if names:
            self._commit(lambda _: Change(new_metadata=dict.fromkeys(names, change), label=label))

    def history(self) -> list[UndoStep]:
        """Return the changes since the last fit that can be undone.

        Returns
        -------
        list of UndoStep
            The newest first. Very old and very large changes are not among them.
        """
        return read_steps(self.path)

    def undo(self, number: int | None = None) -> str:
        """Undo the last change: items, metadata and labels are what they were before it.

        Parameters
        ----------
        number : int, default=None
            The change that is meant; an error where another one has come since. None for the last one.

        Returns
        -------
        str
            What has been undone, in words.
        """
        label = commit_undo(self.path, self._version.manifest, number)
        self.refresh()
        if self._after_commit is not None:
            self._after_commit(self)
        return label

    @property
    def judgements(self) -> Judgements:
        """Which results of queries people called right or wrong, and how well these queries are answered."""
        return Judgements(self)

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

    def known_ids(self, ids: Sequence[Any]) -> list[Any]:
        """Return ids as plain values, once each; refused unless all are those of items, of the newest version.

        Parameters
        ----------
        ids : sequence of str or int
            The items.

        Returns
        -------
        list of str or int
            The ids.
        """
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
    return Collection(open_newest(path, verify), after_commit)


def _placed(version: Version, X: Any) -> AddedItems:
    with np.errstate(over="ignore", invalid="ignore"):  # damage is reported below
        placed = place(version.learned, X, version.manifest.sizes.neighbors)
    # Committed, it would be refused by whoever opens the collection next.
    version.check_finite(placed.distances, "descriptors")
    version.check_finite(placed.features, "features")
    return placed
