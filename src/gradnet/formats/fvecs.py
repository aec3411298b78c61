"""Vectors in the .fvecs format: each row a little-endian int32 d, then d float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import Vectors


def read_fvecs(path: Path) -> Vectors:
    """Vectors without ids, the rows float32 in C order."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        d = int.from_bytes(stream.read(4), "little", signed=True)
    row_bytes = 4 + 4 * d
    if d < 1 or size % row_bytes:
        raise FileFormatError(
            f"{path} has {size:,} bytes and a first row of {d} numbers; "
            "expected .fvecs, where every row takes 4 bytes for d and 4 d for its numbers",
            "copy or save it again: it is cut short, or in another format",
        )
    words = np.memmap(path, dtype="<i4", mode="r", shape=(size // row_bytes, 1 + d))
    differs = words[:, 0] != d
    if differs.any():
        row = int(differs.argmax())
        raise FileFormatError(
            f"{path} has {words[row, 0]} numbers in row {row} (counted from 0) but {d} in row 0; "
            "expected the same in every row",
            "copy or save it again: it is damaged, or in another format",
        )
    return Vectors(np.array(words[:, 1:].view("<f4"), order="C", subok=False), None)
