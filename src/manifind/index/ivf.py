"""Inverted file of 8-bit codes for large databases: codes propose neighbours, the vectors settle them."""

from importlib import import_module
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats, Ints, Mask, row_blocks
from manifind.errors import InputError
from manifind.index.exact import Metric, nearest, nearest_among, settle
from manifind.ranking import Ranking, best_first
from manifind.text import are, count

CODES = ("sq8", "pq")
FEWEST = {"sq8": 1, "pq": 256}
"""Rows from which codes can be learned: a byte of "pq" stands for one of 256 pieces."""

WANTED_RECALL = 0.98
_SAMPLE = 256  # queries on which the recall is measured: its standard error is then below 0.01
_ROWS_PER_LIST_TO_TRAIN = 40
_ROUNDS = 10
_ROWS_PER_BLOCK = 1 << 15
_SPARE = {"sq8": 8, "pq": 112}  # proposed beyond k: the coarser the codes, the more
_FIRST_PROBES = 4
_NOBODY = -1


Packed = dict[str, NDArray[Any]]
"""centres: (lists, d). quantiser: what decodes the codes, flat. sizes: (lists,) items in each list. order: (n,) the
items, list by list. codes: (n, bytes) of the same items."""


class Quality(NamedTuple):
    """What a compressed index gives. recall: share of the true k nearest that it finds, on a sample."""

    codes: str
    n_lists: int
    n_probes: int
    recall: float
    bytes_per_item: float


def quality_summary(quality: Quality | None) -> dict[str, Any]:
    """The same by name, for people and for files; None is an exact search."""
    return {"codes": "exact", "recall": 1.0} if quality is None else quality._asdict()


class InvertedFile:
    """An approximate index over the rows of a database.

    codes: "sq8", a byte for each dimension, or "pq", a byte for every eight. The search looks into as many
    lists as a sample of the database itself needs to find WANTED_RECALL of its true k nearest. Where the database
    is kept beside it, the vectors themselves settle what the codes propose.
    """

    def __init__(self, database: Floats, metric: Metric, codes: str, k: int, seed: int = 0) -> None:
        if codes not in CODES:
            raise InputError(f"codes = {codes!r}; expected one of {', '.join(map(repr, CODES))}")
        if len(database) < FEWEST[codes]:
            raise InputError(
                f"there {are(len(database))} {count(len(database), 'item')}; "
                f"codes {codes!r} need at least {FEWEST[codes]}",
                "take codes 'sq8'",
            )
        self._database: Floats | None = database
        self._metric, self._n = metric, len(database)
        rng = np.random.default_rng(seed)
        self._index = _trained(database, metric, codes, rng)
        for rows in row_blocks(len(database), _ROWS_PER_BLOCK):
            self._index.add(np.ascontiguousarray(database[rows]))
        self.quality = self._calibrate(database, codes, k, rng)

    @classmethod
    def from_packed(
        cls, packed: Packed, quality: Quality, n: int, d: int, metric: Metric, database: Floats | None
    ) -> Self:
        """An index that was packed before; a ValueError where the arrays are no index over n rows, d wide.

        database: the rows, if they are at hand; without them codes have the last word.
        """
        made = cls.__new__(cls)
        made._database, made._metric, made._n, made.quality = database, metric, n, quality
        _check_quality(quality, len(packed["centres"]))
        made._index = unpack(packed, n, d, metric, quality.codes)
        made._index.nprobe = quality.n_probes
        if database is None:
            made._index.make_direct_map()  # now, since later several might do so at once
        return made

    def __len__(self) -> int:
        return self._n

    def packed(self) -> Packed:
        """The index as arrays."""
        import faiss

        index = self._index
        lists, width = index.invlists, index.code_size
        sizes = np.array([lists.list_size(number) for number in range(index.nlist)], dtype=np.int64)
        order, codes = np.empty(index.ntotal, dtype=np.int64), np.empty((index.ntotal, width), dtype=np.uint8)
        stop = 0
        for number in np.flatnonzero(sizes):
            size = int(sizes[number])
            rows = slice(stop, stop := stop + size)
            order[rows] = faiss.rev_swig_ptr(lists.get_ids(int(number)), size)
            codes[rows] = faiss.rev_swig_ptr(lists.get_codes(int(number)), size * width).reshape(-1, width)
        centres = index.quantizer.reconstruct_n(0, index.nlist)
        quantiser = faiss.vector_to_array(_quantiser(index, self.quality.codes))
        return {"centres": centres, "quantiser": quantiser, "sizes": sizes, "order": order, "codes": codes}

    def nearest(self, queries: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        """About the k best rows for every query; scores are exact, and so is the order of what was found.

        allowed: (n,) rows that may be found, at least k; None for all.
        """
        if self._database is None:
            return self.nearest_by_codes(queries, k, allowed)
        proposed = self._search(queries, min(k + _SPARE[self.quality.codes], self._n), allowed)[1]
        missing = proposed == _NOBODY  # the lists that were looked into hold fewer
        settled = settle(queries, self._database, np.where(missing, 0, proposed), self._metric)
        settled[missing] = -np.inf
        best = best_first(settled, proposed, k)
        short = best.scores[:, -1] == -np.inf
        if short.any():
            rows = np.arange(self._n) if allowed is None else np.flatnonzero(allowed)
            exact = nearest_among(queries[short], self._database, rows, k, self._metric)
            best.ids[short], best.scores[short] = exact
        return best

    def nearest_by_codes(self, queries: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        """The k best rows by their codes alone, with scores to the precision of the codes."""
        scores, ids = self._search(queries, k, allowed)
        if (ids == _NOBODY).any():
            if self._database is not None:
                return self.nearest(queries, k, allowed)
            scores, ids = self._search(queries, k, allowed, self.quality.n_lists)
        if self._metric == "euclidean":  # faiss has squared distances, of which rounding may leave -0
            return Ranking(ids, -np.sqrt(np.maximum(scores, 0.0)))
        return Ranking(ids, np.minimum(scores, 1.0))  # of unit rows codes may say a hair more

    def measured_by_codes(self, database: Floats, k: int, seed: int = 0) -> Quality:
        """What the index gives where the rows are not kept beside it: the recall of the codes alone."""
        sample, k = _sampled(database, np.random.default_rng(seed)), min(k, self._n)
        true, found = nearest(sample, database, k, self._metric).ids, self.nearest_by_codes(sample, k).ids
        return self.quality._replace(recall=float((true[:, :, None] == found[:, None]).any(axis=2).mean()))

    def decoded(self, ids: Ints) -> Floats:
        """(len(ids), d) what the codes say of some rows."""
        if self._index.direct_map.no():
            self._index.make_direct_map()
        rows: Floats = self._index.reconstruct_batch(np.ascontiguousarray(ids, dtype=np.int64))
        return rows

    def _search(self, queries: Floats, k: int, allowed: Mask | None, n_probes: int = 0) -> tuple[Floats, Ints]:
        """Scores and rows by the codes. n_probes: lists to look into; 0 for as many as the recall needs."""
        if allowed is None and not n_probes:
            return cast("tuple[Floats, Ints]", self._index.search(queries, k))
        faiss: Any = import_module("faiss")  # its type hints know nothing of selectors
        n_probes, selector = n_probes or self._index.nprobe, None
        if allowed is not None:
            # The fewer may be found, the further their nearest are.
            share = max(int(allowed.sum()), 1) / self._n
            n_probes = min(-int(-n_probes // share), self.quality.n_lists)
            bits = np.packbits(allowed, bitorder="little")  # kept by this name while faiss reads it
            selector = faiss.IDSelectorBitmap(bits)
        options = faiss.SearchParametersIVF(sel=selector, nprobe=n_probes)
        return cast("tuple[Floats, Ints]", self._index.search(queries, k, params=options))

    def _calibrate(self, database: Floats, codes: str, k: int, rng: np.random.Generator) -> Quality:
        sample, n_lists = _sampled(database, rng), self._index.nlist
        k = min(k + 1, self._n)  # each finds itself, which tells nothing
        last_true = nearest(sample, database, k, self._metric).scores[:, -1:]
        code_bytes = self._index.code_size + 8  # and the number of the item

        def looking_into(n_probes: int) -> Quality:
            self._index.nprobe = n_probes
            self.quality = Quality(codes, n_lists, n_probes, 0.0, code_bytes)
            # By score and not by name: of several at the same distance any will do.
            recall = float((self.nearest(sample, k).scores[:, 1:] >= last_true).mean()) if k > 1 else 1.0
            return self.quality._replace(recall=recall)

        too_few, quality = 0, looking_into(min(_FIRST_PROBES, n_lists))
        while quality.recall < WANTED_RECALL and quality.n_probes < n_lists:
            too_few, quality = quality.n_probes, looking_into(min(2 * quality.n_probes, n_lists))
        between = looking_into((too_few + quality.n_probes) // 2) if too_few else quality
        quality = between if between.recall >= WANTED_RECALL else quality
        self._index.nprobe = quality.n_probes
        return quality


def _sampled(database: Floats, rng: np.random.Generator) -> Floats:
    return database[np.sort(rng.choice(len(database), min(_SAMPLE, len(database)), replace=False))]


def _check_quality(quality: Quality, n_lists: int) -> None:
    codes, lists, probes, recall, size = quality
    if codes not in CODES or type(lists) is not int or type(probes) is not int:
        raise ValueError("the index is said to be of no kind that there is")
    if not 1 <= probes <= lists == n_lists:
        raise ValueError("the index does not fit what is said of it")
    if not (isinstance(recall, int | float) and 0 <= recall <= 1):
        raise ValueError(f"the recall of the index is said to be {recall!r}")
    if not (isinstance(size, int | float) and 0 < size < np.inf):
        raise ValueError(f"an item of the index is said to take {size!r} bytes")


def _trained(database: Floats, metric: Metric, codes: str, rng: np.random.Generator) -> Any:
    n, d = database.shape
    n_lists = max(1, min(int(4 * n**0.5), n // _ROWS_PER_LIST_TO_TRAIN))
    index = empty_index(d, metric, codes, n_lists)
    index.cp.niter, index.cp.seed, index.cp.min_points_per_centroid = _ROUNDS, int(rng.integers(2**31)), 1
    n_rows = min(n, max(n_lists * _ROWS_PER_LIST_TO_TRAIN, FEWEST[codes]))
    rows = np.sort(rng.choice(n, n_rows, replace=False))
    index.train(np.ascontiguousarray(database[rows]))
    return index


_LONGEST = 4e18  # the range of residuals of the longest rows that preprocessing lets pass


def empty_index(d: int, metric: Metric, codes: str, n_lists: int) -> Any:
    """A faiss index that has learned nothing. codes: "sq8" or "pq"."""
    import faiss

    kind = faiss.METRIC_L2 if metric == "euclidean" else faiss.METRIC_INNER_PRODUCT
    coarse = faiss.IndexFlat(d, kind)
    if codes == "sq8":
        # One scale for all dimensions: a search takes a seventh less time than with one for each.
        return faiss.IndexIVFScalarQuantizer(coarse, d, n_lists, faiss.ScalarQuantizer.QT_8bit_uniform, kind)
    index: Any = faiss.IndexIVFPQ(coarse, d, n_lists, _n_bytes(d), 8, kind)
    index.do_polysemous_training = False
    index.pq.cp.min_points_per_centroid = 1  # with fewer than it likes, faiss would write to stderr
    return index


def unpack(packed: Packed, n: int, d: int, metric: Metric, codes: str) -> Any:
    """The index again, over n items of d dimensions; a ValueError where the arrays cannot be one."""
    import faiss

    _check_lists(packed, n, d)
    index = empty_index(d, metric, codes, len(packed["centres"]))
    # Lowest value and range, or 256 pieces for each byte of a code, which together have d dimensions.
    _check_codes(packed, n, d, index.code_size, 2 if codes == "sq8" else 256 * d)
    index.quantizer.add(packed["centres"])
    faiss.copy_array_to_vector(packed["quantiser"], _quantiser(index, codes))
    if codes == "pq":
        index.precompute_table()
    starts = np.cumsum(packed["sizes"]) - packed["sizes"]
    order, filled = np.ascontiguousarray(packed["order"]), np.ascontiguousarray(packed["codes"])
    for number in np.flatnonzero(packed["sizes"]):
        start, size = starts[number], int(packed["sizes"][number])
        rows = slice(start, start + size)
        index.invlists.add_entries(int(number), size, faiss.swig_ptr(order[rows]), faiss.swig_ptr(filled[rows]))
    index.ntotal, index.is_trained = n, True
    return index


def _check_lists(packed: Packed, n: int, d: int) -> None:
    centres, sizes, order = packed["centres"], packed["sizes"], packed["order"]
    if centres.dtype != np.float32 or centres.ndim != 2 or centres.shape[1] != d or not len(centres):
        raise ValueError("the centres do not fit the vectors")
    if not _is_moderate(centres, d):
        raise ValueError("a centre is no number, or too large a one")
    if sizes.dtype != np.int64 or sizes.shape != (len(centres),) or len(sizes) > n:
        raise ValueError("there are not as many lists as centres, or more than items")
    if sizes.min() < 0 or sizes.max() > n or sizes.sum() != n:  # a sum alone may wrap around
        raise ValueError("the lists do not hold every item")
    if order.dtype != np.int64 or order.shape != (n,) or not _is_permutation(order):
        raise ValueError("the lists do not hold every item once")


def _is_moderate(values: Floats, d: int) -> bool:
    """Whether distances of what is made of these values stay within float32: faiss finds nobody at infinity."""
    return bool(np.isfinite(values).all()) and float(np.abs(values).max(initial=0.0)) * d**0.5 <= _LONGEST


def _is_permutation(order: Ints) -> bool:
    is_within = order.min() >= 0 and order.max() < len(order)
    return bool(is_within and (np.bincount(order, minlength=len(order)) == 1).all())


def _check_codes(packed: Packed, n: int, d: int, width: int, quantiser_size: int) -> None:
    codes, quantiser = packed["codes"], packed["quantiser"]
    if codes.dtype != np.uint8 or codes.shape != (n, width):
        raise ValueError("the codes do not fit the items")
    if quantiser.dtype != np.float32 or quantiser.shape != (quantiser_size,):
        raise ValueError("the quantiser does not fit the codes")
    if not _is_moderate(quantiser, d):
        raise ValueError("the quantiser is no number, or too large a one")


def _quantiser(index: Any, codes: str) -> Any:
    return index.sq.trained if codes == "sq8" else index.pq.centroids


def _n_bytes(d: int) -> int:
    """Bytes of a code: the largest divisor of d that is at most an eighth of it."""
    return max(m for m in range(1, max(1, d // 8) + 1) if d % m == 0)
