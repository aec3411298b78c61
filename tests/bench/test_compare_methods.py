"""Tests of manifind.bench.methods, .compare_cell and .tuning: which methods run, and one run of one."""

import sys

import numpy as np
import pytest

from manifind.baselines import METHODS
from manifind.baselines.query_expansion import AQE, KNN
from manifind.bench.cell import Cell, peak_bytes, rank_task, read_cell, run_cell, trial
from manifind.bench.methods import GRIDS, accepts, candidates, choose_methods, load_factory, make
from manifind.bench.task import LabelTruth, RetrievalTask
from manifind.errors import InputError, ManifindError
from manifind.evaluation.protocols import compare
from manifind.progress import Progress, ignore

KNOWN = ["knn", "aqe", "gradnet"]


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 8)
    X = 3 * rng.normal(size=(3, 5))[labels] + rng.normal(size=(24, 5))
    return RetrievalTask("toy", X.astype(np.float32), None, None, LabelTruth(labels, None))


class Plain:
    """A method that knows nothing of settings."""

    def fit(self, X, queries=None):
        self.X = X
        return self

    def search(self, Q=None, k=10):
        apart = np.linalg.norm((self.X if Q is None else Q)[:, None] - self.X, axis=2)
        return np.argsort(apart, axis=1, kind="stable")[:, :k]


def labels_of(methods):
    return [one.label for one in methods]


def test_all_are_the_known_ones_in_their_order():
    assert labels_of(choose_methods("all", KNOWN)) == KNOWN


def test_names_are_put_into_the_known_order_and_taken_once():
    assert labels_of(choose_methods("gradnet, knn,gradnet", KNOWN)) == ["knn", "gradnet"]


@pytest.mark.parametrize("wanted", ["", "KNN", "knn,,aqe", "knn,all", "mr"])
def test_an_unknown_name_is_refused_with_all_names(wanted):
    with pytest.raises(InputError, match="expected 'all', or some of knn, aqe, gradnet"):
        choose_methods(wanted, KNOWN)


def test_a_class_of_the_user_s_own_stands_behind_and_its_file_is_not_run(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("raise SystemExit\n\nclass Mine:\n    pass\n")
    methods = choose_methods(f"{file}:Mine,knn", KNOWN)
    assert labels_of(methods) == ["knn", "mine.py:Mine"]
    assert [one.is_own for one in methods] == [False, True]


def test_another_text_of_the_file_is_another_method(tmp_path):
    file = tmp_path / "mine.py"
    identities = set()
    for text in ("class Mine: pass", "class Mine: a = 1"):
        file.write_text(text)
        identities.add(choose_methods(f"{file}:Mine", KNOWN)[0].identity)
    assert len(identities) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot be read as a Python file"),
        ("class Mine(", "cannot be read as a Python file"),
        ("a\0b", "cannot be read as a Python file"),
        ("Mine = 3", "defines no class called 'Mine'; it has none at all"),
        ("class Other: pass", "defines no class called 'Mine'; it has Other"),
    ],
)
def test_a_file_without_the_class_is_refused(text, problem, tmp_path):
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=problem) as caught:
        choose_methods(f"{file}:Mine", KNOWN)
    assert "FILE.py:NAME" in caught.value.hint


def test_a_file_may_import_what_lies_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "beside_it_of_compare.py").write_text("VALUE = 3")
    (tmp_path / "mine.py").write_text("from beside_it_of_compare import VALUE\nclass Mine:\n    value = VALUE\n")
    assert load_factory(f"{tmp_path / 'mine.py'}:Mine").value == 3


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_can_be_made_with_what_all_are_told(name):
    (method,) = choose_methods(name, list(METHODS))
    settings = method.shared_settings("center", 7)
    assert settings["preprocess"] == "center"
    assert make(load_factory(name), settings).get_params()["preprocess"] == "center"
    assert ("random_state" in settings) == accepts(METHODS[name], "random_state")


def test_a_method_without_settings_is_handed_preprocessed_descriptors(task):
    settings = {"preprocess": "center", "random_state": 0}
    ids, _, shown = rank_task(task, Plain, settings, ignore)
    expected, _, _ = rank_task(task, KNN, settings, ignore)
    np.testing.assert_array_equal(ids, expected)
    assert shown == settings


def test_queries_that_are_items_are_asked_by_their_rows(task):
    few = task._replace(query_items=np.array([3, 20]))
    ids, _, _ = rank_task(few, KNN, {"preprocess": "unit"}, ignore)
    every, _, _ = rank_task(task, KNN, {"preprocess": "unit"}, ignore)
    np.testing.assert_array_equal(ids, every[[3, 20]])


def test_queries_from_outside_are_known_to_fit(task):
    seen = []

    class Curious(Plain):
        def fit(self, X, queries=None):
            seen.append(queries)
            self.Q = queries
            return super().fit(X)

        def search(self, Q=None, k=10):
            return super().search(self.Q, k)

    ids, _, _ = rank_task(task._replace(queries=task.descriptors[:2]), Curious, {}, ignore)
    assert ids.shape == (2, 24)
    np.testing.assert_array_equal(seen[0], task.descriptors[:2])


def test_a_method_that_tells_its_progress_is_heard(task):
    class Talks(Plain):
        def fit(self, X, queries=None, *, listener):
            listener(Progress("thinking", 1, 2))
            return super().fit(X)

    reports = []
    rank_task(task, Talks, {}, reports.append)
    assert [one.stage for one in reports] == ["thinking"]


def test_the_interval_is_the_bootstrap_of_the_mean_and_holds_the_value(task):
    (scored,) = run_cell(task, KNN, {}, ignore).scores
    per_query = scored.score.per_query
    draws = per_query[np.random.default_rng(5).integers(24, size=(20_000, 24))].mean(axis=1)
    assert scored.low < scored.score.value < scored.high
    np.testing.assert_allclose((scored.low, scored.high), np.quantile(draws, [0.025, 0.975]), atol=0.5)


def test_a_trial_has_the_values_of_a_cell(task):
    cell = run_cell(task, AQE, {"n_neighbors": 3}, ignore)
    values = trial(task, AQE, {"settings": {"n_neighbors": 3}}, ignore)["values"]
    assert values == {one.score.measure: one.score.value for one in cell.scores}


def test_a_cell_survives_being_written_down(task):
    empty = task._replace(truth=LabelTruth(np.append(task.truth.labels[:-1], 9), 5))
    cell = run_cell(empty, KNN, {"preprocess": "unit"}, ignore)
    assert np.isnan(cell.scores[0].score.per_query[-1])
    again = read_cell(cell.as_dict())
    assert again._replace(scores=()) == cell._replace(scores=())
    for one, two in zip(again.scores, cell.scores, strict=True):
        assert (one.low, one.high, one.score.value) == (two.low, two.high, two.score.value)
        assert compare(one.score, two.score).mean == 0


@pytest.mark.parametrize("change", [{"state": "?"}, {"scores": []}, {"seconds": None}, {"scores": [{}]}, {"scores": 3}])
def test_what_is_no_cell_is_not_read_as_one(change, task):
    record = {**run_cell(task, KNN, {}, ignore).as_dict(), **change}
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_cell(record)


def test_a_refused_cell_needs_a_reason_only():
    cell = Cell("refused", "too many items", "take fewer")
    assert read_cell(cell.as_dict()) == cell


def test_rankings_that_cannot_be_scored_are_no_refusal(task):
    class Twice(Plain):
        def search(self, Q=None, k=10):
            return np.zeros((24, 3), dtype=int)

    with pytest.raises(ManifindError, match="its rankings cannot be scored: row 0") as caught:
        run_cell(task, Twice, {}, ignore)
    assert not isinstance(caught.value, InputError)


def test_the_peak_grows_with_what_is_held():
    before = peak_bytes()
    held = np.ones(before // 8 + 4_000_000)
    assert peak_bytes() >= before + 30_000_000
    assert held[0] == 1


def test_a_method_without_a_grid_is_not_tuned():
    assert candidates("knn", KNN) == []
    assert "gradnet" not in GRIDS
    assert "gradnet-paper" not in GRIDS


@pytest.mark.parametrize("name", [name for name in GRIDS if name in METHODS])
def test_a_grid_names_settings_that_the_method_has_and_takes(name, task):
    defaults = METHODS[name]().get_params()
    assert set(GRIDS[name]) <= set(defaults)
    few = candidates(name, METHODS[name], budget=1)
    assert few[0].keys() == GRIDS[name].keys()


def test_a_grid_is_every_combination_and_a_budget_draws_from_it():
    every = candidates("alpha-qe", lambda n_neighbors, alpha: None)
    assert len(every) == 50
    few = candidates("alpha-qe", lambda n_neighbors, alpha: None, budget=7, seed=1)
    assert len(few) == 7
    assert all(one in every for one in few)
    assert few == candidates("alpha-qe", lambda n_neighbors, alpha: None, budget=7, seed=1)
    more = candidates("alpha-qe", lambda n_neighbors, alpha: None, budget=20, seed=1)
    assert all(one in more for one in few)  # what was tried stays part of what is tried
    assert few != candidates("alpha-qe", lambda n_neighbors, alpha: None, budget=7, seed=2)


def test_what_a_method_does_not_have_is_left_out_of_its_grid():
    assert candidates("alpha-qe", lambda alpha: None) == [{"alpha": float(alpha)} for alpha in range(5)]
