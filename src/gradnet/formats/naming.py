"""Which of the named arrays in a file are the rows, which the ids, and which the queries."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import check_shape

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
