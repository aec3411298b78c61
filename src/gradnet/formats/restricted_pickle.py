"""Pickles of plain values, read as data: their opcodes are followed here and no name in them is imported.

Python's own unpickler is not asked, not even with its names restricted: a key that is a tuple nested a million
deep crashes the process, one made sixty times as t = (t, t) is hashed for years, and a memo index allocates.
"""

from __future__ import annotations

import os
import pickletools
import struct
from pathlib import Path
from typing import Any

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.pickle_machine import Machine
from gradnet.formats.pickled_arrays import UnfinishedArray
from gradnet.formats.regular_file import check_regular_file, readable

_LARGEST = 1 << 30
_MOST_STEPS = 20_000_000
_DEEPEST = 100
_DAMAGED = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error, Warning)
_PLAIN = (type(None), bool, int, float, str, bytes, np.ndarray)
_EXHAUSTED = (MemoryError, RecursionError)


def read_plain_pickle(path: str | os.PathLike[str]) -> Any:
    """The value in a pickle of any protocol, if it is made of plain values alone.

    Plain are None, bool, int, float, str, bytes, list, tuple, dict, set, and NumPy arrays and scalars of
    bool, int, uint, float, text and bytes. Python 2's str comes out as str, its bytes read as Latin-1, in
    protocol 0 as ASCII. A value that stands in several places comes out once for each, as long as that makes
    no more values than the file has bytes.
    """
    file = Path(path)
    with readable(file):
        check_regular_file(file, "expected a pickle")
        size = file.stat().st_size
        if size > _LARGEST:
            raise FileFormatError(
                f"{file} has {size:,} bytes; expected a pickle of at most {_LARGEST:,}",
                "save large arrays with numpy.save",
            )
        try:
            return _Tree(size).plain(_value(file, size), 0)
        except (*_DAMAGED, *_EXHAUSTED) as error:
            raise FileFormatError(
                f"{file} is no pickle of plain values: {str(error)[:300] or type(error).__name__}",
                "ask for the data as .json or .npz; never give it to pickle.load unless you trust its author",
            ) from error


def _value(file: Path, size: int) -> Any:
    machine = Machine(size)
    for steps, (opcode, argument, _) in enumerate(pickletools.genops(file.read_bytes())):
        if steps > _MOST_STEPS:
            raise ValueError(f"it has more than {_MOST_STEPS:,} values")
        machine.step(opcode.name, argument)
    return machine.result()


class _Tree:
    """A copy in which nothing is shared, of at most so many values and so deep."""

    def __init__(self, values: int) -> None:
        self._left = values

    def plain(self, value: Any, depth: int) -> Any:
        """The copy of a value that stands so deep inside others."""
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise ValueError(
                f"its values contain each other too often or are nested more than {_DEEPEST} deep"
            )
        kind = type(value)
        if kind in (list, tuple, set):
            return kind(self.plain(entry, depth + 1) for entry in value)
        if kind is dict:
            return {self.plain(key, depth + 1): self.plain(entry, depth + 1) for key, entry in value.items()}
        if kind is UnfinishedArray:
            return value.finished()
        if kind in _PLAIN or isinstance(value, np.generic):
            return value
        raise ValueError(f"it has a {kind.__name__}; expected plain values")
