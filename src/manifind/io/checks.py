"""What every reader of vectors returns, the checks that all readers share, and the child process that parses files."""

import os
import reprlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifind.errors import FileFormatError
from manifind.files import check_regular_file, readable
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


def check_shape(where: str, shape: tuple[int, ...], d: int | None = None) -> None:
    """Refuse everything but n rows of d numbers, both at least 1. d: of queries, which the rows they are for have."""
    if len(shape) != 2:
        problem = f"{where} has shape {reprlib.repr(shape)}; expected two dimensions, one row per item"
        raise FileFormatError(problem, "save X.reshape(len(X), -1), or X.reshape(1, -1) for a single vector")
    if 0 in shape:
        problem = f"{where} holds no vectors: its shape is {shape}; expected at least one row and one column"
        raise FileFormatError(problem, "check the program that wrote it")
    if d not in (None, shape[1]):
        problem = f"{where} has {shape[1]} columns; expected {d}, as many as the rows have"
        hint = "describe queries and rows in the same way, or give it another name if it holds no queries"
        raise FileFormatError(problem, hint)


@contextmanager
def regular_file(path: str | os.PathLike[str], expected: str) -> Iterator[Path]:
    """A file to read, refused unless there is something in it. expected: what the caller wants, in words."""
    file = Path(path)
    with readable(file):
        check_regular_file(file, expected)
        yield file


def check_suffix(file: Path, suffixes: Iterable[str], hint: str, more: str = "") -> None:
    """Refuse other suffixes than these, in small or capital letters. more: what else is expected, in words."""
    if file.suffix.lower() not in suffixes:
        expected = f"expected one of {', '.join(suffixes)}{more}"
        raise FileFormatError(f"{file} has the suffix {file.suffix!r}; {expected}", hint)


def check_ids(where: str, ids: Sequence[str | int]) -> None:
    """Refuse ids that are empty or repeated."""
    first_row: dict[str | int, int] = {}
    for row, name in enumerate(ids):
        if name == "":
            raise FileFormatError(f"{where} has an empty id in row {row} (counted from 0)", "give every row an id")
        if name in first_row:
            rows = f"in rows {first_row[name]} and {row} (counted from 0)"
            problem = f"{where} has the id {reprlib.repr(name)} twice, {rows}"
            raise FileFormatError(problem, "give every row an id of its own")
        first_row[name] = row


@contextmanager
def utf8(file: Path, hint: str) -> Iterator[None]:
    """What Python says about text that is no UTF-8, as an error of ours."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{file} is not UTF-8 text: {error.reason}", hint) from error


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
        problem = f"{path} cannot be read as {format_name}: {reason}{error.problem[:300]}"
        raise FileFormatError(problem, DAMAGED) from error


def read_in_child(module: str, format_name: str, path: Path) -> Vectors:
    """What the function `parse_vectors` of a module of this package reads in a child: ids, `rows` and `queries`."""
    ids, arrays = parse_in_child(f"manifind.io.{module}:parse_vectors", path, format_name)
    check_shape(str(path), arrays["rows"].shape)
    return Vectors(arrays["rows"], ids, arrays.get("queries"))


_ROWS_NAMES = ("vectors", "descriptors", "X", "features", "embeddings")
_IDS_NAMES = ("ids", "names")
_QUERIES_NAMES = ("queries", "Q")
UTF_32 = {"<": "utf-32-le", ">": "utf-32-be"}  # by NumPy's letter for the order of bytes


def named_vectors(file: Any, present: Collection[str], hint: str) -> Vectors:
    """Vectors from the array with a name that tells, or else from the only matrix; ids and queries by their names.

    file: an open one whose methods look at an array by its name: `is_matrix(name)`, whether it holds numbers in two
    dimensions; `numbers(name, d)`, the matrix of d columns or of any; `ids(name, n)`, its n strings or integers.
    """
    rows_name, queries_name, ids_name = (
        next((name for name in names if name in present), None) for names in (_ROWS_NAMES, _QUERIES_NAMES, _IDS_NAMES)
    )
    rows_name = rows_name or _only_matrix(file, present, hint)
    rows, queries, ids = file.numbers(rows_name), None, None
    if queries_name not in (None, rows_name):
        queries = file.numbers(queries_name, rows.shape[1])
    if ids_name is not None:
        ids = file.ids(ids_name, rows.shape[0])
        check_ids(file.where(ids_name), ids)
    return Vectors(rows, ids, queries)


def _only_matrix(file: Any, present: Collection[str], hint: str) -> str:
    """A matrix of queries counts only where there is no other, in a file to search with."""
    matrices = [name for name in present if name not in _IDS_NAMES and file.is_matrix(name)]
    candidates = [name for name in matrices if name not in _QUERIES_NAMES] or matrices
    if len(candidates) != 1:
        names = ", ".join(map(repr, present))[:500]
        found = "several matrices" if candidates else "no matrix of numbers"
        raise FileFormatError(
            f"{file.path} has {found} among its arrays ({names or 'none at all'}); "
            f"expected one, or one that is called {', '.join(_ROWS_NAMES)}",
            hint,
        )
    return candidates[0]


def check_ids_shape(where: str, shape: tuple[int, ...], n: int) -> None:
    """Refuse ids other than one for each of the n rows; asked before reading, so that the rows bound the ids."""
    if shape != (n,):
        problem = f"{where} has shape {reprlib.repr(shape)}; expected ({n},), one id for each row"
        raise FileFormatError(problem, "write the ids again, or leave them out")


def strings(entries: np.ndarray[Any, Any], where: str) -> list[str]:
    """The texts of an array of NumPy's text (U) or of UTF-8 bytes (S, or Python's bytes)."""
    try:
        if entries.dtype.kind != "U":
            return [bytes(entry).decode() for entry in entries.tolist()]
        entries.tobytes().decode(UTF_32[entries.dtype.str[0]])  # only to refuse what is no character
        return [str(entry) for entry in entries]
    except ValueError as error:
        raise FileFormatError(f"{where} is not valid Unicode: {error}", "write it as UTF-8") from error
