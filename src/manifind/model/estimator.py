"""GRAD-Net as an estimator: descriptors in, learned features out, search over them."""

from __future__ import annotations

import hashlib
import inspect
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from manifind.arrays import Floats, check_descriptors, row_blocks
from manifind.checkpoint import NO_CHECKPOINT, Checkpoint, installed_versions
from manifind.collection.collection import Collection, load
from manifind.collection.writer import Contents, write_collection
from manifind.errors import GraphError, InputError
from manifind.graph.duplicates import Nodes, gather_nodes
from manifind.graph.manifold import DEFAULT_NEIGHBORS, GraphSettings, build_manifold
from manifind.graph.neighbour_agreement import FULL_AGREEMENT, measure_neighbour_agreement
from manifind.graph.preprocess import Preprocessor, fit_preprocessor
from manifind.index.exact import search_backend
from manifind.index.gpu import DeviceSearch, MemoryBudget, cap_gpu_memory, find_memory_budget
from manifind.index.ivf import told
from manifind.index.vector_index import VectorIndex
from manifind.model.distributed import ALONE, ProcessGroup, join_process_group
from manifind.model.training import learn_features, pick_device
from manifind.progress import Listener, ignore, with_bars
from manifind.ranking import Ranking
from manifind.search.feature_model import FeatureModel
from manifind.search.query_expansion import QuerySettings, expand_queries
from manifind.settings import PAPER, check_settings, deciding, settings_for


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
        "settings": {name: value for name, value in deciding(settings).items() if name != "random_state"},
        "seed": None if settings["random_state"] is None else seed,
        "device": pick_device(settings["device"]).type,
        "versions": installed_versions(),
    }
    return Checkpoint(folder, job, seed)


def _digest(X: Floats) -> str:
    digest = hashlib.sha256(f"{X.shape} ".encode())
    digest.update(np.ascontiguousarray(X).data)
    return digest.hexdigest()


_ROWS_PER_BLOCK = 4096  # that join the features through their neighbours at a time


class GradNet(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """GRAD-Net as an estimator: descriptors in, learned features out, search over them.

    Learned features for retrieval, from descriptors alone.

    The settings of the paper are `manifind.PAPER`. The defaults are meant for any set, without labels and without
    tuning: a graph whose weights choose among 30 neighbours, positives and features from walks along it, and a
    guard where neighbours are mostly noise. docs/readings.md has a heading for each setting, docs/default.md the
    evidence.

    Parameters
    ----------
    preprocess : "unit" scales rows to length 1, "center" removes the mean first, "whiten" also makes all directions
        vary alike, "none" does nothing.
    n_neighbors : neighbours of an item in the graph, itself not counted; None for 30, or all where there are fewer.
    index : how neighbours are found: "exact", by codes of 8 bits ("sq8") or less ("pq"), or "auto".
    graph : "mutual" keeps an edge where both ends list each other, "union" where either does.
    similarity : weight of an edge: "euclidean" 1 / (1 + distance), "gaussian", "sharp", "cosine" or "cubed".
    n_anchors, n_codes : k-means anchors of the global graph, and how many of them code an item.
    inputs : what the network sees: "both" descriptors and codes, or one of the two.
    input_components : most dimensions of a descriptor that the network sees, the leading ones; None for all.
    layers : widths of the layers. layer : "diffusion", or "gcn" without the second order.
    self_loops : "identity" for I + S, "renormalised" for Kipf's form.
    negative_slope, dropout : of each layer. output : "concat" of all layers, or the "last" alone.
    walk_weight : how much the features say of where walks along the graph end, next to 1 for the network's.
    positives : what a sample learns to be near: "edges", or "walks", the ends of walks from it.
    local_loss : "bpr", or "log" for the paper's print. local_weight, temperature : of the local loss.
    beta, global_weight, global_coefficient : of the global loss ("detached", "attached", "printed").
    l2 : weight of the squared parameters.
    learning_rate, milestones : Adam's rate, halved after these shares of the training.
    batch_size : sextets a step; None for eight to each node, at most 16,384.
    epoch : "nodes" or "edges" / batch_size steps. epochs : length.
    max_steps : at most so many steps; "auto" for 150, fewer beyond 20,000 items; None for no limit.
    training_nodes : a larger graph is trained on a part of so many nodes, and the features are computed for all; None
        trains on all.
    precision : of the first layer's product: "float32", "bfloat16", "auto" for the faster of the two here, or
        "by device" for bfloat16 on a GPU alone.
    n_query_neighbors : neighbours through which an unseen query joins; None for n_neighbors.
    query_passes : 2 repeats this in the learned space.
    truncation : keep only items among this many nearest of some query known to `fit`.
    guard : measure whether neighbours are more than noise, and lean on the descriptors where they are not.
    n_components : most dimensions of `features_`; None keeps all.
    device : "auto", "cpu" or "cuda".
    device_memory : most GB of a GPU's memory to take; None for 70 % of what is free. Where the graph finds no room
        there, training takes a part of it, and what remains is computed on the CPU.
    random_state : seed; the same one gives the same result.
    verbose : whether `fit` shows how far it is: bars in a terminal and in a notebook, a line a minute in a log.

    Attributes
    ----------
    features_ : (n, D) float32, unit rows; search is cosine over them.
    query_features_ : (m, D) of the queries given to `fit`, or None.
    manifold_ : the graphs. loss_curve_ : (steps, 3) total, local and global loss.
    trust_ : what `guard` found: on how many neighbours two halves of the descriptors agree, and what that is worth.
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

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_neighbors: int | None = None,
        index: str = "auto",
        graph: str = "union",
        similarity: str = "sharp",
        n_anchors: int = 100,
        n_codes: int = 5,
        inputs: str = "descriptors",
        input_components: int | None = None,
        layers: Sequence[int] = (256, 256, 128),
        layer: str = "diffusion",
        self_loops: str = "identity",
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        output: str = "concat",
        walk_weight: float = 2.0,
        positives: str = "walks",
        local_loss: str = "bpr",
        local_weight: float = 1.0,
        temperature: float = 0.3,
        beta: float = PAPER["beta"],
        global_coefficient: str = "detached",
        global_weight: float = 3.0,
        l2: float = 1e-5,
        learning_rate: float = 3e-3,
        milestones: Sequence[float] = (),
        batch_size: int | None = None,
        epoch: str = "nodes",
        epochs: int = 300,
        max_steps: int | str | None = "auto",
        training_nodes: int | None = 100_000,
        precision: str = "auto",
        n_query_neighbors: int | None = 5,
        query_passes: int = 1,
        truncation: int | None = None,
        guard: bool = True,
        n_components: int | None = 512,
        device: str = "auto",
        device_memory: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.index = index
        self.graph = graph
        self.similarity = similarity
        self.n_anchors = n_anchors
        self.n_codes = n_codes
        self.inputs = inputs
        self.input_components = input_components
        self.layers = layers
        self.layer = layer
        self.self_loops = self_loops
        self.negative_slope = negative_slope
        self.dropout = dropout
        self.output = output
        self.walk_weight = walk_weight
        self.positives = positives
        self.local_loss = local_loss
        self.local_weight = local_weight
        self.temperature = temperature
        self.beta = beta
        self.global_coefficient = global_coefficient
        self.global_weight = global_weight
        self.l2 = l2
        self.learning_rate = learning_rate
        self.milestones = milestones
        self.batch_size = batch_size
        self.epoch = epoch
        self.epochs = epochs
        self.max_steps = max_steps
        self.training_nodes = training_nodes
        self.precision = precision
        self.n_query_neighbors = n_query_neighbors
        self.query_passes = query_passes
        self.truncation = truncation
        self.guard = guard
        self.n_components = n_components
        self.device = device
        self.device_memory = device_memory
        self.random_state = random_state
        self.verbose = verbose

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
        asked = check_descriptors(queries, "queries", X.shape[1]) if known else None
        self.n_features_in_ = X.shape[1]
        device = pick_device(self.device)
        ranks = join_process_group(device)
        if ranks.are_several and self.random_state is None:
            raise InputError(
                "random_state = None, and several processes that fit together must begin alike", "give a seed"
            )
        # Of several processes none could go on from what it kept alone.
        kept = open_checkpoint(None if ranks.are_several else checkpoint, X, asked, self.get_params(), start)
        try:
            room = find_memory_budget(device, self.device_memory)
            search = DeviceSearch(room) if room.device.type == "cuda" else None
            with (
                search_backend(search),
                cap_gpu_memory(room.device, self.device_memory),
                with_bars(listener, self.verbose and ranks.rank == 0) as heard,
            ):
                self._fit(X, asked, kept.seed, room, heard, kept, start, ranks)
        except InputError:  # it would end there again
            kept.clear()
            raise
        kept.clear()
        return self

    def _fit(
        self,
        X: Floats,
        queries: Floats | None,
        seed: int,
        room: MemoryBudget,
        listener: Listener,
        checkpoint: Checkpoint = NO_CHECKPOINT,
        start: Mapping[str, Floats] | None = None,
        ranks: ProcessGroup = ALONE,
    ) -> None:
        started = time.perf_counter()
        preprocessor = fit_preprocessor(self.preprocess, X)
        prepared, self._lengths = preprocessor.with_lengths(X)
        self._asked = preprocessor(X[:0] if queries is None else queries)
        nodes = gather_nodes(self._asked, prepared, self.truncation)
        self.manifold_ = build_manifold(
            nodes.descriptors, settings_for(GraphSettings, self.get_params()), seed, listener, checkpoint, ranks.divided
        )
        self.trust_ = measure_neighbour_agreement(nodes.descriptors, seed) if self.guard else FULL_AGREEMENT
        graph_seconds = time.perf_counter() - started
        lesson = learn_features(
            self.manifold_,
            nodes.descriptors,
            self.trust_,
            self.get_params(),
            seed,
            room,
            listener,
            checkpoint,
            start=start,
            ranks=ranks,
        )
        reduced, self.loss_curve_, self._weights, n_trained = lesson
        self._learned = self._spread(preprocessor, prepared, nodes, reduced.features)
        self.features_ = self._learned.features
        self.query_features_ = None if queries is None else reduced.features[nodes.of_queries]
        self.info_ = {
            "items": len(X),
            "dimension": X.shape[1],
            "queries_in_graph": len(self._asked),
            "nodes": len(nodes.descriptors),
            "training_nodes": n_trained,
            "edges": int(self.manifold_.affinity.nnz // 2),
            "neighbour_agreement": self.trust_.agreement,
            "trust": self.trust_.share,
            "nodes_without_edge": int((np.diff(self.manifold_.affinity.indptr) == 0).sum()),
            "neighbour_search": told(self.manifold_.search),
            "connected_components": int(connected_components(self.manifold_.affinity, directed=False)[0]),
            "feature_dimension": self.features_.shape[1],
            "energy_kept": reduced.kept,
            "steps": len(self.loss_curve_),
            "processes": ranks.size,
            "seed": seed,
            "seconds_graph": graph_seconds,
            "seconds": time.perf_counter() - started,
        }

    def _spread(
        self, preprocessor: Preprocessor, prepared: Floats, nodes: Nodes, node_features: Floats
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
            spaces = (
                VectorIndex(prepared[first], "euclidean", self.index, k),
                VectorIndex(features[first], "cosine", self.index, k),
            )
            outside = np.flatnonzero(~inside)
            for block in row_blocks(len(outside), _ROWS_PER_BLOCK):
                rows = outside[block]
                features[rows] = expand_queries(prepared[rows], *spaces, queries)
        return FeatureModel(preprocessor, queries, prepared, features, first, inside)

    def transform(self, X: Any) -> Floats:
        """Features, (m, D), of any descriptors; a row equal to a fitted item gets that item's features."""
        check_is_fitted(self, "features_")
        _check_feature_names(self, X, reset=False)
        return self._learned.transform(X)

    def search(self, Q: Any = None, k: int = 10) -> Ranking:
        """The k best items, as positions in X, for each row of Q; for what `fit` was given when Q is None."""
        check_is_fitted(self, "features_")
        if Q is not None:
            return self._learned.search(Q, k)
        if self.query_features_ is not None:
            return self._learned.rank(self.query_features_, self._asked, k)
        return self._learned.rank(self.features_, self._learned.descriptors, k)

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
        settings = {name: value for name, value in deciding(self.get_params()).items() if name != "random_state"}
        return Contents(
            self._learned,
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


class GradNetPaper(GradNet):
    """GRAD-Net with the settings of the paper as defaults, to stand beside the other methods under a name.

    `GradNet(**PAPER)`; every setting can still be given.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**PAPER, **settings})

    # scikit-learn reads the names of the settings, and their defaults, off the signature.
    __init__.__signature__ = inspect.signature(GradNet.__init__).replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(default=PAPER.get(name, parameter.default))
            for name, parameter in inspect.signature(GradNet.__init__).parameters.items()
        ]
    )
