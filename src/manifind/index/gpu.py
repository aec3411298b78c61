"""Exact neighbours and k-means on a GPU, its memory budget and the precision of its products."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from manifind.arrays import Floats, Mask, row_blocks
from manifind.errors import TrainingError
from manifind.index import exact
from manifind.index.exact import SPARE_CANDIDATES, Metric
from manifind.index.fit_context import MemoryBudget
from manifind.index.vector_index import Engine, ExactIndex
from manifind.ranking import Ranking


@contextmanager
def products_in(kind: str) -> Iterator[None]:
    """Inside, products of float32 matrices on a GPU are "tf32", eleven digits of each factor, or "float32".

    Training does not notice the difference; for neighbours the error of a proposal has to be bounded.
    """
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


_SHARE_OF_FREE = 0.7  # where nobody says how much may be taken
_SHARE_TO_PLAN = 0.5  # of what may be taken: torch keeps what it has freed, in pieces
# With less nothing is gained: torch takes 20 MB for a number, and libraries some for themselves.
_LEAST_BYTES = 0.3e9


def find_memory_budget(device: str, gigabytes: float | None) -> MemoryBudget:
    """What to plan with where at most so many GB of a GPU may be used; None: as far as others leave it free.

    With next to nothing, all is left to the CPU.
    """
    if device == "cpu":
        return MemoryBudget(device)
    # What torch has freed and kept for later is free, too.
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + cached
    planned = _SHARE_OF_FREE * free if gigabytes is None else _SHARE_TO_PLAN * gigabytes * 1e9
    return MemoryBudget(device, min(planned, free)) if planned >= _LEAST_BYTES else MemoryBudget()


@contextmanager
def cap_gpu_memory(device: str, gigabytes: float | None) -> Iterator[None]:
    """torch takes at most so many GB of the GPU more inside; what does not fit after all ends with one sentence."""
    if device == "cpu":
        yield
        return
    number = torch.cuda.current_device()
    total = torch.cuda.get_device_properties(number).total_memory
    if gigabytes is not None:
        gc.collect()  # what nobody needs any more is not to be counted as taken before
        torch.cuda.empty_cache()
        most = torch.cuda.memory_reserved(number) + gigabytes * 1e9
        torch.cuda.set_per_process_memory_fraction(min(1.0, most / total), number)
    try:
        yield
    except torch.OutOfMemoryError as error:
        taken = f"{total / 1e9:.0f}" if gigabytes is None else f"{gigabytes:g}"
        problem = f"the GPU's memory, at most {taken} GB, does not hold this fit: {str(error).splitlines()[0][:200]}"
        raise TrainingError(problem, "lower training_nodes, raise device_memory, or set device='cpu'") from error
    finally:
        if gigabytes is not None:
            torch.cuda.set_per_process_memory_fraction(1.0, number)


_FLOATS_PER_BLOCK = 1 << 30  # of scores at a time, on the device, where there is room
_DOUBLES_PER_BLOCK = 1 << 28
# Shares of the budget: for rows, for scores, of which there are two or three copies, and for doubles.
_OF_ROWS, _OF_SCORES, _OF_DOUBLES = 1 / 3, 1 / 9, 1 / 9


class GpuEngine(Engine):
    """Exact searches and k-means on a GPU, within a budget."""

    is_always_exact = True  # a GPU compares all rows as quickly as codes

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget

    def index(self, database: Floats, metric: Metric) -> ExactIndex:
        return GpuIndex(database, metric, self._budget)

    def kmeans(self, X: Floats, n: int, rounds: int, seed: int) -> Floats:
        """Lloyd's iterations from n rows drawn at random; an empty centre stays where it was."""
        X = exact.kmeans_sample(X, n, seed)
        drawn = np.random.default_rng(seed).choice(len(X), n, replace=False)
        centres = _uploaded(X[drawn], self._budget)
        parts = row_blocks(len(X), _most(self._budget, _OF_ROWS, 4 * X.shape[1] + 12 * n))
        held = _uploaded(X, self._budget) if len(parts) == 1 else None
        with products_in("float32"):
            for _ in range(rounds):
                count, total = centres.new_zeros(n, 1), torch.zeros_like(centres)
                for rows in parts:
                    points = _uploaded(X[rows], self._budget) if held is None else held
                    nearest = (points @ centres.T - centres.square().sum(1) / 2).argmax(1)
                    # As a product, since that adds up in a fixed order.
                    member = torch.nn.functional.one_hot(nearest, n).to(points.dtype)
                    count += member.sum(0)[:, None]
                    total += member.T @ points
                centres = torch.where(count > 0, total / count.clamp_min(1), centres)
        return np.ascontiguousarray(centres.cpu().numpy())


class GpuIndex(ExactIndex):
    """An exact index whose rows stay on the device between searches; those that do not fit come in parts."""

    def __init__(self, database: Floats, metric: Metric, budget: MemoryBudget) -> None:
        super().__init__(database, metric)
        self._rows, self._budget = database, budget
        self._kept: tuple[slice, Tensor, float] | None = None

    def nearest(self, queries: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        n, d = self._rows.shape
        if allowed is not None or exact.is_small(n, k):
            return super().nearest(queries, k, allowed)
        parts = row_blocks(n, max(2 * (k + SPARE_CANDIDATES), _most(self._budget, _OF_ROWS, 4 * d)))
        # A last part of too few rows to find k among them joins its neighbour.
        if len(parts) > 1 and parts[-1].stop - parts[-1].start < k:
            parts[-2:] = [slice(parts[-2].start, n)]
        doubtful = np.zeros(len(queries), dtype=np.bool_)
        found = exact.best_of_parts((self._nearest(queries, part, k, doubtful) for part in parts), len(queries), k)
        if doubtful.any():
            settled = exact.nearest_of_all(queries[doubtful], self._rows, k, self.metric)
            found.ids[doubtful], found.scores[doubtful] = settled
        return found

    def _nearest(self, queries: Floats, part: slice, k: int, doubtful: Mask) -> Ranking:
        """The best of a part of the rows; marks the queries for which the proposal may have cut through a tie."""
        X, longest = self._on_device(part)
        per_block = min(_FLOATS_PER_BLOCK, _most(self._budget, _OF_SCORES, 4))
        doubles = min(_DOUBLES_PER_BLOCK, _most(self._budget, _OF_DOUBLES, 8))

        def rank(rows: slice) -> Ranking:
            Q = _uploaded(queries[rows], self._budget)
            ids, scores, is_doubtful = _nearest(Q, X, k, self.metric, longest, doubles)
            doubtful[rows] |= is_doubtful.cpu().numpy()
            return Ranking(ids.cpu().numpy() + part.start, scores.cpu().numpy())

        with products_in("float32"):
            return exact.rank_in_blocks(rank, len(queries), k, per_block // len(X))

    def _on_device(self, part: slice) -> tuple[Tensor, float]:
        if self._kept is None or self._kept[0] != part:
            X = _uploaded(self._rows[part], self._budget)
            self._kept = part, X, float(X.square().sum(1).max())
        return self._kept[1:]


def _uploaded(X: Floats, budget: MemoryBudget) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(X)).to(budget.device)


def _most(budget: MemoryBudget, share: float, bytes_each: int) -> int:
    """How many numbers, or rows, fit into a share of the budget."""
    return max(1, int(min(share * budget.bytes / bytes_each, 2**62)))


def _nearest(Q: Tensor, X: Tensor, k: int, metric: str, longest: float, doubles: int) -> tuple[Tensor, Tensor, Tensor]:
    candidates = min(k + SPARE_CANDIDATES, len(X))
    rough = Q @ X.T
    if metric == "euclidean":
        rough -= X.square().sum(1) / 2
    proposed = rough.topk(candidates, dim=1).indices
    del rough
    settled = _settled(Q, X, proposed, metric, doubles)
    by_position, order = proposed.sort(dim=1)
    scores, again = settled.gather(1, order).sort(dim=1, descending=True, stable=True)
    ids = by_position.gather(1, again)
    if candidates == len(X):
        return ids[:, :k], scores[:, :k], torch.zeros(len(Q), dtype=torch.bool, device=Q.device)
    last, worst = scores[:, k - 1].double(), scores[:, -1].double()
    doubtful = exact.may_cut_a_tie(last, worst, Q.square().sum(1), longest, metric)
    return ids[:, :k], scores[:, :k], doubtful


def _settled(Q: Tensor, X: Tensor, ids: Tensor, metric: str, doubles: int) -> Tensor:
    """(m, c) scores of the proposed pairs, computed in float64, so many at a time, and rounded once."""
    scores = Q.new_empty(ids.shape)
    for rows in row_blocks(len(Q), max(1, doubles // (ids.shape[1] * X.shape[1]))):
        x, q = X[ids[rows]].double(), Q[rows, None].double()
        scores[rows] = ((x * q).sum(2) if metric == "cosine" else -(x - q).square().sum(2).sqrt()).float()
    return scores
