"""Bodies of requests: whatever comes in whatever order, limits hold, and all that was taken is given back."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifind.server.middleware import Bodies, Body, BodyRefusedError

KB = 1 << 10


def body_of(parts, bodies, most_bytes=1000 * KB):
    """A body that comes in parts; the last of them may be that the client has gone."""
    messages = [
        {"type": "http.disconnect"} if part is None else {"type": "http.request", "body": bytes(part)} for part in parts
    ]
    for message in messages[:-1]:
        message["more_body"] = True

    async def receive():
        return messages.pop(0)

    return Body(receive, most_bytes, bodies)


def read(body):
    """The next part, or None where it is refused."""
    try:
        return asyncio.run(body.receive())
    except BodyRefusedError:
        return None


PARTS = st.lists(st.integers(0, 90 * KB), min_size=1, max_size=6)


@given(st.lists(st.tuples(PARTS, st.booleans()), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_limits_hold_in_any_order_and_everything_is_given_back(asked, random):
    bodies = Bodies(most_bytes=300 * KB, most_large=2)
    open_ = [body_of([*parts, None] if goes else parts, bodies, 200 * KB) for parts, goes in asked]
    left = [len(parts) + goes for parts, goes in asked]
    while any(left):
        at = random.choice([number for number, n in enumerate(left) if n])
        left[at] -= 1
        if read(open_[at]) is None:
            left[at] = 0
            assert open_[at].refusal[0] in (400, 413, 503)
            open_[at].close()
        assert 0 <= bodies.n_bytes <= bodies.most_bytes
        assert 0 <= bodies.n_large <= bodies.most_large
    for body in open_:
        if body.refusal is None:
            body.close()
    assert (bodies.n_bytes, bodies.n_large) == (0, 0)


@pytest.mark.parametrize(
    ("parts", "status"),
    [([100 * KB, 101 * KB, 1], 413), ([10, None], 400), ([150 * KB, 1], 503), ([60 * KB], 503)],
    ids=["too large", "gone", "too many large ones", "too much together"],
)
def test_a_refusal_says_what_is_wrong(parts, status):
    bodies = Bodies(most_bytes=300 * KB, most_large=1)
    other = body_of([250 * KB, 1] if status == 503 else [1, 1], bodies)
    read(other)
    if parts == [150 * KB, 1]:
        bodies.most_bytes = 1000 * KB
    body = body_of(parts, bodies, 200 * KB)
    while read(body) is not None:
        pass
    assert body.refusal[0] == status


def test_a_small_body_needs_no_place_among_the_large_ones():
    bodies = Bodies(most_bytes=1000 * KB, most_large=1)
    assert read(body_of([200 * KB, 1], bodies)) is not None
    assert read(body_of([30 * KB, 30 * KB], bodies)) is not None
    assert read(body_of([200 * KB], bodies)) is not None  # it has come at once
    assert read(body_of([200 * KB, 1], bodies)) is None


def test_whether_there_is_room_is_known_before_anything_has_come():
    bodies = Bodies(most_bytes=1000 * KB, most_large=1)
    assert bodies.has_room(None)
    assert bodies.has_room(1000 * KB)
    assert not bodies.has_room(1001 * KB)
    read(body_of([200 * KB, 1], bodies))
    assert not bodies.has_room(None)
    assert not bodies.has_room(65 * KB)
    assert bodies.has_room(64 * KB)
    bodies.n_bytes = bodies.most_bytes
    assert bodies.has_room(0)
    assert not bodies.has_room(1)
