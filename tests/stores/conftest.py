"""What the tests of stores share: one server of each kind, and databases that a test leaves empty."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from manifind.errors import StoreError
from manifind.stores.address import parse_address
from manifind.stores.publish import connect
from manifind.stores.store import Shape
from stores.servers import CannotRunError, MilvusServer, PostgresServer

_names = itertools.count()
_PATIENCE = 60  # seconds


def _started(kind):
    try:
        server = kind()
    except CannotRunError as why:
        pytest.skip(str(why))
    yield server
    server.remove()


@pytest.fixture(scope="session")
def postgres():
    yield from _started(PostgresServer)


@pytest.fixture(scope="session")
def milvus():
    yield from _started(MilvusServer)


@pytest.fixture(scope="session", params=["postgres", "milvus"])
def server(request):
    """Each of them in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def database(server):
    opened = _connected(server.address)
    yield opened
    opened.close()


def _connected(address):
    """A connection, asked for again while the server is too busy to answer: other tests share its machine."""
    last = time.monotonic() + _PATIENCE
    while True:
        try:
            return connect(parse_address(address))
        except StoreError:
            if time.monotonic() > last:
                raise
            time.sleep(0.5)


@pytest.fixture
def name():
    """A name that no other test uses."""
    return f"test_{next(_names)}"


@pytest.fixture
def made(database, name):
    """Makes a table with rows: made(vectors, ids, metadata, metric)."""

    def make(vectors, ids=None, metadata=None, metric="cosine"):
        ids = list(range(len(vectors))) if ids is None else ids
        kind = "text" if isinstance(ids[0], str) else "number"
        store = database.create(name, Shape(vectors.shape[1], metric, kind))
        store.upsert(ids, vectors, metadata)
        return store

    return make


@pytest.fixture(scope="session")
def vectors():
    return np.random.default_rng(0).normal(size=(500, 12)).astype(np.float32)
