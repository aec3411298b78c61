"""Tests of manifind.bench.process, .compare_runner and .compare_store: crashes, and what is kept."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from manifind.bench import runner as compare_runner
from manifind.bench.cell import TRIAL, Cell
from manifind.bench.methods import Method, choose_methods
from manifind.bench.process import MethodJob, run_job
from manifind.bench.results import Results, default_results
from manifind.bench.runner import RunOptions, run_comparison
from manifind.bench.task import LabelTruth, RetrievalTask
from manifind.bench.worker import outcome
from manifind.errors import InputError
from manifind.progress import Progress, ignore

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


@pytest.fixture
def run(own, task, tmp_path):
    """Runs trials of the own method with one process after the other as they crash."""
    folder = tmp_path / "folder"
    folder.mkdir()
    task.write(folder)

    def run(runs, limit=None, listener=ignore, name="Good"):
        return list(run_job(MethodJob(folder, f"{own}:{name}", TRIAL, limit), runs, listener))

    return run


def test_a_crash_is_a_failure_with_its_reason_and_the_next_run_goes_on(run):
    told = []
    troubles = ["", "kill", "exit", "refuse", "train", ""]
    results = run([{"trouble": one} for one in troubles], listener=told.append)
    assert [one["state"] for one in results] == ["done", "failed", "failed", "refused", "failed", "done"]
    assert results[0] == results[5]
    assert set(results[0]["values"]) == {"mAP"}
    assert "SIGKILL, as the system does where memory runs out" in results[1]["reason"]
    assert results[2]["reason"] == "its process ended with code 3: the reason why"
    assert (results[3]["reason"], results[3]["hint"]) == ("too many items", "take fewer")
    assert results[4]["reason"] == "the loss is no number"
    assert {(one.stage, one.note) for one in told} == {("learning", "well")}
    assert len({one.done for one in told}) == 3, "three processes: one more after each crash"


def test_a_run_that_takes_too_long_is_stopped_and_the_next_has_its_own_time(run):
    results = run([{"trouble": "sleep"}, {"trouble": ""}], limit=5)
    assert results[0]["reason"] == "stopped after 5 s, the time limit"
    assert results[1]["state"] == "done"


def test_an_error_in_the_method_is_told_with_its_place(run):
    (result,) = run([{}], name="Wrong")
    assert result["state"] == "failed"
    assert result["reason"].startswith("AttributeError: 'Good' object has no attribute 'not_there' (own.py, line")


def test_the_process_ends_when_nobody_wants_its_results_any_more(own, task, tmp_path):
    task.write(tmp_path)
    told = []
    job = MethodJob(tmp_path, f"{own}:Good", TRIAL, None)
    results = run_job(job, [{"trouble": ""}, {"trouble": "sleep"}], told.append)
    assert next(results)["state"] == "done"
    os.kill(told[0].done, 0)  # it is there, in its second run
    results.close()
    with pytest.raises(ProcessLookupError):
        os.kill(told[0].done, 0)


def test_the_process_ends_when_the_one_that_started_it_is_gone(own, task, tmp_path):
    task.write(tmp_path)
    job = {"method": f"{own}:Good", "task": TRIAL, "runs": [{"trouble": "sleep"}]}
    (tmp_path / "job.json").write_text(json.dumps(job))
    worker = subprocess.Popen(
        [sys.executable, "-m", "manifind.bench.worker", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert b"learning" in worker.stdout.readline()
    worker.stdin.close()  # as when the other end is killed
    assert worker.stdout.read() == b""
    assert worker.wait() == 1
    worker.stdout.close()


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (MemoryError("unable to allocate 3 TiB"), "failed", "ran out of memory: unable to allocate 3 TiB"),
        (SystemExit(2), "failed", "SystemExit: 2 (test_compare_process.py, line"),
        (InputError("no", "yes"), "refused", "no"),
    ],
)
def test_whatever_a_method_raises_has_a_state_and_a_reason(error, state, reason):
    def fail():
        raise error

    told = outcome(fail)
    assert told["state"] == state
    assert told["reason"].startswith(reason)


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
    """In place of processes: what was asked for, and an answer for each."""

    def __init__(self, monkeypatch, answers):
        self.asked, self._answers = [], answers
        monkeypatch.setattr(compare_runner, "run_job", self)

    def __call__(self, job, runs, listener):
        for settings in runs:
            self.asked.append((job.method, job.procedure == TRIAL, settings))
            yield self._answers(job, settings)


def done(value):
    per_query = [value] * 12
    score = {"measure": "mAP", "rule": "r", "queries": "in the graph", "per_query": per_query, "weights": 1.0}
    scores = [{**score, "cut": None, "low": value, "high": value}]
    return {**Cell("done", settings={}, seconds=1.0, milliseconds=2.0).as_dict(), "scores": scores}


def answers(job, settings):
    """A score of n_neighbors, 10 by default; 8 is refused."""
    n = settings.get("n_neighbors", 10)
    if n == 8:
        return {"state": "refused", "reason": "8", "hint": ""}
    return record(float(n)) if job.procedure == TRIAL else done(float(n))


METHODS = [Method(name, name, name) for name in ("knn", "aqe")]


def test_known_cells_are_not_run_again(monkeypatch, task, tmp_path):
    jobs = FakeJobs(monkeypatch, answers)
    path = tmp_path / "r.jsonl"
    first = run_comparison(task, METHODS[:1], RunOptions(), Results(path))
    second = run_comparison(task, METHODS, RunOptions(), Results(path))
    assert [one[0] for one in jobs.asked] == ["knn", "aqe"]
    assert [row.entry.kept for row in first.rows + second.rows] == [False, True, False]
    assert second.rows[0].entry.main.score.value == first.rows[0].entry.main.score.value == 10


@pytest.mark.parametrize("change", ["seed", "preprocess", "data", "version", "machine", "fresh"])
def test_whatever_a_cell_depends_on_makes_it_unknown(monkeypatch, task, tmp_path, change):
    jobs = FakeJobs(monkeypatch, answers)
    method = [Method("codes", "codes", "codes")]
    path = tmp_path / "r.jsonl"
    run_comparison(task, method, RunOptions(), Results(path))
    options = {"seed": RunOptions(seed=1), "preprocess": RunOptions("center"), "fresh": RunOptions(fresh=True)}
    if change == "data":
        task = task._replace(descriptors=task.descriptors + 1)
    if change == "version":
        monkeypatch.setattr(compare_runner, "__version__", "99")
    if change == "machine":
        monkeypatch.setenv("OMP_NUM_THREADS", "77")
    run_comparison(task, method, options.get(change, RunOptions()), Results(path))
    assert len(jobs.asked) == 2


@pytest.mark.parametrize(
    ("state", "before", "after", "n_runs"),
    [
        ("refused", RunOptions(), RunOptions(retry=True), 1),
        ("failed", RunOptions(), RunOptions(), 1),
        ("failed", RunOptions(), RunOptions(retry=True), 2),
        ("failed", RunOptions(limit=5), RunOptions(limit=5), 1),
        ("failed", RunOptions(limit=5), RunOptions(limit=4), 1),
        ("failed", RunOptions(limit=5), RunOptions(limit=6), 2),
        ("failed", RunOptions(limit=5), RunOptions(), 2),
    ],
)
def test_failures_are_kept_unless_they_may_end_otherwise(monkeypatch, task, tmp_path, state, before, after, n_runs):
    jobs = FakeJobs(monkeypatch, lambda job, settings: {"state": state, "reason": "so", "hint": ""})
    for options in (before, after):
        table = run_comparison(task, METHODS[:1], options, Results(tmp_path / "r.jsonl"))
        assert (table.rows[0].entry.cell.state, table.rows[0].entry.cell.reason) == (state, "so")
        assert table.measure is None
    assert len(jobs.asked) == n_runs


def test_tuning_takes_the_best_of_the_grid_and_measures_it_as_a_cell(monkeypatch, task, tmp_path):
    jobs = FakeJobs(monkeypatch, answers)
    table = run_comparison(task, METHODS, RunOptions(tune=True), Results(tmp_path / "r.jsonl"))
    knn, aqe = table.rows
    assert knn.tuned is None
    assert aqe.tuned.chosen == {"n_neighbors": 50}
    assert aqe.tuned.entry.main.score.value == 50
    assert (aqe.tuned.tried, aqe.tuned.unusable) == (10, 1)
    assert aqe.entry.main.score.value == 10, "the default stays beside it"
    assert aqe.tuned.entry.against.mean == 40
    assert sum(is_trial for _, is_trial, _ in jobs.asked) == 10
    asked = len(jobs.asked)
    again = run_comparison(task, METHODS, RunOptions(tune=True), Results(tmp_path / "r.jsonl"))
    assert len(jobs.asked) == asked
    assert again.rows[1].tuned.entry.kept


def test_a_default_that_nothing_beats_is_the_tuned_one(monkeypatch, task, tmp_path):
    FakeJobs(monkeypatch, lambda job, settings: record(1.0) if job.procedure == TRIAL else done(2.0))
    table = run_comparison(task, METHODS, RunOptions(tune=True), Results(tmp_path / "r.jsonl"))
    assert table.rows[1].tuned.chosen == {}
    assert table.rows[1].tuned.entry is table.rows[1].entry


def test_an_interrupted_search_of_settings_goes_on_where_it_was(monkeypatch, task, tmp_path):
    def interrupted(job, settings):
        if settings.get("n_neighbors") == 5:
            raise KeyboardInterrupt
        return answers(job, settings)

    path, options = tmp_path / "r.jsonl", RunOptions(tune=True)
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
        run_comparison(task, METHODS, RunOptions(measure="P@3"), Results(tmp_path / "r.jsonl"))
    assert len(jobs.asked) == 1


def test_progress_counts_the_cells_and_the_settings(monkeypatch, task, tmp_path):
    FakeJobs(monkeypatch, answers)
    told = []
    run_comparison(task, METHODS, RunOptions(tune=True), Results(tmp_path / "r.jsonl"), told.append)
    assert told[0] == Progress("comparing on toy", 0, 3, "knn")
    assert Progress("comparing on toy", 3, 3, "aqe") in told
    assert Progress("tuning aqe", 10, 10) in told


def test_the_folder_of_the_task_is_gone_afterwards(monkeypatch, task, tmp_path):
    folders = []
    FakeJobs(monkeypatch, lambda job, settings: folders.append(job.folder) or answers(job, settings))
    run_comparison(task, METHODS[:1], RunOptions(), Results(tmp_path / "r.jsonl"))
    assert not folders[0].exists()


def test_an_own_method_is_kept_under_the_text_of_its_file(monkeypatch, task, own, tmp_path):
    FakeJobs(monkeypatch, answers)
    path = tmp_path / "r.jsonl"
    methods = choose_methods(f"{own}:Good", [])
    table = run_comparison(task, methods, RunOptions(tune=True), Results(path))
    assert table.rows[0].method == "own.py:Good"
    assert table.rows[0].tuned is None
    kept = json.loads(path.read_text())["key"]
    assert kept["method"].startswith("own.py:Good ")
    assert os.sep not in kept["method"]
