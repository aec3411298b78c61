"""SQLite's writes, syncs and truncations in this process, counted, and made to fail from a chosen one on."""

from __future__ import annotations

import _sqlite3
import ctypes
from contextlib import contextmanager

_OK = 0
_FAILURES = {"write": 13, "truncate": 10 | 6 << 8, "sync": 10 | 4 << 8}  # SQLITE_FULL, and two of SQLITE_IOERR
_SLOTS = {"write": 3, "truncate": 4, "sync": 5}  # in the table of methods that begins every open file
_N_SLOTS = 19

_ARGUMENTS = {
    "write": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64),
    "truncate": (ctypes.c_void_p, ctypes.c_int64),
    "sync": (ctypes.c_void_p, ctypes.c_int),
}
_TYPES = {what: ctypes.CFUNCTYPE(ctypes.c_int, *arguments) for what, arguments in _ARGUMENTS.items()}
_Open = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_Methods = ctypes.c_void_p * _N_SLOTS


class _Vfs(ctypes.Structure):
    """The head of sqlite3_vfs, as far as its way to open a file."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("size_of_file", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("following", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
    ]


def available():
    """Whether SQLite can be reached beside Python's module for it: not where it is built into that."""
    return hasattr(ctypes.CDLL(_sqlite3.__file__), "sqlite3_vfs_find")


@contextmanager
def sqlite_calls(decide):
    """Let decide(number, what) say of each call, from 1 on, whether it may happen. Yields the list of calls."""
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    vfs = library.sqlite3_vfs_find(None)[0]
    original, calls, alive = vfs.open, [], []

    def replaced(what, address):
        method = _TYPES[what](address)

        def call(*arguments):
            calls.append(what)
            return method(*arguments) if decide(len(calls), what) else _FAILURES[what]

        return _TYPES[what](call)

    def open_file(*arguments):
        result = _Open(original)(*arguments)
        file = ctypes.cast(arguments[2], ctypes.POINTER(ctypes.c_void_p))
        if result == _OK and file[0]:
            methods = _Methods.from_buffer_copy(_Methods.from_address(file[0]))
            for what, slot in _SLOTS.items():
                alive.append(replaced(what, methods[slot]))
                methods[slot] = ctypes.cast(alive[-1], ctypes.c_void_p).value
            alive.append(methods)
            file[0] = ctypes.addressof(methods)
        return result

    alive.append(_Open(open_file))
    vfs.open = ctypes.cast(alive[-1], ctypes.c_void_p).value
    try:
        yield calls
    finally:
        vfs.open = original
