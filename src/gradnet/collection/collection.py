"""An opened collection: search with the user's own ids, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradnet.arrays import Floats
from gradnet.collection.reader import (
    Snapshot,
    read_array,
    read_arrays,
    read_commit,
    read_snapshot,
    verify_digests,
)
from gradnet.config import CONSTRAINTS, POSITIVE, SOME_NEIGHBOURS, or_none
from gradnet.descriptors.preprocess import Preprocessor
from gradnet.errors import CollectionError, InputError
from gradnet.graph.inverted_file import told
from gradnet.ranking import Ranking
from gradnet.search.learned import Learned
from gradnet.search.qfe import QuerySettings


class Collection:
    """One version of a collection, as it was when it was opened.

    ids: (n,) the user's ids. settings: of the model. info: what was fitted. features: (n, D).
    """

    def __init__(self, snapshot: Snapshot, learned: Learned, loss_curve: Floats) -> None:
        self.path = snapshot.directory
        self.manifest = snapshot.manifest
        self.settings: dict[str, Any] = snapshot.manifest["settings"]
        self.info: dict[str, Any] = snapshot.manifest["info"]
        self.loss_curve = loss_curve
        self.ids: NDArray[Any] = _as_array(snapshot.ids)
        self.segment_bytes = snapshot.sizes
        self._learned = learned

    @property
    def features(self) -> Floats:
        return self._learned.features

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        n, d = self._learned.descriptors.shape
        return f"<Collection {self.path}: {n} items, {d} -> {self.features.shape[1]} dimensions>"

    def search(self, Q: Any, k: int = 10) -> Ranking:
        """The k best items for each row of Q, (m, d) descriptors; `ids` of the answer are the user's."""
        return self._named(self._learned.search(Q, k))

    def index_quality(self) -> dict[str, dict[str, Any]]:
        """How well descriptors and features are searched: codes, recall on a sample, bytes per item."""
        return {name: told(found) for name, found in self._learned.index_quality().items()}

    def search_ids(self, ids: Sequence[Any], k: int = 10) -> Ranking:
        """The k best items for items of the collection, each of which finds itself too."""
        positions = [self._position(value) for value in ids]
        return self._named(
            self._learned.rank(self.features[positions], self._learned.descriptors[positions], k)
        )

    def transform(self, Q: Any) -> Floats:
        """Features, (m, D), of any descriptors."""
        return self._learned.transform(Q)

    def _position(self, value: Any) -> int:
        wanted = value.item() if isinstance(value, np.generic) else value
        same_kind = type(wanted) is (str if self.ids.dtype == object else int)
        found = np.flatnonzero(self.ids == wanted if same_kind else [])
        if len(found) == 0:
            raise InputError(
                f"there is no item with the id {wanted!r} in {self.path}",
                f"give one of its ids, such as {self.ids[:1].tolist()[0]!r}",
            )
        return int(found[0])

    def _named(self, ranking: Ranking) -> Ranking:
        return Ranking(self.ids[ranking.ids], ranking.scores)


def load(path: str | Path, verify: bool = False) -> Collection:
    """Open the collection at `path`. verify: read every byte and compare digests, not only sizes."""
    commit = read_commit(path)
    try:
        snapshot = read_snapshot(path)
        if verify:
            verify_digests(snapshot)
        learned, loss_curve = _open_learned(snapshot)
        return Collection(snapshot, learned, loss_curve)
    except CollectionError:
        if read_commit(path) == commit:
            raise
    return load(path, verify)  # its segments went because it was replaced in between


def _open_learned(snapshot: Snapshot) -> tuple[Learned, Floats]:
    shape, manifest = snapshot.manifest["shape"], snapshot.manifest
    n, d, D = shape["items"], shape["dimension"], shape["feature_dimension"]
    graph = read_arrays(snapshot, "graph")
    try:
        kind, scale = manifest["preprocess"]["kind"], manifest["preprocess"]["scale"]
        preprocessor = Preprocessor(kind, graph.get("mean"), scale)
        learned = Learned(
            preprocessor,
            QuerySettings(**manifest["queries"]),
            read_array(snapshot, "descriptors", (n, d)),
            read_array(snapshot, "features", (n, D)),
            graph["nodes"],
            graph["inside"],
        )
        _check_settings(learned)
        _check_graph(learned, graph["loss_curve"], n, d)
        return learned, graph["loss_curve"]
    except (KeyError, TypeError, ValueError) as error:
        raise CollectionError(
            f"{snapshot.directory} is damaged: {error!r}", "index the source again"
        ) from error


def _check_settings(learned: Learned) -> None:
    queries, preprocessor = learned.queries, learned.preprocessor
    for value, constraint in (
        (preprocessor.kind, CONSTRAINTS["preprocess"]),
        (preprocessor.scale, or_none(POSITIVE)),
        (queries.n_neighbors, SOME_NEIGHBOURS["n_neighbors"]),
        (queries.similarity, CONSTRAINTS["similarity"]),
        (queries.passes, CONSTRAINTS["query_passes"]),
    ):
        if not constraint.holds(value):
            raise ValueError(f"{value!r} where {constraint.words} was expected")


def _check_graph(learned: Learned, loss_curve: Any, n: int, d: int) -> None:
    nodes, inside, mean = learned.nodes, learned.inside, learned.preprocessor.mean
    if nodes.dtype != np.int64 or nodes.ndim != 1 or not len(nodes) or nodes.min() < 0 or nodes.max() >= n:
        raise ValueError("the graph names nodes that are no items")
    if (np.diff(nodes) <= 0).any():
        raise ValueError("the nodes of the graph are out of order")
    if inside.dtype != np.bool_ or inside.shape != (n,):
        raise ValueError("the graph's truncation does not fit the items")
    if (mean is None) == (learned.preprocessor.kind == "center"):
        raise ValueError("the mean does not fit the preprocessing")
    if mean is not None and (mean.dtype != np.float32 or mean.shape != (d,)):
        raise ValueError("the mean does not fit the descriptors")
    if loss_curve.dtype != np.float32 or loss_curve.ndim != 2 or loss_curve.shape[1] != 3:
        raise ValueError("the loss curve is no table of three columns")


def _as_array(ids: list[Any]) -> NDArray[Any]:
    if ids and isinstance(ids[0], int):
        return np.array(ids, dtype=np.int64)
    array = np.empty(
        len(ids), dtype=object
    )  # fixed-width text would take as much for each id as for the longest
    array[:] = ids
    return array
