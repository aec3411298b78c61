"""From the segments of a collection to a model that answers, every value checked on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifind.arrays import Floats
from manifind.collection.format import DAMAGED
from manifind.collection.manifest import Sizes
from manifind.collection.reader import Snapshot, read_array, read_arrays, read_cached_arrays
from manifind.errors import CollectionError
from manifind.graph.preprocess import Preprocessor
from manifind.index.exact import Metric
from manifind.index.ivf import InvertedFile, Quality
from manifind.index.vector_index import DecodedRows
from manifind.search.feature_model import FeatureModel
from manifind.search.query_expansion import QuerySettings
from manifind.settings import CONSTRAINTS, POSITIVE, or_none, whole

INDEX_ROLES = {"descriptors": "descriptor_index", "features": "feature_index"}
_METRICS: dict[str, Metric] = {"descriptors": "euclidean", "features": "cosine"}


def load_model(snapshot: Snapshot) -> tuple[FeatureModel, Floats]:
    """What answers, and the loss curve of its training."""
    manifest, graph = snapshot.manifest, read_arrays(snapshot, "graph")
    try:
        kind, scale = manifest.preprocess["kind"], manifest.preprocess["scale"]
        preprocessor = Preprocessor(kind, graph.get("mean"), scale, graph.get("whitening"))
        queries = QuerySettings(**manifest.queries)
        make = _full if manifest.is_full else _compressed
        check_settings(preprocessor, queries)
        _check_graph(preprocessor, graph, manifest.sizes)
        return make(snapshot, preprocessor, queries, graph), graph["loss_curve"]
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # the last is faiss's
        raise CollectionError(f"{snapshot.directory} is damaged: {repr(error)[:200]}", DAMAGED) from error


def _full(
    snapshot: Snapshot, preprocessor: Preprocessor, queries: QuerySettings, graph: dict[str, Any]
) -> FeatureModel:
    n, d, D, _ = snapshot.manifest.sizes
    descriptors = read_array(snapshot, "descriptors", (n, d))
    features = read_array(snapshot, "features", (n, D))
    nodes = graph["nodes"]

    def ready(name: str) -> InvertedFile | None:
        """The index as it was written; None, so that it is made anew, if it is not what was written."""
        rows = features if name == "features" else descriptors
        try:
            return _index(snapshot, name, rows if name == "features" or len(nodes) == n else rows[nodes])
        except (CollectionError, KeyError, TypeError, ValueError, RuntimeError):
            return None

    return FeatureModel(preprocessor, queries, descriptors, features, nodes, graph["inside"], ready)


def _compressed(
    snapshot: Snapshot, preprocessor: Preprocessor, queries: QuerySettings, graph: dict[str, Any]
) -> FeatureModel:
    (n, d, D, _), nodes = snapshot.manifest.sizes, graph["nodes"]
    if not graph["inside"].all():
        raise ValueError("what is compressed knows no truncation")
    found = {
        "descriptors": _index(snapshot, "descriptors", None, len(nodes), d),
        "features": _index(snapshot, "features", None, n, D),
    }
    return FeatureModel(
        preprocessor,
        queries,
        DecodedRows(found["descriptors"], d),
        DecodedRows(found["features"], D),
        nodes,
        graph["inside"],
        found.__getitem__,
    )


def _index(
    snapshot: Snapshot, name: str, rows: Floats | None, n: int | None = None, d: int | None = None
) -> InvertedFile:
    """An index that was written before. rows: what it is over, or None with n and d of what it was over."""
    if name not in snapshot.manifest.indexes and rows is not None:
        raise KeyError(name)
    quality = Quality(**snapshot.manifest.indexes[name])
    packed = read_cached_arrays(snapshot, INDEX_ROLES[name])
    n, d = rows.shape if rows is not None else (n, d)
    return InvertedFile.from_packed(packed, quality, int(n or 0), int(d or 0), _METRICS[name], rows)


def check_settings(preprocessor: Preprocessor, queries: QuerySettings) -> None:
    """A ValueError where what was read is nothing that a model is fitted with."""
    for value, constraint in (
        (preprocessor.kind, CONSTRAINTS["preprocess"]),
        (preprocessor.scale, or_none(POSITIVE)),
        (queries.n_neighbors, whole(1)),
        (queries.similarity, CONSTRAINTS["similarity"]),
        (queries.passes, CONSTRAINTS["query_passes"]),
        (queries.index, CONSTRAINTS["index"]),
    ):
        if not constraint.holds(value):
            raise ValueError(f"{repr(value)[:60]} where {constraint.words} was expected")


def _check_graph(preprocessor: Preprocessor, graph: dict[str, Any], sizes: Sizes) -> None:
    n, d, mean, nodes, inside = sizes.items, sizes.dimension, preprocessor.mean, graph["nodes"], graph["inside"]
    if nodes.dtype != np.int64 or nodes.ndim != 1 or not len(nodes) or nodes.min() < 0 or nodes.max() >= n:
        raise ValueError("the graph names nodes that are no items")
    if (np.diff(nodes) <= 0).any():
        raise ValueError("the nodes of the graph are out of order")
    if sizes.neighbors > len(nodes):
        raise ValueError("an item is to have more neighbours than there are nodes")
    if inside.dtype != np.bool_ or inside.shape != (n,):
        raise ValueError("the graph's truncation does not fit the items")
    if (mean is None) == (preprocessor.kind in ("center", "whiten")):
        raise ValueError("the mean does not fit the preprocessing")
    if (preprocessor.whitening is None) == (preprocessor.kind == "whiten"):
        raise ValueError("the whitening does not fit the preprocessing")
    for name, array, wanted in (("mean", mean, (d,)), ("whitening", preprocessor.whitening, (d, d))):
        if array is not None and not _are_numbers(array, wanted):
            raise ValueError(f"the {name} does not fit the descriptors")
    loss_curve = graph["loss_curve"]
    if loss_curve.dtype != np.float32 or loss_curve.ndim != 2 or loss_curve.shape[1] != 3:
        raise ValueError("the loss curve is no table of three columns")
    if not np.isfinite(loss_curve).all():
        raise ValueError("the loss curve has values that are not finite numbers")


def _are_numbers(array: Any, shape: tuple[int, ...]) -> bool:
    return bool(array.dtype == np.float32 and array.shape == shape and np.isfinite(array).all())
