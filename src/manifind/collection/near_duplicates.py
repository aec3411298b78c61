"""Duplicates and near duplicates among the items of a collection."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from manifind.arrays import Ints, row_blocks
from manifind.collection.collection import Collection
from manifind.collection.version import original_descriptors
from manifind.graph.duplicates import distinct_rows
from manifind.images.files import FINGERPRINT, FINGERPRINT_BITS

NEAR_BITS = 25
"""Bits in which nearly the same pictures may differ: copies that were saved again, made smaller or brighter differ in
fewer, and different pictures of the same building in more."""

_ROWS_PER_BLOCK = 2048


class NearDuplicates(NamedTuple):
    """Groups of ids, two or more in each. same: with equal descriptors. near: nearly the same, or linked by such."""

    same: list[list[Any]]
    near: list[list[Any]]


def find_near_duplicates(collection: Collection) -> NearDuplicates:
    """The items of a full collection that are the same by their descriptors, or nearly so by their fingerprints.

    Collections of vectors have no fingerprints, and in them nothing is nearly the same.
    """
    ids = collection.ids.tolist()
    if not ids:
        return NearDuplicates([], [])
    same = distinct_rows(original_descriptors(collection.version)).of_row
    texts = [fields.get(FINGERPRINT) for fields in collection.metadata(ids)]
    known = np.array([row for row, text in enumerate(texts) if _is_fingerprint(text)], dtype=np.int64)
    near = np.arange(len(ids))
    if len(known):
        near[known] = known[_components("".join(str(texts[row]) for row in known))]
    return NearDuplicates(_groups(ids, same), _groups(ids, near))


def _is_fingerprint(text: Any) -> bool:
    return isinstance(text, str) and len(text) == FINGERPRINT_BITS // 4 and set(text) <= set("0123456789abcdef")


def _components(fingerprints: str) -> Ints:
    """(m,) for each of the fingerprints the first of those it is linked with."""
    codes = np.frombuffer(bytes.fromhex(fingerprints), dtype=np.uint8).reshape(-1, FINGERPRINT_BITS // 8)
    bits = 2 * np.unpackbits(codes, axis=1).astype(np.float32) - 1
    n, pairs = len(bits), []
    for rows in row_blocks(n, _ROWS_PER_BLOCK):
        agreement = bits[rows] @ bits[rows.start :].T  # bits that agree less bits that differ
        row, column = np.nonzero(agreement >= FINGERPRINT_BITS - 2 * NEAR_BITS)
        pairs.append(np.stack([row, column]) + rows.start)
    a, b = np.concatenate(pairs, axis=1)
    links = coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
    component = connected_components(links, directed=False)[1]
    return np.asarray(np.unique(component, return_index=True)[1][component])


def _groups(ids: list[Any], group_of: Ints) -> list[list[Any]]:
    members: dict[int, list[Any]] = {}
    for id_, group in zip(ids, group_of.tolist(), strict=True):
        members.setdefault(group, []).append(id_)
    return [group for group in members.values() if len(group) > 1]
