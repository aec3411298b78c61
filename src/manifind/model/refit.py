"""Fitting a living collection anew, warm from what it knew, while others go on searching it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from manifind.arrays import Floats
from manifind.collection.collection import Collection
from manifind.collection.database import only_one
from manifind.collection.reader import verify_digests
from manifind.collection.version import Version, original_descriptors
from manifind.collection.writer import Fitted, merge_refit, write_refit
from manifind.errors import CollectionError, InputError
from manifind.index.exact import nearest
from manifind.model.estimator import GradNet
from manifind.progress import Listener, ignore, in_one_piece
from manifind.settings import check_settings, fit_settings

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
        contents = model.contents()
        facts = {**contents.info, "refit": _compared(version, model.features_, start is not None)}
        manifest = contents.manifest() | {"info": facts, "source": version.manifest.source}
        tables = merge_refit(version, contents.learned, contents.n_neighbors)
        with in_one_piece("saving", listener):
            write_refit(collection.path, Fitted(contents.parts, manifest), tables)
    collection.refresh()


def refit_when(policy: float | Callable[[Collection], bool]) -> Callable[[Collection], None]:
    """Make a function to call after commits, which refits a collection when it is time.

    Parameters
    ----------
    policy : float or callable
        The share of items that have come or gone since the last fit, such as 0.2; or a function of the collection
        that says whether to refit, such as one that scores a validation set.

    Returns
    -------
    refit : callable
        A function of the collection.

    Raises
    ------
    InputError
        Where the policy is neither.
    """
    if callable(policy):
        decide = policy
    elif isinstance(policy, int | float) and policy > 0:
        decide = _has_changed_by(policy)
    else:
        raise InputError(f"refit_when({policy!r}); expected a share of items above 0, or a function of the collection")
    return lambda collection: refit(collection) if decide(collection) else None


def settings_of(version: Version) -> dict[str, Any]:
    """The settings that a version was fitted with; one that it has never heard of is as usual."""
    found: dict[str, Any] = version.manifest.settings
    usual = {name: value for name, value in fit_settings(GradNet().get_params()).items() if name != "random_state"}
    try:
        if unknown := found.keys() - usual.keys():
            raise InputError(f"there is no setting {min(unknown)[:60]!r}")
        check_settings(found)
    except InputError as error:
        raise CollectionError(
            f"{version.directory} cannot be fitted again: {error}", "index the source again"
        ) from error
    return {**usual, **found}


def _old_seed(version: Version) -> int:
    seed = version.manifest.info.get("seed")
    if type(seed) is not int or not 0 <= seed < 1 << 32:
        raise CollectionError(f"{version.directory} was fitted with the seed {str(seed)[:60]}, it says", "give a seed")
    return seed


def _has_changed_by(share: float) -> Callable[[Collection], bool]:
    return lambda collection: collection.changed >= share


def _old_weights(version: Version, model: GradNet, settings: dict[str, Any]) -> dict[str, Floats] | None:
    """The weights to begin with; None where the network is to have another shape."""
    if settings.keys() & {"layers", "layer", "inputs", "n_anchors", "input_components"}:
        return None
    try:
        weights = load_file(version.snapshot.segments["model"])
        if not all(np.isfinite(weight).all() for weight in weights.values()):
            raise ValueError("a weight is no number")
    except Exception as error:  # safetensors has no error of its own for a damaged file
        raise CollectionError(
            f"{version.snapshot.segments['model']} is damaged: {error}", "index the source again"
        ) from error
    return {name: array for name, array in weights.items() if name != "reduction"}


def _compared(version: Version, features: Floats, warm: bool) -> dict[str, Any]:
    """What a refit has changed: how many of the nearest stayed, for items that were fitted and for later ones."""
    rows = version.items.rows
    old, is_added = version.index.features(rows), version.items.numbers.are_added(rows)
    rng = np.random.default_rng(0)
    agreement = {}
    for name, some in (("fitted", np.flatnonzero(~is_added)), ("added", np.flatnonzero(is_added))):
        asked = np.sort(rng.choice(some, min(_SAMPLE, len(some)), replace=False))
        agreement[name] = overlap(old, features, asked) if len(asked) else None
    added, removed = version.manifest.n_added, version.manifest.n_removed
    return {"warm": warm, "added": added, "removed": removed, "agreement": agreement}


def overlap(old: Floats, new: Floats, asked: Any) -> float:
    """The share of the nearest others that two sets of features have in common for some items."""
    k = min(_COMPARED + 1, len(old))
    before, after = (nearest(F[asked], F, k, "cosine").ids for F in (old, new))
    common = (before[:, :, None] == after[:, None, :]).any(axis=2).sum(axis=1)
    return float(((common - 1) / max(k - 1, 1)).mean())  # each finds itself
