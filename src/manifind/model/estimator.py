"""GRAD-Net as an estimator: descriptors in, learned features out, search over them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, make_dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from manifind.arrays import Floats, check_descriptors, row_blocks
from manifind.checkpoint import Checkpoint, installed_versions
from manifind.collection.collection import Collection, load
from manifind.collection.writer import Contents, write_collection
from manifind.errors import GraphError, InputError
from manifind.graph.duplicates import Nodes, gather_nodes
from manifind.graph.manifold import DEFAULT_NEIGHBORS, build_manifold
from manifind.graph.neighbour_agreement import FULL_AGREEMENT, measure_neighbour_agreement
from manifind.graph.preprocess import Preprocessor, fit_preprocessor
from manifind.index.fit_context import FitContext
from manifind.index.gpu import GpuEngine, cap_gpu_memory, find_memory_budget
from manifind.index.ivf import told
from manifind.index.vector_index import CPU_ENGINE, Engine, make_index, to_array
from manifind.model.distributed import join_process_group
from manifind.model.training import learn_features, pick_device
from manifind.progress import Listener, ignore, with_bars
from manifind.ranking import Ranking
from manifind.search.feature_model import FeatureModel
from manifind.search.query_expansion import QuerySettings, expand_queries
from manifind.settings import PAPER, GradNetSettings, check_settings, documented, fit_settings


def draw_seed(random_state: Any) -> int:
    """A seed from what scikit-learn takes for a random state; 0 is a seed like any other."""
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InputError(
            f"random_state = {random_state!r}; expected a whole number from 0 to 2**32 - 1, or None"
        ) from error


def open_checkpoint(
    folder: str | Path | None,
    X: Floats,
    queries: Floats | None,
    settings: Mapping[str, Any],
    start: Mapping[str, Floats] | None = None,
) -> Checkpoint:
    """The checkpoint of a fit, whose `seed` the fit must take; it keeps nothing where folder is None.

    settings: GradNet's. Where their random_state is None, any seed will do: the fit that is continued had its own.
    start: weights that the network begins with, if they are given.
    """
    seed = draw_seed(settings["random_state"])
    if folder is None:
        return Checkpoint(None, {}, seed)
    job = {
        "X": _digest(X),
        "queries": None if queries is None else _digest(queries),
        "start": None if start is None else {name: _digest(weight) for name, weight in start.items()},
        "settings": {name: value for name, value in fit_settings(settings).items() if name != "random_state"},
        "seed": None if settings["random_state"] is None else seed,
        "device": pick_device(settings["device"]),
        "versions": installed_versions(),
    }
    return Checkpoint(folder, job, seed)


def _digest(X: Floats) -> str:
    digest = hashlib.sha256(f"{X.shape} ".encode())
    digest.update(np.ascontiguousarray(X).data)
    return digest.hexdigest()


_ROWS_PER_BLOCK = 4096  # that join the features through their neighbours at a time


@documented
class GradNet(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GradNetSettings, BaseEstimator):
    """GRAD-Net as an estimator: descriptors in, learned features out, search over them.

    Learned features for retrieval, from descriptors alone.

    The settings of the paper are `manifind.PAPER`. The defaults are meant for any set, without labels and without
    tuning: a graph whose weights choose among 30 neighbours, positives and features from walks along it, and a
    guard where neighbours are mostly noise. docs/readings.md has a heading for each setting, docs/default.md the
    evidence.

    Parameters
    ----------
    {settings}

    Attributes
    ----------
    features_ : (n, D) float32, unit rows; search is cosine over them.
    query_features_ : (m, D) of the queries given to `fit`, or None.
    manifold_ : the graphs. loss_curve_ : (steps, 3) total, local and global loss.
    neighbour_agreement_ : what `guard` found: on how many neighbours two halves of the descriptors agree, and what
        that is worth.
    info_ : what was fitted, in numbers. n_features_in_ : d.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> model = GradNet(n_neighbors=5, max_steps=3, random_state=0).fit(X)
    >>> model.search(X[:2], k=3).ids.shape
    (2, 3)
    """

    answers_unseen: ClassVar[bool] = True
    cost: ClassVar[str] = "linear: steps of training over the edges, then two searches for each query"

    def fit(
        self,
        X: Any,
        queries: Any = None,
        *,
        listener: Listener = ignore,
        checkpoint: str | Path | None = None,
        start: Mapping[str, Floats] | None = None,
    ) -> Self:
        """Learn the features of the database.

        X: (n, d) descriptors. queries: (m, d), if they are known beforehand; they join the graph. A
        one-dimensional array of n labels, which scikit-learn's pipelines hand over in this place, is
        ignored. listener: told of progress, whether `verbose` shows it or not. checkpoint: a folder to keep the work in
        until it is done, so that the same fit, interrupted, goes on where it stopped and ends with the same bits; None
        keeps nothing.
        start: weights of the network to begin with, by name, such as an earlier fit's; None draws them.
        """
        check_settings(self.get_params())
        _check_feature_names(self, X, reset=True)
        X = check_descriptors(X)
        if len(X) == 1:
            raise GraphError("X has 1 sample, and a graph needs others", "fit on at least three different items")
        known = queries is not None and not _are_labels(queries, len(X))
        known_queries = check_descriptors(queries, "queries", X.shape[1]) if known else None
        self.n_features_in_ = X.shape[1]
        device = pick_device(self.device)
        processes = join_process_group(device)
        if processes.are_several and self.random_state is None:
            raise InputError(
                "random_state = None, and several processes that fit together must begin alike", "give a seed"
            )
        # Of several processes none could go on from what it saved alone.
        folder = None if processes.are_several else checkpoint
        saved = open_checkpoint(folder, X, known_queries, self.get_params(), start)
        try:
            budget = find_memory_budget(device, self.device_memory)
            engine = GpuEngine(budget) if budget.device == "cuda" else CPU_ENGINE
            with (
                cap_gpu_memory(budget.device, self.device_memory),
                with_bars(listener, self.verbose and processes.rank == 0) as reported,
            ):
                context = FitContext(saved.seed, budget, engine, reported, saved, processes)
                self._fit(X, known_queries, context, start)
        except InputError:  # it would end there again
            saved.clear()
            raise
        saved.clear()
        return self

    def _fit(
        self, X: Floats, queries: Floats | None, context: FitContext, start: Mapping[str, Floats] | None = None
    ) -> None:
        started = time.perf_counter()
        preprocessor = fit_preprocessor(self.preprocess, X)
        prepared, self._lengths = preprocessor.with_lengths(X)
        self._queries = preprocessor(X[:0] if queries is None else queries)
        nodes = gather_nodes(self._queries, prepared, self.truncation, context.engine)
        self.manifold_ = build_manifold(nodes.descriptors, self, context)
        agreement = FULL_AGREEMENT
        if self.guard:
            agreement = measure_neighbour_agreement(nodes.descriptors, context.seed, context.engine)
        self.neighbour_agreement_ = agreement
        graph_seconds = time.perf_counter() - started
        result = learn_features(self.manifold_, nodes.descriptors, agreement, self, context, start)
        self.loss_curve_, self._weights, features = result.curve, result.weights, result.reduced.features
        self._model = self._spread(preprocessor, prepared, nodes, features, context.engine)
        self.features_ = to_array(self._model.features)
        self.query_features_ = None if queries is None else features[nodes.of_queries]
        affinity = self.manifold_.affinity
        self.info_ = {
            "items": len(X),
            "dimension": X.shape[1],
            "queries_in_graph": len(self._queries),
            "nodes": len(nodes.descriptors),
            "training_nodes": result.n_trained,
            "edges": int(affinity.nnz // 2),
            "neighbour_agreement": agreement.agreement,
            "trust": agreement.share,
            "nodes_without_edge": int((np.diff(affinity.indptr) == 0).sum()),
            "neighbour_search": told(self.manifold_.search),
            "connected_components": int(connected_components(affinity, directed=False)[0]),
            "feature_dimension": self.features_.shape[1],
            "energy_kept": result.reduced.kept,
            "steps": len(self.loss_curve_),
            "processes": context.processes.size,
            "seed": context.seed,
            "seconds_graph": graph_seconds,
            "seconds": time.perf_counter() - started,
        }

    def _spread(
        self, preprocessor: Preprocessor, prepared: Floats, nodes: Nodes, node_features: Floats, engine: Engine
    ) -> FeatureModel:
        """The nodes' features given to all items; those that truncation left out get them as queries would."""
        queries = QuerySettings(
            self.n_query_neighbors or self.n_neighbors or DEFAULT_NEIGHBORS,
            "gaussian" if self.similarity == "sharp" else self.similarity,
            self.query_passes,
            self.index,
        )
        inside, first = nodes.inside, nodes.first_items
        features = nodes.rows_of_items(node_features)
        if not inside.all():
            k = queries.n_neighbors
            indexes = (
                make_index(prepared[first], "euclidean", self.index, k, engine=engine),
                make_index(features[first], "cosine", self.index, k, engine=engine),
            )
            outside = np.flatnonzero(~inside)
            for block in row_blocks(len(outside), _ROWS_PER_BLOCK):
                rows = outside[block]
                features[rows] = expand_queries(prepared[rows], *indexes, queries)
        return FeatureModel(preprocessor, queries, prepared, features, first, inside)

    def transform(self, X: Any) -> Floats:
        """Features, (m, D), of any descriptors; a row equal to a fitted item gets that item's features."""
        check_is_fitted(self, "features_")
        _check_feature_names(self, X, reset=False)
        return self._model.transform(X)

    def search(self, Q: Any = None, k: int = 10) -> Ranking:
        """The k best items, as positions in X, for each row of Q; for what `fit` was given when Q is None."""
        check_is_fitted(self, "features_")
        if Q is not None:
            return self._model.search(Q, k)
        if self.query_features_ is not None:
            return self._model.rank(self.query_features_, self._queries, k)
        return self._model.rank(self.features_, to_array(self._model.descriptors), k)

    def save(
        self,
        path: str | Path,
        ids: Sequence[str] | Sequence[int] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        *,
        overwrite: bool = False,
    ) -> Collection:
        """Write the fitted model as a collection directory, and open it.

        ids: the user's name for each item, unique strings or integers; positions where they are not
        given. metadata: a few named values for each item, to filter by. overwrite: whether an existing
        collection at `path` may be replaced, in one step; anything else there is refused.
        """
        check_is_fitted(self, "features_")
        write_collection(path, self.contents(), ids, metadata, overwrite=overwrite)
        return load(path)

    def contents(self) -> Contents:
        """What a collection keeps of the fitted model."""
        check_is_fitted(self, "features_")
        settings = {name: value for name, value in fit_settings(self.get_params()).items() if name != "random_state"}
        return Contents(
            self._model,
            self._lengths,
            self.manifold_,
            self._weights,
            self.loss_curve_,
            self.n_neighbors or DEFAULT_NEIGHBORS,
            settings,
            self.info_,
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.features_.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.non_deterministic = self.random_state is None
        return tags


def _are_labels(queries: Any, n_items: int) -> bool:
    return np.asarray(queries).shape == (n_items,)


GradNetPaper: Any = make_dataclass(
    "GradNetPaper",
    [(one.name, one.type, field(default=PAPER.get(one.name, one.default))) for one in fields(GradNet)],
    bases=(GradNet,),
    namespace={
        "__module__": __name__,
        "__doc__": "GRAD-Net with the settings of the paper as defaults, as a method beside the others.",
    },
    kw_only=True,
    eq=False,
    repr=False,
)
