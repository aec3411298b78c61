"""Reads pickles of plain values: an unpickler that imports nothing and refuses nesting and sharing without end.

It extends the part of Python's unpickler that is written in Python, since the one in C hashes a key before anybody
could look at it: a tuple nested a million deep crashes the process, one made sixty times as t = (t, t) takes years.
"""

import io
import math
import pickle
import re
import reprlib
from pathlib import Path
from typing import Any, Literal

import numpy as np

from manifind.errors import FileFormatError
from manifind.io.checks import UTF_32

_Unpickler: Any = pickle._Unpickler
_PLAIN_TYPE = re.compile(r"b1|[iu][1248]|f(2|4|8|12|16)|[US][0-9]{1,9}")
_MOST_AXES = 64  # as in NumPy
_PLAIN = (type(None), bool, int, float, str, bytes, np.ndarray)
_DEEPEST = 100
_OPCODES = (
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE "
    "SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8 PROTO FRAME PUT BINPUT LONG_BINPUT GET "
    "BINGET LONG_BINGET MEMOIZE NONE NEWTRUE NEWFALSE EMPTY_TUPLE EMPTY_LIST MARK TUPLE1 TUPLE2 TUPLE3 "
    "TUPLE LIST APPEND APPENDS GLOBAL STACK_GLOBAL"
)
"""Those that plain values need and that need no check; the others stand in `_PlainUnpickler`, or are refused."""


_MAKERS = {
    "_codecs encode": "_encode",
    "builtins bytes": "_no_bytes",
    "builtins set": "_set",
    "numpy ndarray": "_Ndarray",
    "numpy dtype": "_Type",
    "numpy.core.multiarray _reconstruct": "_reconstruct",
    "numpy.core.multiarray scalar": "_scalar",
    "numpy.core.numeric _frombuffer": "_frombuffer",
}
"""What of `_PlainUnpickler` is called in place of each name that a pickle of plain values has."""


class _Hashed:
    """A dict, of which `entries` has keys and values in turns, or a set; nothing in it was hashed yet."""

    def __init__(self, kind: type, entries: list[Any]) -> None:
        self.kind, self.entries = kind, entries


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

    value: np.ndarray[Any, Any] | None = None


def _array(data: Any, dtype: Any, shape: Any, order: Literal["C", "F"]) -> np.ndarray[Any, Any]:
    if type(data) not in (bytes, bytearray) or type(dtype) is not _Type or type(shape) is not tuple:
        raise ValueError("it has an array of Python objects; expected plain numbers or text")
    if len(shape) > _MOST_AXES or any(type(extent) is not int or not 0 <= extent < 2**63 for extent in shape):
        raise ValueError(f"it has an array of shape {reprlib.repr(shape)}")
    if math.prod(shape) * dtype.dtype.itemsize != len(data):
        raise ValueError(f"it has {len(data):,} bytes for an array of shape {reprlib.repr(shape)}, {dtype.dtype}")
    if dtype.dtype.kind == "U":
        data.decode(UTF_32[dtype.dtype.str[0]], "surrogatepass")  # only to refuse what is no character
    flat = np.frombuffer(data, dtype.dtype) if data else np.empty(0, dtype.dtype)
    array = flat.reshape(shape, order=order)
    array.flags.writeable = False
    return array


class _PlainUnpickler(_Unpickler):  # type: ignore[misc]
    """content: the pickle, whose size bounds what may be made of it."""

    _Ndarray, _Type = _Ndarray, _Type  # what `_MAKERS` calls is an attribute

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="latin-1")
        self._size = self._left = len(content)

    def value(self) -> Any:
        """The value of the pickle, with nothing shared in it."""
        try:
            value = self.load()
        except KeyError as error:  # from the table of opcodes, or from the memo
            raise ValueError(f"it has an opcode or recalls a value that is not there: {error}") from error
        if self.memo and not 0 <= max(self.memo) <= self._size:
            raise ValueError(f"it remembers a value under the number {max(self.memo)} in {self._size} bytes")
        self._left = self._size
        return self._plain(value, 0)

    def _plain(self, value: Any, depth: int) -> Any:
        """The copy of a value that stands so deep inside others; of as many values as the pickle has bytes."""
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise ValueError(f"its values contain each other too often or are nested more than {_DEEPEST} deep")
        kind = type(value)
        if kind in (list, tuple):
            return kind(self._plain(entry, depth + 1) for entry in value)
        if kind is _Hashed:
            entries = [self._plain(entry, depth + 1) for entry in value.entries]
            return set(entries) if value.kind is set else dict(zip(entries[::2], entries[1::2], strict=True))
        if kind is _Array:
            if value.value is None:
                raise ValueError("it has an array without data")
            return value.value
        if kind in _PLAIN or isinstance(value, np.generic):
            return value
        raise ValueError(f"it has a {kind.__name__}; expected plain values")

    def find_class(self, module: str, name: str) -> Any:
        """What is called in place of a name; none is imported."""
        known = f"{module} {name}".replace("numpy._core.", "numpy.core.").replace("__builtin__ ", "builtins ")
        if known not in _MAKERS:
            raise ValueError(f"it names {f'{module}.{name}'[:100]!r}; expected plain values, which name no code")
        return getattr(self, _MAKERS[known])

    def _spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise ValueError("it makes the same values again and again, more than the file has bytes")

    def _reconstruct(self, kind: Any, *_placeholders: Any) -> _Array:
        """An array to be filled by its state, as protocols 0 to 4 do it."""
        if kind is not _Ndarray:
            raise ValueError("it has an array of a class of its own; expected numpy.ndarray")
        return _Array()

    def _scalar(self, dtype: Any, data: Any) -> Any:
        """One number or text of NumPy's."""
        return _array(self._bytes(data), dtype, (), "C")[()]

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

    def _bytes(self, data: Any) -> Any:
        return self._encode(data) if type(data) is str else data  # as Python 2 wrote bytes

    def _no_bytes(self) -> bytes:
        return b""

    def _set(self, entries: Any) -> _Hashed:
        if type(entries) is not list:
            raise ValueError(f"it makes a set of a {type(entries).__name__}; expected a list")
        self._spend(len(entries))
        return _Hashed(set, entries.copy())

    def _insert(self, kind: type, entries: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not _Hashed or target.kind is not kind:
            raise ValueError(f"it adds items to a {type(target).__name__}; expected a {kind.__name__}")
        target.entries.extend(entries)

    def _dict(self) -> None:
        entries = self.pop_mark()  # after which values go to another stack
        self.append(_Hashed(dict, entries))

    def _reduce(self) -> None:
        arguments, make = self.stack.pop(), self.stack.pop()
        if type(arguments) is not tuple or not callable(make) or make is _Ndarray:
            raise ValueError(f"it calls a {type(make).__name__}")
        self.append(make(*arguments))

    def _build(self) -> None:
        state, unfinished = self.stack.pop(), self.stack[-1]
        if type(unfinished) is _Array:
            _version, shape, dtype, is_fortran, data = state
            unfinished.value = _array(self._bytes(data), dtype, shape, "F" if is_fortran else "C")
        elif type(unfinished) is _Type:
            unfinished.set_state(state)
        else:
            raise ValueError(f"it changes a {type(unfinished).__name__}")

    def _stop(self) -> None:
        if self.metastack or len(self.stack) != 1:
            raise ValueError("it leaves several values or none; expected one")
        raise pickle._Stop(self.stack.pop())  # type: ignore[attr-defined]

    dispatch = {  # noqa: RUF012  as in the class that it extends
        **{code: _Unpickler.dispatch[code] for code in (getattr(pickle, name)[0] for name in _OPCODES.split())},
        pickle.EMPTY_DICT[0]: lambda self: self.append(_Hashed(dict, [])),
        pickle.EMPTY_SET[0]: lambda self: self.append(_Hashed(set, [])),
        pickle.DICT[0]: _dict,
        pickle.SETITEM[0]: lambda self: self._insert(dict, [self.stack.pop(-2), self.stack.pop()]),
        pickle.SETITEMS[0]: lambda self: self._insert(dict, self.pop_mark()),
        pickle.ADDITEMS[0]: lambda self: self._insert(set, self.pop_mark()),
        pickle.REDUCE[0]: _reduce,
        pickle.BUILD[0]: _build,
        pickle.STOP[0]: _stop,
    }


def read_plain_pickle(path: Path) -> Any:
    """The value in a pickle of any protocol, if it is made of plain values alone.

    Plain are None, bool, int, float, str, bytes, list, tuple, dict, set, and NumPy arrays and scalars of
    bool, int, uint, float, text and bytes. Python 2's str comes out as str, its bytes read as Latin-1, in
    protocol 0 as ASCII. A value that stands in several places comes out once for each, as long as that makes
    no more values than the file has bytes.
    """
    content = path.read_bytes()
    try:
        return _PlainUnpickler(content).value()
    except Exception as error:  # what damage makes an unpickler raise is of many kinds
        problem = f"{path} is no pickle of plain values: {str(error)[:300] or type(error).__name__}"
        hint = "ask for the data as .json or .npz; never give it to pickle.load unless you trust its author"
        raise FileFormatError(problem, hint) from error
