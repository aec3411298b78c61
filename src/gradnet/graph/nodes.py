"""Which descriptors become nodes of the graph: queries and database, cut to what is wanted, duplicates once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradnet.arrays import Floats, Ints, Mask
from gradnet.descriptors.duplicates import distinct_rows
from gradnet.graph.truncation import truncate


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


def gather_nodes(queries: Floats, X: Floats, truncation: int | None) -> Nodes:
    """The nodes for some queries, (m, d), possibly none, and a database, (n, d), both preprocessed."""
    m, n = len(queries), len(X)
    kept = np.arange(n) if truncation is None or m == 0 else truncate(X, queries, truncation)
    together = join_queries(queries, X if len(kept) == n else X[kept])
    distinct = distinct_rows(together)
    of_items = np.full(n, -1, dtype=np.int64)
    of_items[kept] = distinct.of_row[m:]
    nodes = together if len(distinct.first) == len(together) else together[distinct.first]
    return Nodes(nodes, distinct.of_row[:m], of_items)
