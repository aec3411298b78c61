"""Middleware: who may send requests, how large bodies may be, which headers answers carry, what is counted.

A page of another site is refused for its origin. Its forms cannot change anything: a request that does must come from
our own page, or be of a kind that no form can send. A name that is bound to this address later (DNS rebinding) is
refused, since it is not one of our hosts. There are no cookies, so a browser sends no credentials by itself.
"""

import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

import anyio
import prometheus_client as prometheus
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manifind.server.errors import refused

_Refusal: TypeAlias = tuple[int, str, str]  # status, error and hint

_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """How many requests there were, and how long they took, by path as the API names it, and by status.

    n_items: of the collection, asked whenever the metrics are read.
    """

    def __init__(self, n_items: Callable[[], float]) -> None:
        self._registry = registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=registry)
        prometheus.PlatformCollector(registry=registry)
        labels = ("method", "path", "status")
        self._requests = prometheus.Counter("manifind_requests_total", "Requests.", labels, registry=registry)
        self._seconds = prometheus.Histogram(
            "manifind_request_seconds", "Time of a request.", ("path",), buckets=_BUCKETS, registry=registry
        )
        prometheus.Gauge("manifind_items", "Items in the collection.", registry=registry).set_function(n_items)

    def count(self, scope: Scope, status: int, seconds: float) -> None:
        """Enter a request. Paths are those of the API, so that nobody can fill the memory with names."""
        path = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE", "HEAD") else "other"
        self._requests.labels(method, path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return prometheus.generate_latest(self._registry)


_TOO_MUCH = (503, "too much is being uploaded at once", "try again in a few seconds")
_SMALL = 64 << 10  # bytes that come in a packet or two and need no place among the large ones


class BodyRefusedError(Exception):
    """The rest of a body is not read; why, stands in the body."""


@dataclass
class Bodies:
    """The bodies of all requests. most_bytes: of those not answered yet. most_large: received at the same time."""

    most_bytes: int
    most_large: int
    n_bytes: int = 0
    n_large: int = 0

    def has_room(self, n_bytes: int | None) -> bool:
        """Whether one more fits. n_bytes: its length according to its head, None where that has none."""
        if n_bytes == 0:
            return True
        is_small = n_bytes is not None and n_bytes <= _SMALL
        return self.n_bytes + (n_bytes or 0) <= self.most_bytes and (is_small or self.n_large < self.most_large)


class Body:
    """The body of one request. refusal: status, error and hint where it was not read to its end."""

    def __init__(self, receive: Receive, most_bytes: int, others: Bodies) -> None:
        self.refusal: _Refusal | None = None
        self._receive, self._most_bytes, self._others = receive, most_bytes, others
        self._n_bytes, self._is_coming, self._is_large = 0, True, False

    async def receive(self) -> Message:
        """The next part, as the application reads it; refused where that is too much, whatever length the head gave."""
        message = await self._receive()
        if self._is_coming:
            self._count(len(message.get("body", b"")), message.get("more_body", False))
            self.refusal = self._problem(message["type"])
            if self.refusal is not None:
                raise BodyRefusedError
        return message

    def close(self) -> None:
        """Give back what it took."""
        self._count(-self._n_bytes, False)

    def _count(self, n_bytes: int, is_coming: bool) -> None:
        self._n_bytes += n_bytes
        self._others.n_bytes += n_bytes
        self._is_coming = is_coming
        is_large = is_coming and self._n_bytes > _SMALL
        self._others.n_large += is_large - self._is_large
        self._is_large = is_large

    def _problem(self, kind: str) -> _Refusal | None:
        others = self._others
        if kind == "http.disconnect":
            return 400, "the connection was closed before all of the body had come", "send it again"
        if self._n_bytes > self._most_bytes:
            return _too_large(self._most_bytes)
        too_many = self._is_large and others.n_large > others.most_large
        return _TOO_MUCH if too_many or others.n_bytes > others.most_bytes else None


def _too_large(most_bytes: int) -> _Refusal:
    return 413, f"the body has more than {most_bytes >> 20} MB", "send less"


LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ALWAYS = ("/healthz",)  # answered however much is going on
_PAGE = re.compile("(/c/[^/]+)?/(api)?|/c/[^/]+|")  # where a link on another site may lead
_OF_THE_PAGE = re.compile("(/c/[^/]+)?/static/.*", re.DOTALL)  # what shows the page that asks for the token
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
class AccessRules:
    """hosts: names under which this server answers. token: what every request must carry; None for no token.

    root_path: under which a proxy shows this server, as in /archive, whether it passes that on or not. most_bytes: of a
    picture. most_json_bytes: of any other body, which is parsed while everybody waits; twice as many of all those
    together. most_held_bytes: of all pictures together. most_large_bodies: those that come at the same time and have
    more than 64 KB. most_at_once: requests in work. seconds: for one of them.
    """

    hosts: tuple[str, ...] = LOOPBACK
    token: str | None = None
    root_path: str = ""
    most_bytes: int = 32 << 20
    most_json_bytes: int = 4 << 20
    most_held_bytes: int = 40 << 20
    most_large_bodies: int = 16
    most_at_once: int = 128
    seconds: float = 60.0


class _Answer:
    """What is sent, with our headers. status: 0 until it has begun. body: of the request, while it is read."""

    def __init__(self, send: Send) -> None:
        self._send, self.status = send, 0
        self.body: Body | None = None

    async def __call__(self, message: Message) -> None:
        if self.body is not None and self.body.refusal is not None and not self.status:
            return  # whatever was made of half a body
        if message["type"] == "http.response.start":
            self.status, headers = message["status"], message.get("headers", [])
            given = {name.lower() for name, _ in headers}
            extra = [(name.encode(), value.encode()) for name, value in _HEADERS.items() if name.encode() not in given]
            message = {**message, "headers": [*headers, *extra]}
        await self._send(message)


class AccessMiddleware:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, rules: AccessRules, metrics: Metrics) -> None:
        self._app, self._rules, self._metrics = app, rules, metrics
        self._at_once = 0
        # All bodies of a kind, and the most bytes of one.
        self._pictures = Bodies(rules.most_held_bytes, rules.most_large_bodies), rules.most_bytes
        most_others = min(rules.most_json_bytes, rules.most_bytes)
        self._others = Bodies(2 * rules.most_json_bytes, rules.most_large_bodies), most_others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return  # there is nothing for sockets here
        scope = _below(self._rules.root_path, scope)
        answer, started = _Answer(send), time.perf_counter()
        await self._answer(scope, receive, answer)
        self._metrics.count(scope, answer.status, time.perf_counter() - started)

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        bodies, most_bytes = self._pictures if is_picture(headers) else self._others
        refusal = self._refusal(scope, headers, most_bytes) or self._busy(scope, headers, bodies)
        if refusal is not None:
            await refused(*refusal)(scope, receive, answer)
            return
        if not _place(scope):
            await RedirectResponse(f"{self._rules.root_path.rpartition('/')[2]}/")(scope, receive, answer)
            return
        self._at_once += 1
        body = answer.body = Body(self._uncounted(receive), most_bytes, bodies)
        try:
            with anyio.fail_after(self._rules.seconds), suppress(BodyRefusedError):
                await self._app(scope, body.receive, answer)
            answer.body = None
            if body.refusal is not None and not answer.status:
                await refused(*body.refusal)(scope, receive, answer)
        except TimeoutError:
            if not answer.status:
                late = refused(503, f"this took longer than {self._rules.seconds:g} s", "try again later")
                await late(scope, receive, answer)
        finally:
            self._at_once -= 1
            body.close()

    def _uncounted(self, receive: Receive) -> Receive:
        """A request that waits for its body does not count as one in work: slow clients block nobody."""

        async def waiting() -> Message:
            self._at_once -= 1
            try:
                return await receive()
            finally:
                self._at_once += 1

        return waiting

    def _refusal(self, scope: Scope, headers: dict[str, str], most_bytes: int) -> _Refusal | None:
        rules = self._rules
        if _host_of(headers.get("host", "")) not in rules.hosts:
            return 403, "this server is not known under that name", "ask for it by its own address"
        given = headers.get("authorization", "").encode()
        has_token = rules.token is not None and secrets.compare_digest(given, f"Bearer {rules.token}".encode())
        if not _is_from_here(scope, headers):
            return 403, "requests from another site are refused", "open the page of this server itself"
        if not has_token and _could_be_a_form(scope, headers):
            return 403, "a form of another site could have sent this", "send a content type, such as application/json"
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or len(length) > 15:
            return 400, "the length of the body is no number", ""
        if int(length) > most_bytes:
            return _too_large(most_bytes)
        if rules.token is not None and not has_token and not _shows_the_page(_place(scope)):
            return 401, "this server wants a token", "type it on the page, or put #token=... at the end of its address"
        return None

    def _busy(self, scope: Scope, headers: dict[str, str], bodies: Bodies) -> _Refusal | None:
        if _place(scope) in _ALWAYS:
            return None
        if self._at_once >= self._rules.most_at_once:
            return 503, "too many requests at once", "try again in a second"
        length = None if "transfer-encoding" in headers else int(headers.get("content-length", "0"))
        return None if bodies.has_room(length) else _TOO_MUCH


def _below(root_path: str, scope: Scope) -> Scope:
    """A request with its whole path, as the server's own would be, however much of it the proxy has passed on."""
    path = scope["path"]
    if path != root_path and not path.startswith(f"{root_path}/"):
        path = root_path + path
    return {**scope, "path": path, "root_path": root_path} if root_path else scope


def _place(scope: Scope) -> str:
    """The path below that of the server; empty for that itself, without a slash at its end."""
    path: str = scope["path"]
    root_path: str = scope.get("root_path", "")
    return path.removeprefix(root_path)


def _shows_the_page(place: str) -> bool:
    return bool(_PAGE.fullmatch(place) or _OF_THE_PAGE.fullmatch(place)) or place in _ALWAYS


def is_picture(headers: Mapping[str, str]) -> bool:
    return content_type(headers).startswith("image/") or content_type(headers) == "application/octet-stream"


def content_type(headers: Mapping[str, str]) -> str:
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


def _is_from_here(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether the request comes from our own page, or from no browser; from other sites only links lead here."""
    site, origin, reads = headers.get("sec-fetch-site"), headers.get("origin"), scope["method"] in _READING
    if site == "same-origin":
        return True
    if site is None or (site == "none" and reads):
        own = _origin(f"{scope.get('scheme', 'http')}://{headers.get('host', '')}")
        return origin is None or (own is not None and _origin(origin) == own)
    is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return reads and is_link and _PAGE.fullmatch(_place(scope)) is not None


def _could_be_a_form(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether an old browser might have sent it for a form of another site."""
    says_nothing = "sec-fetch-site" not in headers and "origin" not in headers
    return says_nothing and scope["method"] == "POST" and content_type(headers) in _FORMS
