"""What the methods on a graph share: the nodes, the affinity, where a query begins, and how items are ranked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from gradnet.arrays import Doubles, Floats, Ints, Sparse, row_blocks
from gradnet.config import NO_CONSTRAINTS, SOME_NEIGHBOURS, Constraints, check_settings
from gradnet.descriptors.check import check_descriptors
from gradnet.descriptors.duplicates import RowLookup
from gradnet.descriptors.preprocess import fit_preprocessor
from gradnet.errors import InputError, UnseenQueriesError
from gradnet.graph.affinity import local_graph
from gradnet.graph.neighbours import Neighbours, all_scores, graph_neighbours, nearest
from gradnet.graph.nodes import gather_nodes
from gradnet.graph.similarity import neighbour_similarity
from gradnet.graph.spaces import Space
from gradnet.ranking import Ranking, top_k
from gradnet.search.learned import check_k

_SCORES_PER_BLOCK = 1 << 22  # 32 MB of float64 at a time


class OnGraph(BaseEstimator, ABC):
    """A method that fits a k-NN graph: a node for each distinct descriptor, of queries known to `fit` too."""

    preprocess: str
    n_neighbors: int
    graph: str
    similarity: str

    answers_unseen: ClassVar[bool] = False
    """Whether a query that was not in the graph is answered."""
    cost: ClassVar[str]
    """Time and memory in the number of items, in words."""
    constraints: ClassVar[Constraints] = NO_CONSTRAINTS
    """What the settings that only this method has may be."""

    def fit(self, X: Any, queries: Any = None) -> Self:
        """Build the graph of the database X, (n, d), and of the queries, (m, d), if they are known."""
        check_settings(self.get_params(), {**SOME_NEIGHBOURS, **self.constraints})
        X = check_descriptors(X)
        self.preprocessor_ = fit_preprocessor(self.preprocess, X)
        self.descriptors_ = self.preprocessor_(X)
        self.queries_ = None if queries is None else self._prepare(queries)
        self.nodes_ = gather_nodes(
            self.descriptors_[:0] if self.queries_ is None else self.queries_, self.descriptors_, None
        )
        self._check_size(len(self.nodes_.descriptors))
        X = self.nodes_.descriptors
        search = Space(X, "euclidean", "auto", self.n_neighbors + 1).nearest  # exact unless there are many
        self.neighbours_ = graph_neighbours(X, self.n_neighbors, search=search)
        self.affinity_ = self._affinity(X, self.neighbours_)
        self.__dict__.pop("_lookup", None)
        self._learn()
        return self

    @abstractmethod
    def search(self, Q: Any = None, k: int = 10) -> Ranking:
        """The k best items for each row of Q; for what `fit` was given when Q is None."""

    def _affinity(self, nodes: Floats, neighbours: Neighbours) -> Sparse:
        return local_graph(nodes, neighbours, self.graph, self.similarity)

    def _learn(self) -> None:
        """What is computed once for all queries; nothing, unless a method says otherwise."""

    def _check_size(self, N: int) -> None:
        """Refuse a graph that is too large; methods that hold matrices over all pairs say how many."""

    def _prepare(self, Q: Any) -> Floats:
        return self.preprocessor_(check_descriptors(Q, "X", self.descriptors_.shape[1]))


class GraphMethod(OnGraph):
    """A method that spreads a query over the nodes of its graph; `_scores` is what makes it itself.

    An item that the query does not reach, with a score of zero or less, stands behind all others, by distance;
    its score is the negative distance.
    """

    def search(self, Q: Any = None, k: int = 10) -> Ranking:
        """The k best items for each row of Q; for what `fit` was given when Q is None."""
        k = check_k(k, len(self.descriptors_))
        if Q is not None:
            prepared = self._prepare(Q)
            return self._rank(self._start(prepared), prepared, k)
        if self.queries_ is not None:
            return self._rank(self._at(self.nodes_.of_queries), self.queries_, k)
        return self._rank(self._at(self.nodes_.of_items), self.descriptors_, k)

    @abstractmethod
    def _scores(self, start: Sparse) -> Doubles:
        """(b, N) how well each node answers each query.

        start: (b, N) CSR; a query in the graph has a one at its own node, an unseen one the similarities of
        its neighbours at theirs.
        """

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup(self.nodes_.descriptors)

    def _at(self, nodes: Ints) -> Sparse:
        shape = (len(nodes), len(self.nodes_.descriptors))
        return sparse.csr_array((np.ones(len(nodes)), nodes, np.arange(len(nodes) + 1)), shape=shape)

    def _start(self, prepared: Floats) -> Sparse:
        """Where preprocessed queries, (m, d), begin: at their node, or at the nodes next to them."""
        node = self._lookup(prepared)
        if (node >= 0).all():
            return self._at(node)
        if not self.answers_unseen:
            raise UnseenQueriesError(
                f"{type(self).__name__} ranks only for what was in its graph, and row "
                f"{int(np.argmin(node >= 0))} of the queries was not",
                "hand the queries to fit, or take a method that answers any, such as 'efficient' or 'gradnet'",
            )
        X = self.nodes_.descriptors
        k = min(getattr(self, "n_query_neighbors", None) or self.n_neighbors, len(X))
        ids, scores = nearest(prepared, X, k, "euclidean")
        weights = neighbour_similarity(self.similarity, prepared, X, ids, -scores).astype(np.float64)
        known = node >= 0
        ids[known, 0], weights[known] = node[known], np.eye(1, k)
        start = sparse.csr_array(
            (weights.ravel(), ids.ravel(), np.arange(0, ids.size + 1, k)), shape=(len(ids), len(X))
        )
        start.eliminate_zeros()
        return start

    def _rank(self, start: Sparse, prepared: Floats, k: int) -> Ranking:
        m, n = len(prepared), len(self.descriptors_)
        ids, scores = np.empty((m, k), dtype=np.int64), np.empty((m, k), dtype=np.float32)
        for rows in row_blocks(m, max(1, _SCORES_PER_BLOCK // max(n, start.shape[1]))):
            of_nodes = self._scores(start[rows.start : rows.stop])
            of_items = np.asarray(of_nodes[:, self.nodes_.of_items], dtype=np.float32)
            ids[rows], scores[rows] = top_k(self._behind(of_items, prepared[rows], k), k)
        return Ranking(ids, scores)

    def _behind(self, scores: Floats, prepared: Floats, k: int) -> Floats:
        """Scores with the negative distance wherever a query does not reach, as far as that is looked at."""
        reached = scores > 0
        short = reached.sum(axis=1) < k
        if short.any():
            plain = all_scores(prepared[short].astype(np.float64), self.descriptors_, "euclidean")
            scores[short] = np.where(reached[short], scores[short], np.minimum(plain, 0.0))
        return scores


def refuse_beyond(N: int, max_items: int, n_matrices: int, name: str) -> None:
    """An error where a method would need n x n matrices of more than `max_items` rows."""
    if max_items < N:
        gigabytes = n_matrices * 8 * N * N / 1e9
        raise InputError(
            f"{name} holds {n_matrices} matrices over all pairs of items, {gigabytes:,.1f} GB for {N:,}; "
            f"max_items = {max_items:,}",
            "raise max_items if the memory is there, or take a method that grows linearly, such as 'efficient'",
        )
