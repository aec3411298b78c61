"""A collection that only answers: codes of descriptors and of features, and neither of the two themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gradnet.arrays import Floats
from gradnet.collection.contents import answering_arrays, index_parts, manifest_of
from gradnet.collection.version import Version
from gradnet.collection.writer import Fitted, Tables, write_new
from gradnet.errors import CollectionError
from gradnet.graph.inverted_file import InvertedFile
from gradnet.search.learned import USUAL_K, Learned


def write_compressed(version: Version, target: str | Path, codes: str, overwrite: bool) -> None:
    """Write what answering needs of a collection, in codes. codes: "sq8" or "pq"."""
    if not version.snapshot.is_full or not version.learned.inside.all():
        why = "it was fitted with truncation" if version.snapshot.is_full else "it is compressed already"
        raise CollectionError(f"{version.directory} cannot be compressed: {why}", "export another one")
    if Path(target).resolve() == version.directory.resolve():
        raise CollectionError(f"{target} is the collection itself", "give the path of a new directory")
    learned = _with_everyone(version)
    k = learned.queries.n_neighbors
    indexes: dict[str, InvertedFile | None] = {
        "descriptors": _coded(learned.descriptors[learned.nodes], "euclidean", codes, k),
        "features": _coded(learned.features, "cosine", codes, USUAL_K),
    }
    shape = version.manifest["shape"]
    manifest = manifest_of(
        "compressed",
        learned,
        shape["neighbors"],
        indexes,
        version.manifest["settings"],
        version.manifest["info"],
    ) | {"source": version.manifest.get("source", {})}

    def parts() -> Iterator[tuple[str, Any]]:
        yield "graph", answering_arrays(learned, version.loss_curve)
        yield from index_parts(indexes)

    items = list(
        zip(
            version.shelf.rows.tolist(), version.holdings.ids.tolist(), version.holdings.metadata, strict=True
        )
    )
    write_new(target, Fitted(parts, manifest), Tables(items), overwrite)


def _coded(rows: Floats, metric: Any, codes: str, k: int) -> InvertedFile:
    index = InvertedFile(np.ascontiguousarray(rows), metric, codes, k)
    index.quality = index.measured_by_codes(rows, k)
    return index


def _with_everyone(version: Version) -> Learned:
    """What was fitted and those that came later as if they had been fitted, too; nodes stay as they were."""
    learned, added = version.learned, version.added
    if not len(added):
        return learned
    return Learned(
        learned.preprocessor,
        learned.queries,
        np.concatenate([learned.descriptors, added.descriptors]),
        np.concatenate([learned.features, added.features]),
        learned.nodes,
        np.ones(version.n_fitted + len(added), dtype=np.bool_),
    )
