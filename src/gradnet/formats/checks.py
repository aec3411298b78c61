"""What every reader returns, and the checks that all of them share."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradnet.errors import FileFormatError

_UNSUSPICIOUS_BYTES = 1 << 30  # any machine that runs this library can hold as much
_UNSUSPICIOUS_RATIO = 100  # descriptors barely shrink; what shrinks more than this is a trap or a mistake


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
            raise FileFormatError(
                f"{where} has an empty id in row {row} (counted from 0)", "give every row an id"
            )
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
