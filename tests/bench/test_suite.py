"""Suites: their tasks, a small one from end to end, and what is missing said so."""

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from manifind.baselines.query_expansion import KNN
from manifind.bench import suite
from manifind.bench.sets import SETS, file_set
from manifind.bench.suite import SUITES, Member, read_member
from manifind.cli.app import app
from manifind.datasets.catalogue import VARIABLE
from manifind.datasets.synthetic import make_pairs
from manifind.errors import DataError, InputError
from reference.graphs import clusters

LOCAL = SUITES["local"]


def test_every_pair_has_one_relative_that_is_mostly_the_nearest():
    X, labels = make_pairs(200, 32, seed=1)
    assert X.shape == (400, 32)
    assert (np.bincount(labels) == 2).all()
    ids = KNN().fit(X).search(k=2).ids[:, 1]
    assert 0.8 < (labels[ids] == labels).mean() < 1


def test_fewer_than_two_pairs_are_refused():
    with pytest.raises(InputError, match="n = 1, d = 64"):
        make_pairs(1)


@pytest.mark.parametrize("name", ["digits", "pairs"])
def test_sets_that_need_no_file_are_there(name):
    member = next(one for one in LOCAL if one.name == name)
    task = read_member(member)
    assert task.name == name
    assert task.truth.relevance(task.query_items, member.measure)[1].name == member.measure


def test_a_set_whose_file_is_missing_says_where_it_should_be(tmp_path):
    with pytest.raises(DataError, match="ORL is not here") as caught:
        read_member(LOCAL[0], tmp_path)
    assert "in the folder orl" in caught.value.hint


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} is not set")
def test_every_set_here_has_its_measure():
    for member in LOCAL:
        task = read_member(member)
        assert task.truth.relevance(task.query_items, member.measure)[1].name == member.measure


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--suite", "global"], "suite = 'global'; expected one of 'local'"),
        (["digits", "--suite", "local"], "a suite says itself"),
        (["--suite", "local", "--methods", "knn"], "a suite says itself"),
        (["--suite", "local", "--window", "3"], "a suite says itself"),
        (["--suite", "local", "--seed", "5"], "a suite says itself"),
        (["--suite", "local", "--preprocess", "center"], "a suite says itself"),
    ],
)
def test_what_does_not_go_with_a_suite_is_refused(arguments, words):
    result = CliRunner().invoke(app, ["compare", *arguments])
    assert words in str(result.exception)


def test_nothing_to_compare_on_is_wrong_usage():
    result = CliRunner().invoke(app, ["compare"])
    assert result.exit_code == 2
    assert "name a data set, or --suite local" in " ".join(result.output.replace("│", " ").split())


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Two members, one of them missing, one peer and two seeds."""
    X = clusters(60, 6, 6, seed=0) + 0.5 * np.random.default_rng(0).normal(size=(60, 6))
    np.savez(tmp_path / "mine.npz", vectors=X.astype(np.float32), labels=np.arange(60) % 6)
    for name in ("mine", "theirs"):
        monkeypatch.setitem(SETS, name, file_set(name, f"{name}.npz"))
    monkeypatch.setitem(suite.SUITES, "local", (Member("mine", "mine"), Member("theirs", "theirs")))
    monkeypatch.setattr(suite, "PEERS", ("aqe",))
    monkeypatch.setattr(suite, "SEEDS", (0, 1))
    return ["compare", "--suite", "local", "--folder", str(tmp_path), "--results", str(tmp_path / "kept.jsonl")]


@pytest.mark.slow
def test_a_small_suite_from_end_to_end(small, tmp_path):
    result = CliRunner().invoke(app, [*small, "--tune-budget", "3", "--json"])
    assert result.exit_code == 0, result.output
    ours, missing = json.loads(result.stdout)["sets"]
    assert (missing["set"], "theirs is not here" in missing["missing"]) == ("theirs", True)
    assert ours["best_tuned_peer"]["method"] == "aqe"
    assert ours["best_tuned_peer"]["value"] >= 0
    assert len(ours["gradnet"]["values"]) == 2
    assert ours["gradnet"]["mean"] == pytest.approx(np.mean(ours["gradnet"]["values"]))
    assert set(ours["held_out"]) == {"in_graph", "unseen", "thinner"}
    lines = (tmp_path / "kept.jsonl").read_text().count("\n")
    shown = CliRunner().invoke(app, [*small, "--tune-budget", "3"])
    assert shown.exit_code == 0
    assert "theirs was not run" in shown.stdout
    assert f"{ours['gradnet']['mean']:.1f} ±" in shown.stdout
    assert (tmp_path / "kept.jsonl").read_text().count("\n") == lines  # nothing ran twice
