"""A data set's files, brought into its folder: only what is missing, and nothing with the wrong bytes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from gradnet.data.catalogue import select_files
from gradnet.data.dataset import DataSet, RemoteFile
from gradnet.data.digests import SUMS, read_sums, record, sha256_of
from gradnet.data.download import Patience, download
from gradnet.data.folder import make_writable
from gradnet.data.unpack import unpack
from gradnet.errors import DataError
from gradnet.progress import Listener, ignore
from gradnet.whole_files import in_place

PATIENT = Patience()


class Fetched(NamedTuple):
    """One file and how it came.

    outcome: "downloaded"; "present", with the bytes that it should have; "found", put there by someone and
    recorded now; "unpacked", where only the folder of an archive is left.
    sha256: None for "unpacked". folder: what an archive was unpacked to.
    """

    file: RemoteFile
    path: Path
    outcome: str
    sha256: str | None
    folder: Path | None


def fetch(
    dataset: DataSet,
    root: Path,
    parts: Sequence[str] = (),
    *,
    patience: Patience = PATIENT,
    listener: Listener = ignore,
) -> list[Fetched]:
    """Every file of the parts, in its place under `root`; a DataError tells what to get by hand otherwise.

    parts: names of parts; without any, those that the set needs by default.
    """
    folder = root / dataset.name
    return [_fetch_file(dataset, file, folder, patience, listener) for file in select_files(dataset, parts)]


def by_hand(dataset: DataSet, file: RemoteFile, path: Path) -> str:
    """What to get by hand, from where, and where to put it."""
    obtain = dataset.obtain if file.obtain is None else file.obtain
    return f"get {file.name} from {file.page or dataset.source} and put it at {path}" + (
        f"; {obtain}" if obtain else ""
    )


def _way_out(dataset: DataSet, file: RemoteFile, path: Path) -> str:
    return f"{by_hand(dataset, file, path)}; `gradnet data check {dataset.name}` will then look at it"


def _fetch_file(
    dataset: DataSet, file: RemoteFile, folder: Path, patience: Patience, listener: Listener
) -> Fetched:
    path = folder / file.path
    unpacked = folder / file.unpack_to if file.unpack_to else None
    if unpacked and unpacked.is_dir() and not path.exists():
        return Fetched(file, path, "unpacked", None, unpacked)
    with _in_words(dataset, file, path):
        known = file.sha256 or read_sums(folder).get(file.path)
        digest = sha256_of(path, listener) if path.is_file() else None
        outcome = "present" if known else "found"
        if digest is None or known not in (None, digest):
            make_writable(path.parent)
            if digest is not None:
                _set_aside(path, unpacked)
            digest, outcome = _download(dataset, file, path, known, patience, listener), "downloaded"
        if unpacked and not unpacked.is_dir():
            unpack(path, unpacked, file.size, listener)
        if known is None:  # last: an archive that is refused is nothing to compare later ones with
            record(folder, file.path, digest)
    return Fetched(file, path, outcome, digest, unpacked)


def _set_aside(path: Path, unpacked: Path | None) -> None:
    """Move a file with the wrong bytes, and what was unpacked from it, out of the way; delete nothing."""
    os.replace(path, path.with_name(f"{path.name}.wrong"))
    if unpacked and unpacked.is_dir():
        unpacked.rename(unpacked.with_name(f".{unpacked.name}.{secrets.token_hex(4)}.wrong"))


def _download(
    dataset: DataSet, file: RemoteFile, path: Path, known: str | None, patience: Patience, listener: Listener
) -> str:
    """SHA-256 of the file that is in its place now, the known one where there is one."""
    hint = _way_out(dataset, file, path)
    with in_place(path) as partial:
        digest = download(file.url, partial, file.size, patience, listener, hint)
        if known not in (None, digest):
            raise DataError(*_differs(file, digest, known, hint))
    return digest


def _differs(file: RemoteFile, digest: str, known: str | None, hint: str) -> tuple[str, str]:
    """Problem and way out for a download with other bytes than it should have."""
    problem = f"{file.name} came with the SHA-256 {digest}; expected {known}"
    if file.sha256:
        return f"{problem}, as published, so it was not kept", hint
    return (
        f"{problem}, as recorded at its first download, so it was not kept",
        f"if the source has changed it on purpose, remove its line from {SUMS} in the set's folder and fetch again; "
        f"else {hint}",
    )


@contextmanager
def _in_words(dataset: DataSet, file: RemoteFile, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{path} cannot be read or written: {error.strerror or error}", _way_out(dataset, file, path)
        ) from error
