"""How sure it is that a result belongs to a query: where neighbourhoods end, measured on the items without labels.

Scores of an item's nearest fall into two heaps: relatives, and the rest. Where the heaps part, and how sharply, is
measured once after the fit. An unseen query may have no relatives at all, although QFE places it among some items: so
how far it is from its nearest item is compared with how far items are from theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from manifind.arrays import Floats, Ints
from manifind.ranking import Ranking

if TYPE_CHECKING:
    import pandas

LIKELY = 0.5  # from which certainty on an item counts
SAMPLE, DEPTH = 500, 200  # items, and how many of the nearest of each
_SHOWN = 10  # queries in a notebook
_FAR = 0.1  # the share of items that are the loneliest: a query is compared with these
_STEPS = 11
_STEEPEST = 100.0
_BEYOND = 1e30  # of any number here: larger ones would overflow in single precision
_BINS, _LEAST_SHARE, _LEAST_VARIANCE = 120, 0.01, 1e-5  # a heap of less than a hundredth is none


class RatedRanking(Ranking):
    """A ranking that says how sure each result is.

    It unpacks into ids and scores as any `Ranking` does.

    Parameters
    ----------
    ids : ndarray of shape (m, k)
        As in `Ranking`.
    scores : ndarray of shape (m, k)
        As in `Ranking`.
    certainty : ndarray of shape (m, k)
        How sure it is that each item belongs to the query, from 0 to 1, never rising along a row.
    lengths : ndarray of shape (m,), default=None
        How many items of each row count; None for all.
    """

    certainty: Floats
    lengths: Ints | None

    def __new__(cls, ids: NDArray[Any], scores: Floats, certainty: Floats, lengths: Ints | None = None) -> RatedRanking:
        made = super().__new__(cls, ids, scores)
        made.certainty, made.lengths = certainty, lengths
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (*self, self.certainty, self.lengths)

    def cut(self, at: float = LIKELY) -> RatedRanking:
        """Leave out what does not belong: few results for a query with few relatives, none for a stranger.

        Parameters
        ----------
        at : float, default=0.5
            The certainty below which items are left out.

        Returns
        -------
        RatedRanking
            As wide as the longest row; of row i the first ``lengths[i]`` items count.
        """
        lengths = np.asarray((self.certainty >= at).sum(axis=1), dtype=np.int64)
        width = int(lengths.max(initial=0))
        return RatedRanking(self.ids[:, :width], self.scores[:, :width], self.certainty[:, :width], lengths)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the ranking in long form, as `Ranking.to_pandas`, after a cut only the items that count.

        Returns
        -------
        pandas.DataFrame
            With a further column ``certainty``.
        """
        table = super().to_pandas().assign(certainty=self.certainty.ravel())
        if self.lengths is None:
            return table
        return table[table["rank"] <= np.repeat(self.lengths, self.ids.shape[1])].reset_index(drop=True)

    def _repr_html_(self) -> str:
        if self.lengths is None:
            return super()._repr_html_()
        shown = [
            Ranking(self.ids[[i], :n], self.scores[[i], :n])._repr_html_() for i, n in enumerate(self.lengths[:10])
        ]
        return "".join(shown)


class Cutoff(NamedTuple):
    """middle: the score that is as likely a relative's as another's. steepness: of the logistic curve around it.

    distances: (11,) rising, which 10, 9, ... 0 % of the items exceed with the distance to their nearest.
    """

    middle: float
    steepness: float
    distances: tuple[float, ...]

    def certainty(self, scores: Floats, familiarity: Floats | None = None) -> Floats:
        """How sure it is that items with these scores, (m, k), belong: 0 to 1, never rising along a row.

        familiarity: (m,) of the queries, 0 for a stranger; None where they are items, or words.
        """
        found = expit(np.float32(self.steepness) * (scores - np.float32(self.middle)))
        return np.asarray(found if familiarity is None else found * familiarity[:, None], dtype=np.float32)

    def familiarity(self, distances: Floats) -> Floats:
        """(m,) 1 for a query as near to its nearest item as nine in ten items are, falling to 0 for the farthest."""
        steps = np.linspace(1, 0, _STEPS)
        return np.asarray(np.interp(distances, np.asarray(self.distances), steps), dtype=np.float32)

    def applied(self, found: Ranking, familiarity: Floats | None = None) -> RatedRanking:
        """The ranking with its certainty."""
        return RatedRanking(found.ids, found.scores, self.certainty(found.scores, familiarity))

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"middle": self.middle, "steepness": self.steepness, "distances": list(self.distances)}


def read_cutoff(stored: Any) -> Cutoff | None:
    """From what was stored, which is not believed; None where there is none, or nothing that could be one."""
    if not isinstance(stored, Mapping) or set(stored) != set(Cutoff._fields):
        return None
    distances = stored["distances"]
    if not isinstance(distances, list) or len(distances) != _STEPS:
        return None
    numbers = [stored["middle"], stored["steepness"], *distances]
    if not all(type(one) in (int, float) and abs(one) < _BEYOND for one in numbers) or sorted(distances) != distances:
        return None
    if not 0 <= numbers[1] <= _STEEPEST:
        return None
    return Cutoff(float(numbers[0]), float(numbers[1]), tuple(map(float, distances)))


def measure_cutoff(scores: Floats, nearest: Floats) -> Cutoff:
    """From the scores of a sample of items with their nearest others, (m, k), and all items' nearest distances, (N,).

    The middle is halfway between Otsu's threshold, which is too high where relatives are many and reach far down, and
    the minimum-error threshold of Kittler and Illingworth, which is too low where they are few. With both heaps normal
    and of one variance, the odds of belonging are logistic around it, steeper where the heaps lie further apart.
    """
    values = np.sort(scores, axis=None).astype(np.float64)
    far = np.maximum.accumulate(np.quantile(nearest.astype(np.float64), np.linspace(1 - _FAR, 1, _STEPS)))
    if len(values) < 2:  # nothing to part
        return Cutoff(0.5, _STEEPEST, tuple(far.tolist()))
    at, below, above = _otsu(values)
    within = np.concatenate([values[:at] - below, values[at:] - above])
    gap, spread = above - below, float(np.mean(within**2))
    steepness = min(gap / spread, _STEEPEST) if spread > 0 else _STEEPEST
    return Cutoff(((below + above) / 2 + _minimum_error(values)) / 2, steepness, tuple(far.tolist()))


def _otsu(values: Any) -> tuple[int, float, float]:
    """Where at least two rising values part into two heaps with the largest variance between them, and their means."""
    sums, n_below = np.cumsum(values), np.arange(1, len(values))
    below, above = sums[:-1] / n_below, (sums[-1] - sums[:-1]) / (len(values) - n_below)
    between = n_below * (len(values) - n_below) * (above - below) ** 2
    at = int(between.argmax())
    return at + 1, float(below[at]), float(above[at])


def _minimum_error(values: Any) -> float:
    """The threshold that parts values best into two normal heaps, each with a share P and a variance v of its own.

    It minimises sum over both of P (ln v / 2 - ln P), over the edges of 120 bins; between equal ones it is the middle.
    """
    low, high = float(values[0]), float(values[-1])
    edges = np.linspace(low, high, _BINS + 1)[1:-1]
    n_below = np.searchsorted(values, edges)
    sums, squares = (np.concatenate([[0.0], np.cumsum(part)]) for part in (values, values**2))
    errors = np.zeros(len(edges))
    for n, total, square in (
        (n_below, sums[n_below], squares[n_below]),
        (len(values) - n_below, sums[-1] - sums[n_below], squares[-1] - squares[n_below]),
    ):
        mean = total / np.maximum(n, 1)
        variance = np.maximum(square / np.maximum(n, 1) - mean**2, _LEAST_VARIANCE)
        share = n / len(values)
        error = share * (np.log(variance) / 2 - np.log(np.maximum(share, _LEAST_SHARE)))
        errors += np.where(share < _LEAST_SHARE, np.inf, error)
    if not np.isfinite(errors).any():
        return (low + high) / 2
    return float(edges[errors <= errors.min() + 1e-12].mean())
