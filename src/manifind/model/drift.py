"""How far a collection has moved from what it was fitted on, without a label."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse

from manifind.arrays import Floats, Ints, Sparse
from manifind.collection.collection import Collection
from manifind.collection.explain import later_edges, read_affinity
from manifind.collection.version import Version, original_descriptors
from manifind.graph.neighbour_agreement import LittleToLearnWarning
from manifind.model.estimator import GradNet
from manifind.model.losses import PAIRS, SextetSimilarities, sextet_loss
from manifind.model.refit import overlap, settings_of
from manifind.model.sampling import Sextets, SextetSampler
from manifind.settings import GradNetSettings

_SEXTETS = 8192
_SAMPLE = 1000  # items of each kind


class Drift(NamedTuple):
    """changed: items that have come or gone since the fit, for each that was fitted.

    loss_fitted, loss_added: the training loss on fresh samples of fitted items, and of those with a later one.
    agreement_fitted, agreement_added: the share of an item's ten nearest that stays when a sample is fitted anew.
    None where nothing has been added, or where it cannot be measured.
    """

    changed: float
    loss_fitted: float | None = None
    loss_added: float | None = None
    agreement_fitted: float | None = None
    agreement_added: float | None = None


def measure_drift(collection: Collection, seed: int = 0) -> Drift:
    """Measure how far a collection has moved from what it was fitted on, in the time of a fit of 2,000 items.

    Parameters
    ----------
    collection : Collection
        A collection, with additions or without.
    seed : int, default=0
        Seed of the samples that are drawn.

    Returns
    -------
    drift : Drift
        Losses and agreements of fitted and of added items; None where they cannot be measured.
    """
    version, rng = collection.version, np.random.default_rng(seed)
    changed = collection.changed
    if not len(version.added) or not version.manifest.is_full:
        return Drift(changed)
    version.check_all_finite()  # else damage would be measured as drift
    return Drift(changed, *_losses(version, rng), *_agreements(version, rng))


def _losses(version: Version, rng: np.random.Generator) -> tuple[float | None, float | None]:
    """The loss on fresh sextets: of fitted items alone, and of those among which one came later."""
    graph = _graph(version, rng)
    if graph is None:
        return None, None
    A, features, is_later = graph
    sextets = SextetSampler(A, rng).draw(_SEXTETS)
    fresh = is_later[sextets.i] | is_later[sextets.k]
    settings = GradNetSettings(**settings_of(version))
    old, new = (_mean_loss(sextets, np.flatnonzero(some), features, settings) for some in (~fresh, fresh))
    return old, new


def _mean_loss(sextets: Sextets, some: Ints, features: Floats, settings: GradNetSettings) -> float | None:
    """The loss of some of the sextets, without the weights' share; None where there are none."""
    if not len(some):
        return None
    nodes = sextets.nodes()[:, some]
    s = (torch.from_numpy(np.vecdot(features[nodes[a]], features[nodes[b]])) for a, b in PAIRS)
    a_ij, a_kl = torch.from_numpy(sextets.a_ij[some]), torch.from_numpy(sextets.a_kl[some])
    return float(sextet_loss(SextetSimilarities(*s), a_ij, a_kl, torch.zeros(()), settings).total)


def _graph(version: Version, rng: np.random.Generator) -> tuple[Sparse, Floats, Any] | None:
    """A part of the graph with later items in it: weights, features, and who came later; None without a graph."""
    learned, added = version.learned, version.added
    A, n_nodes = read_affinity(version), len(learned.nodes)
    if len(A.indptr) - 1 != n_nodes:  # queries stood in the graph, of which nothing is kept
        return None
    asked = np.sort(rng.choice(len(added), min(_SAMPLE, len(added)), replace=False))
    near = np.searchsorted(learned.nodes, added.neighbours[asked])  # (a, k) nodes
    others = rng.choice(n_nodes, min(_SAMPLE, n_nodes), replace=False)
    chosen = np.unique(np.concatenate([near.ravel(), others]))
    kind = settings_of(version)["similarity"]
    B = later_edges(version, kind, asked, np.searchsorted(chosen, near), len(chosen))
    whole = sparse.block_array([[A[chosen][:, chosen], B.T], [B, None]], format="csr")
    features = np.concatenate([learned.features[learned.nodes[chosen]], added.features[asked]])
    is_later = np.arange(len(features)) >= len(chosen)
    return sparse.csr_array(whole), features, is_later


def _agreements(version: Version, rng: np.random.Generator) -> tuple[float | None, float | None]:
    """How many of the nearest stay when a sample is fitted anew: of fitted items, and of later ones."""
    rows = version.items.rows
    is_added = version.items.numbers.are_added(rows)
    kinds = np.flatnonzero(~is_added), np.flatnonzero(is_added)
    fitted, later = (rng.choice(some, min(_SAMPLE, len(some)), replace=False) for some in kinds)
    chosen = np.sort(np.concatenate([fitted, later]))
    if len(chosen) < 3:
        return None, None
    settings = settings_of(version)
    k = settings["n_neighbors"]
    model = GradNet(**{**settings, "n_neighbors": k and min(k, len(chosen) - 1)}, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LittleToLearnWarning)
        model.fit(original_descriptors(version)[chosen])
    old = version.index.features(rows[chosen])
    found = [np.flatnonzero(np.isin(chosen, some)) for some in (fitted, later)]
    was, is_ = (overlap(old, model.features_, some) if len(some) else None for some in found)
    return was, is_
