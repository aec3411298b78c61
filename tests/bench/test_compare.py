"""Tests of manifind.compare: data of every kind, and tables for pandas and Jupyter."""

import sys

import numpy as np
import pytest

import manifind
from manifind.bench.compare import MethodComparison, compare
from manifind.errors import InputError, MissingExtraError


@pytest.fixture
def data():
    labels = np.repeat(["a", "b", "c"], 8)
    X = np.random.default_rng(0).normal(size=(24, 5)) + 3 * np.eye(3, 5)[np.repeat([0, 1, 2], 8)]
    return X.astype(np.float32), labels


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tmp_path_factory.mktemp("results") / "results.jsonl"


@pytest.fixture
def found(data, saved):
    """Two methods by default, one of them tuned; run once for all tests."""
    return compare(data, ["knn", "aqe"], tune=True, tune_budget=2, results=saved)


def test_arrays_with_labels_give_a_row_for_each_method(found):
    (table,) = found.tables
    assert [row.method for row in table.rows] == ["knn", "aqe"]
    assert (table.items, table.dimension, table.queries, table.measure) == (24, 5, 24, "mAP")
    assert 50 < table.rows[0].entry.main.score.value <= 100


def test_pandas_has_scores_intervals_differences_and_times(found):
    frame = found.to_pandas()
    assert frame["method"].tolist() == ["knn", "aqe", "aqe"]
    assert frame["settings"].tolist() == ["default", "default", "tuned with the labels"]
    assert (frame["low"] <= frame["score"]).all()
    assert (frame["score"] <= frame["high"]).all()
    assert np.isnan(frame["against_knn"][0])
    assert frame["against_knn"][1] == pytest.approx(frame["score"][1] - frame["score"][0])
    assert (frame["prepare_s"] >= 0).all()


def test_without_pandas_it_is_said_what_to_install(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="needs pandas"):
        found.to_pandas()


def test_jupyter_and_the_terminal_show_every_method_and_what_the_columns_mean(found):
    for shown in (found._repr_html_(), repr(found)):
        assert "arrays: 24 items, 5 dimensions, 24 queries, descriptors unit" in shown
        assert "aqe" in shown
        assert "95 % interval: bootstrap over the queries" in shown
    assert "<script" not in found._repr_html_()


def test_names_are_escaped_in_jupyter(found):
    (table,) = found.tables
    assert "&lt;b&gt;" in MethodComparison([table._replace(name="<b>")], 0)._repr_html_()


def test_what_is_saved_is_not_run_again(data, found, saved):
    before = saved.read_bytes()
    again = compare(data, "knn,aqe", tune=True, tune_budget=2, results=saved)
    assert saved.read_bytes() == before
    assert all(row.entry.is_cached for row in again.tables[0].rows)


def test_a_file_and_the_same_arrays_have_the_same_scores(data, found, saved, tmp_path):
    np.savez(tmp_path / "mine.npz", X=data[0], labels=data[1])
    (table,) = compare(tmp_path / "mine.npz", "knn", results=saved).tables
    assert table.rows[0].entry.main.score.value == found.tables[0].rows[0].entry.main.score.value


def test_a_collection_with_labels_is_compared_by_its_descriptors(data, found, saved, tmp_path):
    settings = {"layers": (8, 8), "max_steps": 1, "guard": False, "random_state": 0}
    collection = manifind.GradNet(**settings).fit(data[0]).save(tmp_path / "items.manifind")
    (table,) = compare(collection, "knn", truth=data[1], results=saved).tables
    assert table.name == "items"
    assert table.rows[0].entry.main.score.value == found.tables[0].rows[0].entry.main.score.value


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (np.ones((3, 2)), {}, "data is of type ndarray"),
        ((np.ones((3, 2)), [0, 1]), {}, r"descriptors of shape \(3, 2\) with labels of shape \(2,\)"),
        ((np.ones((3, 2)), [0, 1, 2]), {}, "no two items of arrays share a label"),
        ((np.ones((3, 2)), [0, 0, 2]), {"truth": "x.json"}, "truth is for a collection"),
        ((np.ones((3, 2)), [0, 0, 2]), {"protocol": "official"}, "protocol and only are for files"),
        ((np.ones((3, 2)), [0, 0, 2]), {"methods": ["nothing"]}, "there is no method called 'nothing'"),
        ("nowhere", {"truth": [0, 1]}, "truth is for a collection, and nowhere is none"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(data, options, words):
    with pytest.raises(InputError, match=words):
        compare(data, **options)


def test_the_public_name_is_this_function():
    assert manifind.compare is compare
