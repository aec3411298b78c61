"""Landmark sets: descriptors joined with published lists of queries and relevant images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Ints
from manifind.errors import InputError
from manifind.io.checks import Vectors
from manifind.io.ground_truth import GroundTruth, bare_name, read_ground_truth
from manifind.io.vectors import SUFFIXES, read_vectors
from manifind.text import count


class Landmarks(NamedTuple):
    """A database, queries, and lists of exactly these."""

    descriptors: np.ndarray[Any, Any]  # (n, d)
    queries: np.ndarray[Any, Any]  # (m, d), row i for the i-th query of `truth`; none where no query has a vector
    truth: GroundTruth  # the lists of these queries, as positions in `descriptors`
    every_list: GroundTruth  # of all published queries, for the landmark protocol, which asks with images
    distractors: int  # rows at the end of `descriptors` that the ground truth does not know
    missing: tuple[int, int]  # how many images and queries of the published lists have no vector


def join(vectors: Vectors, truth: GroundTruth) -> Landmarks:
    """The rows that the lists name, in their order, and the lists cut to the rows that are there.

    Vectors with ids are matched by name, without folder and picture suffix: images that have no row leave
    the lists, rows that the lists do not know follow as distractors, and a query without vectors of its own
    is its whole image. Without ids, row i is the i-th image.
    """
    images, queries = _image_rows(vectors, truth), _query_rows(vectors, truth)
    present, answerable = np.flatnonzero(images >= 0), np.flatnonzero(queries >= 0)
    known = images[present] if vectors.queries is not None else np.append(images[present], queries[answerable])
    extra = np.setdiff1d(np.arange(len(vectors.rows)), known)
    position = np.full(len(images), -1)  # of each image among those that are present
    position[present] = np.arange(len(present))
    moved = {name: [position[one] for one in lists] for name, lists in truth.lists.items()}
    lists = {name: [np.sort(one[one >= 0]) for one in moved[name]] for name in moved}
    left = None if truth.images is None else tuple(truth.images[image] for image in present)
    every_list = GroundTruth(lists, left, truth.queries, is_whole=left is not None)
    answered = {name: [lists[name][query] for query in answerable] for name in lists}
    names = None if truth.queries is None else tuple(truth.queries[query] for query in answerable)
    return Landmarks(
        vectors.rows[np.append(images[present], extra)],
        (vectors.rows if vectors.queries is None else vectors.queries)[queries[answerable]],
        every_list._replace(lists=answered, queries=names),
        every_list,
        len(extra),
        (len(images) - len(present), len(queries) - len(answerable)),
    )


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
        problem = "the vectors have no names, and the text files do not say in which order the images stand"
        raise InputError(problem, "save the vectors as .npz with the array names beside them")
    highest = max((int(one.max(initial=-1)) for lists in truth.lists.values() for one in lists), default=-1)
    n_images = highest + 1 if truth.images is None else len(truth.images)
    if n < n_images:
        problem = f"{count(n, 'vector')} without names for {count(n_images, 'image')}; expected a vector for each"
        raise InputError(problem, "save the vectors as .npz with the array names beside them: then some may be missing")
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
        problem = "neither the vectors nor the ground truth say which vectors are the queries"
        raise InputError(problem, "give the vectors as .mat or .npz with Q, or names on both sides")
    return _looked_up(truth.queries, names)


def _looked_up(names: Sequence[str], among: Sequence[str | int]) -> Ints:
    rows = {bare_name(str(name)): row for row, name in enumerate(among)}
    return np.array([rows.get(bare_name(name), -1) for name in names], dtype=np.int64)


_TRUTH_SUFFIXES = (".json", ".pkl", ".mat")  # of one ground truth in several forms, the first is read
_TRUTH, _QUERY_FILES = "gnd_", "*_query.txt"


class LandmarkFiles(NamedTuple):
    """Vectors and the ground truth that goes with them."""

    vectors: Path  # a file that `read_vectors` takes
    truth: Path  # what `read_ground_truth` takes


def landmark_files(folder: Path) -> list[LandmarkFiles]:
    """Every pair of vectors and ground truth in the folder; empty where one of the two is missing.

    Ground truth is a file called `gnd_*`, or a folder with Oxford's text files.
    """
    vectors = [file for file in _files(folder, SUFFIXES) if not file.name.startswith(_TRUTH)]
    truths = truth_files(folder)
    return [LandmarkFiles(file, truth) for file in vectors for truth in truths]


def read_pair(files: LandmarkFiles) -> Landmarks:
    """Vectors and ground truth, read and brought together."""
    return join(read_vectors(files.vectors), read_ground_truth(files.truth))


def truth_files(folder: Path) -> list[Path]:
    """Every ground truth in the folder, each in one form."""
    forms: dict[str, Path] = {}
    for suffix in _TRUTH_SUFFIXES:
        for file in _files(folder, (suffix,)):
            if file.name.startswith(_TRUTH):
                forms.setdefault(file.stem, file)
    texts = sorted({file.parent for file in folder.glob(f"*/{_QUERY_FILES}")})
    if any(folder.glob(_QUERY_FILES)):
        texts.append(folder)
    return [*forms.values(), *texts]


def _files(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    visible = (file for file in folder.glob("*") if file.is_file() and not file.name.startswith("."))
    return sorted(file for file in visible if file.suffix.lower() in suffixes)
