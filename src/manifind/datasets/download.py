"""Downloads a data set's files: only what is missing, retried where that may help, compared with known digests."""

import ftplib
import hashlib
import http.client
import os
import re
import secrets
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from io import FileIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from manifind.datasets.archive import unpack
from manifind.datasets.catalogue import DataSet, RemoteFile, make_writable, select_files
from manifind.errors import DataError, needing, system_errors_as
from manifind.files import SUMS, atomic_write, read_sums, record, sha256_of
from manifind.progress import Listener, Progress, ignore

_CREDENTIALS = re.compile(r"//[^/\s]*@")
_TRANSIENT_STATUSES = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


class CutShortError(ConnectionError):
    """A body with fewer bytes than were promised."""


class WrongAnswerError(ValueError):
    """An answer that cannot be the file, and would be the same the next time."""


def without_credentials(text: str) -> str:
    """The text with `user:password@` taken out of every address in it."""
    return _CREDENTIALS.sub("//", text)


def diagnose(error: BaseException, timeout: float) -> tuple[str, bool]:
    """What went wrong, as the end of a sentence without credentials; whether the same may succeed a moment later."""
    causes, message = list(_causes(error)), without_credentials(str(error))[:200]
    # requests' errors about the address itself are ValueErrors too
    is_final = isinstance(error, ftplib.error_perm | ftplib.error_proto | ValueError)
    is_transient = not is_final and not any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes)
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        words = f"the server answered {status} ({http.client.responses.get(status, 'a status of its own')})"
        return words, status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _TRANSIENT_STATUSES
    if isinstance(error, ftplib.Error):
        return f"the server answered {message!r}", is_transient
    if isinstance(error, CutShortError | WrongAnswerError):
        return str(error), is_transient
    for kinds, words in _WORDS:
        if any(isinstance(cause, kinds) for cause in causes):
            return words.format(timeout=timeout), is_transient
    return message or type(error).__name__, is_transient


_WORDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (socket.gaierror, "its server's name cannot be found; is this machine online?"),
    (ssl.SSLError, "no secure connection to the server could be made"),
    (TimeoutError, "the server was silent for {timeout:g} s"),
    (ConnectionRefusedError, "the server refused the connection"),
    ((http.client.HTTPException, ConnectionError, EOFError), "the connection was dropped"),
)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it was raised from or while handling, outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


_WEB_PAGE = (b"<!doctype html", b"<html")


class Sink:
    """Takes the bytes of one try. total: what the server promised, 0 where it promised nothing."""

    def __init__(self, stream: FileIO, stage: str, size: int | None, listener: Listener) -> None:
        self.total = 0
        self._written, self._digest, self._head = 0, hashlib.sha256(), b""
        self._stream, self._stage, self._size, self._listener = stream, stage, size, listener

    def sha256(self) -> str:
        """The digest, unless the bytes are too few or a page that servers send for files that are gone."""
        if self._written < self.total:
            raise CutShortError(f"the connection was dropped after {self._written:,} of {self.total:,} bytes")
        if not self._written:
            raise WrongAnswerError("the server sent an empty file")
        if self._head.lstrip().lower().startswith(_WEB_PAGE):
            raise WrongAnswerError("the server sent a web page instead of the file")
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        """Take some bytes. What the disk says about them is told apart from a failure of the network."""
        left = memoryview(data)
        try:
            while left:
                left = left[self._stream.write(left) :]
        except OSError as error:
            problem = f"{Path(str(self._stream.name)).parent} cannot take the file: {error.strerror}"
            raise DataError(problem, "make room, or name another folder with --folder") from error
        self._digest.update(data)
        self._head = self._head or data[:200]
        self._written += len(data)
        expected = self.total or self._size or 0
        self._listener(Progress(self._stage, self._written, max(expected, self._written)))


_SCHEMES = ("http", "https", "ftp")
_BLOCK = 1 << 18


@dataclass(frozen=True)
class RetryPolicy:
    """tries: at most. timeout: seconds of silence. pause: seconds before the second try, doubled each time."""

    tries: int = 3
    timeout: float = 30.0
    pause: float = 1.0


def download(url: str, target: Path, size: int | None, retries: RetryPolicy, listener: Listener, hint: str) -> str:
    """SHA-256 of what the address answered, which is in `target` now; a DataError with the hint otherwise."""
    shown, parts = without_credentials(url), urlsplit("")
    with suppress(ValueError):
        parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        raise DataError(f"{shown} is not an address of the kinds {', '.join(_SCHEMES)}", hint)
    attempt = 0
    while True:
        attempt += 1
        try:
            with target.open("wb", buffering=0) as stream:
                sink = Sink(stream, f"fetching {parts.path.rsplit('/', 1)[-1]}", size, listener)
                (_from_ftp if parts.scheme == "ftp" else _from_http)(url, sink, retries.timeout)
            return sink.sha256()
        except (OSError, EOFError, ValueError, ftplib.Error) as error:
            reason, is_transient = diagnose(error, retries.timeout)
            if attempt == retries.tries or not is_transient:
                after = f" ({attempt} tries)" if attempt > 1 else ""
                raise DataError(f"{shown} cannot be fetched: {reason}{after}", hint) from error
        time.sleep(retries.pause * 2 ** (attempt - 1))


def _from_http(url: str, sink: Sink, timeout: float) -> None:
    with needing("data", "fetching needs pooch, which is not installed"):
        import requests  # comes with pooch
    # Unpacked on the way, a file would have another digest and another length than the published one.
    with requests.get(url, stream=True, timeout=timeout, headers={"Accept-Encoding": "identity"}) as answer:
        answer.raise_for_status()
        sink.total = int(answer.headers.get("content-length", 0))
        for block in answer.iter_content(_BLOCK):
            sink.write(block)


def _from_ftp(url: str, sink: Sink, timeout: float) -> None:
    parts = urlsplit(url)
    path = unquote(parts.path)
    with ftplib.FTP(timeout=timeout) as ftp:  # noqa: S321 - the source offers nothing else; digests are kept
        ftp.connect(parts.hostname or "", parts.port or ftplib.FTP_PORT)
        ftp.login(unquote(parts.username or ""), unquote(parts.password or ""))
        ftp.voidcmd("TYPE I")
        with suppress(ftplib.error_perm):  # the command is optional; without it a short file cannot be noticed
            sink.total = ftp.size(path) or 0
        ftp.retrbinary(f"RETR {path}", sink.write, _BLOCK)


DEFAULT_RETRIES = RetryPolicy()


class Fetched(NamedTuple):
    """One file and how it came.

    outcome: "downloaded"; "present", with the bytes that it should have; "found", put there by someone and
    recorded now; "unpacked", where only the folder of an archive is left.
    """

    file: RemoteFile
    path: Path
    outcome: str
    sha256: str | None  # None for "unpacked"
    folder: Path | None  # what an archive was unpacked to


def fetch(
    dataset: DataSet,
    root: Path,
    parts: Sequence[str] = (),
    *,
    retries: RetryPolicy = DEFAULT_RETRIES,
    listener: Listener = ignore,
) -> list[Fetched]:
    """Every file of the parts, in its place under `root`; a DataError tells what to get by hand otherwise.

    parts: names of parts; without any, those that the set needs by default.
    """
    folder = root / dataset.name
    return [_fetch_file(dataset, file, folder, retries, listener) for file in select_files(dataset, parts)]


def by_hand(dataset: DataSet, file: RemoteFile, path: Path) -> str:
    """What to get by hand, from where, and where to put it."""
    obtain = dataset.obtain if file.obtain is None else file.obtain
    steps = f"get {file.name} from {file.page or dataset.source} and put it at {path}"
    return f"{steps}; {obtain}" if obtain else steps


def _way_out(dataset: DataSet, file: RemoteFile, path: Path) -> str:
    return f"{by_hand(dataset, file, path)}; `manifind data check {dataset.name}` will then look at it"


def _fetch_file(dataset: DataSet, file: RemoteFile, folder: Path, retries: RetryPolicy, listener: Listener) -> Fetched:
    path = folder / file.path
    unpacked = folder / file.unpack_to if file.unpack_to else None
    if unpacked and unpacked.is_dir() and not path.exists():
        return Fetched(file, path, "unpacked", None, unpacked)
    with system_errors_as(DataError, f"{path} cannot be read or written", _way_out(dataset, file, path)):
        known = file.sha256 or read_sums(folder).get(file.path)
        digest = sha256_of(path, listener) if path.is_file() else None
        outcome = "present" if known else "found"
        if digest is None or known not in (None, digest):
            make_writable(path.parent)
            if digest is not None:  # the wrong bytes, and what was unpacked from them, are moved, not deleted
                os.replace(path, path.with_name(f"{path.name}.wrong"))
                if unpacked and unpacked.is_dir():
                    unpacked.rename(unpacked.with_name(f".{unpacked.name}.{secrets.token_hex(4)}.wrong"))
            digest, outcome = _download(dataset, file, path, known, retries, listener), "downloaded"
        if unpacked and not unpacked.is_dir():
            unpack(path, unpacked, file.size, listener)
        if known is None:  # last: an archive that is refused is nothing to compare later ones with
            record(folder, file.path, digest)
    return Fetched(file, path, outcome, digest, unpacked)


def _download(
    dataset: DataSet, file: RemoteFile, path: Path, known: str | None, retries: RetryPolicy, listener: Listener
) -> str:
    """SHA-256 of the file that is in its place now, the known one where there is one."""
    hint, origin = _way_out(dataset, file, path), "published"
    with atomic_write(path) as partial:
        digest = download(file.url, partial, file.size, retries, listener, hint)
        if known in (None, digest):
            return digest
        if not file.sha256:
            origin = "recorded at its first download"
            hint = (
                f"if the source has changed it on purpose, remove its line from {SUMS} in the set's folder and fetch "
                f"again; else {hint}"
            )
        problem = f"{file.name} came with the SHA-256 {digest}; expected {known}, as {origin}, so it was not kept"
        raise DataError(problem, hint)
