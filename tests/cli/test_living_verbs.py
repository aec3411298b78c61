"""The verbs on a living collection: run again, index follows its source; remove, export, filters and drift."""

import json
import shutil

import faiss
import numpy as np
import pytest

import manifind
from cli.conftest import NAMES, D, N


@pytest.fixture
def mine(named, tmp_path):
    return shutil.copytree(named, tmp_path / "mine.manifind")


@pytest.fixture
def changed(items, tmp_path):
    """The same source a day later: two are new, one is gone, one has changed."""
    rows = np.concatenate([items[1:], np.random.default_rng(5).normal(size=(2, D))])
    rows[3] = 1
    np.savez(tmp_path / "later.npz", vectors=rows, names=np.array([*NAMES[1:], "new 0", "new 1"]))
    return tmp_path / "later.npz"


def test_the_same_file_again_is_nothing_to_do(command, files, mine):
    commit = manifind.load(mine).version.manifest.commit
    printed = command("index", files / "named.npz", mine)
    assert printed.code == 0
    assert "nothing to do; 40 unchanged" in printed.out
    assert manifind.load(mine).version.manifest.commit == commit


def test_a_dry_run_says_what_would_happen_and_does_nothing(command, changed, mine, files, tmp_path):
    commit = manifind.load(mine).version.manifest.commit
    printed = command("index", changed, mine, "--dry-run")
    assert "would be 2 added, 1 removed, 1 changed; 38 unchanged" in printed.out
    assert manifind.load(mine).version.manifest.commit == commit
    printed = command("index", files / "named.npz", tmp_path / "new", "--dry-run", "--json")
    assert json.loads(printed.out) == {"collection": str(tmp_path / "new"), "dry_run": True, "fitted": N}
    assert not (tmp_path / "new").exists()


def test_run_again_it_adds_drops_and_changes_without_a_fit(command, changed, mine, monkeypatch):
    monkeypatch.setattr(manifind.GradNet, "fit", lambda *_, **__: pytest.fail("it was fitted"))
    printed = json.loads(command("index", changed, mine, "--json").out)
    assert {name: printed[name] for name in ("added", "removed", "changed", "unchanged")} == {
        "added": 2, "removed": 1, "changed": 1, "unchanged": 38,
    }  # fmt: skip
    assert printed["changed_since_fit"] == 5 / 40  # the one that changed went and came
    collection = manifind.load(mine, verify=True)
    assert sorted(collection.ids) == sorted([*NAMES[1:], "new 0", "new 1"])


def test_with_refit_it_learns_from_them(command, changed, mine):
    printed = command("index", changed, mine, "--refit")
    assert "2 added, 1 removed, 1 changed" in printed.out
    assert "fitted anew, 6 dimensions in" in printed.out
    collection = manifind.load(mine, verify=True)
    assert collection.changed == 0
    assert len(collection) == 41
    assert not [file for file in mine.parent.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize(("share", "refitted"), [(0.1, True), (0.2, False)])
def test_a_share_of_changes_decides_on_the_refit(command, changed, mine, share, refitted):
    printed = json.loads(command("index", changed, mine, "--refit-when", share, "--json").out)
    assert printed["refitted"] is refitted
    assert (manifind.load(mine).changed == 0) is refitted


def test_settings_of_a_collection_change_only_with_a_refit(refused, files, mine):
    problem, hint = refused("index", files / "named.npz", mine, "--n-neighbors", 4)
    assert "n_neighbors can only change when it is fitted anew" in problem
    assert "--refit" in hint
    assert problem.endswith("it was made with n_neighbors = 3")
    problem, _ = refused("index", files / "named.npz", mine, "--seed", 4, "--n-neighbors", 3, "--graph", "mutual")
    assert "graph, seed can only change" in problem
    assert problem.endswith("it was made with graph = 'union', another seed")


@pytest.mark.parametrize(
    "settings",
    [("--n-neighbors", 4, "--seed", 3), ("--paper", "--n-neighbors", 4, "--max-steps", 1), ("--seed", 0)],
    ids=["some", "the paper's", "only a seed"],
)
def test_a_command_can_be_given_again_with_the_settings_that_its_collection_was_made_with(
    command, refused, files, tmp_path, settings
):
    given = ("index", files / "named.npz", tmp_path / "c", *settings)
    assert command(*given).code == 0
    commit = manifind.load(tmp_path / "c").version.manifest.commit
    again = command(*given)
    assert again.code == 0, again.err
    assert "nothing to do; 40 unchanged" in again.out
    assert manifind.load(tmp_path / "c").version.manifest.commit == commit
    assert command(*given, "--refit").code == 0
    assert command(*given).code == 0
    problem, _ = refused(*given, "--n-components", 2)
    assert "n_components can only change" in problem


def test_a_file_of_something_else_is_refused(refused, items, mine, tmp_path):
    np.savez(tmp_path / "x.npz", vectors=items, names=np.array([f"dog {i}" for i in range(N)]))
    problem, hint = refused("index", tmp_path / "x.npz", mine)
    assert f"40 of the 40 items of {mine} are not in" in problem
    assert "'cat 04' and 35 more" in problem
    assert "--allow-removals" in hint


def test_vectors_that_are_gone_from_a_file_go_only_where_that_is_allowed(command, refused, items, mine, tmp_path):
    np.savez(tmp_path / "x.npz", vectors=items[:20], names=np.array(NAMES[:20]))
    assert "20 of the 40 items" in refused("index", tmp_path / "x.npz", mine)[0]
    would = command("index", tmp_path / "x.npz", mine, "--dry-run")
    assert "would be 20 removed; 20 unchanged" in would.out
    assert "need --allow-removals" in would.out
    assert len(manifind.load(mine)) == 40
    assert "20 removed; 20 unchanged" in command("index", tmp_path / "x.npz", mine, "--allow-removals").out
    assert len(manifind.load(mine)) == 20


def test_metadata_comes_from_a_table_and_filters(command, files, tmp_path):
    lines = [f"{name},{1980 + i},{'Rome' if i % 2 else 'Paris'}" for i, name in enumerate(NAMES)]
    (tmp_path / "said.csv").write_text("\n".join(["id,year,place", *lines]))
    path = tmp_path / "c.manifind"
    assert command("index", files / "named.csv", path, "--metadata", tmp_path / "said.csv").code == 0
    where = "year >= 2000 and place = 'Rome'"
    printed = json.loads(command("search", path, NAMES[0], "--where", where, "-k", 40, "--json").out)
    results = printed[0]["results"]
    assert sorted(result["id"] for result in results) == NAMES[21::2]
    assert all(result["metadata"]["place"] == "Rome" for result in results)
    assert "year 2001, place Rome" in command("search", path, NAMES[0], "--where", where, "-k", 40).out
    (tmp_path / "said.csv").write_text("\n".join(["id,year", *[f"{name},1900" for name in NAMES[:30]]]))
    printed = command("index", files / "named.csv", path, "--metadata", tmp_path / "said.csv")
    assert "30 described; 10 unchanged" in printed.out
    assert manifind.load(path).metadata([NAMES[0], NAMES[39]]) == [
        {"year": 1900, "place": "Paris"},
        {"year": 2019, "place": "Rome"},
    ]


def test_metadata_of_nobody_and_a_condition_that_is_none_are_refused(refused, files, mine, tmp_path):
    (tmp_path / "said.csv").write_text("id,year\nnobody,1990")
    problem, _ = refused("index", files / "named.csv", mine, "--metadata", tmp_path / "said.csv")
    assert "has the id 'nobody'" in problem
    problem, hint = refused("search", mine, NAMES[0], "--where", "year >")
    assert "it ends; expected a number" in problem
    assert "write it like" in hint


def test_remove_takes_several_or_none(command, refused, mine):
    printed = command("remove", mine, NAMES[0], NAMES[7])
    assert printed.out.strip() == f"{mine}: 2 removed, 38 left"
    problem, _ = refused("remove", mine, NAMES[1], "nobody")
    assert "no item with the id 'nobody'" in problem
    assert len(manifind.load(mine)) == 38


def test_remove_takes_numbers_where_ids_are_numbers(command, refused, numbered, tmp_path):
    path = shutil.copytree(numbered, tmp_path / "c")
    assert json.loads(command("remove", path, "3", "--json").out)["items"] == N - 1
    problem, hint = refused("remove", path, "three")
    assert "whose ids are whole numbers" in problem
    assert hint == "give a number"


def test_export_writes_what_it_says(command, mine, tmp_path):
    printed = json.loads(command("export", mine, tmp_path / "f.index", "--to", "faiss", "--json").out)
    assert printed["files"] == [str(tmp_path / "f.index"), str(tmp_path / "f.index.ids.json")]
    assert faiss.read_index(printed["files"][0]).ntotal == N
    reported = command("export", mine, tmp_path / "small", "--to", "compressed")
    assert "bytes per item" in reported.out
    small = manifind.load(tmp_path / "small")
    assert small.manifest["kind"] == "compressed"
    info = json.loads(command("info", tmp_path / "small", "--verify", "--json").out)
    assert info["kind"] == "compressed"


def test_export_refuses_another_kind(refused, mine, tmp_path):
    problem, _ = refused("export", mine, tmp_path / "x", "--to", "zip")
    assert "to = 'zip'; expected one of 'npy', 'parquet', 'faiss', 'compressed'" in problem


def test_info_shows_how_far_the_collection_has_moved(command, changed, mine):
    command("index", changed, mine)
    printed = json.loads(command("info", mine, "--drift", "--json").out)
    assert printed["items"] == 41
    assert printed["fitted"] == 40
    assert printed["added_since_fit"] == 3
    assert printed["removed_since_fit"] == 2
    assert printed["changed_since_fit"] == printed["drift_changed"] == 5 / 40
    assert 0 <= printed["drift_agreement_added"] <= 1
    shown = command("info", mine, "--drift").out
    assert "3 added, 2 removed: 12.5% of what was fitted" in shown
    assert "of its nearest neighbours a fitted item keeps " in shown
    assert f"manifind index SOURCE {mine} --refit" in shown


def test_one_item_is_not_called_items(command, mine, tmp_path):
    assert command("remove", mine, *NAMES[2:]).out == f"{mine}: {N - 2} removed, 2 left\n"
    assert command("export", mine, tmp_path / "two.npy", "--to", "npy").out.startswith("2 items in ")
    assert command("remove", mine, NAMES[1]).out == f"{mine}: 1 removed, 1 left\n"
    assert command("export", mine, tmp_path / "one.npy", "--to", "npy").out.startswith("1 item in ")
    assert ": 1 item, " in repr(manifind.load(mine))
