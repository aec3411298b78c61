"""SHA-256 of data files: what a file has now, and what it had when it first came."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from gradnet.errors import DataError
from gradnet.progress import Listener, Progress, ignore
from gradnet.whole_files import in_place

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")  # as sha256sum writes it, for text and for binary files
_BLOCK = 1 << 20


def sha256_of(path: Path, listener: Listener = ignore) -> str:
    """The file's SHA-256 in hexadecimal."""
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            done += len(block)
            listener(Progress(f"checking {path.name}", done, max(total, done)))
    return digest.hexdigest()


def read_sums(folder: Path) -> dict[str, str]:
    """Path inside the folder to recorded SHA-256; empty where nothing was recorded yet."""
    sums = folder / SUMS
    try:
        lines = sums.read_text(encoding="utf-8").splitlines() if sums.is_file() else []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{sums} cannot be read: {error}", "remove it to record the files anew") from error
    found = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise DataError(
                f"{sums}, line {number}: {line[:80]!r}; expected a SHA-256, two spaces and a path",
                "remove the line, or the whole file, to record the files anew",
            )
        found[match[2]] = match[1]
    return found


def record(folder: Path, path: str, sha256: str) -> None:
    """Add one file's SHA-256 to the folder's list, which is whole at every moment."""
    sums = {**read_sums(folder), path: sha256}
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    try:
        with in_place(folder / SUMS) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(
            f"{folder / SUMS} cannot be written: {error.strerror or error}",
            "make the folder yours to write, or name another with --folder",
        ) from error
