"""index, search and info from one end to the other: what programs read is what the library answers."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import manifind

NAMES = [f"cat {i:02}" for i in range(40)]


def shell(*arguments, python=(), check=True, **environment):
    return subprocess.run(
        [sys.executable, *python, "-m", "manifind", *map(str, arguments)],
        check=check,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "200", **environment},
    )


def as_json(ranking, names):
    """A ranking as `search --json` has it."""
    columns = ("id", "score", "certainty")
    rows = zip(ranking.ids.tolist(), ranking.scores.tolist(), ranking.certainty.tolist(), strict=True)
    return [
        {"query": name, "results": [dict(zip(columns, one, strict=True)) for one in zip(*row, strict=True)]}
        for name, row in zip(names, rows, strict=True)
    ]


def test_from_a_shell_index_search_and_info_work_and_only_index_imports_torch(files, tmp_path, queries):
    path = tmp_path / "c.manifind"
    made = shell("index", files / "named.csv", path, "--paper", "--n-neighbors", 3, "--max-steps", 2)
    assert made.stdout.splitlines()[0].startswith(f"{path}: 40 items fitted, 6 dimensions in, ")
    assert f"manifind search {path} QUERY" in made.stdout
    collection = manifind.load(path, verify=True)
    assert collection.settings["layers"] == list(manifind.PAPER["layers"])
    assert collection.settings["n_components"] is None

    searched = shell("search", path, files / "queries.npy", "-k", 4, "--json", python=["-X", "importtime"])
    assert json.loads(searched.stdout) == as_json(collection.search(queries, 4), ["0", "1", "2"])
    assert re.search(r"\| +manifind\.cli\.search$", searched.stderr, re.MULTILINE)
    assert not re.search(r"\| +torch", searched.stderr)

    printed = shell("info", path, "--verify", python=["-X", "importtime"])
    assert "every byte is as it was written" in printed.stdout
    assert not re.search(r"\| +torch", printed.stderr)


def test_from_a_shell_a_mistake_ends_in_one_sentence_and_a_way_out(files, tmp_path):
    failed = shell("search", tmp_path / "nowhere", files / "queries.npy", check=False)
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.splitlines() == [
        f"error: {tmp_path / 'nowhere'} does not exist",
        " hint: make one with `manifind index FILE COLLECTION` or GradNet.save",
    ]


@pytest.mark.parametrize(
    ("name", "ids"), [("vectors.npy", list(range(40))), ("named.csv", NAMES), ("named.npz", NAMES)]
)
def test_index_takes_vectors_and_ids_from_a_file(command, files, items, name, ids, tmp_path):
    made = command("index", files / name, tmp_path / "c", "--json")
    assert made.code == 0
    collection = manifind.load(tmp_path / "c", verify=True)
    reported = {"collection": str(tmp_path / "c"), "dry_run": False, "fitted": 40}
    assert json.loads(made.out) == reported | collection.info
    assert collection.ids.tolist() == ids
    direct = manifind.GradNet(n_neighbors=3, layers=(8, 4), n_anchors=4, max_steps=2, batch_size=8, random_state=0)
    np.testing.assert_array_equal(collection.features, direct.fit(items).features_)


def test_index_hands_on_every_option(command, files, tmp_path):
    options = {
        "preprocess": "center",
        "n_neighbors": 4,
        "graph": "union",
        "max_steps": 1,
        "n_components": 5,
        "training_nodes": 12,
        "device": "cpu",
        "device_memory": 1.5,
    }
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    assert command("index", files / "vectors.npy", tmp_path / "c", *flags, "--seed", 7).code == 0
    collection = manifind.load(tmp_path / "c")
    assert {name: collection.settings[name] for name in options} == options
    assert collection.features.shape[1] == 5
    again = tmp_path / "again"
    command("index", files / "vectors.npy", again, *flags, "--seed", 7)
    np.testing.assert_array_equal(manifind.load(again).features, collection.features)
    command("index", files / "vectors.npy", again, *flags, "--seed", 8, "--refit")
    assert not np.array_equal(manifind.load(again).features, collection.features)


@pytest.mark.parametrize(
    ("query", "names"), [("queries.npy", ["0", "1", "2"]), ("queries.npz", ["red", "green", "blue"])]
)
@pytest.mark.parametrize("k", [1, 5, 40])
def test_search_by_file_answers_as_the_library_does(command, files, named, queries, query, names, k):
    result = command("search", named, files / query, "-k", k, "--json")
    assert result.code == 0
    assert json.loads(result.out) == as_json(manifind.load(named).search(queries, k), names)


def test_search_finds_ten_and_no_more_than_there_are(command, files, named):
    assert len(json.loads(command("search", named, "cat 03", "--json").out)[0]["results"]) == 10
    everything = json.loads(command("search", named, "cat 03", "-k", 1000, "--json").out)[0]["results"]
    assert sorted(result["id"] for result in everything) == NAMES


@pytest.mark.parametrize(("collection", "wanted", "value"), [("named", "cat 17", "cat 17"), ("numbered", "17", 17)])
def test_search_by_id_answers_as_the_library_does(command, request, collection, wanted, value):
    path = request.getfixturevalue(collection)
    result = command("search", path, wanted, "-k", 6, "--json")
    answer = json.loads(result.out)
    assert answer == as_json(manifind.load(path).search_ids([value], 6), [wanted])
    assert answer[0]["results"][0]["id"] == value


def test_people_get_a_table_for_every_query(command, files, named, queries):
    result = command("search", named, files / "queries.npz", "-k", 2)
    expected = manifind.load(named).search(queries, 2)
    for name, ids, scores in zip(("red", "green", "blue"), *expected, strict=True):
        assert f"query {name}" in result.out
        for rank, (id_, score) in enumerate(zip(ids, scores, strict=True), 1):
            assert re.search(rf"{rank} │ {id_} +│ +{score:.4f}", result.out)


ODD = [":cat:", "[bold]x[/bold]", "[/]", "a\\", "\\[red]", "é 猫", "a'b\"c"]


@pytest.fixture(scope="module")
def odd(command, items, tmp_path_factory):
    """A collection whose ids look like markup, emoji and escapes."""
    folder = tmp_path_factory.mktemp("odd")
    np.savez(folder / "odd.npz", vectors=items, ids=np.array([*ODD, *NAMES[len(ODD) :]]))
    assert command("index", folder / "odd.npz", folder / "c").code == 0
    return folder / "c"


@pytest.mark.parametrize("wanted", ODD)
def test_ids_are_shown_as_they_are(command, odd, wanted):
    shown = command("search", odd, wanted, "-k", 1).out
    assert re.search(rf"│ +1 │ {re.escape(wanted)} +│ 1.0000", shown)
    assert f"query {wanted}" in shown
    assert json.loads(command("search", odd, wanted, "-k", 1, "--json").out)[0]["results"][0]["id"] == wanted


@pytest.mark.parametrize("wanted", [":dog:", "[bold]nobody[/bold]", "[/]]", "b\\"])
def test_errors_show_ids_as_they_are(refused, odd, wanted):
    problem, hint = refused("search", odd, wanted)
    assert f"no item with the id {wanted!r} in {odd}" in problem
    assert any(repr(name) in hint for name in (":cat:", "[bold]x[/bold]", "[/]"))


def test_a_terminal_that_cannot_show_an_id_is_no_reason_to_fail(odd):
    assert "\\xe9 \\u732b" in shell("search", odd, "é 猫", "-k", 1, PYTHONIOENCODING="ascii").stdout
    done = shell("search", odd, "é 猫", "-k", 1, "--json", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)[0]["results"][0]["id"] == "é 猫"


def test_info_tells_what_the_collection_knows(command, named):
    collection = manifind.load(named)
    printed = json.loads(command("info", named, "--json").out)
    for name, value in collection.info.items():
        assert printed[name] == value
    assert printed["settings"] == collection.settings
    assert printed["bytes"] == sum(file.stat().st_size for file in (named / "segments").iterdir())
    assert printed["loss_first"] == pytest.approx(float(collection.loss_curve[0, 0]))
    assert printed["loss_last"] == pytest.approx(float(collection.loss_curve[-1, 0]))
    assert printed["contents"] == "sizes checked"
    assert json.loads(command("info", named, "--verify", "--json").out)["contents"] == "verified"


def test_info_of_a_model_without_a_step_has_no_loss(command, files, tmp_path):
    command("index", files / "vectors.npy", tmp_path / "c", "--max-steps", 0)
    printed = json.loads(command("info", tmp_path / "c", "--json").out)
    assert printed["loss_first"] is printed["loss_last"] is None
    assert command("info", tmp_path / "c").code == 0


def test_reading_leaves_the_collection_as_it_was(command, files, named):
    before = {file: file.read_bytes() for file in named.rglob("*") if file.is_file() and "-" not in file.suffix}
    for arguments in (
        ("search", named, "cat 01"),
        ("search", named, files / "queries.npy"),
        ("info", named, "--verify"),
    ):
        command(*arguments)
    assert {file: file.read_bytes() for file in before} == before


def test_whitening_is_noted_where_it_gives_weight_to_noise(command, tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 40)) * np.where(np.arange(40) < 3, 20.0, 1.0)
    np.save(tmp_path / "x.npy", rows.astype(np.float32))
    said = command("index", tmp_path / "x.npy", tmp_path / "c", "--preprocess", "whiten")
    assert "of their 40 dimensions, and whitening gives all dimensions the same weight" in " ".join(said.err.split())
    assert "whitening" not in command("index", tmp_path / "x.npy", tmp_path / "d", "--preprocess", "center").err
