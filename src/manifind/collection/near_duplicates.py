"""Duplicates and near duplicates among the items of a collection, and which copy of each is the one to keep."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from manifind.arrays import Ints, row_blocks
from manifind.collection.collection import Collection
from manifind.collection.metadata import Fields
from manifind.collection.version import original_descriptors
from manifind.graph.duplicates import distinct_rows
from manifind.images.files import FINGERPRINT, FINGERPRINT_BITS

NEAR_BITS = 25
"""Bits in which nearly the same pictures may differ: copies that were saved again, made smaller or brighter differ in
fewer, and different pictures of the same building in more."""

_ROWS_PER_BLOCK = 2048
_MOST = 1 << 50  # of pixels in a row, or bytes; more is nonsense
_WITHOUT_LOSS = ("PNG", "BMP", "TIFF")
_TAKEN = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class NearDuplicates(NamedTuple):
    """Groups of ids, two or more in each. same: with equal descriptors. near: nearly the same, or linked by such."""

    same: list[list[Any]]
    near: list[list[Any]]


class DuplicateGroup(NamedTuple):
    """Items of which one is enough, in the order of their rows.

    kind: "same" where all descriptors are equal, else "near". best: the one to keep. reason: why, in words.
    """

    kind: Literal["same", "near"]
    ids: list[Any]
    best: Any
    reason: str


def find_near_duplicates(collection: Collection) -> NearDuplicates:
    """The items of a full collection that are the same by their descriptors, or nearly so by their fingerprints.

    Collections of vectors have no fingerprints, and in them nothing is nearly the same.
    """
    ids = collection.ids.tolist()
    if not ids:
        return NearDuplicates([], [])
    same = distinct_rows(original_descriptors(collection.version)).of_row
    return NearDuplicates(_grouped(ids, same), _near(collection, ids))


def remaining_duplicates(collection: Collection, found: NearDuplicates) -> NearDuplicates:
    """The same for a collection from which items were removed since. found: what there was before.

    What was only alike through a removed item is so no more; only groups that have lost one are compared again.
    """
    same = [[id_ for id_ in group if id_ in collection] for group in found.same]
    near = list[list[Any]]()
    for group in found.near:
        left = [id_ for id_ in group if id_ in collection]
        near += [group] if len(left) == len(group) else _near(collection, left)
    return NearDuplicates([group for group in same if len(group) > 1], near)


def duplicate_groups(collection: Collection, found: NearDuplicates | None = None) -> list[DuplicateGroup]:
    """Every item that is there more than once, in one group: the same ones first, then larger groups first.

    found: what `find_near_duplicates` has found in this collection, if that was asked for already.
    """
    same, near = find_near_duplicates(collection) if found is None else found
    place_of = {id_: place for place, group in enumerate(same) for id_ in group}
    row_of = collection.version.items.row_of
    groups = list[DuplicateGroup]()
    for ids in _joined([*same, *near]):
        ids.sort(key=lambda id_: row_of(id_) or 0)
        best, reason = best_copy(dict(zip(ids, collection.metadata(ids), strict=True)))
        is_same = len({place_of.get(id_, -1 - number) for number, id_ in enumerate(ids)}) == 1
        groups.append(DuplicateGroup("same" if is_same else "near", ids, best, reason))
    return sorted(groups, key=lambda group: (group.kind != "same", -len(group.ids)))


def best_copy(items: Mapping[Any, Fields]) -> tuple[Any, str]:
    """The id of the copy to keep, and the reason in words.

    It has the most pixels; of several such the most bytes, then a format without loss, the earliest date, the shortest
    path. An item of which the deciding value is not known gives way to one of which it is. items: metadata by id.
    """
    left = list(items)
    for criterion in _CRITERIA:
        values = {id_: criterion.value(items[id_]) for id_ in left}
        known = [value for value in values.values() if value is not None]
        if not known:
            continue
        most = max(known)
        best = [id_ for id_ in left if values[id_] == most]
        if len(best) == 1 < len(left):
            return best[
                0
            ], f"{criterion.words(items[best[0]])}, {criterion.only if len(known) == 1 else criterion.most}"
        left = best
    paths = {id_: items[id_]["path"] for id_ in left if isinstance(items[id_].get("path"), str)}
    if not paths:
        return left[0], "the first of them"
    shortest = min(map(len, paths.values()))
    few = sorted((path, id_) for id_, path in paths.items() if len(path) == shortest)
    return few[0][1], "the shortest path" if len(few) == 1 else "the first by its path"


def _pixels(fields: Fields) -> int | None:
    width, height = (_whole(fields.get(name)) for name in ("width", "height"))
    return width * height if width is not None and height is not None else None


def _is_without_loss(fields: Fields) -> bool | None:
    return True if fields.get("format") in _WITHOUT_LOSS else None


def _earliness(fields: Fields) -> list[int] | None:
    """Larger for an earlier date."""
    taken = fields.get("taken")
    return [-ord(sign) for sign in taken[:19]] if isinstance(taken, str) and _TAKEN.match(taken) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST else None


def _size_in_words(n_bytes: int) -> str:
    for unit, size in (("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"


class _Criterion(NamedTuple):
    """value: the larger the better, None where it is not known. most, only: why one with these words is the best."""

    value: Callable[[Fields], Any]
    words: Callable[[Fields], str]
    most: str
    only: str


_CRITERIA = (
    _Criterion(
        _pixels, lambda fields: f"{fields['width']} x {fields['height']}", "the largest", "the only one of known size"
    ),
    _Criterion(
        lambda fields: _whole(fields.get("bytes")), lambda fields: _size_in_words(fields["bytes"]),
        "the most bytes", "the only one of known size",
    ),
    _Criterion(_is_without_loss, lambda fields: str(fields["format"]), "without loss", "the only format without loss"),
    _Criterion(_earliness, lambda fields: f"taken {fields['taken'][:19]}", "the earliest", "the only one with a date"),
)  # fmt: skip


def _near(collection: Collection, ids: Sequence[Any]) -> list[list[Any]]:
    """Groups of some items whose fingerprints are nearly the same."""
    texts = [fields.get(FINGERPRINT) for fields in collection.metadata(ids)]
    known = np.array([row for row, text in enumerate(texts) if _is_fingerprint(text)], dtype=np.int64)
    near = np.arange(len(ids))
    if len(known):
        near[known] = known[_components("".join(str(texts[row]) for row in known))]
    return _grouped(ids, near)


def _is_fingerprint(text: Any) -> bool:
    return isinstance(text, str) and len(text) == FINGERPRINT_BITS // 4 and set(text) <= set("0123456789abcdef")


def _components(fingerprints: str) -> Ints:
    """(m,) for each of the fingerprints the first of those it is linked with."""
    every = np.frombuffer(bytes.fromhex(fingerprints), dtype=np.uint8).reshape(-1, FINGERPRINT_BITS // 8)
    codes, of_row = np.unique(every, axis=0, return_inverse=True)  # many equal ones would have too many pairs
    bits = 2 * np.unpackbits(codes, axis=1).astype(np.float32) - 1
    n, pairs = len(bits), []
    for rows in row_blocks(n, _ROWS_PER_BLOCK):
        agreement = bits[rows] @ bits[rows.start :].T  # bits that agree less bits that differ
        row, column = np.nonzero(agreement >= FINGERPRINT_BITS - 2 * NEAR_BITS)
        pairs.append(np.stack([row, column]) + rows.start)
    component = _linked(np.concatenate(pairs, axis=1), n)[of_row.reshape(-1)]
    return np.asarray(np.unique(component, return_index=True)[1][component])


def _linked(pairs: Ints, n: int) -> Ints:
    """(n,) the component of each of n things. pairs: (2, p) which are linked."""
    links = coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1])


def _joined(groups: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Groups that have a member in common as one."""
    ids = list(dict.fromkeys(chain.from_iterable(groups)))
    place = {id_: number for number, id_ in enumerate(ids)}
    pairs = [(place[group[0]], place[id_]) for group in groups for id_ in group]
    return _grouped(ids, _linked(np.array(pairs, dtype=np.int64).reshape(-1, 2).T, len(ids))) if ids else []


def _grouped(ids: Sequence[Any], group_of: Iterable[Any]) -> list[list[Any]]:
    members: dict[int, list[Any]] = {}
    for id_, group in zip(ids, np.asarray(group_of).tolist(), strict=True):
        members.setdefault(group, []).append(id_)
    return [group for group in members.values() if len(group) > 1]
