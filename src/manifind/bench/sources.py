"""From a data set's name or path to retrieval tasks, and what plain k-NN scores on it."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Ints
from manifind.baselines.query_expansion import KNN
from manifind.bench.task import LabelTruth, ListTruth, RetrievalTask
from manifind.collection.collection import Collection, load
from manifind.collection.database import is_collection
from manifind.collection.version import original_descriptors
from manifind.datasets.catalogue import CATALOGUE, data_root, find_set
from manifind.datasets.check import check_files
from manifind.datasets.labelled import LABELLED_SETS, Labelled, load_labelled_set, read_labelled
from manifind.datasets.landmarks import LandmarkFiles, Landmarks, join, landmark_files, read_pair, truth_files
from manifind.errors import DataError, InputError
from manifind.evaluation.measures import Score
from manifind.evaluation.relevance import landmark_queries
from manifind.images.files import shown_folders
from manifind.io.checks import Vectors
from manifind.io.ground_truth import CLASSIC, read_ground_truth
from manifind.progress import Listener, ignore

MOST_QUERIES = 2000
"""With labels every item is a query; of larger sets a random part of this size is asked."""


_WORDS = {"none": "raw", "unit": "unit rows", "center": "centred"}


class Baseline(NamedTuple):
    """preprocess: what was done to the descriptors. scores: by the protocols of the set."""

    preprocess: str
    scores: list[Score]


def label_baselines(data: Labelled, window: int | None = None) -> Iterator[Baseline]:
    """k-NN on raw, unit and centred descriptors: mAP, and the bullseye score under its three rules.

    Nothing where no two items share a label.
    """
    if np.bincount(data.labels).max() >= 2:
        task = label_task(data.name, data.descriptors, data.labels, window)
        yield from (_baseline(task, preprocess) for preprocess in _WORDS)


def landmark_baselines(data: Landmarks) -> Iterator[Baseline]:
    """k-NN by cosine: the official protocol where official queries are there, then the landmark protocol."""
    if len(data.queries):
        yield _baseline(_official_task(data, ""), "unit")
    if set(data.every_list.lists) == set(CLASSIC):
        yield _baseline(_landmark_task(data, ""), "unit")


def _baseline(task: RetrievalTask, preprocess: str) -> Baseline:
    model = KNN(preprocess=preprocess).fit(task.descriptors)
    ids = model.search(task.query_rows, k=len(task.descriptors)).ids
    return Baseline(_WORDS[preprocess], task.truth.scores(ids, task.query_items, "not stated"))


_Makers: TypeAlias = dict[str, Callable[[str], RetrievalTask]]
"""By name: what makes the task of that name, and refuses data that has none."""


def read_tasks(
    source: str,
    folder: Path | None = None,
    window: int | None = None,
    protocol: str | None = None,
    only: str | None = None,
    listener: Listener = ignore,
    truth: Path | None = None,
) -> list[RetrievalTask]:
    """One task for each array or each pair of vectors and ground truth, named after it and the source.

    source: a name of the catalogue, whose folder is looked for in `folder`, or a path. window: of the
    bullseye score, with labels. protocol: of published lists; None: "official" where official queries are there.
    only: the task of this name, or those with this text in their name. truth: for a collection, its lists; None
    looks for them beside it, and beside the folder it was made from.
    """
    if truth is not None and not is_collection(Path(source)):
        raise InputError(
            f"--truth is for a collection, and {source} is none", "put ground truth into the folder of the vectors"
        )
    stem = Path(source).stem
    makers = {
        name if stem in name else f"{stem}: {name}": make
        for name, make in _makers(source, folder, window, protocol, listener, truth).items()
    }
    if only is None or only in makers:
        return [make(name) for name, make in makers.items() if only in (None, name)]
    chosen = [name for name in makers if only.lower() in name.lower()]
    if not chosen:
        raise InputError(
            f"nothing here is called {only!r}; expected one of {', '.join(map(repr, makers))}",
            "--only takes a name or a part of one",
        )
    return [makers[name](name) for name in chosen]


def _makers(
    source: str, folder: Path | None, window: int | None, protocol: str | None, listener: Listener, truth: Path | None
) -> _Makers:
    if is_collection(Path(source)):
        return _of_collection(load(source), truth, window, protocol)
    root = None
    if not is_path(source):
        dataset = find_set(source)
        root = data_root(folder) if dataset.files else Path()
        if not check_files(dataset, root, listener).is_usable:
            raise DataError(
                f"{source} is not in {root / source}, or not with the bytes that it should have",
                f"`manifind data fetch {source}` gets it, `manifind data check {source}` tells what is wrong",
            )
        window = window or dataset.window
    sets, pairs = read_source(source, root, listener)
    return _of_lists(pairs, window, protocol) if sets is None else _of_labels(sets, window, protocol)


def is_path(source: str) -> bool:
    """Whether data is meant by its path; a name of the catalogue comes before a folder of that name."""
    path = Path(source)
    return source not in CATALOGUE and (path.exists() or len(path.parts) > 1 or path.suffix != "")


def read_source(
    source: str, root: Path | None, listener: Listener
) -> tuple[list[Labelled] | None, list[LandmarkFiles]]:
    """The labelled sets, or None and the pairs of vectors and lists. root: of the catalogue's sets; None for a path."""
    folder = Path(source) if root is None else root / source
    if root is not None and source in LABELLED_SETS:
        return load_labelled_set(source, root, listener), []
    if root is not None or (folder.is_dir() and landmark_files(folder)):
        return None, landmark_files(folder)
    return read_labelled(folder, listener), []


def _of_collection(collection: Collection, truth: Path | None, window: int | None, protocol: str | None) -> _Makers:
    """The descriptors of a collection with each ground truth for it, matched by ids."""
    folders = shown_folders(collection.manifest)  # not what the collection says, which may come from anywhere
    beside = [collection.path.absolute().parent, *(folder.parent for folder in folders)]
    truths = [truth] if truth else next(filter(None, map(truth_files, beside)), [])
    if not truths:
        raise InputError(
            f"no ground truth lies beside {collection.path}: no file gnd_* in {' or '.join(map(str, beside))}",
            "put one there, or name it with --truth",
        )
    vectors = Vectors(original_descriptors(collection.version), collection.ids.tolist())

    def read(files: LandmarkFiles) -> Landmarks:
        return join(vectors, read_ground_truth(files.truth))

    return _of_lists([LandmarkFiles(collection.path, one) for one in truths], window, protocol, read)


def _of_labels(sets: Iterable[Labelled], window: int | None, protocol: str | None) -> _Makers:
    if protocol is not None:
        raise InputError("--protocol is for published lists, and this data has labels", "leave it out")
    return {one.name: partial(label_task, X=one.descriptors, labels=one.labels, window=window) for one in sets}


def label_task(name: str, X: NDArray[Any], labels: Ints, window: int | None) -> RetrievalTask:
    """Items that share a label should find each other; of many items a random part is asked, always the same."""
    if np.bincount(labels).max() < 2:
        raise InputError(
            f"no two items of {name} share a label, so there is nothing to find",
            "give the same label to items that belong together",
        )
    n, query_items = len(labels), None
    if n > MOST_QUERIES:
        query_items = np.sort(np.random.default_rng(0).choice(n, MOST_QUERIES, replace=False))
    return RetrievalTask(name, X, None, query_items, LabelTruth(labels, window))


def _of_lists(
    pairs: Iterable[LandmarkFiles],
    window: int | None,
    protocol: str | None,
    read: Callable[[LandmarkFiles], Landmarks] = read_pair,
) -> _Makers:
    if window is not None:
        raise InputError("--window is for labels, and this ground truth has lists", "leave it out")
    makers: _Makers = {
        f"{files.vectors.name} with {files.truth.name}": partial(list_task, files, protocol, read=read)
        for files in pairs
    }
    if not makers:
        raise InputError(
            "this set has no vectors with ground truth, so there is nothing to compare",
            "`manifind data list` tells what each set holds",
        )
    return makers


def list_task(
    files: LandmarkFiles, protocol: str | None, name: str, read: Callable[[LandmarkFiles], Landmarks] = read_pair
) -> RetrievalTask:
    """The task of vectors and ground truth, under the name; both are read now."""
    data = read(files)
    has_official = len(data.queries) > 0
    if protocol == "landmarks" or (protocol is None and not has_official):
        return _landmark_task(data, name)
    if not has_official:
        raise InputError(f"{name}: no official query has a vector", "ask with --protocol landmarks")
    return _official_task(data, name)


def _official_task(data: Landmarks, name: str) -> RetrievalTask:
    truth = ListTruth(data.truth, "official", data.distractors)
    return RetrievalTask(name, data.descriptors, data.queries, None, truth)


def _landmark_task(data: Landmarks, name: str) -> RetrievalTask:
    if set(data.every_list.lists) != set(CLASSIC):
        raise InputError(
            f"{name}: the landmark protocol is for ok and junk lists, and these are revisited ones",
            "choose the other ground truth with --only, or --protocol official",
        )
    truth = ListTruth(data.every_list, "landmarks", data.distractors)
    return RetrievalTask(name, data.descriptors, None, landmark_queries(data.every_list), truth)
