"""Who may ask, how much and for how long: decided before a request reaches anything that works on it.

A page of another site cannot ask, because its origin is another; its forms cannot change anything, because a request
that may do so has to show that it comes from our own page or that no form could have sent it. A name that is bound to
this address later (DNS rebinding) cannot ask, because the host it names is none of ours. There are no cookies, so
nothing is sent by itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import anyio

from gradnet.web.bodies import TOO_MUCH, Bodies, Body, BodyRefusedError, Receive, too_large
from gradnet.web.metrics import Metrics
from gradnet.web.problems import refused

Scope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ALWAYS = ("/healthz",)  # answered however much is going on
_PAGES = ("/", "/api")  # where a link on another site may lead
_READING = ("GET", "HEAD")
_FORMS = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
_PORTS = {"http": 80, "https": 443}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class Rules:
    """hosts: names under which this server is asked. token: what every question must carry; None for nobody's.

    most_bytes: of a picture. most_json_bytes: of any other body, which is parsed while everybody waits; twice as many
    of all those together. most_held_bytes: of all pictures together. most_large_bodies: those that come at the same
    time and have more than 64 KB. most_at_once: requests in work. seconds: for one of them.
    """

    hosts: tuple[str, ...] = LOOPBACK
    token: str | None = None
    most_bytes: int = 32 << 20
    most_json_bytes: int = 4 << 20
    most_held_bytes: int = 40 << 20
    most_large_bodies: int = 16
    most_at_once: int = 128
    seconds: float = 60.0


@dataclass
class _Answer:
    """status: what has been sent so far, 0 for nothing. body: of the request, where it is read."""

    status: int = 0
    body: Body | None = None


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: App, rules: Rules, metrics: Metrics) -> None:
        self._app, self._rules, self._metrics = app, rules, metrics
        self._at_once = 0
        self._pictures = Bodies(rules.most_held_bytes, rules.most_large_bodies)
        self._others = Bodies(2 * rules.most_json_bytes, rules.most_large_bodies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there is nothing for sockets here
        answer = _Answer()
        protected = _with_headers(send, answer)
        with self._metrics.timed() as timing:
            await self._answer(scope, receive, protected, answer)
        self._metrics.count(scope, answer.status, timing.seconds)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, answer: _Answer) -> None:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        bodies = self._pictures if _is_picture(headers) else self._others
        refusal = self._refusal(scope, headers) or self._busy(scope, headers, bodies)
        if refusal is not None:
            await refused(*refusal)(scope, receive, send)
            return
        self._at_once += 1
        body = answer.body = Body(self._lending(receive), self._most_bytes(headers), bodies)
        try:
            with anyio.fail_after(self._rules.seconds), suppress(BodyRefusedError):
                await self._app(scope, body.receive, send)
            answer.body = None
            if body.refusal is not None and not answer.status:
                await refused(*body.refusal)(scope, receive, send)
        except TimeoutError:
            if not answer.status:
                late = refused(503, f"this took longer than {self._rules.seconds:g} s", "try again later")
                await late(scope, receive, send)
        finally:
            self._at_once -= 1
            body.close()

    def _lending(self, receive: Receive) -> Receive:
        """Whoever sends slowly keeps nobody from being answered."""

        async def lending() -> MutableMapping[str, Any]:
            self._at_once -= 1
            try:
                return await receive()
            finally:
                self._at_once += 1

        return lending

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        rules = self._rules
        host = _host_of(headers.get("host", ""))
        if host not in rules.hosts:
            return 403, "this server is not known under that name", "ask for it by its own address"
        has_token = rules.token is not None and _has_token(headers, rules.token)
        if not _may_come(scope, headers):
            return 403, "another site may not ask here", "open the page of this server itself"
        if not has_token and _could_be_a_form(scope, headers):
            hint = "send a content type, such as application/json"
            return 403, "a form of another site could have sent this", hint
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or len(length) > 15:
            return 400, "the length of the body is no number", ""
        if int(length) > self._most_bytes(headers):
            return too_large(self._most_bytes(headers))
        path = scope["path"]
        if rules.token is not None and not has_token and (path.startswith("/api/") or path == "/metrics"):
            return 401, "this server wants a token", "open the address with #token=... at its end"
        return None

    def _busy(self, scope: Scope, headers: dict[str, str], bodies: Bodies) -> tuple[int, str, str] | None:
        if scope["path"] in _ALWAYS:
            return None
        if self._at_once >= self._rules.most_at_once:
            return 503, "too many requests at once", "try again in a second"
        length = None if "transfer-encoding" in headers else int(headers.get("content-length", "0"))
        return None if bodies.has_room(length) else TOO_MUCH

    def _most_bytes(self, headers: dict[str, str]) -> int:
        most = self._rules.most_bytes
        return most if _is_picture(headers) else min(self._rules.most_json_bytes, most)


def _is_picture(headers: dict[str, str]) -> bool:
    return _kind(headers).startswith("image/") or _kind(headers) == "application/octet-stream"


def _kind(headers: dict[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _host_of(value: str) -> str:
    try:
        return urlsplit(f"//{value}").hostname or ""
    except ValueError:
        return ""


def _origin(text: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an origin; None for what is none, such as "null"."""
    try:
        parts = urlsplit(text)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return None if port is None or not parts.hostname else (parts.scheme, parts.hostname, port)


def _has_token(headers: dict[str, str], token: str) -> bool:
    given = headers.get("authorization", "")
    return secrets.compare_digest(given.encode(), f"Bearer {token}".encode())


def _may_come(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether a browser says that our own page asks, or none says anything; of other sites only links lead here."""
    site, origin, reads = headers.get("sec-fetch-site"), headers.get("origin"), scope["method"] in _READING
    if site == "same-origin":
        return True
    if site is None or (site == "none" and reads):
        own = _origin(f"{scope.get('scheme', 'http')}://{headers.get('host', '')}")
        return origin is None or (own is not None and _origin(origin) == own)
    is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return reads and is_link and scope["path"] in _PAGES


def _could_be_a_form(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether an old browser might have sent it for a form of another site without saying so."""
    says_nothing = "sec-fetch-site" not in headers and "origin" not in headers
    return says_nothing and scope["method"] == "POST" and _kind(headers) in _FORMS


def _with_headers(send: Send, answer: _Answer) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if answer.body is not None and answer.body.refusal is not None and not answer.status:
            return  # whatever was made of half a body
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            given = {name.lower() for name, _ in message.get("headers", [])}
            extra = [
                (name.encode(), value.encode())
                for name, value in _HEADERS.items()
                if name.encode() not in given
            ]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return sending
