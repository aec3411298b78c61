"""An opened collection: one version of it at a time, and every answer from that version, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats
from manifind.collection.export import export
from manifind.collection.history import verify_notes
from manifind.collection.ids import as_list
from manifind.collection.searchable import QueryPart, QueryRows, SearchableCollection, prepare_words
from manifind.collection.version import Version, open_version, read_commit, read_snapshot, verify_digests
from manifind.collection.writer import replaced
from manifind.errors import CollectionError, InputError
from manifind.index.ivf import quality_summary
from manifind.index.vector_index import to_array
from manifind.ranking import Ranking
from manifind.search.cutoff import Cutoff
from manifind.text import count

if TYPE_CHECKING:
    from manifind.images.extractors import Extractor

_SPACES = ("features", "descriptors")


class OpenedCollection(SearchableCollection):
    """A collection on disk that is read, and not changed; `manifind.load` gives one that can be changed, too."""

    def __init__(self, version: Version) -> None:
        self._version = version
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
        return f"<{type(self).__name__} {self.path}: {count(len(self), 'item')}, {widths}>"

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

    def _at_one_version(self) -> Self:
        return type(self)(self._version)

    def _of_descriptors(self, Q: Any, by: str, *, are_words: bool = False) -> QueryRows:
        learned = self._version.learned
        d = learned.descriptors.shape[1]
        descriptors = prepare_words(learned.preprocessor, Q, d) if are_words else learned.prepared(Q)
        if by != "features":
            return QueryRows(_none(len(descriptors)), descriptors)
        features, nearest = learned.features_of(descriptors, apart=are_words)
        # Words lie apart from all pictures: how far says nothing of them.
        known = None if are_words or learned.cutoff is None else learned.cutoff.familiarity(nearest)
        return QueryRows(features, descriptors, known)

    def _cutoff(self) -> Cutoff | None:
        return self._version.learned.cutoff

    def _of_ids(self, ids: list[Any], by: str) -> QueryRows:
        version = self._version
        rows = np.array([version.items.known_row(id_) for id_ in ids], dtype=np.int64)
        has_descriptors = version.manifest.is_full or by != "features"
        descriptors = version.index.descriptors(rows) if has_descriptors else _none(len(rows))
        return QueryRows(version.index.features(rows), descriptors)

    def _ranked(
        self, rows: QueryRows, k: int, where: str | None, by: str, among: Sequence[Any] | None = None
    ) -> Ranking:
        """The way to every answer: filter, search, check, ids. among: the items that are ranked; None for all."""
        version = self._version
        if by not in _SPACES:
            raise InputError(f"by = {by!r}; expected one of {', '.join(map(repr, _SPACES))}")
        allowed = None if where is None else version.items.satisfying(where)
        if among is not None:
            allowed = version.items.mask_of(among)
        if by == "descriptors":
            found = version.index.rank_by_descriptors(rows.descriptors, k, allowed)
        else:
            found = version.index.rank(rows.features, rows.descriptors, k, allowed)
        version.check_finite(found.scores, by)
        return Ranking(version.items.ids_of(found.ids), found.scores)

    def rank_among(self, parts: Sequence[QueryPart], ids: Sequence[Any], *, by: str = "features") -> list[Any]:
        """Rank some items for a query.

        Parameters
        ----------
        parts : sequence of QueryPart
            What to search for, as in `search_combined`.
        ids : sequence of str or int
            The items to rank.
        by : {"features", "descriptors"}, default="features"
            What is compared.

        Returns
        -------
        list of str or int
            The ids, best first.
        """
        described, here = self.describe_parts(parts), self._at_one_version()
        found = here._ranked(here._combined(parts, described, by), len(ids), None, by, ids)
        return list(found.ids[0].tolist())

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
        return self._version if is_newest else open_newest(self.path, False, self._version)


def open_newest(path: str | Path, verify: bool, before: Version | None = None) -> Version:
    while True:
        commit = read_commit(path)
        try:
            snapshot = read_snapshot(path)
            if verify:
                verify_digests(snapshot)
                verify_notes(Path(path))
            return open_version(snapshot, before)
        except CollectionError:
            if read_commit(path) == commit:
                raise  # else its segments went because it was replaced in between


def _none(m: int) -> Floats:
    return np.empty((m, 0), dtype=np.float32)
