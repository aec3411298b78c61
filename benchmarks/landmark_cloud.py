"""A cloud of landmarks among distractors: descriptors of any size for benchmarks, with something to gain."""

from __future__ import annotations

import numpy as np

from manifind.arrays import Floats, Ints, row_blocks
from manifind.datasets.synthetic import SyntheticViews
from manifind.errors import InputError

DISTRACTOR = -1
FEWEST_VIEWS, MOST_VIEWS = 20, 60

_LATENT = 32  # dimensions that matter, however long the descriptors are
_THEMES = 40  # Gaussians in the latent space: what pictures are of, roughly
_HARMONICS = 3
# In units of the deviation inside a theme. With them k-NN has an mAP of about 70 at 3,000 items and 40 at
# 100,000, so that something is there to gain and the graph is still right to follow.
_REACH = 0.8  # of a landmark's curve
_JITTER = 0.15  # of a view around its curve
_NOISE = 0.4  # outside of the latent space, as a share of the length inside
_ROWS_PER_BLOCK = 8192


def make_landmark_cloud(n: int, d: int, *, share_of_landmarks: float = 0.3, seed: int = 0) -> SyntheticViews:
    """Views of landmarks among distractors, in random order: (n, d) unit rows, the label DISTRACTOR for no landmark.

    The views of a landmark, 20 to 60, lie along a smooth closed curve around its centre: near ones
    find each other, and far ones are nearer to other things, but a chain of views leads from each to
    each. Centres and distractors come from one mixture of Gaussians in 32 latent dimensions, mapped to
    d with a falling spectrum; a little isotropic noise fills the rest.
    share_of_landmarks: of the n items, up to 19 fewer where the rest is too small for a landmark.
    """
    if d < 2:
        raise InputError(f"d = {d}; expected at least 2 dimensions, one alone has only two directions")
    if not 0 < share_of_landmarks <= 1:
        raise InputError(f"share_of_landmarks = {share_of_landmarks}; expected above 0 and at most 1")
    n_views = round(share_of_landmarks * n)
    if n_views < FEWEST_VIEWS:
        raise InputError(
            f"{share_of_landmarks} of {n} items are {n_views}; expected at least {FEWEST_VIEWS}, the views "
            "of one landmark",
            "raise n or share_of_landmarks",
        )
    rng = np.random.default_rng(seed)
    sizes = _cluster_sizes(n_views, rng)
    themes = rng.standard_normal((_THEMES, min(_LATENT, d)), dtype=np.float32)
    views = _views(_draw_cloud(themes, len(sizes), rng), sizes, rng)
    places = np.concatenate([views, _draw_cloud(themes, n - len(views), rng)])
    labels = np.full(n, DISTRACTOR, dtype=np.int64)
    labels[: len(views)] = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(n)
    return SyntheticViews(_descriptors(places[order], d, rng), labels[order])


def _cluster_sizes(n_views: int, rng: np.random.Generator) -> Ints:
    """Views of each landmark; what is left at the end is too small for one."""
    sizes = []
    while n_views >= FEWEST_VIEWS:
        sizes.append(min(int(rng.integers(FEWEST_VIEWS, MOST_VIEWS + 1)), n_views))
        n_views -= sizes[-1]
    return np.array(sizes, dtype=np.int64)


def _draw_cloud(themes: Floats, count: int, rng: np.random.Generator) -> Floats:
    """(count, latent) places anywhere in the mixture."""
    places = rng.standard_normal((count, themes.shape[1]), dtype=np.float32)
    places += themes[rng.integers(0, len(themes), count)]
    return places


def _views(centres: Floats, sizes: Ints, rng: np.random.Generator) -> Floats:
    """(views, latent): for each centre its curve, at even steps moved a little, so that no gap is by chance."""
    landmark = np.repeat(np.arange(len(sizes)), sizes)
    step = np.arange(len(landmark)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    turn = 2 * np.pi * (step + rng.random(len(landmark))) / sizes[landmark]
    places = _JITTER * rng.standard_normal((len(landmark), centres.shape[1]), dtype=np.float32)
    places += centres[landmark]
    for harmonic in range(1, _HARMONICS + 1):
        for wave in (np.cos(harmonic * turn), np.sin(harmonic * turn)):
            axes = (_REACH / harmonic) * rng.standard_normal(centres.shape, dtype=np.float32)
            places += wave.astype(np.float32)[:, None] * axes[landmark]
    return places


def _descriptors(places: Floats, d: int, rng: np.random.Generator) -> Floats:
    """(n, d) unit rows from (n, latent), made in place: nothing else is as large as the result."""
    latent = places.shape[1]
    spectrum = 1 / np.sqrt(1 + np.arange(latent))
    axes = np.linalg.qr(rng.standard_normal((d, latent)))[0].T  # (latent, d), orthonormal rows
    map_ = (spectrum[:, None] * axes).astype(np.float32)
    noise = np.float32(_NOISE * np.linalg.norm(spectrum) / np.sqrt(d))
    X = rng.standard_normal((len(places), d), dtype=np.float32)
    for rows in row_blocks(len(X), _ROWS_PER_BLOCK):
        X[rows] *= noise
        X[rows] += places[rows] @ map_
        X[rows] /= np.linalg.norm(X[rows], axis=1, keepdims=True)
    return X
