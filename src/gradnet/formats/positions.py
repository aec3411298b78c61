"""One list of positions in published ground truth: numbers of any kind, turned into sorted positions from 0."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradnet.arrays import Ints
from gradnet.errors import FileFormatError
from gradnet.wording import count

_LAST = 2**63 - 1
_EXACT = 2.0**53  # up to here every float that is a whole number is the number that was written
_HINT = "published .json and .pkl files count images from 0, .mat files from 1"


def positions(entries: Any, where: str, first: int, images: Sequence[str] | None, are_floats: bool) -> Ints:
    """The positions counted from 0, rising; refused unless they are distinct whole numbers in range.

    first: how the file counts the first image. images: their names; None where the file has none.
    """
    numbers = _array(entries, where) if isinstance(entries, np.ndarray) else _list(entries, where)
    if not len(numbers):
        return np.empty(0, np.int64)
    if are_floats and numbers.dtype.kind == "f":
        numbers = _whole(numbers, where)
    if numbers.dtype.kind not in "iu":
        raise _not_whole(numbers[0], where)
    last = _LAST if images is None else first + len(images) - 1
    for number in (int(numbers.min()), int(numbers.max())):
        if not first <= number <= last:
            end = "up" if images is None else f"to {last}, as imlist has {count(len(images), 'name')}"
            raise FileFormatError(f"{where} has the position {number}; expected {first} {end}", _HINT)
    ordered = np.sort(numbers.astype(np.int64)) - first
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        image = f"position {repeated[0] + first}" if images is None else repr(images[repeated[0]])
        raise FileFormatError(f"{where} has the image {image} twice", "list every image once")
    return ordered


def _array(entries: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    if entries.size and max(entries.shape, default=1) != entries.size:
        raise FileFormatError(f"{where} has shape {entries.shape}; expected one row", "list the positions")
    return entries.ravel()


def _list(entries: Any, where: str) -> np.ndarray[Any, Any]:
    if not isinstance(entries, list | tuple):
        raise FileFormatError(f"{where} is {reprlib.repr(entries)}; expected a list of positions", _HINT)
    for entry in entries:
        if type(entry) is not int and not isinstance(entry, np.integer):
            raise _not_whole(entry, where)
    try:
        return np.array(entries, np.int64)
    except OverflowError:
        largest = reprlib.repr(max(entries, key=abs))
        raise FileFormatError(f"{where} has the position {largest}, which is too large", _HINT) from None


def _whole(numbers: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    wrong = ~(np.isfinite(numbers) & (np.abs(numbers) <= _EXACT) & (numbers == np.trunc(numbers)))
    if wrong.any():
        raise _not_whole(numbers[wrong][0], where)
    return numbers.astype(np.int64)


def _not_whole(entry: Any, where: str) -> FileFormatError:
    return FileFormatError(
        f"{where} has {reprlib.repr(entry)}; expected whole numbers, the positions of images", _HINT
    )
