"""Arrays and scalars of NumPy as pickles describe them, built from their bytes once type and size agree.

Each maker is given `spend`, which refuses what would come out larger than the file, and then its arguments.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

Spend = Callable[[int], None]
_PLAIN_TYPE = re.compile(r"b1|[iu][1248]|f(2|4|8|12|16)|[US][0-9]{1,9}")
_MOST_AXES = 64  # as in NumPy
_UTF_32 = {"<": "utf-32-le", ">": "utf-32-be"}  # by NumPy's letter for the order of bytes


class NdarrayClass:
    """What stands for numpy.ndarray, which is named only to say that an array is of no other class."""


class UnfinishedType:
    """A type of array entries, to which the state adds the order of bytes."""

    def __init__(self, _spend: Spend, code: Any, *_flags: Any) -> None:
        if not isinstance(code, str) or not _PLAIN_TYPE.fullmatch(code):
            raise ValueError(f"it has an array of type {reprlib.repr(code)}; expected plain numbers or text")
        self.dtype = np.dtype(code)

    def set_state(self, _spend: Spend, state: Any) -> None:
        """Take the order of bytes."""
        _version, order, *structure = state[:5]
        if order not in ("<", ">", "|", "=") or structure != [None, None, None]:
            raise ValueError("it has an array with fields; expected plain numbers or text")
        self.dtype = self.dtype.newbyteorder(order)


class UnfinishedArray:
    """An array of which the state is still to come."""

    def __init__(self) -> None:
        self._value: np.ndarray[Any, Any] | None = None

    def set_state(self, spend: Spend, state: Any) -> None:
        """Take shape, type, order and data."""
        _version, shape, dtype, is_fortran, data = state
        if type(data) is str:  # as Python 2 wrote bytes
            data = latin1(spend, data)
        self._value = _array(data, dtype, shape, "F" if is_fortran else "C")

    def finished(self) -> np.ndarray[Any, Any]:
        """The array, read-only."""
        if self._value is None:
            raise ValueError("it has an array without data")
        return self._value


def _array(data: Any, dtype: Any, shape: Any, order: Literal["C", "F"]) -> np.ndarray[Any, Any]:
    if type(data) not in (bytes, bytearray) or type(dtype) is not UnfinishedType or type(shape) is not tuple:
        raise ValueError("it has an array of Python objects; expected plain numbers or text")
    if len(shape) > _MOST_AXES or any(type(extent) is not int or not 0 <= extent < 2**63 for extent in shape):
        raise ValueError(f"it has an array of shape {reprlib.repr(shape)}")
    if math.prod(shape) * dtype.dtype.itemsize != len(data):
        raise ValueError(
            f"it has {len(data):,} bytes for an array of shape {reprlib.repr(shape)}, {dtype.dtype}"
        )
    if dtype.dtype.kind == "U":
        data.decode(_UTF_32[dtype.dtype.str[0]], "surrogatepass")  # only to refuse what is no character
    flat = np.frombuffer(data, dtype.dtype) if data else np.empty(0, dtype.dtype)
    array = flat.reshape(shape, order=order)
    array.flags.writeable = False
    return array


def reconstruct(_spend: Spend, kind: Any, *_placeholders: Any) -> UnfinishedArray:
    """An array to be filled by its state, as protocols 0 to 4 do it."""
    if type(kind) is not NdarrayClass:
        raise ValueError("it has an array of a class of its own; expected numpy.ndarray")
    return UnfinishedArray()


def scalar(spend: Spend, dtype: Any, data: Any) -> Any:
    """One number or text of NumPy's."""
    if type(data) is str:
        data = latin1(spend, data)
    return _array(data, dtype, (), "C")[()]


def from_buffer(_spend: Spend, data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> Any:
    """An array from its data, as protocol 5 does it."""
    if order == "K" and type(axes) is tuple:
        return _array(data, dtype, shape, "C").transpose(axes)
    if order not in ("C", "F"):
        raise ValueError(f"it has an array in the order {reprlib.repr(order)}; expected C, F or K")
    return _array(data, dtype, shape, order)


def latin1(spend: Spend, text: Any, encoding: Any = "latin1") -> bytes:
    """The bytes that older protocols write as text."""
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise ValueError(f"it encodes a text as {reprlib.repr(encoding)}; expected latin1")
    spend(len(text))
    return text.encode("latin-1")
