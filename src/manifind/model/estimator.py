"""GRAD-Net as an estimator: descriptors in, learned features out, search over them."""

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, make_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from manifind.arrays import Floats, check_descriptors, from_tensor, row_blocks
from manifind.checkpoint import Checkpoint, installed_versions
from manifind.collection.collection import Collection, load
from manifind.collection.writer import Contents, write_collection
from manifind.errors import GraphError, InputError
from manifind.graph.duplicates import Nodes, gather_nodes
from manifind.graph.joining import NodeScales
from manifind.graph.manifold import DEFAULT_NEIGHBORS, build_manifold
from manifind.graph.neighbour_agreement import FULL_AGREEMENT, measure_neighbour_agreement
from manifind.graph.preprocess import Preprocessor, fit_preprocessor
from manifind.index.fit_context import FitContext
from manifind.index.gpu import GpuEngine, cap_gpu_memory, find_memory_budget
from manifind.index.ivf import quality_summary
from manifind.index.vector_index import CPU_ENGINE, Engine, make_index, to_array
from manifind.model.distributed import join_process_group
from manifind.model.network import precision_on
from manifind.model.training import learn_features, pick_device
from manifind.progress import Listener, ignore, with_bars
from manifind.ranking import Ranking
from manifind.search.cutoff import DEPTH, SAMPLE, Cutoff, measure_cutoff
from manifind.search.feature_model import FeatureModel, QuerySettings, expand_queries
from manifind.settings import PAPER, GradNetSettings, check_settings, documented, fit_settings
from manifind.text import count
from manifind.threads import cores_shared


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
        "settings": fit_settings_but_seed(settings),
        "seed": None if settings["random_state"] is None else seed,
        "device": pick_device(settings["device"]),
        "versions": installed_versions(),
    }
    return Checkpoint(folder, job, seed)


def fit_settings_but_seed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """All that decides what is fitted but the seed, which is kept as the number that was drawn."""
    return {name: value for name, value in fit_settings(parameters).items() if name != "random_state"}


def _digest(X: Floats) -> str:
    digest = hashlib.sha256(f"{X.shape} ".encode())
    digest.update(np.ascontiguousarray(X).data)
    return digest.hexdigest()


_COMPARED = 10  # nearest items, before and after
_ROWS_PER_BLOCK = 4096  # that join the features through their neighbours at a time


class RetrievalEstimator(BaseEstimator, ABC):
    """What every retrieval method is: an estimator that is fitted on descriptors, and then searched."""

    answers_unseen: ClassVar[bool] = True
    """Whether a query that `fit` did not see is answered."""
    cost: ClassVar[str] = "linear: a search for each query"
    """Time and memory in the number of items, in words."""

    def search(self, Q: Any = None, k: int = 10) -> Ranking:
        """Rank the items for each query.

        Parameters
        ----------
        Q : array-like of shape (m, d), default=None
            Descriptors of the queries; None for those given to `fit` or, where there were none, for every item.
        k : int, default=10
            Results for each query; all n items where there are no more.

        Returns
        -------
        ranking : Ranking
            Positions in X and scores, (m, k) each, best first.
        """
        return self._search(Q, k)

    @abstractmethod
    def _search(self, Q: Any, k: int) -> Ranking: ...


@documented
class GradNet(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GradNetSettings, RetrievalEstimator):
    """GRAD-Net as an estimator: descriptors in, learned features out, search over them.

    The settings of the paper are `manifind.PAPER`. The defaults are meant for any set, without labels and without
    tuning: a graph whose weights choose among 30 neighbours, positives and features from walks along it, and a
    guard where neighbours are mostly noise. docs/readings.md has a heading for each setting, docs/default.md the
    evidence.

    Parameters
    ----------
    {settings}

    Attributes
    ----------
    features_ : ndarray of shape (n, D), float32
        Learned features, unit rows; search is cosine over them.
    query_features_ : ndarray of shape (m, D) or None
        Features of the queries given to `fit`.
    manifold_ : Manifold
        The graphs.
    loss_curve_ : ndarray of shape (steps, 3)
        Total, local and global loss of every step.
    neighbour_agreement_ : NeighbourAgreement
        What `guard` found: on how many neighbours two halves of the descriptors agree, and what that is worth.
    info_ : dict
        What was fitted, in numbers.
    n_features_in_ : int
        Dimension of the descriptors, d.
    feature_names_in_ : ndarray of shape (d,)
        Names of the columns, where X was a DataFrame whose columns are all named by strings.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> model = GradNet(n_neighbors=5, max_steps=3, random_state=0).fit(X)
    >>> model.search(X[:2], k=3).ids.shape
    (2, 3)
    """

    cost = "linear: steps of training over the edges, then two searches for each query"

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

        Parameters
        ----------
        X : array-like of shape (n, d)
            Descriptors: an array, a tensor, or a DataFrame of which every column is a dimension.
        queries : array-like of shape (m, d), default=None
            Queries that are known beforehand; they join the graph. A one-dimensional array of n labels, which
            scikit-learn's pipelines hand over in this place, is ignored.
        listener : callable, default=ignore
            Called with a `Progress` now and then, whether `verbose` shows it or not.
        checkpoint : str, Path or None, default=None
            A folder for the work done so far, so that the same fit, interrupted, goes on where it stopped and ends
            with the same bits; None saves nothing.
        start : dict of str to ndarray, default=None
            Weights that the network begins with, by name, such as an earlier fit's; None draws them.

        Returns
        -------
        self : GradNet
            The fitted model.

        Raises
        ------
        InputError
            Where a setting breaks its constraint, or X or queries are not finite numbers of the right shape.
        GraphError
            Where there are too few different items for a graph.
        TrainingError
            Where the loss is no number any more, or a GPU's memory is too small.
        """
        check_settings(self.get_params())
        _check_feature_names(self, X, reset=True)
        self._ids = _index_of(X)
        X = check_descriptors(X)
        if len(X) == 1:
            raise GraphError("X has 1 sample, and a graph needs others", "fit on at least three different items")
        if queries is not None:
            are_labels = np.asarray(from_tensor(queries)).shape == (len(X),)
            queries = None if are_labels else check_descriptors(queries, "queries", X.shape[1])
        self.n_features_in_ = X.shape[1]
        device = pick_device(self.device)
        processes = join_process_group(device)
        if processes.are_several and self.random_state is None:
            hint = "give a seed"
            raise InputError("random_state = None, and several processes that fit together must begin alike", hint)
        # Of several processes none could go on from what it saved alone.
        folder = None if processes.are_several else checkpoint
        saved = open_checkpoint(folder, X, queries, self.get_params(), start)
        try:
            budget = find_memory_budget(device, self.device_memory)
            engine = GpuEngine(budget) if budget.device == "cuda" else CPU_ENGINE
            with (
                cores_shared(),
                cap_gpu_memory(budget.device, self.device_memory),
                with_bars(listener, self.verbose and processes.rank == 0) as reported,
            ):
                context = FitContext(saved.seed, budget, engine, reported, saved, processes)
                self._fit(X, queries, context, start)
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
        measured = FULL_AGREEMENT
        if self.guard or self.similarity == "adaptive":
            measured = measure_neighbour_agreement(nodes.descriptors, context.seed, context.engine)
        self.manifold_ = build_manifold(nodes.descriptors, self, context, measured)
        agreement = measured if self.guard else FULL_AGREEMENT
        self.neighbour_agreement_ = agreement
        graph_seconds = time.perf_counter() - started
        result = learn_features(self.manifold_, nodes.descriptors, agreement, self, context, start)
        self.loss_curve_, self._weights, features = result.curve, result.weights, result.features
        scales = None if result.walk_lengths is None else self._scales(nodes, result.walk_lengths)
        spread = self._spread(preprocessor, prepared, nodes, features, scales, context.engine)
        cutoff, kept = _examined(spread, self.manifold_.nearest, context.seed, context.engine)
        self._model = replace(spread, cutoff=cutoff)
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
            "intrinsic_dimension": self.manifold_.dimension,
            "edges_like": None if self.manifold_.shape is None else self.manifold_.shape._asdict(),
            "nodes_without_edge": int((np.diff(affinity.indptr) == 0).sum()),
            "neighbour_search": quality_summary(self.manifold_.search),
            "connected_components": int(connected_components(affinity, directed=False)[0]),
            "feature_dimension": self.features_.shape[1],
            "energy_kept": result.energy_kept,
            "neighbours_kept": kept,
            "cutoff": None if cutoff is None else cutoff.to_dict(),
            "steps": len(self.loss_curve_),
            "processes": context.processes.size,
            "device": context.budget.device,
            "precision": precision_on(self.precision, context.budget.device),
            "seed": context.seed,
            "seconds_graph": graph_seconds,
            "seconds": time.perf_counter() - started,
        }

    def _scales(self, nodes: Nodes, walk_lengths: Floats) -> NodeScales | None:
        """Of the items' nodes, by which queries join; None where the edges are no narrow Gaussian."""
        spreads, edges = self.manifold_.spreads, self.manifold_.all_edges
        if self.manifold_.joining is None or spreads is None or edges is None:
            return None
        degrees = np.asarray(edges.sum(axis=1), dtype=np.float32)
        return NodeScales(spreads, degrees, walk_lengths).at(nodes.of_items[nodes.first_items])

    def _spread(
        self,
        preprocessor: Preprocessor,
        prepared: Floats,
        nodes: Nodes,
        node_features: Floats,
        scales: NodeScales | None,
        engine: Engine,
    ) -> FeatureModel:
        """The nodes' features given to all items; those that truncation left out get them as queries would."""
        k = self.n_query_neighbors or self.n_neighbors or DEFAULT_NEIGHBORS
        similarity = "gaussian" if self.similarity in ("sharp", "adaptive") else self.similarity
        joining = None if scales is None else self.manifold_.joining
        queries = QuerySettings(k, similarity, self.query_passes, self.index, joining)
        first, features = nodes.first_items, nodes.rows_of_items(node_features)
        outside = np.flatnonzero(~nodes.inside)
        if len(outside):
            near = make_index(prepared[first], "euclidean", self.index, k, engine=engine)
            learned = make_index(features[first], "cosine", self.index, k, engine=engine)
            for block in row_blocks(len(outside), _ROWS_PER_BLOCK):
                rows = outside[block]
                features[rows] = expand_queries(prepared[rows], near, learned, queries, scales).features
        return FeatureModel(preprocessor, queries, prepared, features, first, nodes.inside, scales=scales)

    def transform(self, X: Any) -> Floats:
        """Compute the features of any descriptors.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Descriptors; a row equal to a fitted item gets that item's features.

        Returns
        -------
        features : ndarray of shape (m, D), float32
            Unit rows.
        """
        check_is_fitted(self, "features_")
        _check_feature_names(self, X, reset=False)
        return self._model.transform(X)

    def _search(self, Q: Any, k: int) -> Ranking:
        check_is_fitted(self, "features_")
        if Q is not None:
            return self._model.search(Q, k)
        asked = (self.features_, to_array(self._model.descriptors))
        if self.query_features_ is not None:
            asked = (self.query_features_, self._queries)
        found = self._model.rank(*asked, k)
        return found if self._model.cutoff is None else self._model.cutoff.applied(found)

    def save(
        self,
        path: str | Path,
        ids: Sequence[str] | Sequence[int] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        *,
        overwrite: bool = False,
    ) -> Collection:
        """Write the fitted model as a collection directory, and open it.

        Parameters
        ----------
        path : str or Path
            The directory to make.
        ids : sequence of str or of int, default=None
            A unique id for each item. None takes the index of the DataFrame that was fitted, where its labels are
            unique strings or integers, else positions.
        metadata : sequence of dict or None, default=None
            A few named values for each item, to filter by.
        overwrite : bool, default=False
            Whether an existing collection at `path` may be replaced, in one step; anything else there is refused.

        Returns
        -------
        collection : Collection
            The collection, open.
        """
        write_collection(path, self.contents(), self._ids if ids is None else ids, metadata, overwrite=overwrite)
        return load(path)

    def contents(self) -> Contents:
        """Gather what a collection saves of the fitted model.

        Returns
        -------
        contents : Contents
            Arrays and plain values.
        """
        check_is_fitted(self, "features_")
        learned = (self._model, self._lengths, self.manifold_, self._weights, self.loss_curve_)
        settings = fit_settings_but_seed(self.get_params())
        return Contents(*learned, self.n_neighbors or DEFAULT_NEIGHBORS, settings, self.info_)

    def _repr_html_inner(self) -> str:
        return f"{super()._repr_html_inner()}{self._summary_html()}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += self._summary_html()
        return bundle

    def _summary_html(self) -> str:
        """The fit in a few numbers, below scikit-learn's view; nothing before there is one."""
        if not hasattr(self, "info_"):
            return ""
        info, agreement = self.info_, self.neighbour_agreement_.agreement
        rows = {
            "items": f"{info['items']:,} of {info['dimension']:,} dimensions",
            "graph": f"{count(info['nodes'], 'node')}, {count(info['edges'], 'edge')}, "
            f"{count(info['connected_components'], 'component')}",
            "features": f"{info['feature_dimension']:,} dimensions",
            "training": f"{count(info['steps'], 'step')}, {info['seconds']:.1f} s",
        }
        if len(self.loss_curve_):
            total, local, global_ = self.loss_curve_[-1]
            rows["last losses"] = f"total {total:.4f}, local {local:.4f}, global {global_:.4f}"
        if agreement is not None:
            rows["neighbour agreement"] = f"{max(agreement, 0):.0%}"
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        return f'<table class="manifind-fit"><caption>The fit</caption>{cells}</table>'

    @property
    def _n_features_out(self) -> int:
        return int(self.features_.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.non_deterministic = self.random_state is None
        return tags


def _examined(
    model: FeatureModel, nearest: Floats | None, seed: int, engine: Engine
) -> tuple[Cutoff | None, float | None]:
    """How sure results are, and how many of ten neighbours learning has kept, from some nodes and their nearest.

    Exactly, since an index for so few queries would take longer to build than it saves.
    """
    nodes = model.nodes[model.inside[model.nodes]]
    N = len(nodes)
    if nearest is None or N < 2:
        return None, None
    sample = np.sort(np.random.default_rng(seed).choice(N, min(SAMPLE, N), replace=False))
    spaces = (to_array(rows) for rows in (model.features, model.descriptors))
    features, descriptors = (rows if len(rows) == N else rows[nodes] for rows in spaces)  # copied only where some go
    found = engine.index(features, "cosine").nearest(features[sample], min(DEPTH + 1, N))
    k = min(_COMPARED + 1, N)  # an item is its own nearest, before and after
    before = engine.index(descriptors, "euclidean").nearest(descriptors[sample], k).ids
    shared = (before[:, :, None] == found.ids[:, None, :k]).any(axis=2).sum(axis=1) - 1
    cutoff = measure_cutoff(found.scores[found.ids != sample[:, None]], nearest)
    return cutoff, float(np.clip(shared / (k - 1), 0, 1).mean())


def _index_of(X: Any) -> list[Any] | None:
    """The labels of a DataFrame's rows where they can be ids: unique strings or integers."""
    if not hasattr(X, "columns") or not getattr(getattr(X, "index", None), "is_unique", False):
        return None
    labels: list[Any] = X.index.tolist()
    kinds = {type(label) for label in labels}
    return labels if kinds in ({str}, {int}) else None


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
