"""What baselines share: preprocessed descriptors, graphs over them, features searched by cosine."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from manifind.arrays import Doubles, Floats, Ints, Sparse, check_descriptors
from manifind.errors import InputError, UnseenQueriesError
from manifind.graph.duplicates import RowLookup, gather_nodes
from manifind.graph.knn_graph import local_graph, neighbour_similarity, sparse_rows
from manifind.graph.preprocess import fit_preprocessor
from manifind.index.exact import Neighbours, all_scores, graph_neighbours, nearest, rank_in_blocks
from manifind.index.vector_index import make_index
from manifind.model.estimator import RetrievalEstimator
from manifind.ranking import Ranking, top_k
from manifind.search.feature_model import FeatureModel, QuerySettings, check_k
from manifind.settings import GRAPH, PREPROCESS, SIMILARITY, check_settings, estimator, or_none, setting, whole


@estimator
class BaselineEstimator(RetrievalEstimator):
    """A method under the contract of all: its fields are its settings, and `_learn` and `_rank` make it itself."""

    preprocess: str = setting("unit", PREPROCESS)

    def fit(self, X: Any, queries: Any = None) -> Self:
        """Keep the database, and the queries where they are known beforehand.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Descriptors of the database.
        queries : array-like of shape (m, d), default=None
            Descriptors of the queries.

        Returns
        -------
        self : estimator
            The fitted method.
        """
        check_settings(self.get_params(), type(self))
        X = check_descriptors(X)
        self.preprocessor_ = fit_preprocessor(self.preprocess, X)
        self.descriptors_ = self.preprocessor_(X)
        self.queries_ = None if queries is None else self._prepare(queries)
        self._build()
        self._learn()
        return self

    def _build(self) -> None:
        """The graph, for methods that have one."""

    def _learn(self) -> None:
        """What is computed once for all queries; nothing, unless a method says otherwise."""

    def _search(self, Q: Any, k: int) -> Ranking:
        return self._rank(self._prepare(Q), check_k(k, len(self.descriptors_)))

    def _prepare(self, Q: Any) -> Floats:
        """Queries, (m, d), preprocessed; where Q is None those that `fit` knows, or all items."""
        if Q is None:
            return self.descriptors_ if self.queries_ is None else self.queries_
        return self.preprocessor_(check_descriptors(Q, "X", self.descriptors_.shape[1]))

    @abstractmethod
    def _rank(self, prepared: Floats, k: int) -> Ranking:
        """The k best items for preprocessed queries, (m, d)."""


_SCORES_PER_BLOCK = 1 << 22  # 32 MB of float64 at a time


@estimator
class GraphEstimator(BaselineEstimator):
    """A method that fits a k-NN graph: a node for each distinct descriptor, of queries known to `fit` too."""

    n_neighbors: int = setting(15, whole(1))
    graph: str = setting("mutual", GRAPH)
    similarity: str = setting("gaussian", SIMILARITY)

    answers_unseen = False

    def _build(self) -> None:
        queries = self.descriptors_[:0] if self.queries_ is None else self.queries_
        self.nodes_ = gather_nodes(queries, self.descriptors_, None)
        X = self.nodes_.descriptors
        self._check_size(len(X))
        search = make_index(X, "euclidean", "auto", self.n_neighbors + 1).nearest  # exact unless there are many
        self.neighbours_ = graph_neighbours(X, self.n_neighbors, search=search)
        self.affinity_ = self._affinity(X, self.neighbours_)
        self._lookup = RowLookup(X)

    def _affinity(self, nodes: Floats, neighbours: Neighbours) -> Sparse:
        return local_graph(nodes, neighbours, self.graph, self.similarity)

    def _check_size(self, N: int) -> None:
        """Refuse a graph that is too large; methods that hold matrices over all pairs say how many."""


class DiffusionEstimator(GraphEstimator):
    """A method that spreads a query over the nodes of its graph; `_scores` is what makes it itself.

    An item that the query does not reach, with a score of zero or less, stands behind all others, by distance;
    its score is the negative distance.
    """

    @abstractmethod
    def _scores(self, start: Sparse) -> Doubles:
        """(b, N) how well each node answers each query.

        start: (b, N) CSR; a query in the graph has a one at its own node, an unseen one the similarities of
        its neighbours at theirs.
        """

    def _at(self, nodes: Ints) -> Sparse:
        return sparse_rows(nodes[:, None], np.ones(len(nodes)), len(self.nodes_.descriptors))

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
        start = sparse_rows(ids, weights, len(X))
        start.eliminate_zeros()
        return start

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        start = self._start(prepared)

        def rank(rows: slice) -> Ranking:
            of_nodes = self._scores(start[rows.start : rows.stop])
            of_items = np.asarray(of_nodes[:, self.nodes_.of_items], dtype=np.float32)
            return top_k(self._behind(of_items, prepared[rows], k), k)

        width = max(len(self.descriptors_), start.shape[1])
        return rank_in_blocks(rank, len(prepared), k, _SCORES_PER_BLOCK // width)

    def _behind(self, scores: Floats, prepared: Floats, k: int) -> Floats:
        """Scores with the negative distance wherever a query does not reach, as far as that is looked at."""
        reached = scores > 0
        short = reached.sum(axis=1) < k
        if short.any():
            plain = all_scores(prepared[short].astype(np.float64), self.descriptors_, "euclidean")
            scores[short] = np.where(reached[short], scores[short], np.minimum(plain, 0.0))
        return scores


@estimator
class AllPairsEstimator(DiffusionEstimator):
    """A method that holds matrices over all pairs of nodes; `_learn` leaves the answer in `diffused_`, (N, N).

    max_items: a larger graph is refused.
    """

    cost = "cubic in time and quadratic in memory: matrices over all pairs of items"

    max_items: int = setting(10_000, whole(1))

    @property
    @abstractmethod
    def _n_matrices(self) -> int:
        """How many matrices are held at once."""

    def _check_size(self, N: int) -> None:
        if self.max_items < N:
            gigabytes = self._n_matrices * 8 * N * N / 1e9
            raise InputError(
                f"{type(self).__name__} holds {self._n_matrices} matrices over all pairs of items, "
                f"{gigabytes:,.1f} GB for {N:,}; max_items = {self.max_items:,}",
                "raise max_items if the memory is there, or take a method that grows linearly, such as 'efficient'",
            )

    def _scores(self, start: Sparse) -> Doubles:
        return np.asarray(start @ self.diffused_)


@estimator
class FeatureEstimator(GraphEstimator):
    """A method that learns features of the nodes; `_features` is what makes it itself.

    An unseen query gets the mean of its neighbours' features, weighted by similarity, as in GRAD-Net.
    """

    n_query_neighbors: int | None = setting(5, or_none(whole(1)))

    answers_unseen = True

    def _search(self, Q: Any, k: int) -> Ranking:
        if Q is None and self.queries_ is not None:  # of these, items alone would know less than the graph
            return self._learned.rank(self._of_queries, self.queries_, k)
        return self._rank(self._prepare(Q), k)

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        return self._learned.rank(self._learned.features_of(prepared).features, prepared, k)

    def transform(self, X: Any) -> Floats:
        """Features, (m, D), of any descriptors; a row equal to a fitted item gets that item's features."""
        return self._learned.transform(X)

    def _learn(self) -> None:
        of_nodes, nodes = self._features(), self.nodes_
        self._of_queries = of_nodes[nodes.of_queries]
        self.features_ = of_nodes[nodes.of_items]
        settings = QuerySettings(self.n_query_neighbors or self.n_neighbors, self.similarity, 1)
        self._learned = FeatureModel(
            self.preprocessor_, settings, self.descriptors_, self.features_, nodes.first_items, nodes.inside
        )

    @abstractmethod
    def _features(self) -> Floats:
        """(N, D) features of the nodes, unit rows."""
