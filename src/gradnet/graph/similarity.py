"""From a distance to the weight of an edge: the three similarities that the paper compares, Iscen's, and our own."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from gradnet.arrays import Floats, Ints
from gradnet.errors import InputError

Kind = Literal["euclidean", "gaussian", "cosine", "cubed", "sharp"]
KINDS: tuple[str, ...] = get_args(Kind)

_WIDTHS = {"gaussian": 0.35, "sharp": 0.2}
"""Of the mean distance to the neighbours. 0.35 is the value of Yang, Prasad and Latecki's adaptive kernel."""


def neighbour_similarity(
    kind: str, queries: Floats, database: Floats, ids: Ints, distances: Floats, scales: Floats | None = None
) -> Floats:
    """Similarity of each query to each of its neighbours, (m, k), zero where there is none to speak of.

    "euclidean": 1 / (1 + distance), the paper's. "gaussian": exp(-distance^2 / 2 (0.35 s)^2), where s is
    the mean of the two ends' `scales`. "sharp": with 0.2, which of many neighbours leaves each item as many as are
    clearly nearer than the rest. "cosine": the cosine, negative ones cut to 0; "cubed": its cube.
    ids, distances: (m, k). scales: (n,) mean neighbour distance of each database row; where it is
    not given, the query's own mean distance serves for both ends.
    """
    if kind == "euclidean":
        return 1.0 / (1.0 + distances)
    if kind in _WIDTHS:
        own = distances.sum(axis=1, keepdims=True) / np.float32(
            distances.shape[1]
        )  # a mean, in a third of its time
        width = _WIDTHS[kind] * (own if scales is None else (own + scales[ids]) / 2)
        if not width.all():
            width = np.where(width > 0, width, 1.0)  # all neighbours at distance zero
        similarity = np.exp(-0.5 * (distances / width) ** 2)
        return np.asarray(np.maximum(similarity, np.finfo(np.float32).tiny), dtype=np.float32)
    if kind == "cosine":
        return np.maximum(_cosines(queries, database, ids), 0.0)
    if kind == "cubed":
        return np.maximum(_cosines(queries, database, ids), 0.0) ** 3
    raise InputError(f"similarity = {kind!r}; expected one of {', '.join(map(repr, KINDS))}")


def _cosines(queries: Floats, database: Floats, ids: Ints) -> Floats:
    """From squared lengths and distances would lose digits; so one column of neighbours at a time."""
    cosines = np.empty(ids.shape, dtype=np.float32)
    lengths_q = np.linalg.norm(queries, axis=1)
    for column in range(ids.shape[1]):
        x = database[ids[:, column]]
        products = np.einsum("ij,ij->i", queries, x)
        lengths = lengths_q * np.linalg.norm(x, axis=1)
        cosines[:, column] = products / np.where(lengths > 0, lengths, 1.0)
    return cosines
