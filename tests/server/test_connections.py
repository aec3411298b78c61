"""Raw sockets that send nothing, slowly, or too much: each is ended in its time, and the next client is answered."""

import re
import resource
import socket
import time
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.server import connections
from manifind.server.connections import Limits, usual_limits
from server.live import running, serving
from server.made import make_pictures, make_service

API = "/api/v1"
SHORT = Limits(connections=40, head_seconds=0.6, request_seconds=1.0, drain_seconds=0.6, idle_seconds=0.6)
PATIENT = Limits(connections=20, head_seconds=1000, request_seconds=1000, idle_seconds=1000)
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
UPLOAD = b"POST /api/v1/search/picture HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: image/png\r\n"
VECTOR = UPLOAD.replace(b"picture", b"vector").replace(b"image/png", b"application/json")
CHUNKED = UPLOAD + b"transfer-encoding: chunked\r\n\r\n"
_PATIENCE = 60  # seconds, after which something waits that must not


@pytest.fixture(scope="module")
def service(folder):
    make_pictures(folder / "raw", folder / "raw-photos")
    return make_service(folder / "raw", folder)


@pytest.fixture(scope="module")
def address(service):
    with serving(service, SHORT, seconds=0.5, most_at_once=5, most_held_bytes=1 << 20) as one:
        yield one


@pytest.fixture(autouse=True)
def _says_nothing(capfd):
    """Whatever strangers send, the server's log stays empty."""
    yield
    assert capfd.readouterr() == ("", "")


@contextmanager
def a_socket(address):
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=_PATIENCE) as one:
        yield one


def until_the_end(raw):
    """Everything that comes until the server has ended the connection."""
    found = b""
    try:
        while part := raw.recv(1 << 16):
            found += part
    except ConnectionResetError:
        pass
    return found


def send_on(raw, data):
    """Send the same again and again until the server has ended the connection; what it said."""
    raw.settimeout(0.05)
    found, end = b"", time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            raw.sendall(data)
            part = raw.recv(1 << 16)
            found += part
            if not part:
                return found
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return found
    raise AssertionError("the connection is still open")


def answer(address, data):
    """What the server says until it ends the connection."""
    with a_socket(address) as raw:
        raw.sendall(data)
        return until_the_end(raw)


def status(reply):
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.1 ") else None


def one_answer(raw):
    """A single answer with a length; the connection may stay."""
    reply = b""
    while b"\r\n\r\n" not in reply:
        part = raw.recv(1 << 16)
        assert part, reply
        reply += part
    head, _, body = reply.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head).group(1))
    while len(body) < length:
        body += raw.recv(1 << 16)
    return head + b"\r\n\r\n" + body


def is_healthy(address):
    with a_socket(address) as raw:
        raw.sendall(HEALTH)
        return status(one_answer(raw)) == 200


HEADS = {
    "one header": (b"GET / HTTP/1.1\r\nx: ", b"a" * 30_000),
    "a name": (b"GET / HTTP/1.1\r\n", b"a" * 30_000),
    "the address": (b"GET /", b"a" * 30_000),
    "lines": (b"GET / HTTP/1.1\r\n", b"a: b\r\n" * 200),
    "lines without a value": (b"GET / HTTP/1.1\r\n", b"a:\r\n" * 30_000),
    "folded lines": (b"GET / HTTP/1.1\r\na: b\r\n", b" c\r\n" * 1000),
    "empty lines": (b"", b"\r\n" * 30_000),
    "spaces": (b"GET ", b" " * 30_000),
}


@pytest.mark.parametrize(("start", "more"), HEADS.values(), ids=HEADS)
def test_a_head_without_an_end_is_ended(address, start, more):
    with a_socket(address) as raw:
        raw.sendall(start)
        reply = send_on(raw, more)
    assert status(reply) in (None, 400, 431)
    assert is_healthy(address)


def test_a_head_that_is_too_long_is_refused_in_words_and_one_that_is_not_is_answered(address):
    def head(n):
        return HEALTH[:-2] + b"x: " + b"a" * n + b"\r\n\r\n"

    with a_socket(address) as raw:
        raw.sendall(head(60_000))
        assert status(one_answer(raw)) == 200
    reply = answer(address, head(100_000))
    assert status(reply) == 431
    assert b"64 KB" in reply


def test_a_hundred_lines_are_answered_and_one_more_is_refused(address):
    def head(n):
        return HEALTH[:-2] + b"a: b\r\n" * (n - 1) + b"\r\n"

    with a_socket(address) as raw:
        raw.sendall(head(SHORT.lines))
        assert status(one_answer(raw)) == 200
    reply = answer(address, head(SHORT.lines + 1))
    assert status(reply) == 431
    assert b"100 lines" in reply


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 3000), max_size=40), st.integers(0, 30_000))
def test_how_a_head_is_cut_into_packets_does_not_matter(address, cuts, n):
    head = HEALTH[:-2] + b"x: " + b"a" * n + b"\r\n\r\n"
    with a_socket(address) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        at = 0
        for cut in cuts:
            raw.sendall(head[at : at + cut])
            at += cut
        raw.sendall(head[at:])
        assert status(one_answer(raw)) == 200


BESIDE_A_BODY = {
    "trailers": (b"1\r\nx\r\n0\r\n", b"a: b\r\n" * 20),
    "one trailer": (b"1\r\nx\r\n0\r\na: ", b"b" * 5000),
    "a chunk extension": (b"1;a=", b"b" * 5000),
    "leading zeros": (b"0", b"0" * 5000),
    "chunks of one byte": (b"", b"1\r\nx\r\n" * 1000),
}


@pytest.mark.parametrize(("start", "more"), BESIDE_A_BODY.values(), ids=BESIDE_A_BODY)
def test_what_is_neither_head_nor_body_has_an_end_too(address, start, more):
    with a_socket(address) as raw:
        raw.sendall(CHUNKED + start)
        send_on(raw, more)
    assert is_healthy(address)


def test_a_trailer_is_no_header(service):
    seen = []

    async def app(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        seen.append(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    with running(app, SHORT) as address, a_socket(address) as raw:
        raw.sendall(CHUNKED + b"1\r\nx\r\n0\r\nauthorization: Bearer x\r\n\r\n")
        one_answer(raw)
    assert b"content-type" in seen[0]
    assert b"authorization" not in seen[0]


def test_whoever_sends_nothing_is_ended_without_a_word(address):
    assert answer(address, b"") == b""
    assert answer(address, b"\r\n") == b""


def test_whoever_does_not_finish_a_head_is_told_that_it_took_too_long(address):
    reply = answer(address, b"GET / HTTP/1.1\r\nhost: 127")
    assert status(reply) == 408
    assert b"took longer than 0.6 s" in reply


def test_whoever_sends_a_head_byte_by_byte_is_ended_all_the_same(address):
    with a_socket(address) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nx: ")
        assert status(send_on(raw, b"a")) == 408


def test_a_connection_is_kept_for_the_next_request_and_ended_when_none_comes(address):
    with a_socket(address) as raw:
        for _ in range(3):
            raw.sendall(HEALTH)
            assert status(one_answer(raw)) == 200
        assert until_the_end(raw) == b""


def test_a_second_head_has_no_more_time_than_the_first(address):
    with a_socket(address) as raw:
        raw.sendall(HEALTH)
        assert status(one_answer(raw)) == 200
        raw.sendall(HEALTH[:10])
        assert status(until_the_end(raw)) == 408


def test_a_body_that_comes_slowly_is_answered_with_its_time_and_ended(address):
    with a_socket(address) as raw:
        raw.sendall(UPLOAD + b"content-length: 100000\r\n\r\n")
        reply = send_on(raw, b"x")
    assert status(reply) == 503
    assert b"longer than 0.5 s" in reply


@pytest.mark.parametrize("head", [UPLOAD, VECTOR], ids=["picture", "vector"])
def test_a_client_that_goes_in_the_middle_of_a_body_leaves_nothing_behind(address, head):
    with a_socket(address) as raw:
        raw.sendall(head + b"content-length: 1000\r\n\r\nx")
    assert is_healthy(address)


@pytest.mark.parametrize("head", [UPLOAD, VECTOR], ids=["picture", "vector"])
@pytest.mark.parametrize(("body", "expected"), [(b"zz\r\n", 400), (b"1;" + b"a" * 70_000, 431)], ids=["bad", "long"])
def test_a_body_that_cannot_be_read_is_refused_in_words(address, head, body, expected):
    assert status(answer(address, head + b"transfer-encoding: chunked\r\n\r\n" + body)) == expected


def test_whoever_sends_bodies_slowly_keeps_nobody_else_from_being_answered(address):
    with ExitStack() as stack:
        for _ in range(20):  # of 5 requests at once
            raw = stack.enter_context(a_socket(address))
            raw.sendall(UPLOAD + b"content-length: 100000\r\n\r\nx")
        search = f"GET {API}/search?id=north/01.png HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
        with a_socket(address) as raw:
            raw.sendall(search)
            assert status(one_answer(raw)) == 200


def test_bodies_have_a_limit_together_and_the_room_is_given_back(address):
    body = b"x" * 600_000
    head = UPLOAD + b"content-length: 700000\r\n\r\n"
    with a_socket(address) as first, a_socket(address) as second:
        first.sendall(head + body)
        second.sendall(head + body)
        reply = one_answer(second if _is_readable(second, first) else first)
        assert status(reply) == 503
        assert b"too much is being uploaded" in reply
        assert b"retry-after" in reply
    for _ in range(100):
        reply = answer(address, UPLOAD + b"connection: close\r\ncontent-length: 600000\r\n\r\n" + body)
        if status(reply) == 415:  # it is no picture, and all of it was read
            return
        time.sleep(0.05)
    raise AssertionError(reply)


def _is_readable(wanted, other):
    """Whether the first of two sockets is the one that has been answered."""
    import select

    found, _, _ = select.select([wanted, other], [], [], _PATIENCE)
    return wanted in found


async def _large(scope, receive, send):
    """An application with large answers."""
    body = b"x" * (24 << 20)
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("close", [b"", b"connection: close\r\n"])
def test_an_answer_that_is_not_read_is_not_kept_for_ever(close):
    with running(_large, SHORT) as address, a_socket(address) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        raw.sendall(HEALTH[:-2] + close + b"\r\n")
        time.sleep(2 * SHORT.request_seconds)
        assert len(until_the_end(raw)) < 24 << 20


def test_answers_that_are_not_read_have_a_limit_together(monkeypatch):
    monkeypatch.setattr(connections, "_MOST_UNREAD", 40 << 20)
    with running(_large, PATIENT) as address, ExitStack() as stack:
        sockets = [stack.enter_context(a_socket(address)) for _ in range(6)]
        for raw in sockets:
            raw.sendall(HEALTH)
            assert raw.recv(1)
        assert len(until_the_end(sockets[0])) < 24 << 20
        assert len(one_answer(sockets[-1])) > 20 << 20


def test_requests_that_follow_each_other_without_waiting_are_answered_in_their_order(address):
    paths = ["/healthz", "/", "/nowhere", "/static/main.js"] * 4
    requests = [f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode() for path in paths]
    requests[-1] = requests[-1][:-2] + b"connection: close\r\n\r\n"
    reply = answer(address, b"".join(requests))
    statuses = [int(found) for found in re.findall(rb"HTTP/1\.1 (\d+) ", reply)]
    assert statuses == [200, 200, 404, 200] * 4


@pytest.mark.parametrize(
    "second", [HEALTH * 1000, UPLOAD + b"content-length: 200000\r\n\r\n" + b"x" * 200_000], ids=["many", "body"]
)
def test_more_than_a_few_of_them_or_a_body_among_them_ends_the_connection(service, address, second):
    search = f"GET {API}/collection HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
    reply = answer(address, search + second)
    assert reply.count(b"HTTP/1.1 200") <= connections._PIPELINED + 1
    assert is_healthy(address)


REFUSED = {
    "another host": b"POST /api/v1/search/picture HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 30000000\r\n\r\n",
    "too large": UPLOAD + b"content-length: 300000000\r\n\r\n",
    "no end": CHUNKED.replace(b"127.0.0.1", b"evil.example"),
}


@pytest.mark.parametrize("head", REFUSED.values(), ids=REFUSED)
def test_a_body_that_is_not_wanted_is_not_read_for_ever(address, head):
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with a_socket(address) as raw:
        raw.sendall(head)
        assert status(one_answer(raw)) in (403, 413)
        send_on(raw, chunk if b"chunked" in head else b"x" * 1000)
    assert is_healthy(address)


def test_a_connection_goes_on_after_a_refusal_once_the_body_has_come(address):
    head = b"POST / HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 200000\r\n\r\n"
    with a_socket(address) as raw:
        raw.sendall(head)
        assert status(one_answer(raw)) == 403
        raw.sendall(b"x" * 200_000 + HEALTH)
        assert status(one_answer(raw)) == 200


SILENCES = {
    "nothing": b"",
    "half a head": HEALTH[:20],
    "an answer and then nothing": HEALTH,
    "half a body": UPLOAD + b"content-length: 100000\r\n\r\nx",
    "a body that is refused": UPLOAD + b"content-length: 300000000\r\n\r\nx",
    "too long a head": HEALTH[:-2] + b"a" * 70_000,
}


@pytest.mark.parametrize("data", SILENCES.values(), ids=SILENCES)
def test_a_new_client_gets_in_however_many_keep_their_connections(service, data):
    with serving(service, PATIENT) as address, ExitStack() as stack:
        for _ in range(4):
            for _ in range(30):
                stack.enter_context(a_socket(address)).sendall(data)
            assert is_healthy(address)


def test_the_oldest_of_those_that_have_asked_for_nothing_goes_first(service, monkeypatch):
    monkeypatch.setattr(connections, "_GRACE", 0.0)
    with serving(service, PATIENT) as address, ExitStack() as stack:
        sending = stack.enter_context(a_socket(address))
        sending.sendall(VECTOR + b"content-length: 5\r\n\r\n")
        assert is_healthy(address)
        silent = [stack.enter_context(a_socket(address)) for _ in range(40)]
        for raw in silent[:21]:
            assert until_the_end(raw) == b""
        silent[-1].sendall(HEALTH)
        assert status(one_answer(silent[-1])) == 200
        sending.sendall(b"hello")
        assert status(one_answer(sending)) == 422


@pytest.mark.parametrize("files", [20, 256, 1024, 1 << 20, resource.RLIM_INFINITY])
def test_there_are_fewer_connections_than_files_may_be_open(monkeypatch, files):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    found = usual_limits(60)
    assert 16 <= found.connections <= 800
    assert found.connections <= max(16, files - 160) or files == resource.RLIM_INFINITY
    assert found.request_seconds > 60


WORDS = st.sampled_from(
    [
        HEALTH, b"GET ", b"POST ", b"/", b" HTTP/1.1\r\n", b" HTTP/9.9\r\n", b"\r\n", b"\n", b"\0", b": ",
        b"host: 127.0.0.1\r\n", b"content-length: 5\r\n", b"content-length: -1\r\n", b"connection: close\r\n",
        b"transfer-encoding: chunked\r\n", b"connection: upgrade\r\nupgrade: h2c\r\n", b"expect: 100-continue\r\n",
        b"5\r\nhello\r\n", b"0\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02", b"a" * 5000,
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
    ]
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(WORDS | st.binary(max_size=30), max_size=12), st.booleans())
def test_whatever_is_sent_the_connection_ends_and_the_next_client_is_answered(address, words, at_once):
    with a_socket(address) as raw:
        try:
            for part in [b"".join(words)] if at_once else words:
                raw.sendall(part)
            raw.shutdown(socket.SHUT_WR)
        except (ConnectionResetError, BrokenPipeError, OSError):
            pass
        reply = until_the_end(raw)
    assert not reply or reply.startswith(b"HTTP/1.1 ")
    assert b"HTTP/1.1 500" not in reply
    assert is_healthy(address)
