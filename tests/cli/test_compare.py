"""manifind compare from one end to the other, as a user calls it; methods in a file of their own start quickly."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from manifind import worker
from manifind.bench.cell import peak_bytes

OWN = '''
"""Methods of a user's own."""
import os
import time
from pathlib import Path
import numpy as np
from manifind.errors import InputError


class Near:
    """k-NN in three lines."""
    def fit(self, X, queries=None):
        self.X, self.Q = X, X if queries is None else queries
        return self
    def search(self, Q=None, k=10):
        apart = np.linalg.norm((self.Q if Q is None else Q)[:, None] - self.X, axis=2)
        return np.argsort(apart, axis=1, kind="stable")[:, :k]


class Far(Near):
    def search(self, Q=None, k=10):
        return super().search(Q, k)[:, ::-1]


class Refuses(Near):
    def fit(self, X, queries=None):
        raise InputError("12 items are too many", "take fewer")


class Breaks(Near):
    def fit(self, X, queries=None):
        return self.not_there


class Sleeps(Near):
    def fit(self, X, queries=None):
        Path(__file__).with_suffix(".pid").write_text(f"{os.getpid()}.")
        time.sleep(600)
'''


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "own.py"


@pytest.fixture
def mine(tmp_path):
    """Twelve points of two classes that lie apart, and noise with the same labels."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["cat", "dog"], 6)
    points = np.where(labels == "cat", 1.0, -1.0)[:, None] * [1, 2] + 0.1 * rng.normal(size=(12, 2))
    np.savez(tmp_path / "mine.npz", points=points, noise=rng.normal(size=(12, 3)), labels=labels)
    return tmp_path / "mine.npz"


@pytest.fixture
def compare(command, mine, own, tmp_path):
    """Calls `manifind compare mine.npz --only points` with methods of own.py by their class."""

    def run(methods, *options, data=mine, only=("--only", "points")):
        addresses = ",".join(f"{own}:{one}" if one[0].isupper() else one for one in methods.split(","))
        results = () if "--results" in options else ("--results", tmp_path / "r.jsonl")
        return command("compare", data, "--methods", addresses, *only, *results, *options)

    return run


@pytest.fixture
def no_process(monkeypatch):
    """From here on no process may be started."""
    return lambda: monkeypatch.setattr(
        worker.subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started")
    )


def rows(result):
    (one,) = json.loads(result.out)["sets"]
    return {row["method"].split(":")[-1]: row for row in one["rows"]}


def test_a_method_in_each_row_with_score_interval_and_cost_and_the_reasons_below(compare, tmp_path):
    result = compare("knn,Near,Far,Refuses,Breaks", "--html", tmp_path / "page.html", "--window", 6)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0].startswith("mine: points: 12 items, 2 dimensions, 12 queries, descriptors unit")
    table = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert [row[0] for row in table] == ["knn", *(f"own.py:{n}" for n in ("Near", "Far", "Refuses", "Breaks"))]
    assert [row[1] for row in table[:2]] == ["100.00", "100.00"]
    assert table[0][2] == "100.0-100.0"
    assert table[1][3] == "(+0.00)"
    assert table[2][3].startswith("-")
    assert all(float(row[column].strip("< ").replace(",", "")) > 0 for row in table[:3] for column in (4, 5, 6))
    assert [row[1] for row in table[3:]] == ["refused", "failed"]
    assert "own.py:Refuses refused: 12 items are too many; take fewer" in lines
    assert any(line.startswith("own.py:Breaks failed: AttributeError: ") for line in lines)
    assert any(line.startswith("against k-NN: mean difference query by query, in brackets") for line in lines)
    assert any(line.startswith("rule: same label is right, the query left out;") for line in lines)
    assert f"look at it: {tmp_path / 'page.html'}" in lines
    assert "own.py:Far" in (tmp_path / "page.html").read_text()
    assert str(tmp_path / "r.jsonl") in result.err


def test_json_has_every_row_with_its_scores_rules_and_provenance(compare):
    result = compare("Near,Refuses", "--window", 6, "--json")
    printed = json.loads(result.out)
    assert set(printed) == {"source", "provenance", "sets"}
    assert set(printed["provenance"]) == {"versions", "machine", "seed"}
    (one,) = printed["sets"]
    assert {name: one[name] for name in ("name", "items", "dimension", "queries", "preprocess", "measure")} == {
        "name": "mine: points",
        "items": 12,
        "dimension": 2,
        "queries": 12,
        "preprocess": "unit",
        "measure": "mAP",
    }
    near, refuses = rows(result).values()
    assert set(near) == set(refuses)
    assert (near["state"], near["reason"], near["value"], near["interval"]) == ("done", None, 100, [100, 100])
    assert [score["measure"] for score in near["scores"]][:2] == ["mAP", "bullseye@6 counted"]
    assert all(score["queries"] == "in the graph" and score["rule"] for score in near["scores"])
    assert near["tuned_with_the_labels"] is None
    assert (refuses["state"], refuses["reason"], refuses["hint"]) == ("refused", "12 items are too many", "take fewer")
    assert refuses["value"] is refuses["seconds_to_prepare"] is None


def test_the_peak_is_of_the_method_s_own_process_not_of_a_large_parent(compare):
    held = np.ones(50_000_000)
    near = rows(compare("Near", "--json"))["Near"]
    assert held[0] == 1
    assert 0 < near["peak_bytes_before"] <= near["peak_bytes"] < peak_bytes() - 200_000_000


def test_a_second_run_starts_no_process_and_says_the_same(compare, no_process):
    first = compare("Near,Breaks")
    no_process()
    assert compare("Near,Breaks").out == first.out
    again = rows(compare("Near,Breaks", "--json"))
    assert all(row["kept_from_an_earlier_run"] for row in again.values())


def test_a_file_that_was_cut_is_completed(compare, tmp_path):
    compare("Near,Far")
    path = tmp_path / "r.jsonl"
    path.write_bytes(path.read_bytes()[:-100])
    result = compare("Near,Far", "--json")
    assert f"{path}: damaged lines left out: 1" in result.err
    kept = {name: row["kept_from_an_earlier_run"] for name, row in rows(result).items()}
    assert kept == {"Near": True, "Far": False}
    assert all(row["kept_from_an_earlier_run"] for row in rows(compare("Near,Far", "--json")).values())


def test_ctrl_c_ends_the_process_of_the_method_and_leaves_what_is_finished(compare, mine, own, tmp_path):
    results = tmp_path / "r.jsonl"
    arguments = ["compare", mine, "--only", "points", "--methods", f"{own}:Near,{own}:Sleeps"]
    running = subprocess.Popen(
        [sys.executable, "-m", "manifind", *map(str, arguments), "--results", str(results)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pid = own.with_suffix(".pid")
    while not (pid.is_file() and pid.read_text().endswith(".")):
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate()
    assert running.returncode == 130
    assert "Traceback" not in err
    assert f"stopped; what is finished is kept in {results}: the same command goes on from there" in err
    assert out == ""
    assert len(results.read_text().splitlines()) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()[:-1]), 0)
    assert rows(compare("Near", "--json"))["Near"]["kept_from_an_earlier_run"]


def test_a_time_limit_is_a_failure_that_says_so(compare):
    row = rows(compare("Sleeps", "--time-limit", 1, "--json"))["Sleeps"]
    assert (row["state"], row["reason"]) == ("failed", "stopped after 1 s, the time limit")


def test_tuned_scores_are_called_so_and_stand_beside_the_default(compare, tmp_path):
    shown = compare("Near,aqe", "--tune", "--tune-budget", 2, "--html", tmp_path / "p.html").out
    assert "tuned with the labels" in shown.splitlines()[2]
    assert "aqe tuned with the labels: " in shown
    assert "(2 settings tried" in shown
    assert "which flatters; the default saw no label" in shown
    printed = rows(compare("Near,aqe", "--tune", "--tune-budget", 2, "--json"))
    assert printed["Near"]["tuned_with_the_labels"] is None
    tuned = printed["aqe"]["tuned_with_the_labels"]
    assert tuned["tried"] == 2
    assert tuned["value"] >= printed["aqe"]["value"]


def test_a_knn_of_one_s_own_has_the_scores_that_data_check_shows_for_knn(compare, command, mine):
    printed = rows(compare("Near", "--preprocess", "center", "--window", 4, "--json"))["Near"]
    (checked, _) = json.loads(command("data", "check", mine, "--window", 4, "--json").out)["contents"]
    expected = {one["measure"]: one["value"] for one in checked["knn"] if one["preprocess"] == "centred"}
    assert {one["measure"]: one["value"] for one in printed["scores"]} == pytest.approx(expected)


def test_every_array_has_a_table_unless_one_is_chosen(compare):
    printed = json.loads(compare("Near", "--json", only=()).out)
    assert [one["name"] for one in printed["sets"]] == ["mine: points", "mine: noise"]


def test_another_score_is_shown_where_it_is_asked_for(compare):
    shown = compare("Near", "--window", 6, "--measure", "bullseye@6 left-out").out
    assert "bullseye@6 left-out" in shown.splitlines()[2]
    assert "rule: same label is right; the query is left out, divided by the class size" in shown


def test_vectors_with_published_lists_are_compared_by_their_protocol(compare, tmp_path):
    folder = tmp_path / "town"
    folder.mkdir()
    lists = {"gnd": [{"ok": [0, 1], "junk": []}], "imlist": ["a", "b", "c"], "qimlist": ["a"]}
    (folder / "gnd_x.json").write_text(json.dumps(lists))
    np.savez(folder / "v.npz", vectors=[[1.0, 0], [0, 1], [1, 0.1]], names=["a", "b", "c"])
    official = json.loads(compare("Near", "--json", data=folder, only=()).out)["sets"][0]
    assert official["name"] == "town: v.npz with gnd_x.json"
    assert official["queries"] == 1
    assert official["rows"][0]["value"] == pytest.approx(100 * (1 + (1 / 2 + 2 / 3) / 2) / 2)
    asked = compare("Near", "--protocol", "landmarks", "--json", data=folder, only=())
    assert json.loads(asked.out)["sets"][0]["queries"] == 2


@pytest.mark.parametrize(
    ("options", "problem", "way_out"),
    [
        (["--methods", "nearest"], "there is no method called 'nearest'; expected 'all', or some of knn", "commas"),
        (["--methods", "nowhere.py:X"], "nowhere.py cannot be read as a Python file", "FILE.py:NAME"),
        (["--only", "faces"], "nothing here is called 'faces'; expected one of 'mine: points'", "--only"),
        (["--protocol", "official"], "--protocol is for published lists", "leave it out"),
    ],
)
def test_a_mistake_is_refused_with_a_way_out_before_anything_runs(
    refused, no_process, mine, tmp_path, options, problem, way_out
):
    no_process()
    printed, hint = refused("compare", mine, "--results", tmp_path / "r.jsonl", *options)
    assert problem in printed
    assert way_out in hint
    assert not (tmp_path / "r.jsonl").exists()


def test_a_way_of_preprocessing_that_is_none_is_refused(command, mine):
    result = command("compare", mine, "--preprocess", "bleach")
    assert result.code == 1
    assert "error: preprocess = 'bleach'; expected one of 'unit', 'center', 'whiten', 'none'" in result.err


def test_results_are_not_put_into_a_file_of_another_kind(refused, no_process, mine):
    no_process()
    problem, hint = refused("compare", mine, "--methods", "knn", "--results", mine)
    assert "holds something else than results" in problem
    assert "--results" in hint


@pytest.mark.parametrize(
    "options", [["--time-limit", "0"], ["--tune-budget", "0"], ["--seed", "-1"], ["--protocol", "all"], []]
)
def test_wrong_usage_ends_with_two(command, options):
    result = command("compare", *options, *(["digits"] if options else []))
    assert result.code == 2
    assert "Usage: manifind compare" in result.err
