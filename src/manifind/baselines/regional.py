"""Diffusion by conjugate gradients (Iscen et al. 2017), over items or over several regions of each image."""

from typing import Any, Self

import numpy as np
from scipy import sparse

from manifind.arrays import Doubles, Floats, Ints, Sparse
from manifind.baselines.estimators import DiffusionEstimator
from manifind.errors import InputError
from manifind.graph.diffusion import limit
from manifind.graph.knn_graph import transition
from manifind.graph.preprocess import unit_rows
from manifind.index.exact import nearest, rank_in_blocks
from manifind.ranking import Ranking, top_k
from manifind.search.feature_model import check_k
from manifind.settings import SHARE, estimator, or_none, setting, whole

_TOLERANCE = 1e-6


@estimator
class Regional(DiffusionEstimator):
    """Diffusion by conjugate gradients (Iscen et al. 2017), over items or over several regions of each image.

    Items ranked by f of (I - alpha S) f = y, as far as `iterations` of conjugate gradients come.

    y: similarities of the n_query_neighbors nodes next to an unseen query, or a one at the query's own node.
    truncation: only so many items, the nearest by descriptor, get a graph of their own for each query ("early
    truncation"); None takes the whole graph.

    Images with several descriptors: hand `fit` and `search` the number of the image of every row. Items are
    then images; an image's score is the sum over its regions of f, weighted by generalised max pooling.
    """

    answers_unseen = True
    cost = "linear: some twenty passes over the edges for each query"

    n_neighbors: int = 50
    similarity: str = "cubed"
    alpha: float = setting(0.99, SHARE)
    iterations: int = setting(20, whole(1))
    n_query_neighbors: int | None = setting(10, or_none(whole(1)))
    truncation: int | None = setting(None, or_none(whole(1)))

    def fit(self, X: Any, queries: Any = None, *, images: Any = None, query_images: Any = None) -> Self:
        """Build the graph of the database X, (n, d), and of the queries, (m, d), if they are known.

        images: (n,) the number of the image, counted from 0, that each row is a region of; None: each its own.
        query_images: (m,) the same for the queries.
        """
        self._images, self._query_images = images, query_images
        return super().fit(X, queries)

    def search(self, Q: Any = None, k: int = 10, *, query_images: Any = None) -> Ranking:
        """The k best items for each query; for what `fit` was given when Q is None.

        query_images: (m,) the number of the query, counted from 0, that each row of Q is a region of.
        """
        if self._images is None and query_images is None and self.truncation is None:
            return super().search(Q, k)
        if Q is None:
            query_images = self._images if self.queries_ is None else self._query_images
        return self._rank_images(self._prepare(Q), query_images, check_k(k, self._pooling.shape[0]))

    def _learn(self) -> None:
        n = len(self.descriptors_)
        self._of_row = image_numbers(self._images, n, "images")
        weights = pooling_weights(self.descriptors_, self._of_row)
        shape = (int(self._of_row.max()) + 1, len(self.nodes_.descriptors))
        self._pooling = sparse.csr_array((weights, (self._of_row, self.nodes_.of_items)), shape=shape)
        self._means = None
        if self.truncation:  # the global descriptor of each image
            sums = np.zeros((shape[0], self.descriptors_.shape[1]), dtype=np.float32)
            np.add.at(sums, self._of_row, self.descriptors_)
            self._means = unit_rows(sums)
        self.transition_ = transition(self.affinity_)

    def _rank_images(self, prepared: Floats, images: Any, k: int) -> Ranking:
        start, rows_of = self._start(prepared), rows_by_image(image_numbers(images, len(prepared), "query_images"))

        def rank(query: slice) -> Ranking:
            rows = rows_of[query.start]
            y = _largest(start[rows].sum(axis=0), self.n_query_neighbors or self.n_neighbors)
            of_images = np.asarray(self._pooling @ self._diffuse(y, prepared[rows]), dtype=np.float32)
            return top_k(self._behind_images(of_images, prepared[rows], k)[None], k)

        return rank_in_blocks(rank, len(rows_of), k, 1)

    def _diffuse(self, y: Doubles, regions: Floats) -> Doubles:
        """(N,) the solution for one query; y: (N,). regions: (r, d) of the query."""
        if self._means is None or self.truncation is None or self.truncation >= len(self._means):
            return limit(self.transition_, y[:, None], self.alpha, _TOLERANCE, self.iterations)[:, 0]
        query = unit_rows(regions.sum(axis=0, keepdims=True))
        kept = nearest(query, self._means, self.truncation, "cosine").ids[0]
        nodes = np.unique(self.nodes_.of_items[np.isin(self._of_row, kept)])
        nodes = np.union1d(nodes, np.flatnonzero(y))  # where the query begins is in its own graph
        S = transition(self.affinity_[nodes][:, nodes])
        f = np.zeros_like(y)
        f[nodes] = limit(S, y[nodes, None], self.alpha, _TOLERANCE, self.iterations)[:, 0]
        return f

    def _scores(self, start: Sparse) -> Doubles:
        y = start.toarray().T
        return limit(self.transition_, y, self.alpha, _TOLERANCE, self.iterations).T

    def _behind_images(self, scores: Floats, regions: Floats, k: int) -> Floats:
        """Scores with the negative distance of the nearest two regions wherever the query does not reach."""
        reached = scores > 0
        if reached.sum() >= k:
            return scores
        n = len(self.descriptors_)
        plain = np.full(len(scores), -np.inf, dtype=np.float32)
        for region in regions:
            row = self._behind(np.zeros((1, n), dtype=np.float32), region[None], n)[0]
            np.maximum.at(plain, self._of_row, row)
        return np.where(reached, scores, plain)


def image_numbers(images: Any, n: int, name: str) -> Ints:
    """(n,) which image each row belongs to; each its own where images is None."""
    if images is None:
        return np.arange(n)
    numbers = np.asarray(images)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise InputError(f"{name} has shape {numbers.shape}; expected {n} whole numbers, one for each row")
    if numbers.min() < 0 or len(np.unique(numbers)) != numbers.max() + 1:
        hint = "number the images from 0, each with at least one row"
        raise InputError(f"{name} runs from {numbers.min()} to {numbers.max()} with gaps", hint)
    return numbers.astype(np.int64)


def rows_by_image(of_row: Ints) -> list[Ints]:
    return np.split(np.argsort(of_row, kind="stable"), np.cumsum(np.bincount(of_row))[:-1])


def pooling_weights(X: Floats, of_row: Ints) -> Doubles:
    """(n,) b with (V V^T + I) b = 2 for the regions V of each image: regions alike share what one would count.

    The authors have 1 in place of 2, with the same order; a single region counts 1 this way.
    """
    weights = np.empty(len(X))
    for rows in rows_by_image(of_row):
        V = unit_rows(X[rows]).astype(np.float64)
        weights[rows] = np.linalg.solve(V @ V.T + np.eye(len(rows)), np.full(len(rows), 2.0))
    return weights


def _largest(y: Doubles, k: int) -> Doubles:
    """y with all but its k largest entries set to zero; ties by position."""
    kept = np.argsort(-y, kind="stable")[:k]
    out = np.zeros_like(y)
    out[kept] = y[kept]
    return out
