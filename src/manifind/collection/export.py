"""Exports learned features for other programs, and a compressed collection that only answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from manifind.arrays import Floats
from manifind.collection.database import is_collection
from manifind.collection.manifest import new_entries
from manifind.collection.reader import verify_digests
from manifind.collection.version import Version
from manifind.collection.writer import Fitted, Tables, answering_arrays, index_parts, write_new
from manifind.errors import CollectionError, InputError, MissingExtraError
from manifind.files import atomic_write
from manifind.index.ivf import InvertedFile
from manifind.index.vector_index import to_array, write_faiss
from manifind.search.feature_model import USUAL_K, FeatureModel


def write_compressed(version: Version, target: str | Path, codes: str, overwrite: bool) -> None:
    """Write what answering needs of a collection, in codes. codes: "sq8" or "pq"."""
    if not version.manifest.is_full or not version.learned.inside.all():
        why = "it was fitted with truncation" if version.manifest.is_full else "it is compressed already"
        raise CollectionError(f"{version.directory} cannot be compressed: {why}", "export another one")
    if Path(target).resolve() == version.directory.resolve():
        raise CollectionError(f"{target} is the collection itself", "give the path of a new directory")
    learned = _with_everyone(version)
    k = learned.queries.n_neighbors
    indexes: dict[str, InvertedFile | None] = {
        "descriptors": _coded(learned.descriptors[learned.nodes], "euclidean", codes, k),
        "features": _coded(to_array(learned.features), "cosine", codes, USUAL_K),
    }
    old = version.manifest
    manifest = new_entries("compressed", learned, old.sizes.neighbors, indexes, old.settings, old.info)
    manifest["source"] = old.source

    def parts() -> Iterator[tuple[str, Any]]:
        yield "graph", answering_arrays(learned, version.loss_curve)
        yield from index_parts(indexes)

    items = list(zip(version.index.rows.tolist(), version.items.ids.tolist(), version.items.metadata, strict=True))
    write_new(target, Fitted(parts, manifest), Tables(items), overwrite)


def _coded(rows: Floats, metric: Any, codes: str, k: int) -> InvertedFile:
    index = InvertedFile(np.ascontiguousarray(rows), metric, codes, k)
    index.quality = index.measured_by_codes(rows, k)
    return index


def _with_everyone(version: Version) -> FeatureModel:
    """What was fitted and those that came later as if they had been fitted, too; nodes stay as they were."""
    learned, added = version.learned, version.added
    if not len(added):
        return learned
    return FeatureModel(
        learned.preprocessor,
        learned.queries,
        np.concatenate([learned.descriptors, added.descriptors]),
        np.concatenate([learned.features, added.features]),
        learned.nodes,
        np.ones(len(learned.features) + len(added), dtype=np.bool_),
    )


KINDS = ("npy", "parquet", "faiss", "compressed")


def export(version: Version, target: str | Path, to: str, codes: str = "sq8", overwrite: bool = False) -> list[Path]:
    """Write the features of a collection, and say into which files.

    to: "npy", an array and beside it the ids; "parquet", a table of id, vector and metadata; "faiss", an index, and
    beside it the ids where they are texts; "compressed", a collection that only answers, with `codes` "sq8" or "pq".
    overwrite: whether a collection at the target may be replaced.
    """
    if to not in KINDS:
        raise InputError(f"to = {to!r}; expected one of {', '.join(map(repr, KINDS))}", "give one of these")
    file = Path(target)
    _refuse_inside_collection(file)
    verify_digests(version.snapshot)  # else damage would be exported, and recorded there as whole
    if to == "compressed":
        write_compressed(version, file, codes, overwrite)
        return [file]
    if file.is_dir():
        raise InputError(f"{file} is a folder; expected a file to write", f"give a name such as {file}/features.{to}")
    return _EXPORTS[to](version, file)


def _refuse_inside_collection(target: Path) -> None:
    """Refuse a target inside the directory of a collection, whose database or segments it would replace."""
    for folder in (target.absolute().parent.resolve() / target.name).parents:
        with suppress(OSError):
            if is_collection(folder):
                raise InputError(
                    f"{target} is inside the collection {folder}, whose files nothing else may write",
                    "choose a path outside of it",
                )


def _export_npy(version: Version, file: Path) -> list[Path]:
    features = version.index.features(version.index.rows)

    def write(place: Path) -> None:
        with open(place, "wb") as handle:
            np.lib.format.write_array(handle, features, allow_pickle=False)

    _in_place(file, write)
    return [file, _export_ids(version, file)]


def _export_faiss(version: Version, file: Path) -> list[Path]:
    features = version.index.features(version.index.rows)
    has_texts = version.items.has_texts
    numbers = np.arange(len(features)) if has_texts else version.items.ids
    _in_place(file, lambda place: write_faiss(place, features, numbers))
    return [file, _export_ids(version, file)] if has_texts else [file]


def _export_parquet(version: Version, file: Path) -> list[Path]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(
            f"{file} needs pyarrow, which is not installed", 'pip install "manifind[parquet]"'
        ) from error
    features = version.index.features(version.index.rows)
    vectors = pyarrow.FixedSizeListArray.from_arrays(features.ravel(), features.shape[1])
    metadata = pyarrow.array(version.items.metadata, pyarrow.string())
    table = pyarrow.table({"id": version.items.ids.tolist(), "vector": vectors, "metadata": metadata})
    _in_place(file, lambda place: pyarrow.parquet.write_table(table, place))
    return [file]


def _export_ids(version: Version, file: Path) -> Path:
    beside = file.with_name(f"{file.name}.ids.json")
    text = json.dumps(version.items.ids.tolist(), ensure_ascii=False)
    _in_place(beside, lambda place: _write_text(place, text))
    return beside


def _write_text(place: Path, text: str) -> None:
    place.write_text(text, encoding="utf-8")


def _in_place(file: Path, write: Callable[[Path], None]) -> None:
    """Write the file whole, or say why not."""
    try:
        with atomic_write(file) as partial:
            write(partial)
    except (OSError, RuntimeError) as error:  # faiss raises the latter where a file cannot be opened
        raise InputError(f"{file} cannot be written: {getattr(error, 'strerror', None) or error}") from error


_EXPORTS = {"npy": _export_npy, "parquet": _export_parquet, "faiss": _export_faiss}
