"""What a labelled set is, and how labels of any kind become the numbers 0 to C - 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradnet.arrays import Ints
from gradnet.errors import FileFormatError

_NUMBER = re.compile(r"([0-9]+)")


class Labelled(NamedTuple):
    """Items, one row each, and the class of every one.

    name: what the rows are, such as "pixels" or "orl_112x92: images".
    descriptors: (n, d) in the type of the source; pictures row by row. labels: (n,) 0 to C - 1.
    classes: the name of each label. names: files relative to the source, or positions as text.
    """

    name: str
    descriptors: NDArray[Any]
    labels: Ints
    classes: tuple[str, ...]
    names: tuple[str, ...]


def natural_key(text: str) -> tuple[list[Any], str]:
    """A key by which s2 comes before s10."""
    parts: list[Any] = _NUMBER.split(text)  # words at even places, numbers at odd ones
    digits = [number.lstrip("0") for number in parts[1::2]]
    parts[1::2] = [(len(number), number) for number in digits]
    return parts, text


def number_labels(values: Sequence[str] | Sequence[int], where: str) -> tuple[Ints, tuple[str, ...]]:
    """The number of each value and the name of each number: numbers in order of value, words naturally."""
    distinct: list[Any] = list(set(values))
    if "" in distinct:
        row = next(row for row, value in enumerate(values) if value == "")
        raise FileFormatError(
            f"{where} has an empty label for item {row} (counted from 0)", "give every item a label"
        )
    distinct.sort(key=natural_key if isinstance(distinct[0], str) else None)
    number = {value: position for position, value in enumerate(distinct)}
    return np.array([number[value] for value in values], dtype=np.int64), tuple(map(str, distinct))
