"""Large databases: codes in lists around centres propose neighbours, and the vectors themselves settle them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradnet.arrays import Floats, row_blocks
from gradnet.errors import InputError
from gradnet.graph.neighbours import Metric, nearest, settle
from gradnet.ranking import Ranking, best_first

CODES = ("sq8", "pq")
WANTED_RECALL = 0.98
_SAMPLE = 256  # queries on which the recall is measured: its standard error is then below 0.01
_ROWS_PER_LIST_TO_TRAIN = 40
_ROUNDS = 10
_ROWS_PER_BLOCK = 1 << 15
_SPARE = {"sq8": 16, "pq": 112}  # proposed beyond k: the coarser the codes, the more
_FIRST_PROBES = 4
_NOBODY = -1


class Quality(NamedTuple):
    """What a compressed index gives. recall: share of the true k nearest that it finds, on a sample."""

    codes: str
    n_lists: int
    n_probes: int
    recall: float
    bytes_per_item: float


def told(quality: Quality | None) -> dict[str, Any]:
    """The same by name, for people and for files; None is an exact search."""
    return {"codes": "exact", "recall": 1.0} if quality is None else quality._asdict()


class InvertedFile:
    """An approximate index over the rows of a database that is kept beside it.

    codes: "sq8", a byte for each dimension, or "pq", a byte for every eight. The search looks into as many
    lists as a sample of the database itself needs to find WANTED_RECALL of its true k nearest.
    """

    def __init__(self, database: Floats, metric: Metric, codes: str, k: int, seed: int = 0) -> None:
        if codes not in CODES:
            raise InputError(f"codes = {codes!r}; expected one of {', '.join(map(repr, CODES))}")
        self._database, self._metric, self._codes = database, metric, codes
        rng = np.random.default_rng(seed)
        self._index = _trained(database, metric, codes, rng)
        for rows in row_blocks(len(database), _ROWS_PER_BLOCK):
            self._index.add(np.ascontiguousarray(database[rows]))
        self.quality = self._calibrate(k, rng)

    def nearest(self, queries: Floats, k: int) -> Ranking:
        """About the k best rows for every query; scores are exact, and so is the order of what was found."""
        proposed = self._index.search(queries, min(k + _SPARE[self._codes], len(self._database)))[1]
        missing = proposed == _NOBODY  # the lists that were looked into hold fewer
        if not missing.any():
            return best_first(settle(queries, self._database, proposed, self._metric), proposed, k)
        settled = settle(queries, self._database, np.where(missing, 0, proposed), self._metric)
        settled[missing] = -np.inf
        best = best_first(settled, proposed, k)
        short = best.scores[:, -1] == -np.inf
        if short.any():
            best.ids[short], best.scores[short] = nearest(queries[short], self._database, k, self._metric)
        return best

    def nearest_by_codes(self, queries: Floats, k: int) -> Ranking:
        """The k best rows by their codes alone, with scores to the precision of the codes."""
        scores, ids = self._index.search(queries, k)
        if (ids == _NOBODY).any():
            return self.nearest(queries, k)
        if self._metric == "euclidean":  # faiss has squared distances, of which rounding may leave -0
            scores = -np.sqrt(np.maximum(scores, 0.0))
        return Ranking(ids, scores)

    def _calibrate(self, k: int, rng: np.random.Generator) -> Quality:
        n = len(self._database)
        sample = self._database[np.sort(rng.choice(n, min(_SAMPLE, n), replace=False))]
        k = min(k + 1, n)  # each finds itself, which tells nothing
        last_true = nearest(sample, self._database, k, self._metric).scores[:, -1:]
        n_probes, n_lists = _FIRST_PROBES, self._index.nlist
        while True:
            self._index.nprobe = min(n_probes, n_lists)
            # By score and not by name: of several at the same distance any will do.
            recall = float((self.nearest(sample, k).scores[:, 1:] >= last_true).mean()) if k > 1 else 1.0
            if recall >= WANTED_RECALL or n_probes >= n_lists:
                code_bytes = self._index.code_size + 8  # and the number of the item
                return Quality(self._codes, n_lists, self._index.nprobe, recall, code_bytes)
            n_probes *= 2


def _trained(database: Floats, metric: Metric, codes: str, rng: np.random.Generator) -> Any:
    import faiss

    n, d = database.shape
    n_lists = max(1, min(int(4 * n**0.5), n // _ROWS_PER_LIST_TO_TRAIN))
    kind = faiss.METRIC_L2 if metric == "euclidean" else faiss.METRIC_INNER_PRODUCT
    coarse = faiss.IndexFlat(d, kind)
    index: Any
    if codes == "sq8":
        # One scale for all dimensions: a search takes a seventh less time than with one for each.
        index = faiss.IndexIVFScalarQuantizer(coarse, d, n_lists, faiss.ScalarQuantizer.QT_8bit_uniform, kind)
    else:
        index = faiss.IndexIVFPQ(coarse, d, n_lists, _n_bytes(d), 8, kind)
        index.do_polysemous_training = False
    index.cp.niter, index.cp.seed, index.cp.min_points_per_centroid = _ROUNDS, int(rng.integers(2**31)), 1
    rows = np.sort(rng.choice(n, min(n, n_lists * _ROWS_PER_LIST_TO_TRAIN), replace=False))
    index.train(np.ascontiguousarray(database[rows]))
    return index


def _n_bytes(d: int) -> int:
    """Bytes of a code: the largest divisor of d that is at most an eighth of it."""
    return max(m for m in range(1, max(1, d // 8) + 1) if d % m == 0)
