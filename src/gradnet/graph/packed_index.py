"""An inverted file as plain arrays, and back: what faiss holds, without a faiss file that would have to be believed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradnet.arrays import Floats, Ints
from gradnet.graph.neighbours import Metric

Packed = dict[str, NDArray[Any]]
"""centres: (lists, d). quantiser: what decodes the codes, flat. sizes: (lists,) items in each list. order: (n,) the
items, list by list. codes: (n, bytes) of the same items."""

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


def pack(index: Any, codes: str) -> Packed:
    """The arrays of a filled index."""
    import faiss

    lists, width = index.invlists, index.code_size
    sizes = np.array([lists.list_size(number) for number in range(index.nlist)], dtype=np.int64)
    order, packed = np.empty(index.ntotal, dtype=np.int64), np.empty((index.ntotal, width), dtype=np.uint8)
    stop = 0
    for number in np.flatnonzero(sizes):
        rows = slice(stop, stop := stop + int(sizes[number]))
        order[rows] = faiss.rev_swig_ptr(lists.get_ids(int(number)), int(sizes[number]))
        filled = faiss.rev_swig_ptr(lists.get_codes(int(number)), int(sizes[number]) * width)
        packed[rows] = filled.reshape(-1, width)
    return {
        "centres": index.quantizer.reconstruct_n(0, index.nlist),
        "quantiser": faiss.vector_to_array(_quantiser(index, codes)),
        "sizes": sizes,
        "order": order,
        "codes": packed,
    }


def unpack(packed: Packed, n: int, d: int, metric: Metric, codes: str) -> Any:
    """The index again, over n items of d dimensions; a ValueError where the arrays cannot be one."""
    import faiss

    index = empty_index(d, metric, codes, _checked_lists(packed, n, d))
    _check_codes(packed, n, d, index.code_size, _quantiser_size(d, codes))
    index.quantizer.add(packed["centres"])
    faiss.copy_array_to_vector(packed["quantiser"], _quantiser(index, codes))
    if codes == "pq":
        index.precompute_table()
    starts = np.cumsum(packed["sizes"]) - packed["sizes"]
    order, filled = np.ascontiguousarray(packed["order"]), np.ascontiguousarray(packed["codes"])
    for number in np.flatnonzero(packed["sizes"]):
        start, size = starts[number], int(packed["sizes"][number])
        rows = slice(start, start + size)
        index.invlists.add_entries(
            int(number), size, faiss.swig_ptr(order[rows]), faiss.swig_ptr(filled[rows])
        )
    index.ntotal, index.is_trained = n, True
    return index


def _checked_lists(packed: Packed, n: int, d: int) -> int:
    """How many lists there are."""
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
    return len(centres)


def _is_moderate(values: Floats, d: int) -> bool:
    """Whether distances of what is made of these values stay within float32: faiss finds nobody at infinity."""
    return bool(np.isfinite(values).all()) and float(np.abs(values).max(initial=0.0)) * d**0.5 <= _LONGEST


def _is_permutation(order: Ints) -> bool:
    if order.min() < 0 or order.max() >= len(order):
        return False
    return bool((np.bincount(order, minlength=len(order)) == 1).all())


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


def _quantiser_size(d: int, codes: str) -> int:
    """Lowest value and range, or 256 pieces for each byte of a code, which together have d dimensions."""
    return 2 if codes == "sq8" else 256 * d


def decoded(index: Any, ids: Ints) -> Floats:
    """(len(ids), d) what the codes say of some items."""
    if index.direct_map.no():
        index.make_direct_map()
    rows: Floats = index.reconstruct_batch(np.ascontiguousarray(ids, dtype=np.int64))
    return rows


def _n_bytes(d: int) -> int:
    """Bytes of a code: the largest divisor of d that is at most an eighth of it."""
    return max(m for m in range(1, max(1, d // 8) + 1) if d % m == 0)
