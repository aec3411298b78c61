"""Tests of the runner, the results file and comparisons: crashes, and what is saved."""

import json
import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from manifind.bench import comparison, runner
from manifind.bench.cell import TRIAL, Cell
from manifind.bench.comparison import CompareOptions, run_comparison
from manifind.bench.methods import Method, choose_methods
from manifind.bench.results import Results, default_results
from manifind.bench.runner import CellJob, RunOptions, open_runner
from manifind.bench.task import LabelTruth, RetrievalTask
from manifind.errors import InputError, ManifindError
from manifind.progress import Progress, ignore
from manifind.worker import Reply

OWN = """
import os, signal, time
import numpy as np
from manifind.errors import InputError, TrainingError
from manifind.progress import Progress


class Good:
    def __init__(self, trouble="", n=0):
        self.trouble, self.n = trouble, n

    def fit(self, X, queries=None, *, listener):
        print("a method may print")
        os.system("echo and so may what it starts")
        listener(Progress("learning", os.getpid(), 1, "well"))
        if self.trouble == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "exit":
            print("the reason why", file=__import__("sys").stderr, flush=True)
            os._exit(3)
        if self.trouble == "sleep":
            time.sleep(60)
        if self.trouble == "refuse":
            raise InputError("too many items", "take fewer")
        if self.trouble == "train":
            raise TrainingError("the loss is no number")
        self.X = X
        return self

    def search(self, Q=None, k=10):
        apart = np.linalg.norm(self.X[:, None] - self.X, axis=2)
        return np.argsort(apart, axis=1, kind="stable")[:, :k]


def Killed(**settings):
    return Good("kill")


def Wrong(**settings):
    return Good().not_there
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "own.py"


@pytest.fixture
def task():
    X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    return RetrievalTask("toy", X, None, None, LabelTruth(np.repeat([0, 1], 6), None))


def jobs_of(own, troubles, name="Good"):
    settings = [{"trouble": one} if one is not None else {} for one in troubles]
    return [
        CellJob({"kind": "trial", "number": number}, TRIAL, f"{own}:{name}", {"settings": one}, "own")
        for number, one in enumerate(settings)
    ]


@pytest.fixture
def run(own, task, tmp_path):
    """Runs trials of the own method, in one process after the other as they crash."""

    def run(troubles, limit=None, listener=ignore, name="Good"):
        results = Results(tmp_path / "run.jsonl")
        with open_runner(task, results, RunOptions(limit, fresh=True), listener) as one:
            return list(one.run(jobs_of(own, troubles, name)))

    return run


def test_a_crash_is_a_failure_with_its_reason_and_the_next_run_goes_on(run):
    reports = []
    troubles = ["", "kill", "exit", "refuse", "train", ""]
    results = run(troubles, listener=reports.append)
    assert [one["state"] for one in results] == ["done", "failed", "failed", "refused", "failed", "done"]
    assert results[0]["values"] == results[5]["values"]
    assert set(results[0]["values"]) == {"mAP"}
    assert "SIGKILL, as the system does where memory runs out" in results[1]["reason"]
    assert results[2]["reason"] == "its process ended with code 3: the reason why"
    assert (results[3]["reason"], results[3]["hint"]) == ("too many items", "take fewer")
    assert results[4]["reason"] == "the loss is no number"
    assert {(one.stage, one.note) for one in reports} == {("own: learning", "well")}
    assert len({one.done for one in reports}) == 3, "three processes: one more after each crash"


def test_a_run_that_takes_too_long_is_stopped_and_the_next_has_its_own_time(run):
    results = run(["sleep", ""], limit=5)
    assert results[0]["reason"] == "stopped after 5 s, the time limit"
    assert results[1]["state"] == "done"


def test_an_error_in_the_method_is_told_with_its_place(run):
    (result,) = run([None], name="Wrong")
    assert result["state"] == "failed"
    assert result["reason"].startswith("AttributeError: 'Good' object has no attribute 'not_there' (own.py, line")


def test_the_process_ends_when_nobody_wants_its_results_any_more(own, task, tmp_path):
    reports = []
    with open_runner(task, Results(tmp_path / "r.jsonl"), RunOptions(), reports.append) as one:
        with closing(one.run(jobs_of(own, ["", "sleep"]))) as results:
            assert next(results)["state"] == "done"
            os.kill(reports[0].done, 0)  # it is there, and waits
        with pytest.raises(ProcessLookupError):
            os.kill(reports[0].done, 0)


def test_several_workers_give_what_one_does_in_the_order_of_the_jobs(own, task, tmp_path):
    jobs = jobs_of(own, ["", "refuse", "train", ""])
    with open_runner(task, Results(tmp_path / "r.jsonl"), RunOptions(workers=2), ignore) as one:
        found = [(job.key["number"], record["state"]) for job, record in one.run_all(jobs)]
    assert found == [(0, "done"), (1, "refused"), (2, "failed"), (3, "done")]
    assert all(Results(tmp_path / "r.jsonl").get(job.key) for job in jobs)


def record(value=50.0):
    return {"state": "done", "reason": "", "hint": "", "values": {"mAP": value}}


def key(name="a"):
    return {"kind": "trial", "method": name}


def test_what_is_added_is_there_the_next_time_and_the_last_counts(tmp_path):
    path = tmp_path / "deep" / "r.jsonl"
    results = Results(path)
    for value in (1.0, 2.0):
        results.add(key(), record(value))
    assert Results(path).get(key()) == results.get(key()) == record(2.0)
    assert Results(path).get(key("b")) is None
    assert Results(path).damaged == 0


@pytest.mark.parametrize(
    "damage",
    [
        b'{"key": {"kind": "trial", "meth',
        b'{"key": 3, "record": 4}\n',
        b'{"key": {"kind": "trial"}, "record": {"state": "done", "reason": "", "hint": "", "values": {}}}\n',
        b'{"key": {"kind": "cell"}, "record": {"state": "done", "reason": "", "hint": "", "scores": []}}\n',
        b'{"key": {"kind": "cell"}, "record": {"state": "gone", "reason": "", "hint": ""}}\n',
        b"\xff\xfe\n",
        b"[]\n",
    ],
)
def test_a_damaged_line_is_left_out_and_the_others_stay(damage, tmp_path):
    path = tmp_path / "r.jsonl"
    Results(path).add(key("a"), record())
    with path.open("ab") as stream:
        stream.write(damage)
    results = Results(path)
    assert results.damaged == 1
    results.add(key("b"), record(3.0))
    again = Results(path)
    assert again.get(key("a")) == record()
    assert again.get(key("b")) == record(3.0)
    assert again.damaged == 1


def test_a_file_cut_in_its_first_line_is_taken_up_again(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"ke')
    Results(path).add(key(), record())
    assert Results(path).get(key()) == record()


def test_a_file_that_is_something_else_is_refused_and_stays(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("file,label\n")
    with pytest.raises(InputError, match="holds something else") as caught:
        Results(path)
    assert "--results" in caught.value.hint
    assert path.read_text() == "file,label\n"


def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "r.jsonl", tmp_path):
        with pytest.raises(InputError, match="results cannot be kept in"):
            Results(path)


def test_by_default_every_task_has_a_file_in_the_folder_for_caches(monkeypatch):
    for modules in ({}, {"pooch": None}):
        for name, module in modules.items():
            monkeypatch.setitem(__import__("sys").modules, name, module)
        path = default_results("0123456789abcdef0123")
        assert path.name == "0123456789abcdef.jsonl"
        assert path.parent.name == "compare"


class FakeJobs:
    """In place of child processes: what was asked for, and an answer for each."""

    def __init__(self, monkeypatch, answers):
        self.asked, self.folders, self._answers = [], [], answers
        monkeypatch.setattr(runner, "Worker", lambda **options: self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def call(self, function, arguments, listener):
        is_trial, settings = arguments["procedure"] == TRIAL, arguments["arguments"]["settings"]
        self.asked.append((arguments["method"], is_trial, settings))
        self.folders.append(Path(arguments["folder"]))
        return Reply(self._answers(is_trial, settings))


def done(value):
    per_query = [value] * 12
    score = {"measure": "mAP", "rule": "r", "queries": "in the graph", "per_query": per_query, "weights": 1.0}
    scores = [{**score, "cut": None, "low": value, "high": value}]
    return {**Cell("done", settings={}, seconds=1.0, milliseconds=2.0).as_dict(), "scores": scores}


def answers(is_trial, settings):
    """A score of n_neighbors, 10 by default; 8 is refused."""
    n = settings.get("n_neighbors", 10)
    if n == 8:
        raise InputError("8")
    return record(float(n)) if is_trial else done(float(n))


METHODS = [Method(name, name, name) for name in ("knn", "aqe")]


def test_known_cells_are_not_run_again(monkeypatch, task, tmp_path):
    jobs = FakeJobs(monkeypatch, answers)
    path = tmp_path / "r.jsonl"
    first = run_comparison(task, METHODS[:1], CompareOptions(), Results(path))
    second = run_comparison(task, METHODS, CompareOptions(), Results(path))
    assert [one[0] for one in jobs.asked] == ["knn", "aqe"]
    assert [row.entry.is_cached for row in first.rows + second.rows] == [False, True, False]
    assert second.rows[0].entry.main.score.value == first.rows[0].entry.main.score.value == 10


@pytest.mark.parametrize("change", ["seed", "preprocess", "data", "version", "machine", "fresh"])
def test_whatever_a_cell_depends_on_makes_it_unknown(monkeypatch, task, tmp_path, change):
    jobs = FakeJobs(monkeypatch, answers)
    method = [Method("codes", "codes", "codes")]
    path = tmp_path / "r.jsonl"
    run_comparison(task, method, CompareOptions(), Results(path))
    changes = {"seed": {"seed": 1}, "preprocess": {"preprocess": "center"}, "fresh": {"fresh": True}}
    if change == "data":
        task = task._replace(descriptors=task.descriptors + 1)
    if change == "version":
        monkeypatch.setattr(comparison, "__version__", "99")
    if change == "machine":
        monkeypatch.setenv("OMP_NUM_THREADS", "77")
    run_comparison(task, method, CompareOptions(**changes.get(change, {})), Results(path))
    assert len(jobs.asked) == 2


@pytest.mark.parametrize(
    ("state", "before", "after", "n_runs"),
    [
        ("refused", CompareOptions(), CompareOptions(retry=True), 1),
        ("failed", CompareOptions(), CompareOptions(), 1),
        ("failed", CompareOptions(), CompareOptions(retry=True), 2),
        ("failed", CompareOptions(limit=5), CompareOptions(limit=5), 1),
        ("failed", CompareOptions(limit=5), CompareOptions(limit=4), 1),
        ("failed", CompareOptions(limit=5), CompareOptions(limit=6), 2),
        ("failed", CompareOptions(limit=5), CompareOptions(), 2),
    ],
)
def test_failures_are_kept_unless_they_may_end_otherwise(monkeypatch, task, tmp_path, state, before, after, n_runs):
    def fail(is_trial, settings):
        raise InputError("so") if state == "refused" else ManifindError("so")

    jobs = FakeJobs(monkeypatch, fail)
    for options in (before, after):
        table = run_comparison(task, METHODS[:1], options, Results(tmp_path / "r.jsonl"))
        assert (table.rows[0].entry.cell.state, table.rows[0].entry.cell.reason) == (state, "so")
        assert table.measure is None
    assert len(jobs.asked) == n_runs


def test_tuning_takes_the_best_of_the_grid_and_measures_it_as_a_cell(monkeypatch, task, tmp_path):
    jobs = FakeJobs(monkeypatch, answers)
    table = run_comparison(task, METHODS, CompareOptions(tune=True), Results(tmp_path / "r.jsonl"))
    knn, aqe = table.rows
    assert knn.tuned is None
    assert aqe.tuned.chosen == {"n_neighbors": 50}
    assert aqe.tuned.entry.main.score.value == 50
    assert (aqe.tuned.tried, aqe.tuned.unusable) == (10, 1)
    assert aqe.entry.main.score.value == 10, "the default stays beside it"
    assert aqe.tuned.entry.against.mean == 40
    assert sum(is_trial for _, is_trial, _ in jobs.asked) == 10
    asked = len(jobs.asked)
    again = run_comparison(task, METHODS, CompareOptions(tune=True), Results(tmp_path / "r.jsonl"))
    assert len(jobs.asked) == asked
    assert again.rows[1].tuned.entry.is_cached


def test_a_default_that_nothing_beats_is_the_tuned_one(monkeypatch, task, tmp_path):
    FakeJobs(monkeypatch, lambda is_trial, settings: record(1.0) if is_trial else done(2.0))
    table = run_comparison(task, METHODS, CompareOptions(tune=True), Results(tmp_path / "r.jsonl"))
    assert table.rows[1].tuned.chosen == {}
    assert table.rows[1].tuned.entry is table.rows[1].entry


def test_an_interrupted_search_of_settings_goes_on_where_it_was(monkeypatch, task, tmp_path):
    def interrupted(is_trial, settings):
        if settings.get("n_neighbors") == 5:
            raise KeyboardInterrupt
        return answers(is_trial, settings)

    path, options = tmp_path / "r.jsonl", CompareOptions(tune=True)
    FakeJobs(monkeypatch, interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_comparison(task, METHODS, options, Results(path))
    jobs = FakeJobs(monkeypatch, answers)
    table = run_comparison(task, METHODS, options, Results(path))
    tried = [settings["n_neighbors"] for _, is_trial, settings in jobs.asked if is_trial]
    assert tried == [5, 8, 10, 15, 20, 30, 50]
    assert table.rows[1].tuned.tried == 10


def test_an_unknown_measure_is_refused_after_the_first_cell(monkeypatch, task, tmp_path):
    jobs = FakeJobs(monkeypatch, answers)
    with pytest.raises(InputError, match="no score called 'P@3'; expected one of 'mAP'"):
        run_comparison(task, METHODS, CompareOptions(measure="P@3"), Results(tmp_path / "r.jsonl"))
    assert len(jobs.asked) == 1


def test_progress_counts_the_cells_and_the_settings(monkeypatch, task, tmp_path):
    FakeJobs(monkeypatch, answers)
    reports = []
    run_comparison(task, METHODS, CompareOptions(tune=True), Results(tmp_path / "r.jsonl"), reports.append)
    assert reports[0] == Progress("comparing on toy", 0, 3, "knn")
    assert Progress("comparing on toy", 3, 3, "aqe") in reports
    assert Progress("tuning aqe", 10, 10) in reports


def test_the_folder_of_the_task_is_gone_afterwards(monkeypatch, task, tmp_path):
    jobs = FakeJobs(monkeypatch, answers)
    run_comparison(task, METHODS[:1], CompareOptions(), Results(tmp_path / "r.jsonl"))
    assert not jobs.folders[0].exists()


def test_an_own_method_is_kept_under_the_text_of_its_file(monkeypatch, task, own, tmp_path):
    FakeJobs(monkeypatch, answers)
    path = tmp_path / "r.jsonl"
    methods = choose_methods(f"{own}:Good", [])
    table = run_comparison(task, methods, CompareOptions(tune=True), Results(path))
    assert table.rows[0].method == "own.py:Good"
    assert table.rows[0].tuned is None
    kept = json.loads(path.read_text())["key"]
    assert kept["method"].startswith("own.py:Good ")
    assert os.sep not in kept["method"]
