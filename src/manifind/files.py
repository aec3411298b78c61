"""Files: atomic writes, SHA-256 digests, and the first look at any file from outside."""

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from manifind.errors import DataError, FileFormatError, InputError, system_errors_as
from manifind.progress import Listener, Progress, ignore


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A name beside `path` to write a file at, which takes its place in one step when the block ends.

    Where the block fails, what was at `path` stays, and nothing is left beside it.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        with suppress(OSError):
            partial.unlink()


def write_file(path: Path, content: bytes) -> None:
    """Make the file at `path` hold exactly this, in folders that are made where they are missing."""
    with system_errors_as(InputError, f"{path} cannot be written", "choose another path, or make room"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial:
            partial.write_bytes(content)


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
            hint = "remove the line, or the whole file, to record the files anew"
            raise DataError(f"{sums}, line {number}: {line[:80]!r}; expected a SHA-256, two spaces and a path", hint)
        found[match[2]] = match[1]
    return found


def record(folder: Path, path: str, sha256: str) -> None:
    """Add one file's SHA-256 to the folder's list, which is whole at every moment."""
    sums = {**read_sums(folder), path: sha256}
    text, file = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items())), folder / SUMS
    hint = "make the folder yours to write, or name another with --folder"
    with system_errors_as(DataError, f"{file} cannot be written", hint), atomic_write(file) as partial:
        partial.write_text(text, encoding="utf-8")


def check_regular_file(file: Path, expected: str) -> None:
    """Refuse what is no plain file with something in it. expected: what the caller wants, in words."""
    if not file.exists():
        raise FileFormatError(f"{file} does not exist; {expected}", "check the spelling and the folder")
    if file.is_dir():
        raise FileFormatError(f"{file} is a folder; {expected}", "name one file inside it")
    if not file.is_file():  # reading a pipe or a device could wait for ever
        raise FileFormatError(f"{file} is not a regular file; {expected}", "save it to a file first")
    if file.stat().st_size == 0:
        raise FileFormatError(f"{file} is empty (0 bytes); {expected}", "write it again: saving was interrupted")


def readable(file: Path) -> AbstractContextManager[None]:
    """What the system says about a file that cannot be read, as an error of ours."""
    hint = "check that it is yours to read and its disk is there"
    return system_errors_as(FileFormatError, f"{file} cannot be read", hint)
