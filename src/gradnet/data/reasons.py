"""Why a download failed, in words: statuses, dropped connections, timeouts, names that do not resolve."""

from __future__ import annotations

import ftplib
import http.client
import re
import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus

_CREDENTIALS = re.compile(r"//[^/\s]*@")
_PASSING_STATUSES = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


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
        return f"the server answered {status} ({_phrase(status)})"
    if isinstance(error, ftplib.Error):
        return f"the server answered {without_credentials(str(error))[:200]!r}"
    if isinstance(error, CutShortError | WrongAnswerError):
        return str(error)
    causes = list(_causes(error))
    for kinds, words in _WORDS:
        if any(isinstance(cause, kinds) for cause in causes):
            return words.format(timeout=timeout)
    return without_credentials(str(error))[:200] or type(error).__name__


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later."""
    status = _status(error)
    if status is not None:
        return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING_STATUSES
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


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "a status of its own"
