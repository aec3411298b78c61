"""The answer to a search: which items, in which order, with which score."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats, Ints
from manifind.errors import needing
from manifind.text import count, visible

if TYPE_CHECKING:
    import pandas

_QUERIES_SHOWN, _RANKS_SHOWN, _CHARACTERS_SHOWN = 10, 10, 60  # in a notebook


class Ranking(NamedTuple):
    """The best items for each query, one row a query, best first.

    Equal scores stand in the order of the items' positions. A ranking unpacks into its two arrays:
    ``ids, scores = model.search(Q)``. Jupyter shows it as a table.

    Parameters
    ----------
    ids : ndarray of shape (m, k)
        Positions in the database, or your own ids when a collection answers.
    scores : ndarray of shape (m, k)
        Scores of these items, float32; they never increase along a row.
    """

    ids: NDArray[Any]
    scores: Floats

    def to_pandas(self) -> pandas.DataFrame:
        """Return the ranking in long form, one row for each item that was found.

        Returns
        -------
        pandas.DataFrame
            The columns are ``query`` (position of the query, from 0), ``rank`` (from 1), ``id`` and ``score``.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        with needing("pandas", "pandas is not installed"):
            import pandas
        m, k = self.ids.shape
        return pandas.DataFrame(
            {
                "query": np.repeat(np.arange(m), k),
                "rank": np.tile(np.arange(1, k + 1), m),
                "id": self.ids.ravel(),
                "score": self.scores.ravel(),
            }
        )

    def _repr_html_(self) -> str:
        """A table for Jupyter: one row a query, one column a rank; only the beginning of what is long."""
        m, k = self.ids.shape
        shown = min(k, _RANKS_SHOWN)
        ranks = "".join(f"<th>{rank}</th>" for rank in range(1, shown + 1))
        rows = "".join(
            f"<tr><th>{query}</th>{''.join(map(_cell, self.ids[query, :shown], self.scores[query, :shown]))}</tr>"
            for query in range(min(m, _QUERIES_SHOWN))
        )
        beginning = " (only the beginning is shown)" if m > _QUERIES_SHOWN or k > _RANKS_SHOWN else ""
        caption = f"{count(m, 'query')}, {count(k, 'item')} each, best first{beginning}"
        return f"<table><caption>{caption}</caption><tr><th>query</th>{ranks}</tr>{rows}</table>"


def _cell(item: Any, score: Any) -> str:
    """One item of the table. Ids come from files of others, so none may act as markup."""
    text = str(item)
    if len(text) > _CHARACTERS_SHOWN:
        text = text[: _CHARACTERS_SHOWN - 1] + "…"
    return f"<td>{escape(visible(text))}<br><small>{score:.4g}</small></td>"


def empty_ranking(m: int) -> Ranking:
    """Nothing found for m queries."""
    return Ranking(np.empty((m, 0), np.int64), np.empty((m, 0), np.float32))


def top_k(scores: Floats, k: int) -> Ranking:
    """The k best columns of each row, (m, k), of scores for every item, (m, n)."""
    m, n = scores.shape
    if 4 * k >= n:
        ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]  # stable: ties by position
        return Ranking(ids, np.take_along_axis(scores, ids, 1))
    ids = np.empty((m, k), dtype=np.int64)
    last = np.partition(scores, n - k, axis=1)[:, n - k]
    for row in range(m):
        candidates = np.flatnonzero(scores[row] >= last[row])  # k, and those that tie with the last
        ids[row] = candidates[np.argsort(-scores[row, candidates], kind="stable")[:k]]
    return Ranking(ids, np.take_along_axis(scores, ids, 1))


def best_first(scores: NDArray[Any], positions: Ints, k: int) -> Ranking:
    """Order each row by falling score, then by rising position, and keep the first k.

    scores, positions: (m, c) with c >= k.
    """
    order = np.lexsort((positions, -scores), axis=1)[:, :k]  # the last key is the first criterion
    rows = np.arange(len(order))[:, None]
    return Ranking(positions[rows, order], scores[rows, order])
