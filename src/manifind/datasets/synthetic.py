"""Synthetic sets: the letters of the paper's toy example, a cloud of landmarks, pairs."""

from typing import NamedTuple

import numpy as np

from manifind.arrays import Doubles, Floats, Ints, row_blocks
from manifind.errors import InputError

WORD = "PAMI"

# As drawn: letters about 1 wide and 1.4 high.
_HEIGHT = 1.4
_WIDTH = 0.15  # of a stroke
_SPACING = 0.35  # from the middle of one letter's last stroke to the middle of the next letter's first
# Coordinates share the cosine of Eq. 17 and 18 with the unit rows of three learned layers, so they
# must be small beside 1. As drawn the word is 3.9 wide, and place alone would decide.
_SCALE = 0.1

_ARC = tuple((0.4 + 0.35 * np.sin(t), 1.05 + 0.35 * np.cos(t)) for t in np.linspace(0, np.pi, 25))

# Corners of each letter's strokes, in the letter's own coordinates, and where its query stands.
_STROKES: dict[str, tuple[tuple[tuple[float, float], ...], ...]] = {
    "P": (((0.0, 0.0), (0.0, 1.4)), ((0.0, 1.4), *_ARC, (0.0, 0.7))),
    "A": (((0.0, 0.0), (0.5, 1.4), (1.0, 0.0)), ((0.2, 0.55), (0.8, 0.55))),
    "M": (((0.0, 0.0), (0.0, 1.4), (0.55, 0.5), (1.1, 1.4), (1.1, 0.0)),),
    "I": (((0.0, 0.0), (0.0, 1.4)),),
}
_QUERIES = {"P": (0.0, 0.05), "A": (1.0, 0.05), "M": (1.1, 0.05), "I": (0.0, 1.35)}


class Letters(NamedTuple):
    """Points of the word, and one query in each letter that is none of the points."""

    points: Floats  # (n, 2)
    labels: Ints  # (n,) 0 to 3
    queries: Floats  # (4, 2)


def make_letters(n_points: int = 1500, count: str = "word", seed: int = 0) -> Letters:
    """Points spread evenly over the strokes of the word; it is centred on the origin and about 0.4 wide.

    count: the paper says both that the word has 1,500 points and that each letter has: "word" spreads
    n_points over the four letters in proportion to their length, "letter" gives n_points to each.
    """
    if count not in ("word", "letter"):
        raise InputError(f"count = {count!r}; expected 'word' or 'letter'")
    if n_points < len(WORD):
        raise InputError(f"n_points = {n_points}; expected at least {len(WORD)}, one in each letter")
    rng = np.random.default_rng(seed)
    sizes, origins = np.full(len(WORD), n_points), _origins()
    if count == "word":
        lengths = np.array([_segments(letter)[2].sum() for letter in WORD])
        sizes = np.floor(n_points * lengths / lengths.sum()).astype(np.int64)
        sizes[: n_points - sizes.sum()] += 1
    points = [_draw(letter, size, rng) + origin for letter, size, origin in zip(WORD, sizes, origins, strict=True)]
    queries = origins + [_QUERIES[letter] for letter in WORD]
    labels = np.repeat(np.arange(len(WORD)), sizes)
    return Letters((_SCALE * np.concatenate(points)).astype(np.float32), labels, (_SCALE * queries).astype(np.float32))


def _origins() -> Doubles:
    """(4, 2) where each letter's own origin lies: the same empty space between any two, the word centred."""
    lefts, x = [], 0.0
    for letter in WORD:
        lefts.append(x)
        x += max(a for stroke in _STROKES[letter] for a, _ in stroke) + _SPACING
    width = x - _SPACING
    return np.array([(left - width / 2, -_HEIGHT / 2) for left in lefts])


def _segments(letter: str) -> tuple[Doubles, Doubles, Doubles]:
    """Starts, ends and lengths of the straight pieces of its strokes."""
    starts = np.array([a for stroke in _STROKES[letter] for a in stroke[:-1]])
    ends = np.array([b for stroke in _STROKES[letter] for b in stroke[1:]])
    return starts, ends, np.linalg.norm(ends - starts, axis=1)


def _draw(letter: str, size: int, rng: np.random.Generator) -> Doubles:
    """Points at even steps along the strokes, moved a little to each side: no gaps by chance."""
    starts, ends, lengths = _segments(letter)
    along = (np.arange(size) + rng.random(size)) / size * lengths.sum()
    which = np.minimum(np.searchsorted(np.cumsum(lengths), along), len(lengths) - 1)
    fraction = 1 - (np.cumsum(lengths)[which] - along) / lengths[which]
    on_line = starts[which] + fraction[:, None] * (ends - starts)[which]
    return np.asarray(on_line + rng.uniform(-_WIDTH / 2, _WIDTH / 2, size=(size, 2)))


class SyntheticViews(NamedTuple):
    """Items, and of what each is a view."""

    descriptors: Floats  # (n, d)
    labels: Ints  # (n,)


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


def make_pairs(n: int = 1000, d: int = 64, *, noise: float = 0.8, seed: int = 0) -> SyntheticViews:
    """n Gaussian points, each seen twice through noise of its own: (2 n, d), the label says which pair it is.

    noise: deviation of a view from its point, in units of the points' own; each view has from half of it to 1.3
    times as much, so that some relatives are near and some are lost among strangers.
    """
    if n < 2 or d < 2:
        raise InputError(f"n = {n}, d = {d}; expected at least two pairs in two dimensions")
    rng = np.random.default_rng(seed)
    points = np.tile(rng.normal(size=(n, d)), (2, 1))
    strength = noise * rng.uniform(0.5, 1.3, size=(2 * n, 1))
    views = points + strength * rng.normal(size=points.shape)
    return SyntheticViews(views.astype(np.float32), np.tile(np.arange(n, dtype=np.int64), 2))
