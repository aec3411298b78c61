"""`manifind evaluate` as a user sees it: scores with rules, comparisons, files, and mistakes in words."""

import csv
import json

import numpy as np
import pytest

IMAGES = ["church_0", "church_1", "church_2", "tower_0", "tower_1", "street_0"]
LISTS = [{"ok": [0, 1], "junk": [2]}, {"ok": [3, 4], "junk": []}]


@pytest.fixture
def truth(tmp_path):
    path = tmp_path / "gnd_town.json"
    path.write_text(json.dumps({"gnd": LISTS, "imlist": IMAGES, "qimlist": ["church_0", "tower_0"]}))
    return path


@pytest.fixture
def positions(tmp_path):
    path = tmp_path / "mine.npy"
    np.save(path, np.array([[0, 2, 1, 3, 4, 5], [3, 5, 0, 4, 1, 2]]))
    return path


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "theirs.run"
    rankings = {"tower_0": ["tower_0", "tower_1"], "church_0": ["street_0", "church_2", "church_0.jpg"]}
    lines = [
        f"{query} Q0 {item} {rank} {-rank} them"
        for query, items in rankings.items()
        for rank, item in enumerate(items, 1)
    ]
    path.write_text("\n".join(lines))
    return path


def by_measure(out):
    return {row["measure"]: row for row in json.loads(out)}


def test_positions_are_scored_by_the_protocol_of_the_lists(command, positions, truth):
    scores = by_measure(command("evaluate", positions, truth, "--json").out)
    second = (1 + 1) / 2 / 2 + (1 / 3 + 2 / 4) / 2 / 2  # right at ranks 0 and 3
    assert scores["mAP"]["value"] == pytest.approx(100 * (1 + second) / 2)
    assert scores["mAP"]["per_query"] == pytest.approx({"church_0": 100, "tower_0": 100 * second})
    assert scores["P@1"]["value"] == 100
    assert "junk removed" in scores["mAP"]["rule"]


def test_a_run_by_names_may_be_cut_and_says_so(command, run, truth):
    scores = by_measure(command("evaluate", run, truth, "--json").out)
    church = (0 + 1 / 2) / 2 / 2  # street first, church_2 is junk, church_1 is never found
    assert scores["mAP"]["per_query"] == pytest.approx({"church_0": 100 * church, "tower_0": 100})
    assert scores["mAP"]["cut"] == 2


def test_the_terminal_shows_score_rule_where_the_queries_were_and_every_query(command, positions, truth):
    out = command("evaluate", positions, truth, "--queries", "unseen", "-k", 2).out
    for text in ("mAP", "P@2", "rule 1: good and ok are right", "queries unseen", "church_0", "tower_0"):
        assert text in out


def test_two_rankings_are_compared_with_an_interval(command, positions, truth, tmp_path):
    np.save(tmp_path / "theirs.npy", np.load(positions)[:, ::-1])
    out = command("evaluate", positions, truth, "--against", tmp_path / "theirs.npy").out
    assert "95% interval" in out
    assert "better / worse / same" in out
    assert "paired bootstrap" in out


def test_a_cut_ranking_is_not_compared_with_a_whole_one(refused, positions, run, truth):
    assert "cut at 2" in refused("evaluate", positions, truth, "--against", run)[0]


def test_values_of_every_query_go_to_a_file(command, positions, truth, tmp_path):
    target = tmp_path / "values.csv"
    out = command("evaluate", positions, truth, "--per-query", target).out
    rows = list(csv.DictReader(target.read_text().splitlines()))
    assert [row["query"] for row in rows] == ["church_0", "tower_0"]
    assert float(rows[0]["mAP"]) == 100
    assert str(target) in out


def test_labels_give_map_and_the_bullseye_under_three_rules(command, tmp_path):
    np.save(tmp_path / "labels.npy", np.array([0, 0, 1, 1]))
    np.save(tmp_path / "ranks.npy", np.array([[0, 2, 1, 3], [1, 0, 2, 3], [2, 3, 0, 1], [3, 0, 2, 1]]))
    out = command("evaluate", tmp_path / "ranks.npy", tmp_path / "labels.npy", "--window", 2, "--json").out
    scores = by_measure(out)
    assert scores["mAP"]["value"] == pytest.approx(100 * (1 / 2 + 1 + 1 + 1 / 2) / 4)
    assert scores["bullseye@2 counted"]["value"] == pytest.approx(100 * 6 / 8)
    assert scores["bullseye@2 left-out"]["value"] == pytest.approx(100 * 4 / 8)
    assert scores["bullseye@2 left-out-others"]["value"] == pytest.approx(100)


def test_the_landmark_protocol_asks_for_every_right_image(command, tmp_path, truth):
    order = [0, 1, 3, 4]  # church_0, church_1, tower_0, tower_1
    np.save(tmp_path / "all.npy", np.array([[one, *(i for i in range(6) if i != one)] for one in order]))
    out = command("evaluate", tmp_path / "all.npy", truth, "--protocol", "landmarks", "--json").out
    assert list(by_measure(out)["mAP"]["per_query"]) == [IMAGES[i] for i in order]


def test_more_than_a_hundred_queries_are_shown_by_quartiles(command, tmp_path):
    labels = np.arange(120) % 3
    np.save(tmp_path / "labels.npy", labels)
    np.save(tmp_path / "ranks.npy", np.stack([np.roll(np.arange(120), -i) for i in range(120)]))
    out = command("evaluate", tmp_path / "ranks.npy", tmp_path / "labels.npy").out
    assert "three quarters" in out
    assert "--per-query" in out


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda a: a.T, "6 queries; expected 2"),
        (lambda a: a + 1, "the position 6, but the database has 6 items"),
        (lambda a: a[:1], "1 query; expected 2"),
        (lambda a: np.where(a == 5, 0, a), "expected every item once"),
        (lambda a: a.astype(float), "expected whole numbers or strings"),
    ],
)
def test_rankings_that_cannot_be_scored_are_refused_in_words(refused, positions, truth, change, problem):
    np.save(positions, change(np.load(positions)))
    assert problem in refused("evaluate", positions, truth)[0]


def test_options_that_do_not_fit_the_ground_truth_are_refused(refused, positions, truth, tmp_path):
    assert "--window is for labels" in refused("evaluate", positions, truth, "--window", 3)[0]
    np.save(tmp_path / "labels.npy", np.arange(6) % 2)
    assert "for lists" in refused("evaluate", positions, tmp_path / "labels.npy", "--distractors", 3)[0]


def test_a_query_that_the_run_leaves_out_is_named(refused, tmp_path, truth):
    path = tmp_path / "short.run"
    path.write_text("church_0 Q0 church_1 1 0.5 me\n")
    assert "'tower_0'" in refused("evaluate", path, truth)[0]
