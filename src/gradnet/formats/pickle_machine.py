"""The opcodes of pickles that make plain values, each a step of a small machine; all others are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradnet.formats.pickle_names import Maker, check_key, stand_in
from gradnet.formats.pickled_arrays import UnfinishedArray, UnfinishedType


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
            raise ValueError(
                f"it remembers a value under the number {index}, though it has {self._size} bytes"
            )
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
