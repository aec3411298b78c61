"""Learned features for other programs: arrays, tables, and faiss."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gradnet.collection.compressed import write_compressed
from gradnet.collection.reader import verify_digests
from gradnet.collection.version import Version
from gradnet.errors import InputError, MissingExtraError
from gradnet.graph.faiss_file import write_faiss
from gradnet.whole_files import in_place

KINDS = ("npy", "parquet", "faiss", "compressed")


def export(
    version: Version, target: str | Path, to: str, codes: str = "sq8", overwrite: bool = False
) -> list[Path]:
    """Write the features of a collection, and say into which files.

    to: "npy", an array and beside it the ids; "parquet", a table of id, vector and metadata; "faiss", an index, and
    beside it the ids where they are texts; "compressed", a collection that only answers, with `codes` "sq8" or "pq".
    overwrite: whether a collection at the target may be replaced.
    """
    if to not in KINDS:
        raise InputError(f"to = {to!r}; expected one of {', '.join(map(repr, KINDS))}", "give one of these")
    verify_digests(version.snapshot)  # else damage would be exported, and recorded there as whole
    file = Path(target)
    if to == "compressed":
        write_compressed(version, file, codes, overwrite)
        return [file]
    if file.is_dir():
        raise InputError(
            f"{file} is a folder; expected a file to write", f"give a name such as {file}/features.{to}"
        )
    return _EXPORTS[to](version, file)


def _export_npy(version: Version, file: Path) -> list[Path]:
    features = version.shelf.features(version.shelf.rows)

    def write(place: Path) -> None:
        with open(place, "wb") as handle:
            np.lib.format.write_array(handle, features, allow_pickle=False)

    _in_place(file, write)
    return [file, _export_ids(version, file)]


def _export_faiss(version: Version, file: Path) -> list[Path]:
    features = version.shelf.features(version.shelf.rows)
    has_texts = version.holdings.has_texts
    numbers = np.arange(len(features)) if has_texts else version.holdings.ids
    _in_place(file, lambda place: write_faiss(place, features, numbers))
    return [file, _export_ids(version, file)] if has_texts else [file]


def _export_parquet(version: Version, file: Path) -> list[Path]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(
            f"{file} needs pyarrow, which is not installed", 'pip install "gradnet[parquet]"'
        ) from error
    features = version.shelf.features(version.shelf.rows)
    vectors = pyarrow.FixedSizeListArray.from_arrays(features.ravel(), features.shape[1])
    metadata = pyarrow.array(version.holdings.metadata, pyarrow.string())
    table = pyarrow.table({"id": version.holdings.ids.tolist(), "vector": vectors, "metadata": metadata})
    _in_place(file, lambda place: pyarrow.parquet.write_table(table, place))
    return [file]


def _export_ids(version: Version, file: Path) -> Path:
    beside = file.with_name(f"{file.name}.ids.json")
    text = json.dumps(version.holdings.ids.tolist(), ensure_ascii=False)
    _in_place(beside, lambda place: _write_text(place, text))
    return beside


def _write_text(place: Path, text: str) -> None:
    place.write_text(text, encoding="utf-8")


def _in_place(file: Path, write: Callable[[Path], None]) -> None:
    """Write the file whole, or say why not."""
    try:
        with in_place(file) as partial:
            write(partial)
    except (OSError, RuntimeError) as error:  # faiss raises the latter where a file cannot be opened
        raise InputError(f"{file} cannot be written: {getattr(error, 'strerror', None) or error}") from error


_EXPORTS = {"npy": _export_npy, "parquet": _export_parquet, "faiss": _export_faiss}
