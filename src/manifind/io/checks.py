"""What every reader of vectors returns, the checks that all readers share, and the child process that parses files."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifind.errors import FileFormatError
from manifind.worker import Reply, Worker, WorkerError

_UNSUSPICIOUS_BYTES = 1 << 28  # any machine that runs this library can hold as much
_UNSUSPICIOUS_RATIO = 100  # descriptors barely shrink; what shrinks more than this is a trap or a mistake
_SECONDS = 60.0  # for a small file: a hundred times what a sound one takes
_SLOWEST = 5_000_000  # bytes a second that the parser of a large file reads at least
_LIBRARIES = 2 << 30  # bytes of addresses that the libraries of a parser take
_COPIES = 3  # of its content that a parser may make
DAMAGED = "copy or save it again: it is cut short, damaged or in another format"


class Vectors(NamedTuple):
    """Rows of real numbers and, where the file has them, the id of each row and vectors of queries.

    rows: (n, d), in the type the file has; for .npy a read-only map of the file. Not checked for NaN.
    ids: n strings or n integers, each once; None where the file has none.
    queries: (m, d) vectors to search with, not part of the rows; None where the file has none.
    """

    rows: np.ndarray[Any, Any]
    ids: list[str] | list[int] | None
    queries: np.ndarray[Any, Any] | None = None


def check_shape(where: str, shape: tuple[int, ...]) -> None:
    """Refuse everything but n rows of d numbers, both at least 1."""
    if len(shape) != 2:
        raise FileFormatError(
            f"{where} has shape {reprlib.repr(shape)}; expected two dimensions, one row per item",
            "save X.reshape(len(X), -1), or X.reshape(1, -1) for a single vector",
        )
    if 0 in shape:
        raise FileFormatError(
            f"{where} holds no vectors: its shape is {shape}; expected at least one row and one column",
            "check the program that wrote it",
        )


def check_ids(where: str, ids: Sequence[str | int]) -> None:
    """Refuse ids that are empty or repeated."""
    first_row: dict[str | int, int] = {}
    for row, name in enumerate(ids):
        if name == "":
            raise FileFormatError(f"{where} has an empty id in row {row} (counted from 0)", "give every row an id")
        if name in first_row:
            raise repeated_id(where, name, first_row[name], row)
        first_row[name] = row


def repeated_id(where: str, name: str | int, first_row: int, row: int) -> FileFormatError:
    """Two rows of one id."""
    return FileFormatError(
        f"{where} has the id {reprlib.repr(name)} twice, in rows {first_row} and {row} (counted from 0)",
        "give every row an id of its own",
    )


def check_expansion(where: str, unpacked: int, packed: int) -> None:
    """Refuse what would grow from few bytes on disk to very many in memory."""
    if unpacked > _UNSUSPICIOUS_BYTES and unpacked > _UNSUSPICIOUS_RATIO * packed:
        raise FileFormatError(
            f"{where} would grow from {packed:,} bytes on disk to {unpacked:,} in memory; "
            f"expected at most {_UNSUSPICIOUS_RATIO} times as much",
            "if that is what you mean, save it as .npy, which is read without unpacking",
        )


def parse_in_child(function: str, path: Path, format_name: str) -> Reply:
    """What a parser, "module:function", makes of a file in a child process.

    A file from which the parser crashes, hangs or takes too much memory is refused like any other damaged one.
    """
    size = path.stat().st_size
    most = max(_UNSUSPICIOUS_BYTES, _UNSUSPICIOUS_RATIO * size)
    try:
        with Worker(seconds=_SECONDS + size / _SLOWEST, memory=_LIBRARIES + _COPIES * most) as worker:
            return worker.call(function, {"path": str(path)}, max_bytes=most)
    except WorkerError as error:
        reason = "the parser crashes: " if error.kind == "crash" else ""
        raise FileFormatError(
            f"{path} cannot be read as {format_name}: {reason}{error.problem[:300]}", DAMAGED
        ) from error


ROWS_NAMES = ("vectors", "descriptors", "X", "features", "embeddings")
IDS_NAMES = ("ids", "names")
QUERIES_NAMES = ("queries", "Q")
_UTF_32 = {"<": "utf-32-le", ">": "utf-32-be"}  # by NumPy's letter for the order of bytes


def first_present(names: Iterable[str], present: Collection[str]) -> str | None:
    """The first of the names that is present, or None."""
    return next((name for name in names if name in present), None)


def rows_name(path: Path, present: Collection[str], is_matrix: Callable[[str], bool], hint: str) -> str:
    """The first name of ROWS_NAMES that is present, or else the name of the only matrix.

    A matrix of queries counts only where there is no other, in a file to search with.
    """
    named = first_present(ROWS_NAMES, present)
    if named is not None:
        return named
    matrices = [name for name in present if name not in IDS_NAMES and is_matrix(name)]
    candidates = [name for name in matrices if name not in QUERIES_NAMES] or matrices
    if len(candidates) != 1:
        names = ", ".join(map(repr, present))[:500]
        found = "several matrices" if candidates else "no matrix of numbers"
        raise FileFormatError(
            f"{path} has {found} among its arrays ({names or 'none at all'}); "
            f"expected one, or one that is called {', '.join(ROWS_NAMES)}",
            hint,
        )
    return candidates[0]


def queries_name(present: Collection[str], rows: str) -> str | None:
    """The first name of QUERIES_NAMES that is present and not that of the rows, or None."""
    name = first_present(QUERIES_NAMES, present)
    return None if name == rows else name


def check_queries(where: str, shape: tuple[int, ...], d: int) -> None:
    """Refuse queries that are no matrix with as many columns as the rows have."""
    check_shape(where, shape)
    if shape[1] != d:
        raise FileFormatError(
            f"{where} has {shape[1]} columns; expected {d}, as many as the rows have",
            "describe queries and rows in the same way, or give it another name if it holds no queries",
        )


def check_ids_shape(where: str, shape: tuple[int, ...], n: int) -> None:
    """Refuse ids other than one for each of the n rows; asked before reading, so that the rows bound the ids."""
    if shape != (n,):
        raise FileFormatError(
            f"{where} has shape {reprlib.repr(shape)}; expected ({n},), one id for each row",
            "write the ids again, or leave them out",
        )


def strings(entries: np.ndarray[Any, Any], where: str) -> list[str]:
    """The texts of an array of NumPy's text (U) or of UTF-8 bytes (S, or Python's bytes)."""
    try:
        if entries.dtype.kind != "U":
            return [bytes(entry).decode() for entry in entries.tolist()]
        entries.tobytes().decode(_UTF_32[entries.dtype.str[0]])  # only to refuse what is no character
        return [str(entry) for entry in entries]
    except ValueError as error:
        raise FileFormatError(f"{where} is not valid Unicode: {error}", "write it as UTF-8") from error
