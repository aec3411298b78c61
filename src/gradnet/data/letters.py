"""The toy letters: points in the plane that spell P A M I, and one query in each letter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradnet.arrays import Doubles, Floats, Ints
from gradnet.errors import InputError

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
    """points: (n, 2). labels: (n,) 0 to 3. queries: (4, 2), one in each letter and none among the points."""

    points: Floats
    labels: Ints
    queries: Floats


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
    sizes = _sizes(n_points, count)
    origins = _origins()
    points = [
        _draw(letter, size, rng) + origin for letter, size, origin in zip(WORD, sizes, origins, strict=True)
    ]
    queries = origins + [_QUERIES[letter] for letter in WORD]
    labels = np.repeat(np.arange(len(WORD)), sizes)
    return Letters(_scaled(np.concatenate(points)), labels, _scaled(queries))


def _sizes(n_points: int, count: str) -> Ints:
    """(4,) points of each letter."""
    if count == "letter":
        return np.full(len(WORD), n_points)
    lengths = np.array([_length(letter) for letter in WORD])
    sizes: Ints = np.floor(n_points * lengths / lengths.sum()).astype(np.int64)
    sizes[: n_points - sizes.sum()] += 1
    return sizes


def _origins() -> Doubles:
    """(4, 2) where each letter's own origin lies: the same empty space between any two, the word centred."""
    lefts, x = [], 0.0
    for letter in WORD:
        lefts.append(x)
        x += max(a for stroke in _STROKES[letter] for a, _ in stroke) + _SPACING
    width = x - _SPACING
    return np.array([(left - width / 2, -_HEIGHT / 2) for left in lefts])


def _scaled(drawn: Doubles) -> Floats:
    return (_SCALE * drawn).astype(np.float32)


def _segments(letter: str) -> tuple[Doubles, Doubles]:
    starts = [a for stroke in _STROKES[letter] for a in stroke[:-1]]
    ends = [b for stroke in _STROKES[letter] for b in stroke[1:]]
    return np.array(starts), np.array(ends)


def _length(letter: str) -> float:
    starts, ends = _segments(letter)
    return float(np.linalg.norm(ends - starts, axis=1).sum())


def _draw(letter: str, size: int, rng: np.random.Generator) -> Doubles:
    """Points at even steps along the strokes, moved a little to each side: no gaps by chance."""
    starts, ends = _segments(letter)
    lengths = np.linalg.norm(ends - starts, axis=1)
    along = (np.arange(size) + rng.random(size)) / size * lengths.sum()
    which = np.minimum(np.searchsorted(np.cumsum(lengths), along), len(lengths) - 1)
    fraction = 1 - (np.cumsum(lengths)[which] - along) / lengths[which]
    on_line = starts[which] + fraction[:, None] * (ends - starts)[which]
    return np.asarray(on_line + rng.uniform(-_WIDTH / 2, _WIDTH / 2, size=(size, 2)))
