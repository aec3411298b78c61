"""The sets that methods are compared on, by name: real, synthetic, grown by distractors, or toys."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats, Ints
from manifind.bench.sources import list_task, read_tasks
from manifind.bench.task import LabelTruth, ListTruth, RetrievalTask
from manifind.datasets.catalogue import CATALOGUE, data_root
from manifind.datasets.landmarks import LandmarkFiles, join, landmark_files
from manifind.datasets.synthetic import make_pairs
from manifind.errors import DataError, InputError, MissingExtraError
from manifind.evaluation.measures import BULLSEYE_RULES
from manifind.io.ground_truth import CLASSIC, GroundTruth, read_ground_truth
from manifind.io.ground_truth import REVISITED as REVISITED_LISTS
from manifind.io.vectors import read_vectors


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
    drawn = np.random.default_rng(0).multivariate_normal(mean, covariance, count, check_valid="ignore", method="eigh")
    return drawn.astype(X.dtype)


LABELS, LISTS, REVISITED = "labels", "lists", "revisited"
_Maker: TypeAlias = Callable[[], RetrievalTask]


@dataclass(frozen=True)
class BenchmarkSet:
    """A set that methods are compared on."""

    name: str  # as in tables
    measure: str  # the score it is compared by
    form: str  # of its ground truth: LABELS, LISTS or REVISITED
    obtain: str  # what somebody must get who does not have it
    find: Callable[[Path | None], _Maker | None]  # in the folder of the data sets; None where its files are not there
    window: int | None = None  # of bullseye
    n_neighbors: int | None = None  # of the paper's graph on it

    @property
    def measures(self) -> tuple[str, ...]:
        """Every score that is kept of it: bullseye under all its rules, the three levels of revisited lists."""
        if self.window is not None:
            return tuple(f"bullseye@{self.window} {rule}" for rule in BULLSEYE_RULES)
        if self.form == REVISITED:
            return tuple(f"mAP {level}" for level in ("easy", "medium", "hard"))
        return (self.measure,)


def label_set(name: str, of: str, dimension: int | None = None) -> BenchmarkSet:
    """A labelled set of the catalogue. dimension: of its descriptors; None for any."""
    window = CATALOGUE[of].window

    def find(folder: Path | None) -> _Maker | None:
        try:
            tasks = read_tasks(of, folder, window)
        except DataError:
            return None
        fitting = [task for task in tasks if dimension in (None, task.descriptors.shape[1])]
        return (lambda: fitting[0]) if fitting else None

    measure = "mAP" if window is None else f"bullseye@{window} counted"
    obtain = f"`manifind data fetch {of}`, or an .npz with images and labels in the folder {of}"
    return BenchmarkSet(name, measure, LABELS, obtain, find, window)


def file_set(name: str, path: str) -> BenchmarkSet:
    """A labelled file, its path seen from the data folder."""

    def find(folder: Path | None) -> _Maker | None:
        file = data_root(folder) / path
        if not file.exists():
            return None
        tasks = read_tasks(str(file))
        if len(tasks) != 1:
            names = ", ".join(task.name for task in tasks)
            raise InputError(f"{file} holds {len(tasks)} arrays, {names}; expected one")
        return lambda: tasks[0]

    return BenchmarkSet(name, "mAP", LABELS, f"{path} in the data folder", find)


def list_set(
    name: str, of: str, vectors: str, truth: str, n_neighbors: int | None = None, protocol: str = "official"
) -> BenchmarkSet:
    """Vectors and published lists in a folder of the data folder. vectors, truth: names of files, without suffix."""

    def find(folder: Path | None) -> _Maker | None:
        for pair in landmark_files(data_root(folder) / of):
            if (pair.vectors.stem, pair.truth.stem) == (vectors, truth):
                return partial(list_task, pair, protocol, name)
        return None

    is_revisited = truth.startswith("gnd_r")
    measure, form = ("mAP medium", REVISITED) if is_revisited else ("mAP", LISTS)
    published = {Path(file.path).stem for file in CATALOGUE[of].files} if of in CATALOGUE else set()
    fetch = f"; `manifind data fetch {of}` tries" if vectors in published else ""
    files = f"{vectors} (.mat or .npz) and {truth} (.json, .pkl or .mat)"
    obtain = f"{files} in the folder {of} of the data folder{fetch}"
    return BenchmarkSet(name, measure, form, obtain, find, None, n_neighbors)


def landmark_set(name: str, vectors: str, truth: str) -> BenchmarkSet:
    """Vectors and published lists that lie apart, every image of a landmark a query. Paths from the data folder."""

    def find(folder: Path | None) -> _Maker | None:
        files = LandmarkFiles(data_root(folder) / vectors, data_root(folder) / truth)
        if not all(file.exists() for file in files):
            return None
        return lambda: list_task(
            files, "landmarks", name, lambda files: join(read_vectors(files.vectors), read_ground_truth(files.truth))
        )

    return BenchmarkSet(name, "mAP", LISTS, f"{vectors} and {truth} in the data folder", find)


def _pairs() -> RetrievalTask:
    """Synthetic pairs, of which a graph has nothing to learn."""
    X, labels = make_pairs()
    return RetrievalTask("pairs", X, None, None, LabelTruth(labels, None))


def _grown(base: BenchmarkSet, items: int) -> BenchmarkSet:
    """Another set with so many items: with synthetic distractors, or without the last of its own."""
    name = f"{base.name}, {items:,} items"
    return BenchmarkSet(
        name, "mAP", base.form, base.obtain, lambda folder: lambda: with_items(read_set(base, folder), items)
    )


_K, _K_PARIS = 15, 60  # the paper's k, and its k on Paris
_CLASSIC = {"Oxford5k": _K, "Oxford105k": _K, "Paris6k": _K_PARIS, "Paris106k": _K_PARIS}
_NETWORKS = {"VGG": "siamac", "ResNet": "resnet"}
CAFFENET, RESNET_105K = "Oxford5k CaffeNet", "Oxford105k ResNet"
GROWN_TO = (10_000, 20_000, 50_000, 100_000)

_DECLARED = (
    label_set("ORL", "orl", 10_304),
    label_set("ORL aligned", "orl", 1_024),
    *(
        list_set(f"{name} {network}", name.lower(), f"{name.lower()}_{file}", f"gnd_{name.lower()}", k)
        for network, file in _NETWORKS.items()
        for name, k in _CLASSIC.items()
    ),
    list_set("ROxford ResNet", "roxford5k", "roxford5k_resnet_rsfm120k_gem", "gnd_roxford5k", _K),
    list_set("RParis ResNet", "rparis6k", "rparis6k_resnet_rsfm120k_gem", "gnd_rparis6k", _K_PARIS),
    label_set("MPEG-7 masks", "mpeg7", 1_024),
    label_set("MPEG-7 EfficientNet", "mpeg7", 1_280),
    label_set("COIL-20", "coil20"),
    label_set("digits", "digits"),
    BenchmarkSet("pairs", "mAP", LABELS, "it needs no files", lambda folder: _pairs),
    list_set(CAFFENET, "oxford5k", "caffenet_fc7_pca128", "gnd_oxford5k"),
    list_set("Paris subset", "paris1274", "resnet34", "gnd_paris6k", _K_PARIS, "landmarks"),
    landmark_set("Paris subset CLIP", "paris1274_modern/clip_vit_b32.npz", "paris1274/gnd_paris6k.json"),
    landmark_set("Paris subset DINOv2", "paris1274_modern/dinov2_vit_s14.npz", "paris1274/gnd_paris6k.json"),
    file_set("Simple1K DINOv2", "simple1k/dinov2_vit_s14.npz"),
    file_set("Flowers-17 EfficientNet", "flowers17/efficientnet_lite0_gem.npz"),
)

SETS: dict[str, BenchmarkSet] = {one.name: one for one in _DECLARED}
"""By the name that tables show and `--on` takes."""
SETS |= {one.name: one for name in (CAFFENET, RESNET_105K) for one in (_grown(SETS[name], n) for n in GROWN_TO)}


def find_set(name: str) -> BenchmarkSet:
    """The set of that name, whatever the case; an unknown one is refused with those that there are."""
    by_lower = {known.lower(): one for known, one in SETS.items()}
    if name.lower() not in by_lower:
        raise InputError(f"on = {name!r}; expected one of {', '.join(map(repr, SETS))}", "choose one with --on")
    return by_lower[name.lower()]


def read_set(dataset: BenchmarkSet, folder: Path | None = None) -> RetrievalTask:
    """The task that a set puts; DataError, which says what to obtain, where its files are not here."""
    try:
        make = dataset.find(folder)
    except MissingExtraError as error:
        raise DataError(f"{dataset.name}: {error.problem}", error.hint) from error
    if make is None:
        raise DataError(f"{dataset.name} is not here", f"obtain {dataset.obtain}")
    return make()._replace(name=dataset.name)


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
    """A task of the form of the set: every item asked, or the middle item of each class, which then is a query."""
    X, labels = arcs()
    name = f"toy for {dataset.name}"
    if dataset.form == LABELS:
        return RetrievalTask(name, X, None, None, LabelTruth(labels, dataset.window))
    is_query = np.arange(len(X)) % PER_CLASS == PER_CLASS // 2
    items, classes = X[~is_query], labels[~is_query]
    members = [np.flatnonzero(classes == one) for one in range(N_CLASSES)]
    middle = slice(3, 7)  # next to the query
    parts = {
        "ok": [one[1:] for one in members],
        "easy": [one[middle] for one in members],
        "hard": [np.delete(one, middle)[1:] for one in members],
        "junk": [one[:1] for one in members],
    }
    lists = {part: parts[part] for part in (REVISITED_LISTS if dataset.form == REVISITED else CLASSIC)}
    names = tuple(f"i{number:03}" for number in range(len(items)))
    truth = GroundTruth(lists, names, tuple(f"q{number:02}" for number in range(N_CLASSES)))
    return RetrievalTask(name, items, X[is_query], None, ListTruth(truth, "official", 0))
