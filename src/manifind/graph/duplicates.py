"""Exact duplicates, and the nodes of a graph without them."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats, Ints, Mask, row_blocks
from manifind.index.vector_index import CPU_ENGINE, Engine

_ROWS_PER_BLOCK = 4096


class Distinct(NamedTuple):
    """first: (u,) position of each distinct row's first appearance, rising. of_row: (n,) its number there."""

    first: Ints
    of_row: Ints


def distinct_rows(X: Floats) -> Distinct:
    """The distinct rows of X in order of first appearance.

    Duplicates are one point of the manifold. As nodes of their own, more than k copies would have
    only each other for neighbours and be cut off from everything else.
    """
    first_by_key, of_row = np.unique(row_keys(X), return_index=True, return_inverse=True)[1:]
    if not _are_equal(X, np.arange(len(X)), X, first_by_key[of_row]).all():  # two different rows have one key
        first_by_key, of_row = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)[1:]
    order = np.argsort(first_by_key)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Distinct(first_by_key[order], rank[of_row.reshape(-1)])


class RowLookup:
    """Finds rows of a database by their exact value."""

    def __init__(self, database: Floats) -> None:
        self._database = database
        # The column that varies most among some of the rows: equal numbers are rarest there.
        some = database[:: max(1, len(database) // _ROWS_PER_BLOCK)]
        self._column = int(np.argmax(some.var(axis=0, dtype=np.float64)))
        self._sorted_column = np.sort(database[:, self._column])

    def __call__(self, X: Floats) -> Ints:
        """(m,) position of the first database row equal to each row of X, or -1."""
        found = np.full(len(X), -1, dtype=np.int64)
        if not self.may_hold_any(X):
            return found
        order, sorted_keys = self._by_key
        keys = row_keys(X)
        place = np.searchsorted(sorted_keys, keys)
        pending = np.arange(len(X))
        while True:  # once, but for rows whose key another row has by accident
            pending = pending[place[pending] < len(order)]
            pending = pending[sorted_keys[place[pending]] == keys[pending]]
            if not len(pending):
                return found
            candidate = order[place[pending]]
            equal = _are_equal(X, pending, self._database, candidate)
            found[pending[equal]] = candidate[equal]
            pending = pending[~equal]
            place[pending] += 1

    @cached_property
    def _by_key(self) -> tuple[Ints, NDArray[np.uint64]]:
        """Rows in the order of their keys, and the keys; a pass over all rows, so not before one may be equal."""
        keys = row_keys(self._database)
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    def may_hold_any(self, X: Floats) -> bool:
        """Whether one number of some row is found in its column: for a single query far less work than its key."""
        values = X[:, self._column]
        place = np.searchsorted(self._sorted_column, values)
        return bool((self._sorted_column.take(place, mode="clip") == values).any())


def row_keys(X: Floats) -> NDArray[np.uint64]:
    """(n,) a 64-bit number for each row, the same for equal rows and almost surely different otherwise."""
    weights = _key_weights(X.shape[1])
    keys = np.empty(len(X), dtype=np.uint64)
    for rows in row_blocks(len(X), _ROWS_PER_BLOCK):
        bits = (X[rows] + np.float32(0.0)).view(np.uint32)  # adding zero turns -0.0 into 0.0
        products = bits * weights
        products ^= products >> np.uint64(32)  # mixes in the high bits: round numbers have empty low ones
        keys[rows] = products.sum(axis=1, dtype=np.uint64)
    return keys


@lru_cache(maxsize=8)
def _key_weights(d: int) -> NDArray[np.uint64]:
    """(d,) odd random numbers, the same ones always; kept, since a single query would wait for them."""
    return np.random.default_rng(0).integers(1, 2**63, size=d, dtype=np.uint64) | np.uint64(1)


def _are_equal(X: Floats, rows: Ints, Y: Floats, others: Ints) -> Mask:
    """(m,) which of some rows of X, (m,), are equal to some rows of Y, (m,)."""
    equal = np.empty(len(rows), dtype=np.bool_)
    for part in row_blocks(len(rows), _ROWS_PER_BLOCK):
        equal[part] = (X[rows[part]] == Y[others[part]]).all(axis=1)
    return equal


def truncate(X: Floats, queries: Floats, top: int, engine: Engine = CPU_ENGINE) -> Ints:
    """Positions, rising, of the items that are among the `top` nearest of at least one query."""
    return np.unique(engine.index(X, "euclidean").nearest(queries, min(top, len(X))).ids)


@dataclass(frozen=True)
class Nodes:
    """descriptors: (N, d), distinct. of_queries: (m,), of_items: (n,) the node of each; -1 for an item left out."""

    descriptors: Floats
    of_queries: Ints
    of_items: Ints

    @property
    def inside(self) -> Mask:
        """(n,) which items truncation kept."""
        return self.of_items >= 0

    def rows_of_items(self, rows: Floats) -> Floats:
        """(n, D) the rows of the items' nodes, given those of all nodes; of an item left out nothing is known yet."""
        n = len(self.of_items)
        if len(rows) == n and np.array_equal(self.of_items, np.arange(n)):
            return rows
        out = np.empty((n, rows.shape[1]), dtype=np.float32)
        out[self.inside] = rows[self.of_items[self.inside]]
        return out

    @property
    def first_items(self) -> Ints:
        """Positions, rising, of the items that stand for a node: of several equal ones the first."""
        kept = np.flatnonzero(self.inside)
        return np.sort(kept[np.unique(self.of_items[kept], return_index=True)[1]])


def join_queries(queries: Floats, X: Floats) -> Floats:
    """All nodes of the graph: the queries that are known beforehand, then the database (Eq. 1).

    queries: (m, d). X: (n, d). Returns (m + n, d).
    """
    return np.concatenate([queries, X]) if len(queries) else X


def gather_nodes(queries: Floats, X: Floats, truncation: int | None, engine: Engine = CPU_ENGINE) -> Nodes:
    """The nodes for some queries, (m, d), possibly none, and a database, (n, d), both preprocessed."""
    m, n = len(queries), len(X)
    kept = np.arange(n) if truncation is None or m == 0 else truncate(X, queries, truncation, engine)
    together = join_queries(queries, X if len(kept) == n else X[kept])
    distinct = distinct_rows(together)
    of_items = np.full(n, -1, dtype=np.int64)
    of_items[kept] = distinct.of_row[m:]
    nodes = together if len(distinct.first) == len(together) else together[distinct.first]
    return Nodes(nodes, distinct.of_row[:m], of_items)
