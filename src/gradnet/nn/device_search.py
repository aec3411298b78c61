"""Exact neighbours and k-means on a GPU: proposed in float32, settled in float64, ties by position."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gradnet.arrays import Floats, Ints, row_blocks
from gradnet.graph.neighbours import ROUNDING, SPARE_CANDIDATES
from gradnet.nn.gpu_precision import products_in
from gradnet.ranking import Ranking

_FLOATS_PER_BLOCK = 1 << 30  # of scores at a time, on the device
_DOUBLES_PER_BLOCK = 1 << 28


class DeviceSearch:
    """An engine for `graph.engines`. The database stays on the device as long as the same one is asked for."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._kept: tuple[Floats, Tensor, float] | None = None

    def nearest(self, queries: Floats, database: Floats, k: int, metric: str) -> tuple[Ranking, Ints]:
        """The k best rows for every query, and the queries of which the proposal may have cut through a tie."""
        X, longest = self._on_device(database)
        ids, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
        doubtful: list[Ints] = []
        with products_in("float32"):
            for rows in row_blocks(len(queries), max(1, _FLOATS_PER_BLOCK // len(database))):
                Q = torch.from_numpy(np.ascontiguousarray(queries[rows])).to(self._device)
                found, best, is_doubtful = _nearest(Q, X, k, metric, longest)
                ids[rows], scores[rows] = found.cpu().numpy(), best.cpu().numpy()
                doubtful.append(np.flatnonzero(is_doubtful.cpu().numpy()) + rows.start)
        return Ranking(ids, scores), np.concatenate(doubtful)

    def centres(self, X: Floats, n: int, rounds: int, seed: int) -> Floats:
        """Lloyd's iterations from n rows drawn at random; an empty centre stays where it was."""
        rng = np.random.default_rng(seed)
        with products_in("float32"):
            points = torch.from_numpy(X).to(self._device)
            centres = points[torch.from_numpy(rng.choice(len(X), n, replace=False)).to(self._device)]
            for _ in range(rounds):
                nearest = (points @ centres.T - centres.square().sum(1) / 2).argmax(1)
                member = torch.nn.functional.one_hot(nearest, n).to(
                    points.dtype
                )  # a product has a fixed order
                count = member.sum(0)[:, None]
                centres = torch.where(count > 0, (member.T @ points) / count.clamp_min(1), centres)
        return np.ascontiguousarray(centres.cpu().numpy())

    def _on_device(self, database: Floats) -> tuple[Tensor, float]:
        if self._kept is None or not _is_same(self._kept[0], database):
            X = torch.from_numpy(np.ascontiguousarray(database)).to(self._device)
            self._kept = database, X, float(X.square().sum(1).max())
        return self._kept[1:]


def _is_same(kept: Floats, database: Floats) -> bool:
    """Whether both are the same memory: another view of it is another object."""
    return kept.ctypes.data == database.ctypes.data and kept.shape == database.shape


def _nearest(Q: Tensor, X: Tensor, k: int, metric: str, longest: float) -> tuple[Tensor, Tensor, Tensor]:
    candidates = min(k + SPARE_CANDIDATES, len(X))
    rough = Q @ X.T
    if metric == "euclidean":
        rough -= X.square().sum(1) / 2
    proposed = rough.topk(candidates, dim=1).indices
    del rough
    settled = _settled(Q, X, proposed, metric)
    by_position, order = proposed.sort(dim=1)
    scores, again = settled.gather(1, order).sort(dim=1, descending=True, stable=True)
    ids = by_position.gather(1, again)
    if candidates == len(X):
        return ids[:, :k], scores[:, :k], torch.zeros(len(Q), dtype=torch.bool, device=Q.device)
    q = Q.square().sum(1)
    last, worst = scores[:, k - 1].double(), scores[:, -1].double()
    if metric == "cosine":
        doubtful = last - worst <= ROUNDING * (q * longest).sqrt()
    else:
        doubtful = worst.square() - last.square() <= ROUNDING * (q + longest)
    return ids[:, :k], scores[:, :k], doubtful


def _settled(Q: Tensor, X: Tensor, ids: Tensor, metric: str) -> Tensor:
    """(m, c) scores of the proposed pairs, computed in float64 and rounded once."""
    scores = Q.new_empty(ids.shape)
    for rows in row_blocks(len(Q), max(1, _DOUBLES_PER_BLOCK // (ids.shape[1] * X.shape[1]))):
        x, q = X[ids[rows]].double(), Q[rows, None].double()
        scores[rows] = ((x * q).sum(2) if metric == "cosine" else -(x - q).square().sum(2).sqrt()).float()
    return scores
