"""Who is right for each query: ground truth of every kind, brought into one form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradnet.arrays import Ints
from gradnet.errors import InputError
from gradnet.formats.truth import CLASSIC, REVISITED, GroundTruth


class Judgements(NamedTuple):
    """What counts for each query; whoever is in neither list is wrong.

    relevant: one array of distinct positions in the database per query; queries may share one.
    ignored: one array per query: removed from the ranking before anything is counted, right or not.
    n_items: size of the database; None where the ground truth does not say.
    rule: the same in words.
    """

    relevant: list[Ints]
    ignored: list[Ints]
    n_items: int | None
    rule: str


def classic(truth: GroundTruth) -> Judgements:
    """Oxford5k and Paris6k: good and ok images are right, junk is removed; the query's own image is right too."""
    _expect(truth, CLASSIC)
    rule = "good and ok are right, junk removed, the query's own image not removed"
    return Judgements(truth.lists["ok"], truth.lists["junk"], _n_items(truth), rule)


LEVELS = ("easy", "medium", "hard")


def revisited(truth: GroundTruth, level: str) -> Judgements:
    """ROxford and RParis at one of LEVELS: what is right at the other level is removed, and so is junk."""
    _expect(truth, REVISITED)
    easy, hard, junk = (truth.lists[name] for name in REVISITED)
    both = [np.concatenate(pair) for pair in zip(easy, hard, strict=True)]
    relevant, removed = {
        "easy": (easy, [np.concatenate(pair) for pair in zip(junk, hard, strict=True)]),
        "medium": (both, junk),
        "hard": (hard, [np.concatenate(pair) for pair in zip(junk, easy, strict=True)]),
    }[level]
    words = {
        "easy": "easy are right, hard and junk removed",
        "medium": "easy and hard are right, junk removed",
        "hard": "hard are right, easy and junk removed",
    }
    return Judgements(relevant, removed, _n_items(truth), words[level])


def landmarks(truth: GroundTruth) -> Judgements:
    """Every right image of a landmark in turn is a query and left out; the landmark's junk is removed.

    For parts of Oxford5k or Paris6k that hold few of the official queries. The queries are
    `landmark_queries`, in this order.
    """
    pairs = [(right, junk, query) for right, junk in _landmarks(truth) for query in right.tolist()]
    relevant = [right for right, _, _ in pairs]
    ignored = [np.append(junk, query) for _, junk, query in pairs]
    rule = "every right image of a landmark is a query and left out, the landmark's junk removed"
    return Judgements(relevant, ignored, _n_items(truth), rule)


def landmark_queries(truth: GroundTruth) -> Ints:
    """Positions of the right images, landmark by landmark as the ground truth has them, rising inside each."""
    return np.concatenate([right for right, _ in _landmarks(truth)])


def _landmarks(truth: GroundTruth) -> list[tuple[Ints, Ints]]:
    """What is right and what is junk for each landmark: queries that have the same images right are one."""
    _expect(truth, CLASSIC)
    pairs = zip(truth.lists["ok"], truth.lists["junk"], strict=True)
    by_images: dict[bytes, tuple[Ints, Ints]] = {}
    for right, junk in pairs:
        if len(right) > 1:  # a single image would have nothing left to find
            by_images.setdefault(right.tobytes(), (right, junk))
    if not by_images:
        raise InputError(
            "no landmark has two images that are right; expected at least one",
            "the landmark protocol needs a part of the set that holds several images of a landmark",
        )
    return list(by_images.values())


def same_label(labels: Ints, queries: Ints | None = None) -> Judgements:
    """Items of the query's label are right, the query itself is left out.

    labels: (n,). queries: positions of the items to ask for; None: every item, in order.
    """
    n = len(labels)
    asked = np.arange(n) if queries is None else queries
    outside = asked[(asked < 0) | (asked >= n)]
    if len(outside):
        raise InputError(f"a query asks for item {outside[0]} of {n}; expected positions from 0 to {n - 1}")
    members = _members(labels)
    relevant = [members[label] for label in labels[asked].tolist()]
    return Judgements(relevant, list(asked[:, None]), n, "same label is right")


def label_of_query(labels: Ints, query_labels: Ints) -> Judgements:
    """Items of the query's label are right; queries are not part of the database, so nobody is left out."""
    members = _members(labels)
    nobody = np.empty(0, dtype=np.int64)
    relevant = [members.get(label, nobody) for label in query_labels.tolist()]
    rule = "same label is right, the queries are not in the database"
    return Judgements(relevant, [nobody] * len(relevant), len(labels), rule)


def _members(labels: Ints) -> dict[int, Ints]:
    """Positions of the items of each label, rising."""
    order = np.argsort(labels, kind="stable")
    values, starts = np.unique(labels[order], return_index=True)
    return dict(zip(values.tolist(), np.split(order, starts[1:]), strict=True))


def _n_items(truth: GroundTruth) -> int | None:
    return len(truth.images) if truth.is_whole and truth.images is not None else None


def _expect(truth: GroundTruth, names: tuple[str, ...]) -> None:
    if set(truth.lists) != set(names):
        raise InputError(
            f"the ground truth has the lists {', '.join(truth.lists)}; expected {', '.join(names)}",
            "Oxford5k and Paris6k have ok and junk, the revisited sets easy, hard and junk",
        )
