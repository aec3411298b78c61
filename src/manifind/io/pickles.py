"""Reads pickles of plain values: an unpickler that imports nothing and refuses nesting and sharing without end.

It extends the part of Python's unpickler that is written in Python, since the one in C hashes a key before anybody
could look at it: a tuple nested a million deep crashes the process, one made sixty times as t = (t, t) takes years.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import re
import reprlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from manifind.errors import FileFormatError
from manifind.files import check_regular_file, readable

_Unpickler: Any = pickle._Unpickler
_PLAIN_TYPE = re.compile(r"b1|[iu][1248]|f(2|4|8|12|16)|[US][0-9]{1,9}")
_MOST_AXES = 64  # as in NumPy
_UTF_32 = {"<": "utf-32-le", ">": "utf-32-be"}  # by NumPy's letter for the order of bytes
_HASHED = (type(None), bool, int, float, str, bytes)
_DEEPEST_KEY = 100
_OPCODES = (
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE "
    "SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8 PROTO FRAME PUT BINPUT LONG_BINPUT GET "
    "BINGET LONG_BINGET MEMOIZE NONE NEWTRUE NEWFALSE EMPTY_TUPLE EMPTY_LIST EMPTY_DICT EMPTY_SET MARK TUPLE1 TUPLE2 "
    "TUPLE3 TUPLE LIST APPEND APPENDS GLOBAL STACK_GLOBAL"
)
"""Those that plain values need and that need no check; the others stand in `_PlainUnpickler`, or are refused."""


class _Ndarray:
    """What stands for numpy.ndarray, which is named only to say that an array is of no other class."""


class _Type:
    """A type of array entries, to which the state adds the order of bytes."""

    def __init__(self, code: Any, *_flags: Any) -> None:
        if not isinstance(code, str) or not _PLAIN_TYPE.fullmatch(code):
            raise ValueError(f"it has an array of type {reprlib.repr(code)}; expected plain numbers or text")
        self.dtype = np.dtype(code)

    def set_state(self, state: Any) -> None:
        _version, order, *structure = state[:5]
        if order not in ("<", ">", "|", "=") or structure != [None, None, None]:
            raise ValueError("it has an array with fields; expected plain numbers or text")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """An array of which the state is still to come."""

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode
        self.value: np.ndarray[Any, Any] | None = None

    def set_state(self, state: Any) -> None:
        _version, shape, dtype, is_fortran, data = state
        if type(data) is str:  # as Python 2 wrote bytes
            data = self._encode(data)
        self.value = _array(data, dtype, shape, "F" if is_fortran else "C")


def _array(data: Any, dtype: Any, shape: Any, order: Literal["C", "F"]) -> np.ndarray[Any, Any]:
    if type(data) not in (bytes, bytearray) or type(dtype) is not _Type or type(shape) is not tuple:
        raise ValueError("it has an array of Python objects; expected plain numbers or text")
    if len(shape) > _MOST_AXES or any(type(extent) is not int or not 0 <= extent < 2**63 for extent in shape):
        raise ValueError(f"it has an array of shape {reprlib.repr(shape)}")
    if math.prod(shape) * dtype.dtype.itemsize != len(data):
        raise ValueError(f"it has {len(data):,} bytes for an array of shape {reprlib.repr(shape)}, {dtype.dtype}")
    if dtype.dtype.kind == "U":
        data.decode(_UTF_32[dtype.dtype.str[0]], "surrogatepass")  # only to refuse what is no character
    flat = np.frombuffer(data, dtype.dtype) if data else np.empty(0, dtype.dtype)
    array = flat.reshape(shape, order=order)
    array.flags.writeable = False
    return array


class _PlainUnpickler(_Unpickler):  # type: ignore[misc]
    """content: the pickle, whose size bounds what may be made of it."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="latin-1")
        self._left = len(content)

    def find_class(self, module: str, name: str) -> Any:
        """What is called in place of a name; none is imported."""
        make = _MAKERS.get(f"{module} {name}")
        if make is None:
            raise ValueError(f"it names {f'{module}.{name}'[:100]!r}; expected plain values, which name no code")
        return make if make is _Ndarray or make is _Type else make.__get__(self)

    def _spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise ValueError("it makes the same values again and again, more than the file has bytes")

    def _reconstruct(self, kind: Any, *_placeholders: Any) -> _Array:
        """An array to be filled by its state, as protocols 0 to 4 do it."""
        if kind is not _Ndarray:
            raise ValueError("it has an array of a class of its own; expected numpy.ndarray")
        return _Array(self._encode)

    def _scalar(self, dtype: Any, data: Any) -> Any:
        """One number or text of NumPy's."""
        return _array(self._encode(data) if type(data) is str else data, dtype, (), "C")[()]

    def _frombuffer(self, data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> Any:
        """An array from its data, as protocol 5 does it."""
        if order == "K" and type(axes) is tuple:
            return _array(data, dtype, shape, "C").transpose(axes)
        if order not in ("C", "F"):
            raise ValueError(f"it has an array in the order {reprlib.repr(order)}; expected C, F or K")
        return _array(data, dtype, shape, order)

    def _encode(self, text: Any, encoding: Any = "latin1") -> bytes:
        """The bytes that older protocols write as text."""
        if type(text) is not str or encoding not in ("latin1", "latin-1"):
            raise ValueError(f"it encodes a text as {reprlib.repr(encoding)}; expected latin1")
        self._spend(len(text))
        return text.encode("latin-1")

    def _no_bytes(self) -> bytes:
        return b""

    def _set(self, entries: Any) -> set[Any]:
        if type(entries) is not list:
            raise ValueError(f"it makes a set of a {type(entries).__name__}; expected a list")
        self._check_keys(entries)
        return set(entries)

    def _check_keys(self, keys: list[Any]) -> None:
        """Refuse what cannot be hashed in good time: tuples in tuples to great depth, or the same ones again."""
        pending = [(key, 0) for key in keys]
        while pending:
            value, depth = pending.pop()
            self._spend(1)
            if type(value) is tuple and depth < _DEEPEST_KEY:
                self._spend(len(value))
                pending.extend((entry, depth + 1) for entry in value)
            elif type(value) not in _HASHED and not isinstance(value, np.generic):
                raise ValueError(f"it uses a {type(value).__name__} as a key; expected numbers, texts or tuples")

    def _insert(self, values: list[Any]) -> None:
        items, keys = self.stack[-1], values[::2]
        if type(items) is not dict:
            raise ValueError(f"it sets an item of a {type(items).__name__}; expected a dict")
        self._check_keys(keys)
        items.update(zip(keys, values[1::2], strict=True))

    def _setitem(self) -> None:
        self._insert([self.stack.pop(-2), self.stack.pop()])

    def _setitems(self) -> None:
        self._insert(self.pop_mark())

    def _dict(self) -> None:
        values = self.pop_mark()
        self.append({})
        self._insert(values)

    def _additems(self) -> None:
        values = self.pop_mark()
        self._check_keys(values)
        self.stack[-1].update(values)

    def _reduce(self) -> None:
        arguments, make = self.stack.pop(), self.stack.pop()
        if type(arguments) is not tuple or not callable(make) or make is _Ndarray:
            raise ValueError(f"it calls a {type(make).__name__}")
        self.append(make(*arguments))

    def _build(self) -> None:
        state, unfinished = self.stack.pop(), self.stack[-1]
        if type(unfinished) not in (_Array, _Type):
            raise ValueError(f"it changes a {type(unfinished).__name__}")
        unfinished.set_state(state)

    def _stop(self) -> None:
        if self.metastack or len(self.stack) != 1:
            raise ValueError("it leaves several values or none; expected one")
        raise pickle._Stop(self.stack.pop())  # type: ignore[attr-defined]

    dispatch = {  # noqa: RUF012  as in the class that it extends
        **{code: _Unpickler.dispatch[code] for code in (getattr(pickle, name)[0] for name in _OPCODES.split())},
        pickle.SETITEM[0]: _setitem,
        pickle.SETITEMS[0]: _setitems,
        pickle.DICT[0]: _dict,
        pickle.ADDITEMS[0]: _additems,
        pickle.REDUCE[0]: _reduce,
        pickle.BUILD[0]: _build,
        pickle.STOP[0]: _stop,
    }


_MAKERS: dict[str, Any] = {"numpy ndarray": _Ndarray, "numpy dtype": _Type, "_codecs encode": _PlainUnpickler._encode}
for _home in ("numpy.core", "numpy._core"):
    _MAKERS[f"{_home}.multiarray _reconstruct"] = _PlainUnpickler._reconstruct
    _MAKERS[f"{_home}.multiarray scalar"] = _PlainUnpickler._scalar
    _MAKERS[f"{_home}.numeric _frombuffer"] = _PlainUnpickler._frombuffer
for _home in ("builtins", "__builtin__"):
    _MAKERS[f"{_home} bytes"] = _PlainUnpickler._no_bytes
    _MAKERS[f"{_home} set"] = _PlainUnpickler._set


_LARGEST = 1 << 30
_DEEPEST = 100
_DAMAGED = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    EOFError,
    struct.error,
    Warning,
    pickle.UnpicklingError,
)
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
            return _Tree(size).plain(_value(file.read_bytes()), 0)
        except (*_DAMAGED, *_EXHAUSTED) as error:
            raise FileFormatError(
                f"{file} is no pickle of plain values: {str(error)[:300] or type(error).__name__}",
                "ask for the data as .json or .npz; never give it to pickle.load unless you trust its author",
            ) from error


def _value(content: bytes) -> Any:
    unpickler = _PlainUnpickler(content)
    try:
        value = unpickler.load()
    except KeyError as error:  # from the table of opcodes, or from the memo
        raise ValueError(f"it has an opcode or recalls a value that is not there: {error}") from error
    if unpickler.memo and not 0 <= max(unpickler.memo) <= len(content):
        raise ValueError(f"it remembers a value under the number {max(unpickler.memo)} in {len(content)} bytes")
    return value


class _Tree:
    """A copy in which nothing is shared, of at most so many values and so deep."""

    def __init__(self, values: int) -> None:
        self._left = values

    def plain(self, value: Any, depth: int) -> Any:
        """The copy of a value that stands so deep inside others."""
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise ValueError(f"its values contain each other too often or are nested more than {_DEEPEST} deep")
        kind = type(value)
        if kind in (list, tuple, set):
            return kind(self.plain(entry, depth + 1) for entry in value)
        if kind is dict:
            return {self.plain(key, depth + 1): self.plain(entry, depth + 1) for key, entry in value.items()}
        if kind is _Array:
            if value.value is None:
                raise ValueError("it has an array without data")
            return value.value
        if kind in _PLAIN or isinstance(value, np.generic):
            return value
        raise ValueError(f"it has a {kind.__name__}; expected plain values")
