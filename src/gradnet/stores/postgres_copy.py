"""Rows as PostgreSQL's COPY takes them in its binary format: an id, a vector of pgvector, metadata as jsonb."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradnet.arrays import Floats, row_blocks
from gradnet.collection.metadata import Fields
from gradnet.stores.postgres_where import EXACT_DOUBLES

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)  # flags, length of an extension
_END = struct.pack(">h", -1)
_FIELDS = struct.pack(">h", 3)
_JSONB_VERSION = b"\x01"
_ROWS_PER_BLOCK = 1024


def copy_blocks(ids: Sequence[Any], vectors: Floats, metadata: Sequence[Fields]) -> Iterator[bytes]:
    """The bytes to send, some rows at a time. ids: all texts or all whole numbers."""
    yield _SIGNATURE
    head = struct.pack(">hh", vectors.shape[1], 0)
    for rows in row_blocks(len(ids), _ROWS_PER_BLOCK):
        numbers = vectors[rows].astype(">f4")
        yield b"".join(
            _FIELDS + _sized(_id_bytes(id_)) + _sized(head + vector.tobytes()) + _sized(_jsonb(fields))
            for id_, vector, fields in zip(ids[rows], numbers, metadata[rows], strict=True)
        )
    yield _END


def vector_from(sent: bytes) -> Floats:
    """A vector as the server sends it."""
    return np.frombuffer(sent, dtype=">f4", offset=4).astype(np.float32)


def vector_text(vector: Floats) -> str:
    """A vector as a parameter; every float32 comes back as it was."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def _sized(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def _id_bytes(id_: str | int) -> bytes:
    return id_.encode() if isinstance(id_, str) else struct.pack(">q", id_)


def _jsonb(fields: Fields) -> bytes:
    exact = {name: _exact(value) for name, value in fields.items()}
    return _JSONB_VERSION + json.dumps(exact, ensure_ascii=False).encode()


def _exact(value: Any) -> Any:
    """Large doubles as the whole numbers that they are: jsonb would take their shortest decimals for the number."""
    if isinstance(value, list):
        return [_exact(one) for one in value]
    return int(value) if isinstance(value, float) and abs(value) >= EXACT_DOUBLES else value
