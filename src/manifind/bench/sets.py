"""The sets that methods are compared on, by name: real, synthetic, grown by distractors, or toys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats, Ints
from manifind.bench.sources import list_task, read_tasks
from manifind.bench.task import LabelTruth, ListTruth, RetrievalTask
from manifind.datasets.catalogue import CATALOGUE, data_root
from manifind.datasets.landmarks import LandmarkFiles, landmark_files
from manifind.datasets.synthetic import make_pairs
from manifind.errors import DataError, InputError, MissingExtraError
from manifind.evaluation.measures import BULLSEYE_RULES
from manifind.io.ground_truth import CLASSIC, GroundTruth
from manifind.io.ground_truth import REVISITED as REVISITED_LISTS


def with_items(task: RetrievalTask, items: int) -> RetrievalTask:
    """The same task with so many items: without its last distractors, or with synthetic ones behind its own.

    Those are drawn, always the same, from the normal distribution that has the mean and the covariance of the set's
    descriptors: of no use for a score, but with neighbours among the real items, which costs depend on.
    """
    X, truth = task.descriptors, task.truth
    if not isinstance(truth, ListTruth) or items < len(X) - truth.distractors:
        raise InputError(f"{task.name} has {len(X):,} items; its distractors cannot make them {items:,}")
    grown = X[:items] if items <= len(X) else np.concatenate([X, _drawn_like(X, items - len(X))])
    distractors = truth.distractors + items - len(X)
    return task._replace(descriptors=grown, truth=truth._replace(distractors=distractors))


def _drawn_like(X: NDArray[Any], count: int) -> NDArray[Any]:
    mean, covariance = X.mean(axis=0, dtype=np.float64), np.cov(X, rowvar=False)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # (d, d), root @ root.T is the covariance
    normal = np.random.default_rng(0).standard_normal((count, X.shape[1]))
    return np.asarray(mean + normal @ root.T, dtype=X.dtype)


LABELS, LISTS, REVISITED = "labels", "lists", "revisited"


@dataclass(frozen=True)
class LabelSource:
    """A labelled set of the catalogue. dimension: of its descriptors; None for any. window: of bullseye."""

    name: str
    dimension: int | None
    window: int | None = None


@dataclass(frozen=True)
class ListSource:
    """Vectors and published lists in a folder of the data folder. vectors, truth: names of files, without suffix."""

    folder: str
    vectors: str
    truth: str
    protocol: str = "official"


@dataclass(frozen=True)
class FileSource:
    """A labelled file, its path seen from the data folder. window: of bullseye."""

    path: str
    window: int | None = None


@dataclass(frozen=True)
class PairSource:
    """Synthetic pairs, of which a graph has nothing to learn."""


@dataclass(frozen=True)
class GrownSource:
    """Another set with so many items: with synthetic distractors, or without the last of its own."""

    of: str
    items: int


Source: TypeAlias = LabelSource | ListSource | FileSource | PairSource | GrownSource


@dataclass(frozen=True)
class BenchmarkSet:
    """name: as in tables. measure: the score it is compared by. n_neighbors: of the paper's graph on it."""

    name: str
    source: Source
    measure: str
    n_neighbors: int | None = None

    @property
    def form(self) -> str:
        """What its ground truth is: LABELS, LISTS or REVISITED."""
        if isinstance(self.source, GrownSource):
            return SETS[self.source.of].form
        if not isinstance(self.source, ListSource):
            return LABELS
        return REVISITED if self.source.truth.startswith("gnd_r") else LISTS

    @property
    def window(self) -> int | None:
        """Of the bullseye score, where the set has one."""
        return self.source.window if isinstance(self.source, LabelSource | FileSource) else None

    @property
    def measures(self) -> tuple[str, ...]:
        """Every score that is kept of it: bullseye under all its rules, the three levels of revisited lists."""
        if self.window is not None:
            return tuple(f"bullseye@{self.window} {rule}" for rule in BULLSEYE_RULES)
        if self.form == REVISITED:
            return tuple(f"mAP {level}" for level in ("easy", "medium", "hard"))
        return (self.measure,)

    @property
    def obtain(self) -> str:
        """What somebody must get who does not have it."""
        source = self.source
        if isinstance(source, GrownSource):
            return SETS[source.of].obtain
        if isinstance(source, LabelSource):
            return f"`manifind data fetch {source.name}`, or an .npz with images and labels in the folder {source.name}"
        if not isinstance(source, ListSource):
            return "it needs no files" if isinstance(source, PairSource) else f"{source.path} in the data folder"
        files = f"{source.vectors} (.mat or .npz) and {source.truth} (.json, .pkl or .mat)"
        fetch = f"; `manifind data fetch {source.folder}` tries" if self._is_published else ""
        return f"{files} in the folder {source.folder} of the data folder{fetch}"

    @property
    def _is_published(self) -> bool:
        source = self.source
        if not isinstance(source, ListSource) or source.folder not in CATALOGUE:
            return False
        return any(Path(file.path).stem == source.vectors for file in CATALOGUE[source.folder].files)


def _bullseye(window: int) -> str:
    return f"bullseye@{window} counted"


def _landmarks(name: str, folder: str, vectors: str, n_neighbors: int) -> BenchmarkSet:
    source = ListSource(folder, vectors, f"gnd_{folder}")
    measure = "mAP medium" if folder.startswith("r") else "mAP"
    return BenchmarkSet(name, source, measure, n_neighbors)


_K, _K_PARIS = 15, 60  # the paper's k, and its k on Paris
_CLASSIC = {"Oxford5k": _K, "Oxford105k": _K, "Paris6k": _K_PARIS, "Paris106k": _K_PARIS}
_NETWORKS = {"VGG": "siamac", "ResNet": "resnet"}
CAFFENET, RESNET_105K = "Oxford5k CaffeNet", "Oxford105k ResNet"
GROWN_TO = (10_000, 20_000, 50_000, 100_000)

_DECLARED = (
    BenchmarkSet("ORL", LabelSource("orl", 10_304, 15), _bullseye(15)),
    BenchmarkSet("ORL aligned", LabelSource("orl", 1_024, 15), _bullseye(15)),
    *(
        _landmarks(f"{name} {network}", name.lower(), f"{name.lower()}_{file}", k)
        for network, file in _NETWORKS.items()
        for name, k in _CLASSIC.items()
    ),
    _landmarks("ROxford ResNet", "roxford5k", "roxford5k_resnet_rsfm120k_gem", _K),
    _landmarks("RParis ResNet", "rparis6k", "rparis6k_resnet_rsfm120k_gem", _K_PARIS),
    BenchmarkSet("MPEG-7 masks", LabelSource("mpeg7", 1_024, 40), _bullseye(40)),
    BenchmarkSet("MPEG-7 EfficientNet", LabelSource("mpeg7", 1_280, 40), _bullseye(40)),
    BenchmarkSet("COIL-20", LabelSource("coil20", None), "mAP"),
    BenchmarkSet("digits", LabelSource("digits", None), "mAP"),
    BenchmarkSet("pairs", PairSource(), "mAP"),
    BenchmarkSet(CAFFENET, ListSource("oxford5k", "caffenet_fc7_pca128", "gnd_oxford5k"), "mAP"),
    BenchmarkSet("Paris subset", ListSource("paris1274", "resnet34", "gnd_paris6k", "landmarks"), "mAP", _K_PARIS),
    *(
        BenchmarkSet(f"{name}, {items:,} items", GrownSource(name, items), "mAP")
        for name in (CAFFENET, RESNET_105K)
        for items in GROWN_TO
    ),
)

SETS: dict[str, BenchmarkSet] = {one.name: one for one in _DECLARED}
"""By the name that tables show and `--on` takes."""


def find_set(name: str) -> BenchmarkSet:
    """The set of that name, whatever the case; an unknown one is refused with those that there are."""
    by_lower = {known.lower(): one for known, one in SETS.items()}
    if name.lower() not in by_lower:
        raise InputError(f"on = {name!r}; expected one of {', '.join(map(repr, SETS))}", "choose one with --on")
    return by_lower[name.lower()]


def read_set(dataset: BenchmarkSet, folder: Path | None = None) -> RetrievalTask:
    """The task that a set puts; DataError, which says what to obtain, where its files are not here."""
    source = dataset.source
    if isinstance(source, GrownSource):
        task = read_set(SETS[source.of], folder)
        return with_items(task, source.items)._replace(name=dataset.name)
    if isinstance(source, PairSource):
        pairs = make_pairs()
        return RetrievalTask(dataset.name, pairs.descriptors, None, None, LabelTruth(pairs.labels, None))
    try:
        if isinstance(source, FileSource):
            return _read_file(dataset, source, folder)
        if isinstance(source, LabelSource):
            return _read_labels(dataset, source, folder)
        pair = _find_pair(source, folder)
    except MissingExtraError as error:
        raise DataError(f"{dataset.name}: {error.problem}", error.hint) from error
    if pair is None:
        raise _absent(dataset)
    return list_task(pair, source.protocol, dataset.name)


def _read_labels(dataset: BenchmarkSet, source: LabelSource, folder: Path | None) -> RetrievalTask:
    try:
        tasks = read_tasks(source.name, folder, source.window)
    except DataError as error:
        raise _absent(dataset) from error
    for task in tasks:
        if source.dimension in (None, task.descriptors.shape[1]):
            return task._replace(name=dataset.name)
    raise _absent(dataset)


def _read_file(dataset: BenchmarkSet, source: FileSource, folder: Path | None) -> RetrievalTask:
    path = data_root(folder) / source.path
    if not path.exists():
        raise _absent(dataset)
    tasks = read_tasks(str(path), window=source.window)
    if len(tasks) != 1:
        raise InputError(f"{path} holds {len(tasks)} arrays, {', '.join(task.name for task in tasks)}; expected one")
    return tasks[0]._replace(name=dataset.name)


def _find_pair(source: ListSource, folder: Path | None) -> LandmarkFiles | None:
    pairs = landmark_files(data_root(folder) / source.folder)
    return next((one for one in pairs if (one.vectors.stem, one.truth.stem) == (source.vectors, source.truth)), None)


def _absent(dataset: BenchmarkSet) -> DataError:
    return DataError(f"{dataset.name} is not here", f"obtain {dataset.obtain}")


N_CLASSES, PER_CLASS, DIMENSION = 12, 11, 16


def arcs(seed: int = 0) -> tuple[Floats, Ints]:
    """Descriptors, (132, 16), and classes: each class is an arc in a plane of its own, a little blurred."""
    rng = np.random.default_rng(seed)
    angles = np.linspace(0, 2.0, PER_CLASS)
    arc = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    planes = [np.linalg.qr(rng.normal(size=(DIMENSION, 2)))[0].T for _ in range(N_CLASSES)]
    X = np.concatenate([arc @ plane for plane in planes])
    X += 0.02 * rng.normal(size=X.shape)
    return X.astype(np.float32), np.repeat(np.arange(N_CLASSES), PER_CLASS)


def toy_task(dataset: BenchmarkSet) -> RetrievalTask:
    """A task of the form of the set: every item asked, or the last item of each class, which then is a query."""
    X, labels = arcs()
    name = f"toy for {dataset.name}"
    if dataset.form == LABELS:
        return RetrievalTask(name, X, None, None, LabelTruth(labels, dataset.window))
    is_query = np.arange(len(X)) % PER_CLASS == PER_CLASS // 2
    items, classes = X[~is_query], labels[~is_query]
    lists = _revisited(classes) if dataset.form == REVISITED else _classic(classes)
    names = tuple(f"i{number:03}" for number in range(len(items)))
    truth = GroundTruth(lists, names, tuple(f"q{number:02}" for number in range(N_CLASSES)))
    return RetrievalTask(name, items, X[is_query], None, ListTruth(truth, "official", 0))


def _classic(classes: Ints) -> dict[str, list[Ints]]:
    members = [np.flatnonzero(classes == one) for one in range(N_CLASSES)]
    return dict(zip(CLASSIC, ([one[1:] for one in members], [one[:1] for one in members]), strict=True))


def _revisited(classes: Ints) -> dict[str, list[Ints]]:
    members = [np.flatnonzero(classes == one) for one in range(N_CLASSES)]
    middle = slice(3, 7)  # next to the query
    parts = {
        "easy": [one[middle] for one in members],
        "hard": [np.delete(one, middle)[1:] for one in members],
        "junk": [one[:1] for one in members],
    }
    return {name: parts[name] for name in REVISITED_LISTS}
