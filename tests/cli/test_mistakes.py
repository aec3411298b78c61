"""A user's mistake: exit code 1 or 2, one sentence and a way out, no traceback, nothing on disk changed."""

import shutil

import numpy as np
import pytest
import typer

import manifind
from manifind.cli.app import app

VERBS = {
    "demo": ["--report", "--seed", "--json"],
    "index": [
        "SOURCE", "COLLECTION", "--metadata", "--extractor", "--multi-scale", "--refit", "--refit-when", "--dry-run",
        "--preprocess", "--n-neighbors", "--graph", "--max-steps", "--n-components",
        "--training-nodes", "--device", "--device-memory", "--seed", "--paper", "--json",
    ],
    "search": [
        "COLLECTION", "QUERY", "-k", "--where", "--extractor", "--open", "--page", "--images", "--paths", "--null",
        "-0", "--cut", "--json",
    ],
    "serve": [
        "COLLECTION", "--host", "--port", "--name", "--root-path", "--token-file", "--allow-edit", "--index-below",
        "--extractor", "--open",
    ],
    "remove": ["COLLECTION", "ID", "--json"],
    "tune": ["COLLECTION", "--judged", "--dry-run", "--json"],
    "info": ["COLLECTION", "--verify", "--index", "--drift", "--duplicates", "--all", "--json"],
    "export": ["COLLECTION", "TARGET", "--to", "--codes", "--json"],
    "publish": ["COLLECTION", "ADDRESS", "--address-file", "--name", "--json"],
    "evaluate": [
        "RANKING", "GROUND-TRUTH", "--against", "--queries", "--protocol", "-k", "--window", "--distractors",
        "--per-query", "--json",
    ],
    "compare": [
        "DATA", "--suite", "--methods", "--tune", "--tune-budget", "--only", "--preprocess", "--measure", "--window",
        "--protocol", "--truth", "--seed", "--time-limit", "--results", "--fresh", "--retry", "--folder", "--html",
        "--json",
    ],
    "data": ["list", "fetch", "check"],
    "reproduce": [
        "ITEM", "--on", "--only", "--seeds", "--cell", "--smoke", "--render", "--fresh", "--results", "--folder",
        "--out", "--count", "--seed", "--json",
    ],
}  # fmt: skip


def tree(folder):
    """Every file below a folder and its content, but for what SQLite keeps beside a database."""
    return {
        file: file.read_bytes() if file.is_file() else None
        for file in folder.rglob("*")
        if not file.name.endswith(("-wal", "-shm"))
    }


@pytest.fixture
def mine(named, tmp_path):
    """A collection that the mistake must not touch."""
    return shutil.copytree(named, tmp_path / "mine.manifind")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing.npy", "does not exist"),
        ("empty.npy", "is empty (0 bytes)"),
        ("cut.npy", "cut.npy"),
        ("vectors.txt", "has the suffix '.txt'"),
        ("nan.npy", "NaN at row 7, column 2"),
    ],
)
def test_a_file_that_cannot_be_indexed_is_refused_and_the_collection_stays(refused, files, mine, name, problem):
    before = tree(mine.parent)
    printed, hint = refused("index", files / name, mine)
    assert problem in printed
    assert hint
    assert tree(mine.parent) == before
    refused("index", files / name, mine.parent / "new.manifind")
    assert tree(mine.parent) == before


def test_too_many_neighbours_are_refused_with_the_flag_that_helps(refused, files, mine):
    before = tree(mine.parent)
    problem, hint = refused("index", files / "named.csv", mine, "--n-neighbors", 400, "--refit")
    assert problem == "n_neighbors = 400, but there are only 40 distinct items, so each has 39 others"
    assert "--n-neighbors at most 39" in hint
    assert tree(mine.parent) == before


@pytest.mark.parametrize(
    ("flag", "value", "problem"),
    [
        ("--n-neighbors", 0, "n_neighbors = 0; expected a whole number of at least 1"),
        ("--preprocess", "bleach", "preprocess = 'bleach'; expected one of 'unit', 'center', 'whiten', 'none'"),
        ("--graph", "full", "graph = 'full'; expected one of"),
        ("--max-steps", -1, "max_steps = -1; expected"),
        ("--n-components", 0, "n_components = 0; expected"),
        ("--device", "tpu", "device = 'tpu'; expected one of"),
        ("--device-memory", "0", "device_memory = 0.0; expected a number above 0"),
        ("--training-nodes", "2", "training_nodes = 2; expected a whole number of at least 3"),
    ],
)
def test_a_setting_that_is_none_is_refused_with_what_it_may_be(command, files, mine, flag, value, problem):
    before = tree(mine.parent)
    result = command("index", files / "named.csv", mine, flag, value, "--refit")
    assert result.code == 1
    assert f"error: {problem}" in result.err
    assert "Traceback" not in result.err
    assert tree(mine.parent) == before


@pytest.mark.parametrize("target", ["file", "folder"])
def test_something_else_in_the_place_is_refused_before_fitting(refused, files, tmp_path, target, monkeypatch):
    place = tmp_path / target
    place.write_text("mine") if target == "file" else (place / "inside").mkdir(parents=True)
    before = tree(tmp_path)
    monkeypatch.setattr(manifind.GradNet, "fit", lambda *_, **__: pytest.fail("it was fitted"))
    problem, hint = refused("index", files / "vectors.npy", place)
    assert f"{place} exists and is no collection" in problem
    assert "choose another path" in hint
    assert tree(tmp_path) == before


def test_ids_that_cannot_be_kept_are_refused_before_fitting(command, items, tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", vectors=items, ids=np.array(["x" * (5000 - i) for i in range(len(items))]))
    monkeypatch.setattr(manifind.GradNet, "fit", lambda *_, **__: pytest.fail("it was fitted"))
    result = command("index", tmp_path / "x.npz", tmp_path / "c")
    assert result.code == 1
    assert "an id has 5000 characters" in result.err


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("narrow.npy", "4 features, but it is expecting 6"),
        ("missing.npy", "does not exist"),
        ("cut.npy", "cut.npy"),
        ("empty.npy", "is empty (0 bytes)"),
        ("nan.npy", "NaN at row 7, column 2"),
        ("vectors.txt", "no item with the id"),
    ],
)
def test_a_query_that_cannot_be_asked_is_refused(refused, files, mine, query, problem):
    before = tree(mine.parent)
    printed, hint = refused("search", mine, files / query)
    assert problem in printed
    assert hint
    assert tree(mine.parent) == before


@pytest.mark.parametrize("wanted", ["dog", "5"])
def test_an_unknown_name_is_refused_with_an_example(refused, named, wanted):
    problem, hint = refused("search", named, wanted)
    assert problem == f"there is no item with the id {wanted!r} in {named}"
    assert hint == "give an id of one of its items, such as 'cat 00'"


@pytest.mark.parametrize("wanted", ["Cat 01", "cat 01 ", "cat-01", "ct 01"])
@pytest.mark.parametrize("verb", ["search", "remove"])
def test_a_misspelt_name_is_refused_with_those_nearest_to_it(refused, named, verb, wanted):
    problem, hint = refused(verb, named, wanted)
    assert problem == f"there is no item with the id {wanted!r} in {named}"
    assert hint.startswith("did you mean 'cat 01', ")


@pytest.mark.parametrize(
    ("where", "problem", "hint"),
    [
        ("yaer > 1900", "no item has a metadata field 'yaer'; there are place, year", "did you mean 'year'?"),
        ("year > '1900'", "field year holds numbers, and the filter compares it with the text '1900'", "year >= 1990"),
    ],
)
def test_a_filter_that_nothing_could_satisfy_is_refused(command, refused, files, tmp_path, where, problem, hint):
    reported, path = tmp_path / "said.csv", tmp_path / "c"
    reported.write_text("id,year,place\ncat 00,1900,Rome\n")
    assert command("index", files / "named.csv", path, "--metadata", reported).code == 0
    printed, way_out = refused("search", path, "cat 00", "--where", where)
    assert problem in printed
    assert hint in way_out


def test_a_filter_where_nothing_is_said_of_any_item_is_refused(refused, named):
    problem, hint = refused("search", named, "cat 00", "--where", "year > 1900")
    assert "no item has any metadata" in problem
    assert "leave the filter out" in hint


def test_an_unknown_number_is_refused_with_an_example(refused, numbered):
    problem, hint = refused("search", numbered, "40")
    assert problem == f"there is no item with the id 40 in {numbered}"
    assert "such as 0" in hint


@pytest.mark.parametrize("wanted", ["vectors.txt", "5.0", "1_0", "99999999999999999999999"])
def test_what_is_no_number_where_ids_are_numbers_is_refused(refused, numbered, wanted):
    problem, hint = refused("search", numbered, wanted)
    assert f"there is no item '{wanted}' in {numbered}, whose ids are whole numbers of 64 bits" in problem
    assert "give a number" in hint
    assert ("nor a file of that name" in problem) == (".npy" in hint) == ("." in wanted)


@pytest.mark.parametrize("k", [0, -3])
def test_a_k_that_is_none_is_refused(command, named, k):
    result = command("search", named, "cat 01", "-k", k)
    assert result.code == 1
    assert f"error: k = {k}; expected a whole number of at least 1" in result.err


@pytest.mark.parametrize("verb", [("search", "cat 01"), ("info",)])
def test_what_is_no_collection_is_refused(refused, files, tmp_path, verb):
    for path in (tmp_path / "nowhere", tmp_path, files / "vectors.npy"):
        problem, _ = refused(verb[0], path, *verb[1:])
        assert str(path) in problem


def test_damage_is_found_by_verifying(command, refused, mine):
    file = next((mine / "segments").glob("model-*"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert command("info", mine).code == 0
    problem, hint = refused("info", mine, "--verify")
    assert f"{file} is damaged" in problem
    assert "index the source again" in hint


def test_an_interrupted_command_leaves_no_traceback(command, files, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(manifind.GradNet, "fit", interrupted)
    result = command("index", files / "vectors.npy", tmp_path / "c")
    assert result.code == 130
    assert "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("index",),
        ("index", "x.npy"),
        ("index", "x.npy", "c", "extra"),
        ("index", "x.npy", "c", "--unheard-of"),
        ("index", "x.npy", "c", "--n-neighbors", "many"),
        ("index", "x.npy", "c", "--n-neighbors", "2.5"),
        ("index", "x.npy", "c", "--seed", "-1"),
        ("index", "x.npy", "c", "--seed", str(2**32)),
        ("search", "c"),
        ("search", "c", "q", "-k", "ten"),
        ("info",),
        ("reproduce", "figure99"),
        ("unheard-of",),
        ("--unheard-of",),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_code_2_and_says_so(command, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = command(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert "Usage: manifind" in result.err
    assert "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("verb", VERBS)
def test_help_names_every_argument(command, verb, flag):
    result = command(verb, flag)
    assert result.code == 0
    for argument in VERBS[verb]:
        assert argument.lower() in result.out.lower()


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_names_every_verb(command, flag):
    result = command(flag)
    assert result.code == 0
    for verb in VERBS:
        assert f" {verb} " in result.out


def test_every_verb_is_tested_here():
    assert set(VERBS) == set(typer.main.get_command(app).commands)


def test_without_a_verb_the_help_is_shown(command):
    result = command()
    assert "Usage: manifind" in result.out + result.err
    assert result.code in (0, 2)


def test_the_version_is_the_library_s(command):
    result = command("--version")
    assert (result.code, result.out) == (0, f"manifind {manifind.__version__}\n")
