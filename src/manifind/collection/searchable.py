"""What can be asked of a collection: descriptors, items, pictures, words, and several of these in one query."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from manifind.arrays import Floats, check_descriptors
from manifind.collection.ids import as_list
from manifind.errors import InputError
from manifind.graph.preprocess import Preprocessor, unit_rows
from manifind.ranking import Ranking
from manifind.search.cutoff import Cutoff

if TYPE_CHECKING:
    from manifind.images.decode import Crop
    from manifind.images.extractors import Extractor

_LEAST_LENGTH = 1e-4  # of a combined query, for each unit of weight: below, rounding would decide where it points


class QueryRows(NamedTuple):
    """Queries as they are compared.

    features: (m, D) learned, unit rows. descriptors: (m, d), preprocessed. Those that are not needed are 0 wide.
    familiarity: (m,) 0 for a stranger to all items, 1 for a query among them; None where nothing speaks against it.
    """

    features: Floats
    descriptors: Floats
    familiarity: Floats | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryPart:
    """One part of a combined query: an item, a picture, words or a descriptor, and how much it counts.

    Parameters
    ----------
    id : str or int, default=None
        An item of the collection.
    picture : str or Path, default=None
        A picture file, described as the collection's own were.
    text : str or array-like of shape (d,), default=None
        Words, or their descriptor by the same model.
    vector : array-like of shape (d,), default=None
        A descriptor, by the model that described the collection.
    crop : tuple of four floats, default=None
        The part of the picture, or of the item's picture, that is meant: left, top, width and height, in pixels, or as
        shares of the picture where none is larger than 1.
    weight : float, default=1.0
        Above 0 for more like this, below 0 for less like this.
    """

    id: Any = None
    picture: str | Path | None = None
    text: Any = None
    vector: Any = None
    crop: Crop | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        given = [name for name in ("id", "picture", "text", "vector") if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "nothing"
            problem = f"a part of a query has {found}; expected an id, a picture, a text or a vector"
            raise InputError(problem, "give one of them; several make several parts")
        weight: Any = self.weight
        if type(weight) is bool or not isinstance(weight, Real) or not weight or not math.isfinite(weight):
            raise InputError(
                f"weight = {self.weight!r}; expected a number other than 0", "below 0 stands for less like this"
            )
        if self.crop is not None and given[0] not in ("id", "picture"):
            raise InputError(f"a {given[0]} has no part to crop", "give crop with a picture or an id")


def combine(rows: Floats, weights: Sequence[float]) -> Floats:
    """h = sum over the parts of w_j h_j, scaled to length 1, (1, D). rows: h, (p, D), unit rows.

    A cosine with h is, but for one factor, the weighted sum of the cosines with the parts.
    """
    if len(rows) == 1:
        return rows
    total = _weighted_sum(rows, weights)
    if np.linalg.norm(total) <= _LEAST_LENGTH * sum(map(abs, weights)):
        raise InputError("the parts of this query cancel each other", "leave one out, or give them other weights")
    return unit_rows(total)


def _weighted_sum(rows: Floats, weights: Sequence[float]) -> Floats:
    """(1, D), the parts added in an order of their own, so that no answer depends on the order they are given in."""
    order = sorted(range(len(rows)), key=lambda part: (weights[part], rows[part].tobytes()))
    total = np.zeros((1, rows.shape[1]))
    for part in order:
        total += weights[part] * rows[part].astype(np.float64)
    return total.astype(np.float32)


def prepare_words(preprocessor: Preprocessor, T: Any, d: int) -> Floats:
    """Descriptors of words, (m, d), preprocessed for a model that has pictures and words in one space: q = W^-1 t.

    Words lie apart from pictures, all of them by about the same offset, so the mean of the pictures says nothing of
    them. The product of q with a preprocessed picture W (x - mean) is t . (x - mean): pictures are found in the order
    that the model itself compares words with them in, whatever the preprocessing.
    """
    rows = check_descriptors(T, "texts", d)
    if preprocessor.kind == "none":
        return rows
    if preprocessor.whitening is not None:
        solved = np.linalg.solve(preprocessor.whitening.astype(np.float64), rows.T.astype(np.float64))
        rows = np.ascontiguousarray(solved.T, dtype=np.float32)
    return unit_rows(rows)


class SearchableCollection(ABC):
    """What a collection answers, from its own files or from a database that it was published to."""

    def search(
        self, Q: Any, k: int = 10, where: str | None = None, *, by: str = "features", cut: bool = False
    ) -> Ranking:
        """Find the items most similar to some descriptors.

        Parameters
        ----------
        Q : array-like of shape (m, d)
            Query descriptors, by the model that described the collection.
        k : int, default=10
            How many items to find for each query. A larger k than there are items finds all of them.
        where : str, default=None
            A filter on metadata, such as ``"year >= 1990 and place = 'Rome'"``. Where fewer than k items satisfy it,
            all of those are found.
        by : {"features", "descriptors"}, default="features"
            What is compared: the learned features, or the plain descriptors for comparison.
        cut : bool, default=False
            Whether to leave out what does not belong, as `RatedRanking.cut`: few results where there are few relatives.

        Returns
        -------
        Ranking
            ``ids`` and ``scores`` of shape (m, k), best first; the ids are the user's.

        Raises
        ------
        InputError
            Where the descriptors do not fit, k is no positive whole number, the filter cannot be read, or no item is
            left.
        CollectionError
            Where the collection is damaged.
        """
        here = self._at_one_version()
        return here._answer(here._of_descriptors(Q, by), k, where, by, cut)

    def search_ids(
        self, ids: Sequence[Any], k: int = 10, where: str | None = None, *, by: str = "features", cut: bool = False
    ) -> Ranking:
        """Find the items most similar to items of the collection, each of which finds itself too.

        Parameters
        ----------
        ids : sequence of str or int
            The items to search with.
        k : int, default=10
            How many items to find for each. A larger k than there are items finds all of them.
        where : str, default=None
            A filter on metadata, as in `search`.
        by : {"features", "descriptors"}, default="features"
            What is compared, as in `search`.
        cut : bool, default=False
            Whether to leave out what does not belong, as `RatedRanking.cut`: few results where there are few relatives.

        Returns
        -------
        Ranking
            ``ids`` and ``scores`` of shape (m, k), best first.
        """
        here = self._at_one_version()
        return here._answer(here._of_ids(as_list(ids), by), k, where, by, cut)

    def search_text(
        self,
        texts: Any,
        k: int = 10,
        where: str | None = None,
        *,
        by: str = "features",
        cut: bool = False,
        extractor: str | None = None,
    ) -> Ranking:
        """Find the items that words describe.

        The descriptor of the words joins the learned features through its neighbours, as that of an unseen picture
        does. No words are put around those that are given.

        Parameters
        ----------
        texts : str, sequence of str, or array-like of shape (m, d)
            What to look for, in words, where the collection was described by a model that understands them; or
            descriptors of words by the same model.
        k : int, default=10
            How many items to find for each text.
        where : str, default=None
            A filter on metadata, as in `search`.
        by : {"features", "descriptors"}, default="features"
            What is compared, as in `search`.
        cut : bool, default=False
            Whether to leave out what does not belong, as `RatedRanking.cut`: few results where there are few relatives.
        extractor : str, default=None
            The model, where it is a file or a folder that was never named on this machine.

        Returns
        -------
        Ranking
            ``ids`` and ``scores`` of shape (m, k), best first.
        """
        rows, here = self._text_rows(texts, extractor), self._at_one_version()
        return here._answer(here._of_descriptors(rows, by, are_words=True), k, where, by, cut)

    def search_pictures(
        self,
        files: str | Path | Sequence[str | Path],
        k: int = 10,
        where: str | None = None,
        *,
        by: str = "features",
        cut: bool = False,
        crop: Crop | None = None,
        extractor: str | None = None,
    ) -> Ranking:
        """Find the items most similar to picture files, which need not be in the collection.

        Parameters
        ----------
        files : str, Path, or sequence of these
            The pictures, each described as the collection's own were.
        k : int, default=10
            How many items to find for each picture.
        where : str, default=None
            A filter on metadata, as in `search`.
        by : {"features", "descriptors"}, default="features"
            What is compared, as in `search`.
        cut : bool, default=False
            Whether to leave out what does not belong, as `RatedRanking.cut`: few results where there are few relatives.
        crop : tuple of four floats, default=None
            The part of each picture that is meant, as in `QueryPart`.
        extractor : str, default=None
            The model, where it is a file or a folder that was never named on this machine.

        Returns
        -------
        Ranking
            ``ids`` and ``scores`` of shape (m, k), best first.
        """
        from manifind.images.describe import describe_query_images  # Pillow, and torch for networks

        pictures = [files] if isinstance(files, str | Path) else list(files)
        crops = [crop] * len(pictures)
        return self.search(describe_query_images(pictures, self.extractor(extractor), crops), k, where, by=by, cut=cut)

    def search_combined(
        self,
        parts: Sequence[QueryPart],
        k: int = 10,
        where: str | None = None,
        *,
        by: str = "features",
        cut: bool = False,
        extractor: str | None = None,
    ) -> Ranking:
        """Find the items most similar to several things together, and dissimilar to others.

        With unit features h of the parts and their weights w, the query is h = sum of w h, scaled to length 1. The
        order of the parts does not matter.

        Parameters
        ----------
        parts : sequence of QueryPart
            Items, pictures, words and descriptors, at least one of them with a positive weight.
        k : int, default=10
            How many items to find.
        where : str, default=None
            A filter on metadata, as in `search`.
        by : {"features", "descriptors"}, default="features"
            What is compared, and combined, as in `search`.
        cut : bool, default=False
            Whether to leave out what does not belong, as `RatedRanking.cut`: few results where there are few relatives.
        extractor : str, default=None
            The model, where it is a file or a folder that was never named on this machine.

        Returns
        -------
        Ranking
            ``ids`` and ``scores`` of shape (1, k), best first.

        Raises
        ------
        InputError
            Where no part has a positive weight, or the parts cancel each other; else as in `search`.
        """
        parts = list(parts)
        if not any(part.weight > 0 for part in parts):
            problem = "a combined query has no part that counts positively: it only says what not to find"
            raise InputError(problem, "give at least one part with a weight above 0")
        described, here = self.describe_parts(parts, extractor), self._at_one_version()
        return here._answer(here._combined(parts, described, by), k, where, by, cut)

    def transform(self, Q: Any) -> Floats:
        """Compute the learned features of any descriptors.

        Parameters
        ----------
        Q : array-like of shape (m, d)
            Descriptors, by the model that described the collection.

        Returns
        -------
        ndarray of shape (m, D)
            Features with rows of length 1; a row equal to a fitted item gets the features of that item.
        """
        return self._transform(Q)

    def extractor(self, given: str | None = None) -> Extractor:
        """Load the model that described the collection, from this machine alone.

        Parameters
        ----------
        given : str, default=None
            The model as you name it, which is needed once where it is a file or a folder of yours.

        Returns
        -------
        Extractor
            What describes pictures, and words where the model understands them.
        """
        return self._load_extractor(given)

    def _load_extractor(self, given: str | None) -> Extractor:
        raise InputError(
            "a published collection does not record what described it, so it cannot describe pictures or words",
            "describe the query as the collection was described, and search with the vector",
        )

    def _combined(self, parts: Sequence[QueryPart], described: Sequence[Any], by: str) -> QueryRows:
        """One query of several parts. described: the descriptor of each, (1, d); None for an item, which has one."""
        weights = [part.weight for part in parts]
        rows = [
            self._of_ids([part.id], by)
            if row is None
            else self._of_descriptors(row, by, are_words=part.text is not None)
            for part, row in zip(parts, described, strict=True)
        ]
        combined = rows[0].features
        if by == "features":
            combined = combine(np.concatenate([row.features for row in rows]), weights)
        return QueryRows(combined, _combined_descriptors(rows, weights, by), _combined_familiarity(rows, weights))

    def _text_rows(self, texts: Any, extractor: str | None) -> Any:
        """Descriptors of words, (m, d)."""
        listed = [texts] if isinstance(texts, str) else texts
        if hasattr(listed, "ndim") or not all(isinstance(one, str) for one in listed):
            return np.asarray(listed)
        return self.extractor(extractor).describe_texts(list(listed))

    def describe_parts(self, parts: Sequence[QueryPart], extractor: str | None = None) -> list[Any]:
        """Compute the descriptor of each part of a query.

        Parameters
        ----------
        parts : sequence of QueryPart
            Items, pictures, words and descriptors.
        extractor : str, default=None
            The model, where it is a file or a folder that was never named on this machine.

        Returns
        -------
        list of ndarray of shape (1, d), or None
            None for an item, which has a descriptor already.
        """
        rows: list[Any] = [None] * len(parts)
        pictures: dict[int, str | Path] = {}
        for at, part in enumerate(parts):
            if part.text is not None:
                rows[at] = self._text_rows(part.text if isinstance(part.text, str) else [part.text], extractor)
            elif part.vector is not None:
                rows[at] = np.asarray(part.vector)[None]
            elif part.picture is not None or part.crop is not None:
                pictures[at] = self._picture_of(part.id) if part.picture is None else part.picture
        if pictures:
            from manifind.images.describe import describe_query_images  # Pillow, and torch for networks

            crops = [parts[at].crop for at in pictures]
            found = describe_query_images([*pictures.values()], self.extractor(extractor), crops)
            for at, row in zip(pictures, found, strict=True):
                rows[at] = row[None]
        return rows

    def _picture_of(self, id_: Any) -> Path:
        """The file of an item, to be cropped."""
        raise InputError("a published collection has no pictures of its items", "give the picture itself")

    def _at_one_version(self) -> SearchableCollection:
        """This collection as it is now, so that all parts of an answer fit together."""
        return self

    def _answer(self, rows: QueryRows, k: int, where: str | None, by: str, cut: bool) -> Ranking:
        """The ranking with how sure its items are, where that is known, and without those that do not belong."""
        found, cutoff = self._ranked(rows, k, where, by), self._cutoff()
        if by != "features" or cutoff is None:
            if cut:
                problem = f"it is not known which results by {by} belong to a query"
                raise InputError(problem, "search by features; fit a collection of an earlier version again (--refit)")
            return found
        rated = cutoff.applied(found, rows.familiarity)
        return rated.cut() if cut else rated

    @abstractmethod
    def _cutoff(self) -> Cutoff | None:
        """How sure results are; None where that was not measured."""

    @abstractmethod
    def _of_descriptors(self, Q: Any, by: str, *, are_words: bool = False) -> QueryRows:
        """Queries by descriptors of pictures, or of words."""

    @abstractmethod
    def _of_ids(self, ids: list[Any], by: str) -> QueryRows:
        """Queries by items."""

    @abstractmethod
    def _ranked(self, rows: QueryRows, k: int, where: str | None, by: str) -> Ranking:
        """The items most similar to queries."""

    @abstractmethod
    def _transform(self, Q: Any) -> Floats: ...


def _combined_familiarity(rows: Sequence[QueryRows], weights: Sequence[float]) -> Floats | None:
    """That of the most familiar part that counts positively; None where nothing speaks against one of these."""
    wanted = [row.familiarity for row, weight in zip(rows, weights, strict=True) if weight > 0]
    known = [one for one in wanted if one is not None]
    return np.max(known, axis=0) if known and len(known) == len(wanted) else None


def _combined_descriptors(rows: Sequence[QueryRows], weights: Sequence[float], by: str) -> Floats:
    """As `combine`; by features, they only order what truncation left out, and may be missing or cancel each other."""
    each = [row.descriptors for row in rows]
    if len(each) == 1:
        return each[0]
    if by != "features":
        return combine(unit_rows(np.concatenate(each)), weights)
    if len({row.shape[1] for row in each}) > 1:  # of items of a compressed collection, which has none
        return each[0][:, :0]
    return unit_rows(_weighted_sum(unit_rows(np.concatenate(each)), weights))
