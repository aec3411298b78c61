"""Synthetic sets: the letters of the paper's toy example, pairs."""

from typing import NamedTuple

import numpy as np

from manifind.arrays import Doubles, Floats, Ints
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
