"""What a fit puts into a collection: segments by role, and what the manifest says of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gradnet.arrays import Floats
from gradnet.checkpoint import installed_versions
from gradnet.graph.inverted_file import InvertedFile
from gradnet.graph.manifold import Manifold
from gradnet.search.learned import Learned

INDEX_ROLES = {"descriptors": "descriptor_index", "features": "feature_index"}


@dataclass(frozen=True)
class Contents:
    """A fitted model, ready to be written.

    lengths: (n, 1) what each descriptor was divided by. weights: the network's arrays by name.
    loss_curve: (steps, 3). n_neighbors: of an item in the graph. settings, info: plain values.
    """

    learned: Learned
    lengths: Floats
    manifold: Manifold
    weights: dict[str, Floats]
    loss_curve: Floats
    n_neighbors: int
    settings: dict[str, Any]
    info: dict[str, Any]

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Role and content of every segment; a dictionary of arrays where the format is npz or safetensors."""
        learned, graph = self.learned, self.manifold
        yield "descriptors", learned.descriptors
        yield "lengths", self.lengths
        yield "features", learned.features
        affinity = {
            "affinity_data": graph.affinity.data,
            "affinity_indices": graph.affinity.indices,
            "affinity_indptr": graph.affinity.indptr,
            "anchors": graph.anchors,
        }
        yield "graph", affinity | answering_arrays(learned, self.loss_curve)
        yield "model", self.weights
        yield from index_parts(learned.indexes())

    def manifest(self) -> dict[str, Any]:
        """What the manifest says of a full collection with these contents."""
        return manifest_of(
            "full", self.learned, self.n_neighbors, self.learned.indexes(), self.settings, self.info
        )


def answering_arrays(learned: Learned, loss_curve: Floats) -> dict[str, Any]:
    """The small arrays that answering needs."""
    taken = {"mean": learned.preprocessor.mean, "whitening": learned.preprocessor.whitening}
    return {
        "nodes": learned.nodes,
        "inside": learned.inside,
        "loss_curve": loss_curve,
        **{name: array for name, array in taken.items() if array is not None},
    }


def index_parts(indexes: dict[str, InvertedFile | None]) -> Iterator[tuple[str, Any]]:
    """Role and arrays of the indexes that there are."""
    for name, index in indexes.items():
        if index is not None:
            yield INDEX_ROLES[name], index.packed()


def manifest_of(
    kind: str,
    learned: Learned,
    n_neighbors: int,
    indexes: dict[str, InvertedFile | None],
    settings: dict[str, Any],
    info: dict[str, Any],
) -> dict[str, Any]:
    """Everything a manifest says but for its rows. kind: "full", or "compressed" for one that only answers."""
    preprocessor, queries = learned.preprocessor, learned.queries
    return {
        "kind": kind,
        "fit": secrets.token_hex(8),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": installed_versions(),
        "shape": {
            "items": len(learned.features),
            "dimension": learned.descriptors.shape[1],
            "feature_dimension": learned.features.shape[1],
            "neighbors": min(n_neighbors, len(learned.nodes)),
        },
        "preprocess": {"kind": preprocessor.kind, "scale": preprocessor.scale},
        "queries": {
            "n_neighbors": queries.n_neighbors,
            "similarity": queries.similarity,
            "passes": queries.passes,
            "index": queries.index,
        },
        "indexes": {name: index.quality._asdict() for name, index in indexes.items() if index is not None},
        "settings": settings,
        "info": info,
    }
