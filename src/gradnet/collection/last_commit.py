"""The number and digest of the last commit, in a small file beside the database, so that a lost commit is noticed.

A commit that SQLite still keeps in its write-ahead log is lost without an error when a byte of the log changes: SQLite
takes the rest of the log for an interrupted write, and shows the version before. The log is therefore merged into the
database at the end of every commit. Where a reader holds that up, the commit is recorded here before it is reported
as done, and whoever opens an older version than the recorded one gets an error.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gradnet.whole_files import in_place

LAST_COMMIT = "collection.last"
_CONTENT = re.compile(rb"([0-9]{1,18}) ([0-9a-f]{64}) ([0-9a-f]{64})\n")
_SIZE = 200  # bytes, more than any content has


class LastCommit(NamedTuple):
    """sequence: how many commits there have been. digest: of all tables after it."""

    sequence: int
    digest: str


class DamagedRecordError(ValueError):
    """A record that is not as it was written; it is of no use, and the next one replaces it."""


def read_last_commit(directory: Path) -> LastCommit | None:
    """The recorded commit; None where there is no record, a DamagedRecordError where it cannot be used."""
    try:
        # Neither through a link, nor waiting for the other end of a pipe.
        handle = os.open(directory / LAST_COMMIT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedRecordError(f"{directory / LAST_COMMIT} cannot be read: {error.strerror}") from error
    try:
        content = os.read(handle, _SIZE) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    finally:
        os.close(handle)
    found = _CONTENT.fullmatch(content)
    if found is None or found[3] != _check(found[1], found[2]):
        raise DamagedRecordError(f"{directory / LAST_COMMIT} is damaged")
    return LastCommit(int(found[1]), found[2].decode())


def usable_last_commit(directory: Path) -> LastCommit | None:
    """The same, None where it is damaged: the collection itself may well be whole."""
    try:
        return read_last_commit(directory)
    except DamagedRecordError:
        return None


def record_last_commit(directory: Path, commit: LastCommit) -> None:
    """Record a commit, unless a later one is recorded already. The commit stands, whether this works or not."""
    known = usable_last_commit(directory)
    if known is not None and known.sequence >= commit.sequence:
        return
    fields = str(commit.sequence).encode(), commit.digest.encode()
    with suppress(OSError), in_place(directory / LAST_COMMIT) as partial:
        partial.write_bytes(b"%b %b %b\n" % (*fields, _check(*fields)))


def _check(sequence: bytes, digest: bytes) -> bytes:
    return hashlib.sha256(b"%b %b" % (sequence, digest)).hexdigest().encode()
