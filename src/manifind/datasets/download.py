"""Downloads a data set's files: only what is missing, retried where that may help, compared with known digests."""

from __future__ import annotations

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
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote, urlsplit

from manifind.datasets.archive import unpack
from manifind.datasets.catalogue import DataSet, RemoteFile, make_writable, select_files
from manifind.errors import DataError, MissingExtraError
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


def reason(error: BaseException, timeout: float) -> str:
    """What went wrong, as the end of a sentence, without credentials."""
    status = _status(error)
    if status is not None:
        return f"the server answered {status} ({http.client.responses.get(status, 'a status of its own')})"
    if isinstance(error, ftplib.Error):
        return f"the server answered {without_credentials(str(error))[:200]!r}"
    if isinstance(error, CutShortError | WrongAnswerError):
        return str(error)
    causes = list(_causes(error))
    for kinds, words in _WORDS:
        if any(isinstance(cause, kinds) for cause in causes):
            return words.format(timeout=timeout)
    return without_credentials(str(error))[:200] or type(error).__name__


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later."""
    status = _status(error)
    if status is not None:
        return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _TRANSIENT_STATUSES
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)):
        return False
    # requests' errors about the address itself are ValueErrors too
    return not isinstance(error, ftplib.error_perm | ftplib.error_proto | ValueError)


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


def _status(error: BaseException) -> int | None:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


_WEB_PAGE = (b"<!doctype html", b"<html")


class Sink:
    """Takes the bytes of one try. total: what the server promised, 0 where it promised nothing.

    disk_failure: what the disk said, which could not be told from a failure of the network otherwise.
    `write` and the methods below it are those that pooch calls on a file and on a progress bar.
    """

    def __init__(self, stream: BinaryIO, name: str, size: int | None, listener: Listener) -> None:
        self.total = 0
        self.disk_failure: OSError | None = None
        self._written, self._digest, self._head = 0, hashlib.sha256(), b""
        self._stream, self._stage, self._size, self._listener = stream, f"fetching {name}", size, listener

    def finish(self) -> None:
        """Hand the last bytes to the disk, which may be full only now."""
        with self._watched():
            self._stream.flush()

    def sha256(self) -> str:
        """The digest, unless the bytes are too few or a page that servers send for files that are gone."""
        if self._written < self.total:
            raise CutShortError(f"the connection was dropped after {self._written:,} of {self.total:,} bytes")
        if not self._written:
            raise WrongAnswerError("the server sent an empty file")
        if self._head.lstrip().lower().startswith(_WEB_PAGE):
            raise WrongAnswerError("the server sent a web page instead of the file")
        return self._digest.hexdigest()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.disk_failure = error
            raise

    def write(self, data: bytes) -> None:
        """Take some bytes."""
        with self._watched():
            self._stream.write(data)
        self._digest.update(data)
        self._head = self._head or data[:200]
        self._written += len(data)
        expected = self.total or self._size or 0
        self._listener(Progress(self._stage, self._written, max(expected, self._written)))

    def flush(self, *_: int) -> None:
        """Nothing: `write` counts the bytes, `finish` flushes once, and the caller closes the file."""

    update = reset = close = flush


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
    shown = without_credentials(url)
    if _scheme(url) not in _SCHEMES:
        raise DataError(f"{shown} is not an address of the kinds {', '.join(_SCHEMES)}", hint)
    attempt = 1
    while True:
        try:
            return _try(url, target, size, retries.timeout, listener)
        except (OSError, EOFError, ValueError, ftplib.Error) as error:
            if attempt == retries.tries or not is_transient(error):
                after = f" ({attempt} tries)" if attempt > 1 else ""
                why = reason(error, retries.timeout)
                raise DataError(f"{shown} cannot be fetched: {why}{after}", hint) from error
        time.sleep(retries.pause * 2 ** (attempt - 1))
        attempt += 1


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


def _try(url: str, target: Path, size: int | None, timeout: float, listener: Listener) -> str:
    parts = urlsplit(url)
    with target.open("wb") as stream:
        sink = Sink(stream, parts.path.rsplit("/", 1)[-1], size, listener)
        try:
            (_from_ftp if parts.scheme == "ftp" else _from_http)(url, sink, timeout)
            sink.finish()
        except Exception as error:
            if sink.disk_failure is not None:
                raise DataError(
                    f"{target.parent} cannot take the file: {sink.disk_failure.strerror}",
                    "make room, or name another folder with --folder",
                ) from error
            raise
    return sink.sha256()


def _from_http(url: str, sink: Sink, timeout: float) -> None:
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError(
            "fetching needs pooch, which is not installed", 'pip install "manifind[data]"'
        ) from error
    answers: list[Any] = []
    ask = pooch.HTTPDownloader(
        progressbar=sink,
        chunk_size=_BLOCK,
        timeout=timeout,
        # Unpacked on the way, a file would have another digest and another length than the published one.
        headers={"Accept-Encoding": "identity"},
        hooks={"response": lambda answer, **_: answers.append(answer)},
    )
    try:
        ask(url, sink, None)
    finally:
        for answer in answers:  # pooch leaves the connection open where it fails
            answer.close()


def _from_ftp(url: str, sink: Sink, timeout: float) -> None:
    """As pooch would, except that it asks for the size, without which a short file could not be noticed."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    with ftplib.FTP(timeout=timeout) as ftp:  # noqa: S321 - the source offers nothing else; digests are kept
        ftp.connect(parts.hostname or "", parts.port or ftplib.FTP_PORT)
        ftp.login(unquote(parts.username or ""), unquote(parts.password or ""))
        ftp.voidcmd("TYPE I")
        sink.total = _ftp_size(ftp, path)
        ftp.retrbinary(f"RETR {path}", sink.write, _BLOCK)


def _ftp_size(ftp: ftplib.FTP, path: str) -> int:
    try:
        return ftp.size(path) or 0
    except ftplib.error_perm:  # the command is optional
        return 0


DEFAULT_RETRIES = RetryPolicy()


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
    return f"get {file.name} from {file.page or dataset.source} and put it at {path}" + (
        f"; {obtain}" if obtain else ""
    )


def _way_out(dataset: DataSet, file: RemoteFile, path: Path) -> str:
    return f"{by_hand(dataset, file, path)}; `manifind data check {dataset.name}` will then look at it"


def _fetch_file(dataset: DataSet, file: RemoteFile, folder: Path, retries: RetryPolicy, listener: Listener) -> Fetched:
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
            digest, outcome = _download(dataset, file, path, known, retries, listener), "downloaded"
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
            )
            hint += f"again; else {_way_out(dataset, file, path)}"
        raise DataError(
            f"{file.name} came with the SHA-256 {digest}; expected {known}, as {origin}, so it was not kept", hint
        )


@contextmanager
def _in_words(dataset: DataSet, file: RemoteFile, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{path} cannot be read or written: {error.strerror or error}", _way_out(dataset, file, path)
        ) from error
