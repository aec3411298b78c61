"""One address from the network into one file, asked again where that may help."""

from __future__ import annotations

import ftplib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from gradnet.data.reasons import is_passing, reason, without_credentials
from gradnet.data.sink import Sink
from gradnet.errors import DataError, MissingExtraError
from gradnet.progress import Listener

_SCHEMES = ("http", "https", "ftp")
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Patience:
    """tries: at most. timeout: seconds of silence. pause: seconds before the second try, doubled each time."""

    tries: int = 3
    timeout: float = 30.0
    pause: float = 1.0


def download(
    url: str, target: Path, size: int | None, patience: Patience, listener: Listener, hint: str
) -> str:
    """SHA-256 of what the address answered, which is in `target` now; a DataError with the hint otherwise."""
    shown = without_credentials(url)
    if _scheme(url) not in _SCHEMES:
        raise DataError(f"{shown} is not an address of the kinds {', '.join(_SCHEMES)}", hint)
    attempt = 1
    while True:
        try:
            return _try(url, target, size, patience.timeout, listener)
        except (OSError, EOFError, ValueError, ftplib.Error) as error:
            if attempt == patience.tries or not is_passing(error):
                after = f" ({attempt} tries)" if attempt > 1 else ""
                why = reason(error, patience.timeout)
                raise DataError(f"{shown} cannot be fetched: {why}{after}", hint) from error
        time.sleep(patience.pause * 2 ** (attempt - 1))
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
            "fetching needs pooch, which is not installed", 'pip install "gradnet[data]"'
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
