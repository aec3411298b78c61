"""Limits on connections: how many there are, how much a client may send, and how long it may take.

The parser of HTTP takes a head of any length, and uvicorn waits for it without a limit; so what comes in is counted
before it is parsed, and one sweep ends every connection whose time is over.
"""

import asyncio
import math
import resource
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from manifind.server.errors import refused

_MOST, _FEWEST = 800, 16  # connections, however many files there may be
_OTHER_FILES = 160  # uploads, pictures, pipes, the database, and whoever is let in before another goes
_PART_CLOSED = 32  # one in so many goes where there is no room: then not all are looked at for every new one
_PIECE, _BODY_PIECE = 4 << 10, 16 << 10  # bytes parsed at once; so exactly is a second head counted
_PIPELINED = 16  # requests that wait for an answer to one that came before on the same connection
_SWEEP = 0.5  # seconds between two looks at who is late
_CLOSING = 1.0  # seconds in which a refusal can be read before the connection goes
_GRACE = 1.0  # seconds in which a new one is not closed for others, so that it can send a request
_TO_READ = 5.0  # seconds for reading an answer that came in the last moment
_MOST_DRAINED = 4  # connections whose unwanted bodies are read at the same time
_MOST_UNREAD = 64 << 20  # bytes of answers that clients have not read yet, all together
_LARGE_ANSWER = 64 << 10  # bytes after which that is looked at


@dataclass(frozen=True)
class Limits:
    """connections: open at the same time. head_bytes: of a head with its URL, and of all else that is no body.

    lines: of a head and its trailers. head_seconds: until a head is complete. request_seconds: from there until the
    answer has been read. drain_seconds: for the rest of a body that is not wanted: without it the answer might not be
    read. idle_seconds: between requests.
    """

    connections: int
    head_bytes: int = 64 << 10
    lines: int = 100
    head_seconds: float = 10.0
    request_seconds: float = 65.0
    drain_seconds: float = 5.0
    idle_seconds: float = 10.0


def usual_limits(seconds: float) -> Limits:
    """Within the files that this process may open, and with time for requests that may take some seconds to answer."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if soft == resource.RLIM_INFINITY else min(_MOST, soft - _OTHER_FILES)
    return Limits(max(_FEWEST, most), request_seconds=seconds + _TO_READ)


class Connections:
    """All that are open. Where there is no room for a new one, those go that lose least."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # A dictionary has them in the order in which they came: of those that are due together, the oldest goes.
        self._open: dict[Connection, None] = {}
        self._drained: set[Connection] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, new: "Connection") -> None:
        """Let a new one in, if need be in the place of others; where all others are at work it is closed."""
        if len(self._open) >= self.limits.connections:
            self._make_room()
        if len(self._open) >= self.limits.connections:
            new.transport.abort()
            return
        self._open[new] = None
        if self._timer is None:
            self._timer = new.loop.call_later(_SWEEP, self._sweep, new.loop)

    def discard(self, gone: "Connection") -> None:
        self._open.pop(gone, None)

    def may_drain(self, one: "Connection") -> bool:
        """Whether there is time to read a body that is not wanted."""
        self._drained = {other for other in self._drained if other in self._open and other.is_unwanted}
        if len(self._drained) < _MOST_DRAINED:
            self._drained.add(one)
        return one in self._drained

    def bound_answers(self) -> None:
        """End the connections that are due first, while clients leave too much unread."""
        unread = [(one, one.transport.get_write_buffer_size()) for one in self._open]
        total = sum(size for _, size in unread)
        for one, size in sorted(unread, key=lambda pair: pair[0].due):
            if total <= _MOST_UNREAD:
                return
            if size:
                one.transport.abort()
                total -= size

    def _make_room(self) -> None:
        losses = [(loss, one.due, one) for one in self._open if (loss := one.loss()) is not None]
        losses.sort(key=lambda entry: entry[:2])
        for loss, _, one in losses[: max(1, self.limits.connections // _PART_CLOSED)]:
            if loss == losses[0][0]:
                self.discard(one)
                one.transport.abort()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for one in [one for one in self._open if one.due <= now]:
            one.expire()
        self._timer = loop.call_later(_SWEEP, self._sweep, loop) if self._open else None


class _TooMuchError(Exception):
    """More than a client may send; the connection has the answer."""


class Connection(HttpToolsProtocol):
    """uvicorn's, with limits. due: the time of the loop at which it ends unless something happens before."""

    def __init__(self, *arguments: Any, connections: Connections, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._all, self._limits = connections, connections.limits
        self.due = self._answer_due = self._made = math.inf
        self._piece = self._overhead = self._body = self._lines = 0  # bytes, and lines of the present message
        self._is_within = self._has_head = self._has_request = self._is_refused = False
        self._working: RequestResponseCycle | None = None  # what is being answered; uvicorn knows only the last request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._made = self.loop.time()
        self.due = self._made + self._limits.head_seconds
        self._all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.discard(self)
        self._cancel_answer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parsed piece by piece, so that a head that is too long is noticed before all of it has been taken."""
        start = 0
        while start < len(data) and not self._is_refused and not self.transport.is_closing():
            piece = data[start : start + (_BODY_PIECE if self._is_in_body else _PIECE)]
            start += len(piece)
            self._piece = len(piece)
            self._overhead += self._piece
            super().data_received(piece)
            if self._overhead > self._limits.head_bytes + self._body and not self._is_refused:
                self._refuse(431, f"the head has more than {self._limits.head_bytes >> 10} KB", "send less")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._overhead, self._body, self._lines = self._piece, 0, 0
        self._is_within, self._has_head = True, False
        if not self._is_answering:
            self.due = self.loop.time() + self._limits.head_seconds

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        if self._lines > self._limits.lines:
            self._refuse(431, f"the head has more than {self._limits.lines} lines", "send fewer")
            raise _TooMuchError
        if not self._has_head:  # a trailer comes too late to be a header of the request
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._has_head = self._has_request = True
        if len(self.pipeline) > _PIPELINED:
            self._refuse(400, "too many requests at once on a connection", "wait for answers")
            raise _TooMuchError
        self.flow.pause_reading()  # whoever wants the body reads on
        if not self.pipeline:
            self._expect_answer(self.cycle)

    def on_body(self, body: bytes) -> None:
        self._overhead -= len(body)
        self._body += len(body)
        if self.pipeline:
            self._refuse(400, "a body came before the answer to an earlier request", "wait for answers")
            raise _TooMuchError
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_within = False
        if not self._is_answering:
            self.due = self.loop.time() + self._limits.idle_seconds

    def on_response_complete(self) -> None:
        upcoming = self.pipeline[-1][0] if self.pipeline else None
        if self._working is not None:
            self._working.body = bytearray()  # of which nothing was read
        super().on_response_complete()
        self._unset_keepalive_if_required()  # the sweep ends what is idle
        if self.transport.is_closing():
            return  # it goes when the answer has been read, or when that takes too long
        if upcoming is not None:
            self._expect_answer(upcoming)
        elif self.is_unwanted and not self._all.may_drain(self):
            self._close_soon()
        elif self._is_within:
            limits = self._limits
            self.due = self.loop.time() + (limits.drain_seconds if self.is_unwanted else limits.head_seconds)
        else:
            self.due = self.loop.time() + self._limits.idle_seconds
        if self.transport.get_write_buffer_size() > _LARGE_ANSWER:
            self._all.bound_answers()

    def send_400_response(self, msg: str) -> None:
        """What the parser refuses; nothing where it was refused here, in other words."""
        if not self._is_refused:
            self._refuse(400, "this is no HTTP request", "speak HTTP/1.1")

    @property
    def is_unwanted(self) -> bool:
        """Whether a body still comes of a request that has been answered without it."""
        return self._is_in_body and not self._is_answering

    def loss(self) -> int | None:
        """How much is lost if it is closed, by rank; None where it is at work."""
        if self._is_refused or self.is_unwanted:
            return 0
        if not self._has_request and self.loop.time() < self._made + _GRACE:
            return 4
        is_read = self.transport.get_write_buffer_size() == 0
        if self._is_answering and not self._is_in_body:
            return None if is_read else 3
        return (2 if self._is_in_body else 1) if is_read else 3

    def expire(self) -> None:
        is_idle = not self._is_answering and not self._is_refused
        if is_idle and self._is_within and not self._has_head:
            self._refuse(408, f"the head took longer than {self._limits.head_seconds:g} s", "send it at once")
        elif is_idle and self.transport.get_write_buffer_size() and self.due < self._answer_due:
            self.due = self._answer_due
        else:
            self.transport.abort()

    @property
    def _is_in_body(self) -> bool:
        return self._is_within and self._has_head

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_answer(self, cycle: RequestResponseCycle) -> None:
        self._working = cycle
        self.due = self._answer_due = self.loop.time() + self._limits.request_seconds

    def _refuse(self, status: int, error: str, hint: str) -> None:
        """Say why, unless an answer is under way or has been given, and take nothing more."""
        if self.pipeline or (self._is_answering and self.cycle.response_started):
            self.transport.abort()
        elif not self.is_unwanted:
            answer = refused(status, error, hint)
            head = [*self.server_state.default_headers, *answer.raw_headers, (b"connection", b"close")]
            lines = b"".join(b"%b: %b\r\n" % line for line in head)
            self.transport.write(STATUS_LINE[status] + lines + b"\r\n" + bytes(answer.body))
            self.transport.write_eof()
        self._cancel_answer()
        self._close_soon()

    def _cancel_answer(self) -> None:
        """Whoever works on an answer need not send it."""
        if self._working is not None and not self._working.response_complete:
            self._working.disconnected = True
            self._working.message_event.set()

    def _close_soon(self) -> None:
        self._is_refused = True
        self.parser = self.scope = None  # type: ignore[assignment]  # what has come so far may be large
        self.url, self.headers = b"", []
        self.flow.pause_reading()
        self.due = self.loop.time() + _CLOSING
