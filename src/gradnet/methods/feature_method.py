"""What the methods that give every item new features share: search by cosine, unseen queries by their neighbours."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from gradnet.arrays import Floats
from gradnet.methods.graph_method import OnGraph
from gradnet.ranking import Ranking
from gradnet.search.learned import Learned
from gradnet.search.qfe import QuerySettings


class FeatureMethod(OnGraph):
    """A method that learns features of the nodes; `_features` is what makes it itself.

    An unseen query gets the mean of its neighbours' features, weighted by similarity, as in GRAD-Net.
    """

    answers_unseen = True
    n_query_neighbors: int | None

    def search(self, Q: Any = None, k: int = 10) -> Ranking:
        """The k best items for each row of Q; for what `fit` was given when Q is None."""
        if Q is not None:
            return self._learned.search(Q, k)
        if self.queries_ is not None:
            return self._learned.rank(self._of_queries, self.queries_, k)
        return self._learned.rank(self.features_, self.descriptors_, k)

    def transform(self, X: Any) -> Floats:
        """Features, (m, D), of any descriptors; a row equal to a fitted item gets that item's features."""
        return self._learned.transform(X)

    def _learn(self) -> None:
        of_nodes, nodes = self._features(), self.nodes_
        self._of_queries = of_nodes[nodes.of_queries]
        self.features_ = of_nodes[nodes.of_items]
        settings = QuerySettings(self.n_query_neighbors or self.n_neighbors, self.similarity, 1)
        self._learned = Learned(
            self.preprocessor_, settings, self.descriptors_, self.features_, nodes.first_items, nodes.inside
        )

    @abstractmethod
    def _features(self) -> Floats:
        """(N, D) features of the nodes, unit rows."""
