"""Tests of manifind.bench.task and .compare_data: the same tasks as `manifind data check`."""

import json

import numpy as np
import pytest

from manifind.baselines.query_expansion import KNN
from manifind.bench.cell import run_cell
from manifind.bench.sources import label_baselines, landmark_baselines, read_tasks
from manifind.bench.task import LabelTruth, RetrievalTask, read_task
from manifind.datasets.catalogue import VARIABLE
from manifind.datasets.labelled import Labelled
from manifind.datasets.landmarks import landmark_files, read_pair
from manifind.errors import DataError, InputError, ManifindError
from manifind.progress import ignore


@pytest.fixture
def labelled(tmp_path):
    """Two arrays of thirty items in three classes, in one file."""
    rng = np.random.default_rng(0)
    labels = np.repeat([4, 7, 9], 10)
    X = rng.normal(size=(3, 5))[np.repeat([0, 1, 2], 10)] + rng.normal(size=(30, 5))
    np.savez(tmp_path / "mine.npz", weak=X, noise=rng.normal(size=(30, 4)), labels=labels)
    return tmp_path / "mine.npz"


@pytest.fixture
def town(tmp_path):
    """Vectors with classic and with revisited lists, and an image that no list knows."""
    folder = tmp_path / "town"
    folder.mkdir()
    names = [f"i{i}" for i in range(12)]
    classic = [{"ok": [0, 1, 2, 3], "junk": [4]}, {"ok": [5, 6, 7], "junk": []}]
    revisited = [{"easy": [1, 2], "hard": [3], "junk": [0]}, {"easy": [6], "hard": [7], "junk": [5]}]
    for name, lists in (("gnd_town", classic), ("gnd_rtown", revisited)):
        contents = {"gnd": lists, "imlist": names[:11], "qimlist": ["i0", "i5"]}
        (folder / f"{name}.json").write_text(json.dumps(contents))
    X = np.random.default_rng(1).normal(size=(12, 6)).astype(np.float32)
    np.savez(folder / "vectors.npz", vectors=X, names=np.array(names))
    return folder


def knn_scores(task):
    cell = run_cell(task, KNN, {"preprocess": "unit"}, ignore)
    return [one.score for one in cell.scores]


def assert_same(ours, theirs):
    assert [(one.measure, one.rule, one.cut) for one in ours] == [(one.measure, one.rule, one.cut) for one in theirs]
    for one, two in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.per_query, two.per_query)
        np.testing.assert_array_equal(one.weights, two.weights)


def test_knn_has_the_scores_that_data_check_shows_for_labels(labelled):
    with np.load(labelled) as arrays:
        data = Labelled("", arrays["weak"], np.repeat([0, 1, 2], 10), ("4", "7", "9"), ())
    unit = next(one for one in label_baselines(data, window=12) if one.preprocess == "unit rows")
    assert_same(knn_scores(read_tasks(str(labelled), window=12)[0]), unit.scores)


def test_of_many_items_the_same_are_asked_as_by_data_check(labelled, monkeypatch):
    monkeypatch.setattr("manifind.bench.sources.MOST_QUERIES", 8)
    task = read_tasks(str(labelled))[0]
    assert task.n_queries == 8
    data = Labelled("", task.descriptors, task.truth.labels, (), ())
    unit = next(one for one in label_baselines(data) if one.preprocess == "unit rows")
    assert_same(knn_scores(task), unit.scores)


def test_knn_has_the_scores_that_data_check_shows_for_lists(town):
    shown = {files.truth.name: list(landmark_baselines(read_pair(files))) for files in landmark_files(town)}
    tasks = read_tasks(str(town))
    assert [one.name.split(" with ")[1] for one in tasks] == list(shown)
    for task, baselines in zip(tasks, shown.values(), strict=True):
        assert task.n_queries == 2
        assert_same(knn_scores(task), baselines[0].scores)


def test_the_landmark_protocol_asks_with_every_right_image(town):
    (task,) = read_tasks(str(town), protocol="landmarks", only="gnd_town")
    data = next(read_pair(files) for files in landmark_files(town) if files.truth.stem == "gnd_town")
    assert task.queries is None
    assert task.n_queries == 7
    assert_same(knn_scores(task), list(landmark_baselines(data))[1].scores)


def test_revisited_lists_have_no_landmark_protocol(town):
    with pytest.raises(InputError, match="landmark protocol is for ok and junk"):
        read_tasks(str(town), protocol="landmarks")


@pytest.mark.parametrize("protocol", ["official", "landmarks"])
def test_a_task_of_lists_survives_being_written_down(town, protocol, tmp_path):
    (task,) = read_tasks(str(town), protocol=protocol, only="gnd_town")
    task.write(tmp_path)
    again = read_task(tmp_path)
    assert again.digest() == task.digest()
    assert_same(knn_scores(again), knn_scores(task))


def test_a_task_of_labels_survives_being_written_down(labelled, tmp_path):
    task = read_tasks(str(labelled), window=5)[0]
    task.write(tmp_path)
    again = read_task(tmp_path)
    assert again.digest() == task.digest()
    assert again.truth.window == 5
    assert_same(knn_scores(again), knn_scores(task))


def test_whatever_a_score_depends_on_changes_the_digest():
    X, labels = np.eye(4, 3, dtype=np.float32), np.array([0, 0, 1, 1])
    task = RetrievalTask("a", X, None, None, LabelTruth(labels, None))
    others = [
        task._replace(descriptors=X + 1),
        task._replace(descriptors=X.astype(np.float64)),
        task._replace(queries=X[:1]),
        task._replace(query_items=np.array([1, 2])),
        task._replace(truth=LabelTruth(labels[::-1].copy(), None)),
        task._replace(truth=LabelTruth(labels, 3)),
    ]
    assert len({one.digest() for one in [task, *others]}) == 7
    assert task._replace(name="b").digest() == task.digest()


def test_every_array_is_a_task_and_a_part_of_its_name_chooses_it(labelled):
    assert [one.name for one in read_tasks(str(labelled))] == ["mine: weak", "mine: noise"]
    assert [one.name for one in read_tasks(str(labelled), only="NOISE")] == ["mine: noise"]
    with pytest.raises(InputError, match="nothing here is called 'strong'; expected one of 'mine: weak'"):
        read_tasks(str(labelled), only="strong")


def test_a_whole_name_comes_before_a_part_of_one(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.eye(2), xx=np.eye(2), labels=[0, 0])
    assert len(read_tasks(str(tmp_path / "a.npz"), only="x")) == 2
    assert [one.name for one in read_tasks(str(tmp_path / "a.npz"), only="a: x")] == ["a: x"]


def test_built_in_sets_are_named_after_themselves():
    (task,) = read_tasks("letters")
    assert task.name == "letters: points"


@pytest.mark.parametrize(
    ("source", "options", "problem"),
    [
        ("mpeg8", {}, "no data set called 'mpeg8'"),
        ("orl", {}, "orl is not in "),
        ("nowhere.npz", {}, "does not exist"),
        ("letters", {"protocol": "official"}, "--protocol is for published lists"),
    ],
)
def test_what_is_not_there_is_refused_with_a_way_out(source, options, problem, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ManifindError, match=problem) as caught:
        read_tasks(source, **options)
    assert caught.value.hint
    assert source != "orl" or isinstance(caught.value, DataError)


def test_a_window_is_not_for_lists(town):
    with pytest.raises(InputError, match="--window is for labels"):
        read_tasks(str(town), window=4)


def test_labels_that_nobody_shares_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.eye(3), labels=[0, 1, 2])
    with pytest.raises(InputError, match="no two items of x: X share a label"):
        read_tasks(str(tmp_path / "x.npz"))
