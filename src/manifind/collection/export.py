"""Exports learned features for other programs, and a compressed collection that only answers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from manifind.arrays import Floats
from manifind.collection.database import is_collection
from manifind.collection.version import Version, verify_digests
from manifind.collection.writer import Contents, Tables, write_new
from manifind.errors import CollectionError, InputError, needing
from manifind.files import atomic_write
from manifind.index.exact import Metric
from manifind.index.ivf import InvertedFile
from manifind.index.vector_index import to_array, write_faiss
from manifind.search.feature_model import USUAL_K


def _write_compressed(version: Version, target: Path, codes: str, overwrite: bool) -> None:
    """Write what answering needs of a collection, in codes. codes: "sq8" or "pq"."""
    old = version.manifest
    if not old.is_full or not version.learned.inside.all():
        why = "it was fitted with truncation" if old.is_full else "it is compressed already"
        raise CollectionError(f"{version.directory} cannot be compressed: {why}", "export another one")
    if target.resolve() == version.directory.resolve():
        raise CollectionError(f"{target} is the collection itself", "give the path of a new directory")
    learned, added = version.learned, version.added
    if len(added):  # as if they had been fitted, too; nodes stay as they were
        descriptors = np.concatenate([learned.descriptors, added.descriptors])
        features = np.concatenate([learned.features, added.features])
        everyone = np.ones(len(features), dtype=np.bool_)
        learned = replace(learned, descriptors=descriptors, features=features, inside=everyone)
    indexes = {
        "descriptors": _coded(learned.descriptors[learned.nodes], "euclidean", codes, learned.queries.n_neighbors),
        "features": _coded(to_array(learned.features), "cosine", codes, USUAL_K),
    }
    neighbors, curve = old.sizes.neighbors, version.loss_curve
    contents = Contents(learned, None, None, {}, curve, neighbors, old.settings, old.info, indexes, old.source)
    items = list(zip(version.index.rows.tolist(), version.items.ids.tolist(), version.items.metadata, strict=True))
    write_new(target, contents, Tables(items), overwrite)


def _coded(rows: Floats, metric: Metric, codes: str, k: int) -> InvertedFile:
    index = InvertedFile(np.ascontiguousarray(rows), metric, codes, k)
    index.quality = index.measured_by_codes(rows, k)
    return index


KINDS = ("npy", "parquet", "faiss", "compressed")


def export(version: Version, target: str | Path, to: str, codes: str = "sq8", overwrite: bool = False) -> list[Path]:
    """Write the features of a collection, or a compressed one, as `Collection.export` has it; the files written."""
    if to not in KINDS:
        raise InputError(f"to = {to!r}; expected one of {', '.join(map(repr, KINDS))}", "give one of these")
    file = Path(target)
    _refuse_inside_collection(file)
    verify_digests(version.snapshot)  # else damage would be exported, and recorded there as whole
    if to == "compressed":
        _write_compressed(version, file, codes, overwrite)
        return [file]
    if file.is_dir():
        raise InputError(f"{file} is a folder; expected a file to write", f"give a name such as {file}/features.{to}")
    features, ids, has_texts = version.index.features(version.index.rows), version.items.ids, version.items.has_texts
    if to == "parquet":
        _write_parquet(version, file, features)
        return [file]
    with _written_whole(file) as partial:
        if to == "faiss":
            write_faiss(partial, features, np.arange(len(features)) if has_texts else ids)
        else:
            with open(partial, "wb") as handle:
                np.lib.format.write_array(handle, features, allow_pickle=False)
    if to == "faiss" and not has_texts:
        return [file]
    beside = file.with_name(f"{file.name}.ids.json")
    with _written_whole(beside) as partial:
        partial.write_bytes(json.dumps(ids.tolist(), ensure_ascii=False).encode())
    return [file, beside]


def _refuse_inside_collection(target: Path) -> None:
    """Refuse a target inside the directory of a collection, whose database or segments it would replace."""
    for folder in (target.absolute().parent.resolve() / target.name).parents:
        with suppress(OSError):
            if is_collection(folder):
                problem = f"{target} is inside the collection {folder}, whose files nothing else may write"
                raise InputError(problem, "choose a path outside of it")


def _write_parquet(version: Version, file: Path, features: Floats) -> None:
    with needing("parquet", f"{file} needs pyarrow, which is not installed"):
        import pyarrow
        import pyarrow.parquet
    vectors = pyarrow.FixedSizeListArray.from_arrays(features.ravel(), features.shape[1])
    metadata = pyarrow.array(version.items.metadata, pyarrow.string())
    table = pyarrow.table({"id": version.items.ids.tolist(), "vector": vectors, "metadata": metadata})
    with _written_whole(file) as partial:
        pyarrow.parquet.write_table(table, partial)


@contextmanager
def _written_whole(file: Path) -> Iterator[Path]:
    """A name to write the file at, whole or not at all; an error that says why not."""
    try:
        with atomic_write(file) as partial:
            yield partial
    except (OSError, RuntimeError) as error:  # faiss raises the latter where a file cannot be opened
        raise InputError(f"{file} cannot be written: {getattr(error, 'strerror', None) or error}") from error
