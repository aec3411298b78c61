"""Tests of the runner: what is known is not run again, what is missing is, and every result says where it is from."""

import os

import numpy as np
import pytest

from bench.paper.in_process import InProcess
from manifind.baselines.query_expansion import KNN
from manifind.bench.paper import runner
from manifind.bench.paper.declared import Artefact, CellSpec, Run, Value
from manifind.bench.paper.procedures import PROCEDURES
from manifind.bench.paper.runner import PaperRunOptions, run_missing, wanted_runs
from manifind.bench.paper.tables import LOCAL_SETS, METHODS_2, score_run, table2
from manifind.bench.results import Results
from manifind.bench.runner import task_code
from manifind.bench.sets import SETS, list_set, read_set, with_items
from manifind.bench.task import LabelTruth, RetrievalTask
from manifind.datasets.catalogue import VARIABLE
from manifind.errors import DataError, InputError
from manifind.progress import ignore

QUICK = Artefact(
    "table2",
    "Quick",
    tuple(CellSpec(row, "digits", score_run("digits", METHODS_2[row]), Value("mAP")) for row in ("k-NN", "GSS")),
    on="digits",
)


@pytest.fixture
def small(monkeypatch, faces):
    """A small set in the place of every one."""
    task = RetrievalTask("small", faces.descriptors, None, None, LabelTruth(faces.truth.labels, None))
    monkeypatch.setattr(runner, "read_set", lambda dataset, folder: task)
    return task


def run(results, n_seeds=2, only=None, **options):
    run_missing(wanted_runs([QUICK], n_seeds, only), results, PaperRunOptions(**options), ignore)


def test_every_run_is_made_once_with_its_seeds_and_never_again(small, results, monkeypatch):
    jobs = InProcess(monkeypatch)
    run(results)
    assert sorted(jobs.ran) == [("gss", 0), ("gss", 1), ("knn", 0)]
    run(Results(results.path))
    assert len(jobs.ran) == 3
    run(results, n_seeds=3)
    assert jobs.ran[3:] == [("gss", 2)]
    run(results, fresh=True, only="k-NN")
    assert jobs.ran[4:] == [("knn", 0)]


def test_what_measures_a_gpu_waits_for_one(small, results, monkeypatch):
    jobs = InProcess(monkeypatch)
    entry = CellSpec("row", "digits", Run("gpu cost", "digits", "gradnet"), Value("GPU memory, MB"))
    wanted = wanted_runs([Artefact("t", "T", (entry,))], 1, None)
    monkeypatch.setattr(runner, "gpu_name", lambda: None)
    run_missing(wanted, results, PaperRunOptions(), ignore)
    assert jobs.ran == []
    assert results.get(entry.run.key(0)) is None
    monkeypatch.setattr(runner, "gpu_name", lambda: "a GPU")
    run_missing(wanted, results, PaperRunOptions(), ignore)
    assert len(jobs.ran) == 1


def test_a_run_that_two_artefacts_want_is_made_once(small, results, monkeypatch):
    jobs = InProcess(monkeypatch)
    run_missing(wanted_runs([QUICK, QUICK], 1, None), results, PaperRunOptions(), ignore)
    assert len(jobs.ran) == 2


def test_other_data_is_run_again(small, results, monkeypatch):
    jobs = InProcess(monkeypatch)
    run(results, only="k-NN")
    other = small._replace(descriptors=small.descriptors[:, ::-1].copy())
    monkeypatch.setattr(runner, "read_set", lambda dataset, folder: other)
    run(results, only="k-NN")
    assert len(jobs.ran) == 2


def test_a_failure_is_kept_with_its_reason_and_does_not_stop_the_others(small, results, monkeypatch):
    InProcess(monkeypatch, {"knn": "it crashed"})
    run(results, n_seeds=1)
    knn, gss = (results.get(entry.run.key(0)) for entry in QUICK.entries)
    assert (knn["state"], knn["reason"]) == ("failed", "it crashed")
    assert gss["state"] == "done"


def test_a_result_says_which_command_data_versions_machine_and_code_it_is_from(small, results, monkeypatch):
    InProcess(monkeypatch)
    run(results, n_seeds=2)
    record = results.get(QUICK.entries[1].run.key(1))
    assert record["command"] == 'manifind reproduce table2 --on "digits" --only "GSS / digits" --seeds 2 --fresh'
    assert record["data"] == small.digest()
    assert record["code"] == task_code(PROCEDURES["score"], "gss")
    assert record["ran"] == {"device": "cpu"}
    assert {"manifind", "torch", "python"} <= set(record["versions"])
    assert record["settings"]["random_state"] == 1
    assert len(record["scores"][0]["per_query"]) == len(small.descriptors)


def test_a_set_that_is_not_here_is_left_out(results, monkeypatch):
    jobs = InProcess(monkeypatch)

    def absent(dataset, folder):
        raise DataError("not here")

    monkeypatch.setattr(runner, "read_set", absent)
    run(results)
    assert jobs.ran == []


def test_a_real_process_gives_what_this_one_does(small, results, tmp_path, monkeypatch):
    run(results, n_seeds=1, only="k-NN")
    InProcess(monkeypatch)
    here = Results(tmp_path / "here.jsonl")
    run(here, n_seeds=1, only="k-NN")
    key = QUICK.entries[0].run.key(0)
    assert results.get(key)["values"] == here.get(key)["values"]


def test_what_is_wanted_comes_set_by_set_and_the_first_seed_first():
    wanted = wanted_runs([table2("digits"), table2("ORL")], 2, None)
    assert [one.run.on for one in wanted] == sorted(one.run.on for one in wanted)[::-1]
    of_digits = [one.seed for one in wanted if one.run.on == "digits"]
    assert of_digits == sorted(of_digits)


def test_a_set_without_files_says_which_and_where_they_belong(tmp_path):
    with pytest.raises(DataError, match="Oxford5k VGG is not here") as caught:
        read_set(SETS["Oxford5k VGG"], tmp_path)
    assert "oxford5k_siamac (.mat or .npz) and gnd_oxford5k" in caught.value.hint
    assert "`manifind data fetch oxford5k` tries" in caught.value.hint
    with pytest.raises(DataError, match="ORL is not here"):
        read_set(SETS["ORL"], tmp_path)
    caffenet = SETS["Oxford5k CaffeNet"].obtain
    assert "fetch" not in caffenet, "nobody publishes that file under this name"


def test_a_set_that_needs_no_file_is_there():
    assert read_set(SETS["digits"]).descriptors.shape == (1797, 64)


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} is not set")
@pytest.mark.parametrize("name", ["ORL", "ORL aligned", *LOCAL_SETS])
def test_every_set_of_the_local_tables_is_read_and_scored_by_its_measures(name):
    task = read_set(SETS[name])
    ids = KNN().fit(task.descriptors, queries=task.queries).search(k=len(task.descriptors)).ids
    scores = task.truth.scores(ids if task.query_items is None else ids[task.query_items], task.query_items)
    assert set(SETS[name].measures) <= {one.measure for one in scores}
    assert SETS[name].measure in SETS[name].measures


def test_a_set_grows_by_distractors_that_are_never_right_and_shrinks_by_them_alone(buildings):
    grown = with_items(buildings, 200)
    assert grown.descriptors.shape == (200, 16)
    assert grown.truth.distractors == 80
    np.testing.assert_array_equal(grown.descriptors[:120], buildings.descriptors)
    np.testing.assert_array_equal(grown.descriptors, with_items(buildings, 200).descriptors)
    back = with_items(grown, 150)
    assert (len(back.descriptors), back.truth.distractors) == (150, 30)
    with pytest.raises(InputError, match="has 120 items; its distractors cannot make them 100"):
        with_items(buildings, 100)


def test_distractors_lie_where_the_set_lies(buildings):
    more = with_items(buildings, 20_120).descriptors[120:].astype(np.float64)
    own = buildings.descriptors
    np.testing.assert_allclose(more.mean(axis=0), own.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(np.cov(more, rowvar=False), np.cov(own, rowvar=False), atol=0.02)


def test_a_set_of_labels_cannot_grow(faces):
    with pytest.raises(InputError, match="cannot make them"):
        with_items(faces, 500)


def test_forms_follow_the_ground_truth():
    assert list_set("x", "f", "v", "gnd_roxford5k").form == "revisited"
    assert SETS["Oxford5k CaffeNet, 10,000 items"].form == "lists"
    assert SETS["ORL"].measures == tuple(f"bullseye@15 {rule}" for rule in ("counted", "left-out", "left-out-others"))


def test_what_other_code_made_is_run_again_where_asked_for(small, results, monkeypatch):
    jobs = InProcess(monkeypatch)
    run(results, only="k-NN")
    run(results, only="k-NN", outdated=True)
    assert len(jobs.ran) == 1
    key = QUICK.entries[0].run.key(0)
    results.add(key, {**results.get(key), "code": "of another version"})
    run(results, only="k-NN")
    assert len(jobs.ran) == 1
    run(results, only="k-NN", outdated=True)
    assert len(jobs.ran) == 2
