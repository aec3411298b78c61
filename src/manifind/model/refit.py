"""Fitting a living collection anew, warm from what it knew, and how far it has drifted from its last fit."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.numpy import load_file
from scipy import sparse

from manifind.arrays import Floats, Ints, Sparse
from manifind.collection.collection import Collection, load
from manifind.collection.database import only_one
from manifind.collection.explain import later_edges, read_affinity
from manifind.collection.version import Version, original_descriptors, verify_digests
from manifind.collection.writer import merge_refit, write_collection, write_refit
from manifind.errors import CollectionError, InputError
from manifind.graph.adaptive_weights import similarity_from_outside
from manifind.graph.neighbour_agreement import LittleToLearnWarning
from manifind.index.exact import nearest
from manifind.model.estimator import GradNet, fit_settings_but_seed
from manifind.model.losses import PAIRS, sextet_loss
from manifind.model.sampling import Sextets, SextetSampler
from manifind.progress import Listener, ignore, in_one_piece
from manifind.settings import GradNetSettings, check_settings
from manifind.text import count

_FEWEST = 3  # items that a fit takes
_SAMPLE = 256
_COMPARED = 10  # nearest, of which it is counted how many stayed


def refit(
    collection: Collection,
    *,
    listener: Listener = ignore,
    checkpoint: str | Path | None = None,
    seed: int | None = None,
    **settings: Any,
) -> None:
    """Fit the items that are there now, and switch the collection to the new features in one step.

    It starts from the old network where that fits the settings. Searches meanwhile get answers of the old fit; items
    that are added or removed meanwhile are in the new one.

    Parameters
    ----------
    collection : Collection
        A full collection; one that is compressed is refused.
    listener : callable, default=ignore
        Called with a `Progress` now and then.
    checkpoint : str, Path or None, default=None
        A folder from which an interrupted refit goes on; None saves nothing.
    seed : int or None, default=None
        Seed of the fit; None takes that of the old one.
    **settings : dict
        Settings of `GradNet` to change; the others stay as they were.
    """
    with only_one(collection.path):
        collection.follow()  # never to another collection, which nobody has asked to fit
        version = collection.version
        if not version.manifest.is_full:
            raise CollectionError(f"{collection.path} is compressed: it only answers", "refit what it came from")
        verify_digests(version.snapshot)  # else damage would be fitted, and recorded as whole
        seed = _old_seed(version) if seed is None else seed
        model = GradNet(**{**settings_of(version), **settings}, random_state=seed)
        X, start = original_descriptors(version), _old_weights(version, model, settings)
        model.fit(X, listener=listener, checkpoint=checkpoint, start=start)
        facts = {**model.info_, "refit": _compared(version, model.features_, start is not None)}
        contents = replace(model.contents(), info=facts, source=version.manifest.source)
        with in_one_piece("saving", listener):
            write_refit(collection.path, contents, merge_refit(version, contents))
    collection.refresh()


def fit_apart(
    collection: Collection,
    target: str | Path,
    *,
    ids: Sequence[Any] | None = None,
    listener: Listener = ignore,
    **settings: Any,
) -> Collection:
    """Fit items of a collection as a collection of their own, with the same ids, metadata and seed.

    Parameters
    ----------
    collection : Collection
        A full collection.
    target : str or Path
        The directory of the new collection.
    ids : sequence of str or int, default=None
        At least three of its items; None for all.
    listener : callable, default=ignore
        Called with a `Progress` now and then.
    **settings : dict
        Settings of `GradNet` to change; the others are those of the collection.

    Returns
    -------
    Collection
        The new collection.
    """
    version = collection.version
    if not version.manifest.is_full:
        raise CollectionError(f"{collection.path} is compressed: it only answers", "take what it was exported from")
    chosen = version.items.ids if ids is None else collection.known_ids(ids)
    if len(chosen) < _FEWEST:
        raise InputError(f"a collection of {count(len(chosen), 'item')}; expected at least {_FEWEST}", "select more")
    verify_digests(version.snapshot)  # else damage would be fitted, and recorded as whole
    among = np.flatnonzero(version.items.mask_of(chosen)[version.items.rows])
    if ids is not None and (k := settings_of(version)["n_neighbors"]):
        settings = {"n_neighbors": min(k, len(among) - 1), **settings}
    model = _fitted_on(version, among, _old_seed(version), settings, listener)
    names = version.items.ids[among].tolist()
    write_collection(target, model.contents(), names, collection.metadata(names), version.manifest.source)
    return load(target)


def _fitted_on(
    version: Version, among: Ints, seed: int, settings: Mapping[str, Any], listener: Listener = ignore
) -> GradNet:
    """A model of some items, by their places, with other settings where there are any."""
    model = GradNet(**{**settings_of(version), **settings}, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LittleToLearnWarning)  # info_ has it, and whoever opens it can see it
        return model.fit(original_descriptors(version)[among], listener=listener)


_JUDGED = re.compile(r"judged\s*<\s*(\d+(?:\.\d+)?)")


def policy_of(text: str) -> float | Callable[[Collection], bool]:
    """A policy by name: a share of items such as "0.2", or "judged < 70", the mAP over the judged queries.

    Parameters
    ----------
    text : str
        The policy, as the command line and `refit_when` take it.

    Returns
    -------
    policy : float or callable
        What `refit_when` takes.

    Raises
    ------
    InputError
        Where it is neither.
    """
    if match := _JUDGED.fullmatch(text.strip()):
        least = float(match[1])

        def falls_below(collection: Collection) -> bool:
            scores = collection.judgements.scores() if collection.changed else None
            return scores is not None and scores.gradnet.mean < least

        return falls_below
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < float("inf"):
        raise InputError(f"refit_when = {text!r}; expected a share of items above 0, or 'judged < 70'")
    return share


def refit_when(policy: float | str | Callable[[Collection], bool]) -> Callable[[Collection], None]:
    """Make a function to call after commits, which refits a collection when it is time.

    Parameters
    ----------
    policy : float, str or callable
        The share of items that have come or gone since the last fit, such as 0.2; ``"judged < 70"``, for when the
        mAP over the judged queries has fallen below 70 after changes; or a function of the collection that says
        whether to refit.

    Returns
    -------
    refit : callable
        A function of the collection.

    Raises
    ------
    InputError
        Where the policy is neither.
    """
    if isinstance(policy, str):
        policy = policy_of(policy)
    if not (callable(policy) or (isinstance(policy, int | float) and policy > 0)):
        raise InputError(f"refit_when({policy!r}); expected a share of items above 0, or a function of the collection")

    def refit_now(collection: Collection) -> None:
        if policy(collection) if callable(policy) else collection.changed >= policy:
            refit(collection)

    return refit_now


def settings_of(version: Version) -> dict[str, Any]:
    """The settings that a version was fitted with; one that it does not have is as usual."""
    found: dict[str, Any] = version.manifest.settings
    usual = fit_settings_but_seed(GradNet().get_params())
    try:
        if unknown := found.keys() - usual.keys():
            raise InputError(f"there is no setting {min(unknown)[:60]!r}")
        check_settings(found)
    except InputError as error:
        hint = "index the source again"
        raise CollectionError(f"{version.directory} cannot be fitted again: {error}", hint) from error
    return {**usual, **found}


def _old_seed(version: Version) -> int:
    seed = version.manifest.info.get("seed")
    if type(seed) is not int or not 0 <= seed < 1 << 32:
        raise CollectionError(f"{version.directory} was fitted with the seed {str(seed)[:60]}, it says", "give a seed")
    return seed


def _old_weights(version: Version, model: GradNet, settings: dict[str, Any]) -> dict[str, Floats] | None:
    """The weights to begin with; None where the network is to have another shape."""
    if settings.keys() & {"layers", "layer", "inputs", "n_anchors", "input_components"}:
        return None
    try:
        weights = load_file(version.snapshot.segments["model"])
        if not all(np.isfinite(weight).all() for weight in weights.values()):
            raise ValueError("a weight is no number")
    except Exception as error:  # safetensors has no error of its own for a damaged file
        hint = "index the source again"
        raise CollectionError(f"{version.snapshot.segments['model']} is damaged: {error}", hint) from error
    return {name: array for name, array in weights.items() if name != "reduction"}


def _compared(version: Version, features: Floats, warm: bool) -> dict[str, Any]:
    """What a refit has changed: how many of the nearest stayed, for items that were fitted and for later ones."""
    old = version.index.features(version.items.rows)
    fitted, added = (overlap(old, features, sample) for sample in _samples(version, np.random.default_rng(0), _SAMPLE))
    return {
        "warm": warm,
        "added": version.manifest.n_added,
        "removed": version.manifest.n_removed,
        "agreement": {"fitted": fitted, "added": added},
    }


def _samples(version: Version, rng: np.random.Generator, most: int) -> list[Ints]:
    """Some fitted items, and some that came later: their places among those that are there, rising."""
    is_added = version.items.are_added(version.items.rows)
    kinds = np.flatnonzero(~is_added), np.flatnonzero(is_added)
    return [np.sort(rng.choice(some, min(most, len(some)), replace=False)) for some in kinds]


def overlap(old: Floats, new: Floats, sample: Ints) -> float | None:
    """The share of the nearest others that two sets of features have in common for some items; None for no items."""
    if not len(sample):
        return None
    k = min(_COMPARED + 1, len(old))
    before, after = (nearest(F[sample], F, k, "cosine").ids for F in (old, new))
    common = (before[:, :, None] == after[:, None, :]).any(axis=2).sum(axis=1)
    return float(((common - 1) / max(k - 1, 1)).mean())  # each finds itself


_SEXTETS = 8192
_OF_EACH_KIND = 1000  # items, fitted and later ones


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
    fresh = is_later[sextets.nodes[0]] | is_later[sextets.nodes[2]]  # i or k
    settings = GradNetSettings(**settings_of(version))
    old, new = (_mean_loss(sextets, np.flatnonzero(some), features, settings) for some in (~fresh, fresh))
    return old, new


def _mean_loss(sextets: Sextets, some: Ints, features: Floats, settings: GradNetSettings) -> float | None:
    """The loss of some of the sextets, without the weights' share; None where there are none."""
    if not len(some):
        return None
    nodes = sextets.nodes[:, some]
    s = (torch.from_numpy(np.vecdot(features[nodes[a]], features[nodes[b]])) for a, b in PAIRS)
    a_ij, a_kl = torch.from_numpy(sextets.a_ij[some]), torch.from_numpy(sextets.a_kl[some])
    return float(sextet_loss(s, a_ij, a_kl, torch.zeros(()), settings).total)


def _graph(version: Version, rng: np.random.Generator) -> tuple[Sparse, Floats, Any] | None:
    """A part of the graph with later items in it: weights, features, and who came later; None without a graph."""
    learned, added = version.learned, version.added
    A, n_nodes = read_affinity(version), len(learned.nodes)
    if len(A.indptr) - 1 != n_nodes:  # queries stood in the graph, of which nothing is kept
        return None
    sample = np.sort(rng.choice(len(added), min(_OF_EACH_KIND, len(added)), replace=False))
    near = np.searchsorted(learned.nodes, added.neighbours[sample])  # (a, k) nodes
    others = rng.choice(n_nodes, min(_OF_EACH_KIND, n_nodes), replace=False)
    chosen = np.unique(np.concatenate([near.ravel(), others]))
    kind = similarity_from_outside(settings_of(version)["similarity"])
    B = later_edges(version, kind, sample, np.searchsorted(chosen, near), len(chosen))
    whole = sparse.block_array([[A[chosen][:, chosen], B.T], [B, None]], format="csr")
    features = np.concatenate([learned.features[learned.nodes[chosen]], added.features[sample]])
    is_later = np.arange(len(features)) >= len(chosen)
    return sparse.csr_array(whole), features, is_later


def _agreements(version: Version, rng: np.random.Generator) -> tuple[float | None, float | None]:
    """How many of the nearest stay when a sample is fitted anew: of fitted items, and of later ones."""
    fitted, later = _samples(version, rng, _OF_EACH_KIND)
    chosen = np.sort(np.concatenate([fitted, later]))
    if len(chosen) < 3:
        return None, None
    k = settings_of(version)["n_neighbors"]
    model = _fitted_on(version, chosen, 0, {"n_neighbors": k and min(k, len(chosen) - 1)})
    old = version.index.features(version.items.rows[chosen])
    was_fitted, came_later = (np.flatnonzero(np.isin(chosen, some)) for some in (fitted, later))
    return overlap(old, model.features_, was_fitted), overlap(old, model.features_, came_later)
