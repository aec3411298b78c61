"""Tuning: what is chosen by hand and by chance, and end to end with judgements of a collection."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from manifind import GradNet, load
from manifind.bench import tuning
from manifind.bench.tuning import FEWEST, choose, tune
from manifind.cli.app import app
from manifind.collection.searchable import QueryPart
from manifind.errors import CollectionError, InputError
from manifind.model.refit import policy_of, refit_when

SPACE = ({"n_neighbors": 3}, {"n_neighbors": 5000}, {"walk_weight": 0.0})


def groups(seed=0, n=15, per_group=12, d=12):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n), per_group)
    return (rng.normal(size=(n, d))[labels] + 0.8 * rng.normal(size=(len(labels), d))).astype(np.float32), labels


def judge(collection, labels, queries):
    for query in queries:
        answers = [int(one) for one in collection.search_ids([query], k=20).ids[0] if one != query]
        right = [one for one in answers if labels[one] == labels[query]]
        collection.judgements.add(QueryPart(id=query), right, [one for one in answers if one not in right])


@pytest.fixture
def judged(tmp_path):
    X, labels = groups()
    collection = GradNet(random_state=0, max_steps=5).fit(X).save(tmp_path / "c.manifind")
    judge(collection, labels, range(0, 180, 15))
    return collection


def test_a_candidate_that_is_better_for_every_query_is_chosen_with_its_gain():
    own = np.linspace(20, 60, 20)
    choice = choose([own, own - 5, own + 10])
    assert choice.best == 2
    assert choice.gain.mean == pytest.approx(10)
    assert choice.is_beyond_chance


def test_nothing_is_chosen_where_all_are_alike():
    own = np.linspace(20, 60, 20)
    choice = choose([own, own, own.copy()])
    assert choice.best == 0
    assert not choice.is_beyond_chance


def test_candidates_that_differ_by_chance_are_rarely_taken():
    rng = np.random.default_rng(0)
    taken = 0
    for _ in range(40):
        own = rng.uniform(20, 80, 20)
        taken += choose([own, *(own + rng.normal(0, 10, 20) for _ in range(11))]).is_beyond_chance
    assert taken <= 4


def test_the_gain_of_choosing_is_not_the_gain_of_the_luckiest():
    rng = np.random.default_rng(1)
    own = rng.uniform(20, 80, 20)
    values = [own, *(own + rng.normal(0, 10, 20) for _ in range(11))]
    luckiest = max(np.mean(one) for one in values) - own.mean()
    assert choose(values).gain.mean < luckiest


def test_tuning_scores_every_candidate_and_names_the_best(judged):
    found = tune(judged, SPACE, apply=False)
    assert [settings for settings, _ in found.scores] == [{}, *SPACE]
    assert found.scores[2][1] is None  # more neighbours than there are items
    assert found.scores[0][1] == pytest.approx(judged.judgements.scores().gradnet.mean)
    assert not found.refitted
    assert f"{found.n_queries} judged queries" in found.words


def test_settings_that_gain_are_fitted_and_kept_and_judgements_stay(judged, monkeypatch):
    better = {"walk_weight": 0.0}
    monkeypatch.setattr(tuning, "_fit_and_score", lambda *_: np.full(len(judged.judgements.usable()), 100.0))
    found = tune(judged, (better,))
    assert found.chosen == better
    assert found.refitted
    again = load(judged.path)
    assert again.settings["walk_weight"] == 0
    assert len(again.judgements.all()) == 12


def test_settings_stay_where_nothing_gains(judged, monkeypatch):
    before = judged.version.manifest.fit
    monkeypatch.setattr(tuning, "_fit_and_score", lambda *_: np.zeros(len(judged.judgements.usable())))
    found = tune(judged, SPACE)
    assert found.chosen == {}
    assert load(judged.path).version.manifest.fit == before
    assert "stay as they are" in found.words


def test_an_interrupted_tuning_goes_on_where_it_was(judged, monkeypatch):
    real, fits = tuning._fit_and_score, []

    def stops_at_the_second(collection, usable, settings):
        if len(fits) == 1:
            raise KeyboardInterrupt
        fits.append(settings)
        return real(collection, usable, settings)

    monkeypatch.setattr(tuning, "_fit_and_score", stops_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        tune(judged, SPACE, apply=False)
    monkeypatch.setattr(tuning, "_fit_and_score", lambda *given: fits.append(given[2]) or real(*given))
    resumed = tune(judged, SPACE, apply=False)
    assert fits == list(SPACE)  # each once
    assert tune(judged, SPACE, apply=False).scores == resumed.scores


def test_too_few_judged_queries_are_refused_with_how_to_judge(tmp_path):
    X, labels = groups()
    collection = GradNet(random_state=0, max_steps=2).fit(X).save(tmp_path / "c.manifind")
    judge(collection, labels, [0, 30])
    with pytest.raises(InputError, match=f"2 judged queries.*at least {FEWEST}"):
        tune(collection)


def test_a_compressed_collection_is_not_tuned(judged, tmp_path):
    judged.export(tmp_path / "small.manifind", to="compressed")
    small = load(tmp_path / "small.manifind")
    with pytest.raises((CollectionError, InputError)):
        tune(small)


def test_judgements_come_from_a_table(judged, tmp_path):
    table = tmp_path / "judged.csv"
    table.write_text("query,item,right\n1,2,1\n1,30,no\n1,31,wrong\n")
    assert judged.judgements.add_file(table) == 3
    found = judged.judgements.of(QueryPart(id=1))
    assert found.right == (2,)
    assert set(found.wrong) == {30, 31}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("j.csv", "query,item\n1,2\n", "lacks a column"),
        ("j.csv", "query,item,right\n1,2,maybe\n", "right = 'maybe'"),
        ("j.csv", "query,item,right\n1,9999,1\n", "9999"),
        ("j.txt", "1 2 1", "no table of judgements"),
        ("j.csv", b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_a_table_that_says_something_else_is_refused_in_words(judged, tmp_path, name, text, said):
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=said):
        judged.judgements.add_file(file)


def test_a_table_that_is_missing_is_refused_in_words(judged, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        judged.judgements.add_file(tmp_path / "none.csv")


def test_the_command_says_what_was_tried_and_what_was_done(judged, monkeypatch, tmp_path):
    monkeypatch.setattr(tuning, "_fit_and_score", lambda *_: np.zeros(len(judged.judgements.usable())))
    table = tmp_path / "judged.tsv"
    table.write_text("query\titem\tright\n1\t2\t1\n1\t30\t0\n")
    shown = CliRunner().invoke(app, ["tune", str(judged.path), "--judged", str(table)])
    assert shown.exit_code == 0, shown.output
    assert "n_neighbors 15" in shown.output
    assert "stay as they are" in shown.output
    as_json = CliRunner().invoke(app, ["tune", str(judged.path), "--json", "--dry-run"])
    found = json.loads(as_json.stdout)
    assert found["queries"] == 13
    assert found["chosen"] == {}
    assert len(found["scores"]) == 12


@pytest.mark.parametrize(("text", "expected"), [("0.2", 0.2), ("1", 1.0)])
def test_a_share_is_a_policy(text, expected):
    assert policy_of(text) == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "judged", "judged > 3", "judged < x", "judged<-1"])
def test_what_is_no_policy_is_refused(text):
    with pytest.raises(InputError, match="judged < 70"):
        policy_of(text)


def test_a_falling_score_of_judged_queries_refits_and_a_good_one_does_not(judged):
    before = judged.version.manifest.fit
    refit_when("judged < 100.5")(judged)
    assert judged.version.manifest.fit == before  # nothing has changed since the fit: another would be the same
    judged.remove([179])
    refit_when("judged < 0")(judged)
    assert judged.version.manifest.fit == before
    refit_when("judged < 100.5")(judged)
    assert judged.version.manifest.fit != before
