"""Groups of the learned space, and what their members have in common that others have not."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Floats, Ints, row_blocks
from manifind.collection.metadata import OWN_FIELDS

MOST = 40
"""Groups at most: more would be no overview."""

_SAMPLE = 10_000  # items from which the middles are learned; the others join the nearest
_STARTS = 3  # of which the best is taken
_SEED = 0
_ROWS_PER_BLOCK = 8192
_TINY = 4  # groups with less than this share of the mean are given up, and their items join others
_LEAST_SHARE = 0.5  # of a group, that has what gives its name
_RARER = 3.0  # times, elsewhere
_FEWEST = 2  # items that have it
_LONGEST_NAME = 60
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class Clusters(NamedTuple):
    """numbers: (n,) of the group of each item, from 1, the largest first. distances: (n,) to the middle of it."""

    numbers: Ints
    distances: Floats


class ClusterName(NamedTuple):
    """What a group is called, and why; no reason where its members have nothing in common that others have not."""

    name: str
    reason: str


def find_clusters(features: Floats) -> Clusters:
    """Part items by k-means on their features, (n, D), into at most forty groups; the same always."""
    n = len(features)
    if not n:
        return Clusters(np.empty(0, np.int64), np.empty(0, np.float32))
    middles = _middles(features, min(MOST, max(1, round(0.7 * n**0.5))))
    sizes = np.bincount(_nearest(features, middles), minlength=len(middles))
    middles = middles[sizes * len(middles) * _TINY > n]
    kept, numbers, sizes = np.unique(_nearest(features, middles), return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    numbers = rank[numbers.reshape(-1)]
    distances = np.empty(n, np.float32)
    for number in range(len(kept)):
        members = np.asarray(features[numbers == number])
        distances[numbers == number] = np.linalg.norm(members - members.mean(axis=0), axis=1)
    return Clusters(numbers + 1, distances)


def _middles(features: Floats, k: int) -> Floats:
    """(k, D) where groups are."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    some = np.sort(np.random.default_rng(_SEED).permutation(len(features))[:_SAMPLE])
    sample = np.asarray(features[some], dtype=np.float32)
    k = min(k, len(np.unique(sample, axis=0)))
    with threadpool_limits(1):  # several threads add up in an order of their own, and equal calls would differ
        found = KMeans(k, n_init=_STARTS, random_state=_SEED).fit(sample)
    return np.asarray(found.cluster_centers_, dtype=np.float32)


def _nearest(features: Floats, middles: Floats) -> Ints:
    """(n,) the number of the nearest middle of each item."""
    numbers, lengths = np.empty(len(features), np.int64), (middles**2).sum(axis=1)
    for rows in row_blocks(len(features), _ROWS_PER_BLOCK):
        numbers[rows] = (lengths - 2 * np.asarray(features[rows]) @ middles.T).argmin(axis=1)
    return numbers


def name_clusters(numbers: Ints, items: Sequence[Mapping[str, Any]]) -> list[ClusterName]:
    """The names of the groups 1, 2, ... from the metadata of the items.

    A name is a value that at least half of the group have, and others three times as rarely: of a text, of a list, a
    folder of the path, or the year of `taken`. No two groups have the same.
    """
    inside: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    for number, fields in zip(numbers.tolist(), items, strict=True):
        inside[number].update(set(_values(fields)))
    overall: Counter[tuple[str, str]] = Counter()
    for counts in inside.values():
        overall.update(counts)
    sizes, taken = np.bincount(numbers, minlength=1).tolist(), Counter[str]()
    names = list[ClusterName]()
    for number in range(1, len(sizes)):
        name, reason = _name(inside[number], sizes[number], overall, len(items)) or (f"Group {number}", "")
        taken[name] += 1
        names.append(ClusterName(name if taken[name] == 1 else f"{name} ({taken[name]})", reason))
    return names


def _name(
    inside: Counter[tuple[str, str]], size: int, overall: Counter[tuple[str, str]], n: int
) -> tuple[str, str] | None:
    """What is most frequent in a group compared with elsewhere, and that in words. size: of the group; n: of all."""
    best: tuple[float, str, str] = 0.0, "", ""
    reason = ""
    for (field, value), count in inside.items():
        share, elsewhere = count / size, (overall[field, value] - count) / max(n - size, 1)
        is_telling = count >= min(_FEWEST, size) and share >= _LEAST_SHARE and elsewhere * _RARER <= share and n > size
        better = (share - elsewhere, field, value)
        if is_telling and (better[0] > best[0] or (better[0] == best[0] and better[1:] < best[1:])):
            best, reason = better, f"{field} = {value}, {_percent(share)} here, {_percent(elsewhere)} elsewhere"
    return (best[2], reason) if reason else None


def _percent(share: float) -> str:
    """A share in words that never say all or none where it is not so."""
    rounded = round(100 * share)
    if rounded == 0 and share:
        return "under 1 %"
    return "over 99 %" if rounded == 100 and share < 1 else f"{rounded} %"


def _values(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Field and value of whatever may give a group its name."""
    for field, value in fields.items():
        if field in OWN_FIELDS:
            continue
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, str) and 0 < len(one.strip()) <= _LONGEST_NAME:
                yield field, one.strip()
    taken, path = fields.get("taken"), fields.get("path")
    if isinstance(taken, str) and _DATE.match(taken):
        yield "year", taken[:4]
    if isinstance(path, str):
        for folder in _folders(path.rpartition("/")[0]):
            yield "folder", folder


@lru_cache(_SAMPLE)
def _folders(folder: str) -> tuple[str, ...]:
    """A folder, and those that it is in."""
    names = [name for name in folder.split("/") if name]
    found = ("/".join(names[:depth]) for depth in range(len(names), 0, -1))
    return tuple(one for one in found if len(one) <= _LONGEST_NAME and one.strip())
