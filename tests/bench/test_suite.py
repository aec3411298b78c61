"""Suites: their tasks, a small one from end to end, and what is missing said so."""

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from manifind.baselines.query_expansion import KNN
from manifind.bench import suite
from manifind.bench.results import Results
from manifind.bench.sets import SETS, file_set
from manifind.bench.suite import SUITES, Member, read_member, read_rows
from manifind.cli.app import app
from manifind.datasets.catalogue import VARIABLE
from manifind.datasets.synthetic import make_pairs
from manifind.errors import DataError, InputError
from project import ROOT
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


def test_workers_are_for_a_suite():
    result = CliRunner().invoke(app, ["compare", "digits", "--workers", "2"])
    assert "workers = 2, which are for a suite" in str(result.exception)


def test_nothing_to_compare_on_is_wrong_usage():
    result = CliRunner().invoke(app, ["compare"])
    assert result.exit_code == 2
    assert "name a data set, or --suite local" in " ".join(result.output.replace("│", " ").split())


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Two members, one of them missing and one under two preprocessings; one peer and two seeds."""
    X = clusters(60, 6, 6, seed=0) + 0.5 * np.random.default_rng(0).normal(size=(60, 6))
    np.savez(tmp_path / "mine.npz", vectors=X.astype(np.float32), labels=np.arange(60) % 6)
    for name in ("mine", "theirs"):
        monkeypatch.setitem(SETS, name, file_set(name, f"{name}.npz"))
    members = Member("mine", "mine", ("unit", "center"), {"dba": 2, "gss": 0}), Member("theirs", "theirs")
    monkeypatch.setitem(suite.SUITES, "local", members)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # every trial is saved there
    monkeypatch.setattr(suite, "PEERS", ("aqe", "dba", "gss"))
    monkeypatch.setattr(suite, "SEEDS", (0, 1))
    return ["compare", "--suite", "local", "--folder", str(tmp_path), "--results", str(tmp_path / "kept.jsonl")]


@pytest.mark.long
def test_a_small_suite_from_end_to_end(small, tmp_path):
    result = CliRunner().invoke(app, [*small, "--tune-budget", "3", "--json"])
    assert result.exit_code == 0, result.output
    ours, centred, missing = json.loads(result.stdout)["rows"]
    assert (missing["set"], "theirs is not here" in missing["missing"]) == ("theirs", True)
    assert [row["preprocess"] for row in (ours, centred)] == ["unit", "center"]
    assert {peer["method"]: (peer["tried"], peer["total"]) for peer in ours["peers"]} == {
        "aqe": (3, 10),
        "dba": (2, 50),
    }
    assert ours["best_tuned_peer"]["value"] == max(peer["value"] for peer in ours["peers"])
    assert len(ours["gradnet"]["values"]) == 2
    assert ours["gradnet"]["mean"] == pytest.approx(np.mean(ours["gradnet"]["values"]))
    assert ours["gradnet"] != centred["gradnet"]  # GRAD-Net sees what the others of its row see
    assert (set(ours["held_out"]), centred["held_out"]) == ({"in_graph", "unseen", "thinner"}, None)
    lines = (tmp_path / "kept.jsonl").read_text().count("\n")
    shown = CliRunner().invoke(app, [*small, "--tune-budget", "3"])
    assert shown.exit_code == 0
    assert "theirs was not run" in shown.stdout
    assert f"{ours['gradnet']['mean']:.1f} ±" in shown.stdout
    assert "searched in part: aqe 3 of 10, dba 2 of 50, gss none" in " ".join(shown.stdout.split())
    assert (tmp_path / "kept.jsonl").read_text().count("\n") == lines  # nothing ran twice
    deeper = [
        *small,
        "--tune-budget",
        "4",
        "--workers",
        "2",
    ]  # more settings: the peer that may have more is searched again
    assert CliRunner().invoke(app, deeper).exit_code == 0
    assert (tmp_path / "kept.jsonl").read_text().count("\n") == lines + 2
    records = {(key["method"], key["preprocess"]): one for key, one, _ in Results(tmp_path / "kept.jsonl").items()}
    assert len(records["aqe", "unit"]["scores"]) == records["aqe", "unit"]["tried"] == 4


def committed(name):
    return Results(ROOT / "docs" / "results" / name)


def test_every_row_of_the_committed_suite_is_there_and_says_how_far_its_grids_were_searched():
    for row in read_rows(LOCAL, committed("suite.jsonl")):
        assert row.missing is None, row.name
        assert len(row.peers) + sum(one.endswith(" none") for one in row.in_part) == len(suite.PEERS)
        assert row.best.value > row.knn, row.name
    for key, record, _ in committed("suite.jsonl").items():
        if key["kind"] == suite.TUNING:
            measure = SETS[key["set"]].measure
            assert len(record["scores"]) == record["tried"] <= record["total"]
            best = max(value for value in record["scores"] if value is not None)
            assert not record["chosen"] or record["values"][measure] == pytest.approx(best, abs=1e-3)


def test_the_k_nn_of_a_set_under_one_preprocessing_is_one_number_everywhere():
    found = {}
    for row in read_rows(LOCAL, committed("suite.jsonl")):
        found.setdefault((row.member.on, row.preprocess, row.member.measure), []).append(row.knn)
    for file in ("reproduction.jsonl", "readings.jsonl"):
        for key, record, _ in committed(file).items():
            if key["kind"] in ("reproduce trial", "reproduce score") and key["method"] == "knn":
                preprocess = key.get("settings", {}).get("preprocess", "unit")
                for measure, value in record["values"].items():
                    found.setdefault((key["set"], preprocess, measure), []).append(value)
    several = {about: values for about, values in found.items() if len(values) > 1}
    assert len(several) >= 9  # or it would compare nothing
    for about, values in several.items():
        assert values == pytest.approx([values[0]] * len(values), abs=0.005), about
