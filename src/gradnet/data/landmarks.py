"""Landmark sets: descriptors and published lists brought together, by name where both have names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradnet.arrays import Ints
from gradnet.errors import InputError
from gradnet.formats.checks import Vectors
from gradnet.formats.truth import GroundTruth, bare_name
from gradnet.wording import count


class Landmarks(NamedTuple):
    """A database, queries, and lists that speak of exactly these.

    descriptors: (n, d). queries: (m, d), row i for the i-th query of `truth`; m is 0 where no official query
        has a vector. truth: the lists of these queries, as positions in `descriptors`.
    every_list: the lists of all published queries, for the landmark protocol, which asks with images.
    distractors: rows at the end of `descriptors` that the ground truth does not know.
    missing: how many images and queries of the published lists have no vector.
    """

    descriptors: np.ndarray[Any, Any]
    queries: np.ndarray[Any, Any]
    truth: GroundTruth
    every_list: GroundTruth
    distractors: int
    missing: tuple[int, int]


def join(vectors: Vectors, truth: GroundTruth) -> Landmarks:
    """The rows that the lists speak of, in their order, and the lists cut to the rows that are there.

    Vectors with ids are matched by name, without folder and picture suffix: images that have no row leave
    the lists, rows that the lists do not know follow as distractors, and a query without vectors of its own
    is its whole image. Without ids, row i is the i-th image.
    """
    images = _image_rows(vectors, truth)
    queries = _query_rows(vectors, truth)
    present, asked = np.flatnonzero(images >= 0), np.flatnonzero(queries >= 0)
    known = images[present] if vectors.queries is not None else np.append(images[present], queries[asked])
    extra = np.setdiff1d(np.arange(len(vectors.rows)), known)
    every_list = _cut(truth, present, len(images))
    return Landmarks(
        vectors.rows[np.append(images[present], extra)],
        (vectors.rows if vectors.queries is None else vectors.queries)[queries[asked]],
        _chosen(every_list, asked),
        every_list,
        len(extra),
        (len(images) - len(present), len(queries) - len(asked)),
    )


def _cut(truth: GroundTruth, present: Ints, n_images: int) -> GroundTruth:
    """The same lists over the present images alone, numbered anew."""
    position = np.full(n_images, -1)
    position[present] = np.arange(len(present))
    lists = {name: [_moved(one, position) for one in lists] for name, lists in truth.lists.items()}
    images = None if truth.images is None else tuple(truth.images[image] for image in present)
    return GroundTruth(lists, images, truth.queries, is_whole=images is not None)


def _chosen(truth: GroundTruth, asked: Ints) -> GroundTruth:
    lists = {name: [lists[query] for query in asked] for name, lists in truth.lists.items()}
    queries = None if truth.queries is None else tuple(truth.queries[query] for query in asked)
    return truth._replace(lists=lists, queries=queries)


def _moved(images: Ints, position: Ints) -> Ints:
    moved = position[images]
    return np.sort(moved[moved >= 0])


def _image_rows(vectors: Vectors, truth: GroundTruth) -> Ints:
    """(images,) the row of each image, -1 where there is none."""
    n = len(vectors.rows)
    if vectors.ids is not None and truth.images is not None:
        rows = _looked_up(truth.images, vectors.ids)
        if (rows < 0).all():
            raise InputError(
                f"none of the {count(len(truth.images), 'image')} of the ground truth, such as {truth.images[0]!r}, "
                f"is among the {n} names of the vectors, such as {vectors.ids[0]!r}",
                "use the ground truth of this set, and the names that it has",
            )
        return rows
    if not truth.is_whole:
        raise InputError(
            "the vectors have no names, and the text files do not say in which order the images stand",
            "save the vectors as .npz with the array names beside them",
        )
    highest = max((int(one.max(initial=-1)) for lists in truth.lists.values() for one in lists), default=-1)
    n_images = highest + 1 if truth.images is None else len(truth.images)
    if n < n_images:
        raise InputError(
            f"{count(n, 'vector')} without names for {count(n_images, 'image')}; expected a vector for each",
            "save the vectors as .npz with the array names beside them: then some may be missing",
        )
    return np.arange(n if truth.images is None else n_images)


def _query_rows(vectors: Vectors, truth: GroundTruth) -> Ints:
    """(queries,) the row of each query in its own vectors, or else of its whole image; -1 where there is none."""
    if vectors.queries is not None:
        if len(vectors.queries) != truth.n_queries:
            raise InputError(
                f"{count(len(vectors.queries), 'query vector')} for {count(truth.n_queries, 'query')} "
                "of the ground truth",
                "use the ground truth of this set",
            )
        return np.arange(truth.n_queries)
    names = vectors.ids if vectors.ids is not None else truth.images
    if truth.queries is None or names is None:
        raise InputError(
            "neither the vectors nor the ground truth say which vectors are the queries",
            "give the vectors as .mat or .npz with Q, or names on both sides",
        )
    return _looked_up(truth.queries, names)


def _looked_up(names: Sequence[str], among: Sequence[str | int]) -> Ints:
    rows = {bare_name(str(name)): row for row, name in enumerate(among)}
    return np.array([rows.get(bare_name(name), -1) for name in names], dtype=np.int64)
