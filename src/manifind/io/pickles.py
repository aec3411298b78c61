"""Reads pickles of plain values as data: no name in them is imported.

Each maker is given `spend`, which refuses what would come out larger than the file, and then its arguments.

Python's own unpickler is not asked, not even with its names restricted: a key that is a tuple nested a million
deep crashes the process, one made sixty times as t = (t, t) is hashed for years, and a memo index allocates.
"""

from __future__ import annotations

import math
import os
import pickletools
import re
import reprlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from manifind.errors import FileFormatError
from manifind.files import check_regular_file, readable

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
        raise ValueError(f"it has {len(data):,} bytes for an array of shape {reprlib.repr(shape)}, {dtype.dtype}")
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


_HASHED = (type(None), bool, int, float, str, bytes)
_DEEPEST_KEY = 100


class Maker:
    """A name in a pickle and what is called in its place, with the means to limit it and the arguments."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make


def stand_in(text: str) -> Maker | NdarrayClass:
    """What stands for a module and a name, written with a space between them."""
    if text == "numpy ndarray":
        return NdarrayClass()
    make = _MAKERS.get(text)
    if make is None:
        name = text.replace(" ", ".", 1)[:100]
        raise ValueError(f"it names {name!r}; expected plain values, which name no code")
    return Maker(make)


def check_key(spend: Spend, key: Any) -> None:
    """Refuse what cannot be hashed in good time: tuples in tuples to great depth, or the same ones again."""
    pending = [(key, 0)]
    while pending:
        value, depth = pending.pop()
        spend(1)
        if type(value) is tuple and depth < _DEEPEST_KEY:
            spend(len(value))
            pending.extend((entry, depth + 1) for entry in value)
        elif type(value) not in _HASHED and not isinstance(value, np.generic):
            raise ValueError(f"it uses a {type(value).__name__} as a key; expected numbers, texts or tuples")


def _set(spend: Spend, entries: Any) -> set[Any]:
    if type(entries) is not list:
        raise ValueError(f"it makes a set of a {type(entries).__name__}; expected a list")
    for entry in entries:
        check_key(spend, entry)
    return set(entries)


def _no_bytes(_spend: Spend) -> bytes:
    return b""


_MAKERS: dict[str, Callable[..., Any]] = {
    "numpy dtype": UnfinishedType,
    "numpy.core.multiarray _reconstruct": reconstruct,
    "numpy._core.multiarray _reconstruct": reconstruct,
    "numpy.core.multiarray scalar": scalar,
    "numpy._core.multiarray scalar": scalar,
    "numpy.core.numeric _frombuffer": from_buffer,
    "numpy._core.numeric _frombuffer": from_buffer,
    "_codecs encode": latin1,
    "builtins bytes": _no_bytes,
    "__builtin__ bytes": _no_bytes,
    "builtins set": _set,
    "__builtin__ set": _set,
}


class Machine:
    """A stack with marks, and a memo. size: the bytes of the file, which bound what may be made of it."""

    def __init__(self, size: int) -> None:
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # what lies under each mark
        self._memo: dict[int, Any] = {}
        self._size = self._left = size

    def step(self, opcode: str, argument: Any) -> None:
        """Follow one opcode."""
        step = _STEPS.get(opcode)
        if step is None:
            raise ValueError(f"it has the opcode {opcode}, which plain values do not need")
        step(self, argument)

    def result(self) -> Any:
        """The one value that is left when all opcodes were followed."""
        (value,) = self._take(1)
        if self._below or self._stack:
            raise ValueError("it leaves several values; expected one")
        return value

    def _spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise ValueError("it makes the same values again and again, more than the file has bytes")

    def _take(self, count: int) -> list[Any]:
        if len(self._stack) < count:
            raise ValueError(f"it takes {count} values where {len(self._stack)} are")
        values = self._stack[-count:]
        del self._stack[-count:]
        return values

    def _take_marked(self) -> list[Any]:
        if not self._below:
            raise ValueError("it goes back to a mark where none is")
        values, self._stack = self._stack, self._below.pop()
        return values

    def _top(self, *kinds: type) -> Any:
        if not self._stack or type(self._stack[-1]) not in kinds:
            raise ValueError(f"it changes a value that is no {' or '.join(kind.__name__ for kind in kinds)}")
        return self._stack[-1]

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _mark(self, _argument: None) -> None:
        self._below.append(self._stack)
        self._stack = []

    def _extend(self, values: list[Any]) -> None:
        self._top(list).extend(values)

    def _insert(self, values: list[Any]) -> None:
        items, keys = self._top(dict), values[::2]
        for key in keys:
            check_key(self._spend, key)
        items.update(zip(keys, values[1::2], strict=True))

    def _add(self, values: list[Any]) -> None:
        for value in values:
            check_key(self._spend, value)
        self._top(set).update(values)

    def _push_dict(self, values: list[Any]) -> None:
        self._push({})
        self._insert(values)

    def _put(self, index: int) -> None:
        if not 0 <= index <= self._size:
            raise ValueError(f"it remembers a value under the number {index}, though it has {self._size} bytes")
        (self._memo[index],) = self._stack[-1:] or self._take(1)

    def _get(self, index: int) -> None:
        if index not in self._memo:
            raise ValueError(f"it recalls the number {index}, under which it remembered nothing")
        self._push(self._memo[index])

    def _push_name(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise ValueError("it names something by what is no text")
        self._push(stand_in(f"{module} {name}"))

    def _call(self, _argument: None) -> None:
        maker, arguments = self._take(2)
        if type(maker) is not Maker or type(arguments) is not tuple:
            raise ValueError(f"it calls a {type(maker).__name__}")
        self._push(maker.make(self._spend, *arguments))

    def _set_state(self, _argument: None) -> None:
        (state,) = self._take(1)
        self._top(UnfinishedArray, UnfinishedType).set_state(self._spend, state)


_Step = Callable[[Machine, Any], None]


def _fresh(make: Callable[[], Any]) -> _Step:
    return lambda machine, _: machine._push(make())


def _tuple_of(count: int) -> _Step:
    return lambda machine, _: machine._push(tuple(machine._take(count)))


_STEPS: dict[str, _Step] = {
    **dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"), Machine._push),
    **dict.fromkeys(("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING"), Machine._push),
    **dict.fromkeys(("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"), Machine._push),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"), Machine._push),
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda machine, _: None),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), Machine._put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), Machine._get),
    "MEMOIZE": lambda machine, _: machine._put(len(machine._memo)),
    "NONE": _fresh(lambda: None),
    "NEWTRUE": _fresh(lambda: True),
    "NEWFALSE": _fresh(lambda: False),
    "EMPTY_TUPLE": _fresh(tuple),
    "EMPTY_LIST": _fresh(list),
    "EMPTY_DICT": _fresh(dict),
    "EMPTY_SET": _fresh(set),
    "MARK": Machine._mark,
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "TUPLE": lambda machine, _: machine._push(tuple(machine._take_marked())),
    "LIST": lambda machine, _: machine._push(machine._take_marked()),
    "DICT": lambda machine, _: machine._push_dict(machine._take_marked()),
    "APPEND": lambda machine, _: machine._extend(machine._take(1)),
    "APPENDS": lambda machine, _: machine._extend(machine._take_marked()),
    "SETITEM": lambda machine, _: machine._insert(machine._take(2)),
    "SETITEMS": lambda machine, _: machine._insert(machine._take_marked()),
    "ADDITEMS": lambda machine, _: machine._add(machine._take_marked()),
    "GLOBAL": lambda machine, names: machine._push_name(*names.split(" ", 1)),
    "STACK_GLOBAL": lambda machine, _: machine._push_name(*machine._take(2)),
    "REDUCE": Machine._call,
    "BUILD": Machine._set_state,
}


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
            raise ValueError(f"its values contain each other too often or are nested more than {_DEEPEST} deep")
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
