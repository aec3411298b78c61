"""Labelled arrays: an .npz file with `labels` and one or more arrays of as many rows."""

from __future__ import annotations

import reprlib
from pathlib import Path

from gradnet.data.labels import Labelled, number_labels
from gradnet.errors import FileFormatError
from gradnet.formats.arrays_in_npz import read_npz_arrays, read_npz_headers
from gradnet.formats.npy_header import Header

_LABELS = "labels"
_NAMES = ("names", "ids")
_NUMBERS = "fiub"


def read_label_arrays(source: Path) -> list[Labelled]:
    """One labelled set for each matrix (n, d) and each stack of pictures (n, h, w) or (n, h, w, channels)."""
    headers = read_npz_headers(source)
    n = _n_items(headers, source)
    rows = [name for name, header in headers.items() if name != _LABELS and _is_rows(header, n)]
    if not rows:
        shapes = ", ".join(f"{name} {reprlib.repr(header.shape)}" for name, header in headers.items())[:500]
        raise FileFormatError(
            f"{source} has {n} labels but no array of {n} rows; its arrays are {shapes}",
            "save it as numpy.savez(path, descriptors=X, labels=y)",
        )
    named = [name for name in _NAMES if name in headers and headers[name].shape == (n,)][:1]
    arrays = read_npz_arrays(source, [_LABELS, *named, *rows])
    labels, classes = number_labels(arrays[_LABELS].tolist(), f"the array 'labels' in {source}")
    names = tuple(map(str, arrays[named[0]].tolist() if named else range(n)))
    return [
        Labelled(f"{source.stem}: {name}", arrays[name].reshape(n, -1), labels, classes, names)
        for name in rows
    ]


def _n_items(headers: dict[str, Header], source: Path) -> int:
    header = headers.get(_LABELS)
    if header is None:
        raise FileFormatError(
            f"{source} has no array called labels; it has {', '.join(headers)[:200] or 'none at all'}",
            "save it as numpy.savez(path, descriptors=X, labels=y)",
        )
    where = f"the array 'labels' in {source}"
    header.dtype(where, "iubUS", "whole numbers or strings")
    if len(header.shape) != 1 or header.shape[0] == 0:
        raise FileFormatError(
            f"{where} has shape {reprlib.repr(header.shape)}; expected (n,), one label for each item",
            "save labels.reshape(-1)",
        )
    return header.shape[0]


def _is_rows(header: Header, n: int) -> bool:
    shape = header.shape
    return header.kind in _NUMBERS and 2 <= len(shape) <= 4 and shape[0] == n and 0 not in shape
