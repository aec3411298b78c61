"""Tests of `manifind reproduce`: everything on toy data, a cell from the table down to its queries, and mistakes."""

import json

import pytest

from manifind.bench.paper.figures import FIGURES
from manifind.bench.paper.tables import artefacts_of

FIGURE_NAMES = {*FIGURES, "figure4"}


@pytest.mark.long
def test_every_declaration_runs_on_toy_data(command, tmp_path):
    result = command("reproduce", "all", "--smoke", "--out", tmp_path, "--json")
    assert result.code == 0, result.err
    shown = json.loads(result.out)
    assert [one["title"] for one in shown] == [f"{one.title} (toy data)" for one in artefacts_of("all")]
    cells = [cell for one in shown for cell in one["cells"]]
    assert [cell for cell in cells if cell["state"] in ("failed", "refused")] == []
    not_run = {cell["cell"].split(":")[1].split("/")[0].strip() for cell in cells if cell["state"] == "not run"}
    assert not_run <= {"GPU memory, MB"}
    assert all(cell["paper"] is None for cell in cells), "toy data stands beside no number of the paper's"
    drawn = {path.stem for path in tmp_path.glob("*.png")}
    assert drawn == {*FIGURE_NAMES, "figure8", "figure8_here", "table4", "table4_orl_aligned"}
    assert "these numbers mean nothing" in (tmp_path / "all.md").read_text()


@pytest.fixture(scope="module")
def kept(command, tmp_path_factory):
    """A results file with k-NN on the digits."""
    path = tmp_path_factory.mktemp("kept") / "results.jsonl"
    result = command("reproduce", "table3", "--on", "digits", "--only", "k-NN /", "--results", path)
    assert result.code == 0, result.err
    return path


def test_a_table_shows_what_was_run_and_what_was_not(command, kept):
    result = command("reproduce", "table3", "--on", "digits", "--render", "--results", kept)
    assert "65.87" in result.out
    assert "not run" in result.out
    assert f"every query's values: {kept}" in result.err


def test_from_a_cell_to_its_command_settings_seed_versions_and_queries(command, kept):
    arguments = ("reproduce", "table3", "--on", "digits", "--cell", "k-NN / digits", "--results", kept)
    (record,) = (full := json.loads(command(*arguments, "--json").out))["records"]
    assert full["mean"] == pytest.approx(65.87, abs=0.01)
    assert record["command"] == 'manifind reproduce table3 --on "digits" --only "k-NN / digits" --seeds 1 --fresh'
    assert record["seed"] == 0
    assert record["settings"]["preprocess"] == "unit"
    assert len(record["scores"][0]["per_query"]) == 1797
    printed = command(*arguments).out
    for word in ("command: manifind reproduce", "versions:", "machine:", "data:", "mAP of each query: ["):
        assert word in printed


def test_a_page_and_json_are_rendered_without_running(command, kept, tmp_path):
    arguments = ("reproduce", "table3", "--on", "digits", "--render", "--results", kept, "--out", tmp_path)
    (table,) = json.loads(command(*arguments, "--json").out)
    assert table["cells"][0]["mean"] == pytest.approx(65.87, abs=0.01)
    assert "| k-NN | 65.87 |" in (tmp_path / "table3.md").read_text()


def test_figure_8_has_a_picture_beside_its_page(command, tmp_path):
    path = tmp_path / "results.jsonl"
    assert command("reproduce", "figure8", "--render", "--results", path, "--out", tmp_path).code == 0
    assert (tmp_path / "figure8.png").exists()
    assert "(figure8.png)" in (tmp_path / "figure8.md").read_text()
    plot = tmp_path / "alone" / "plot.png"
    assert command("reproduce", "figure8", "--render", "--results", path, "--out", plot).code == 0
    assert [file.name for file in plot.parent.iterdir()] == ["plot.png"]


def test_a_figure_goes_to_the_folder_or_to_the_file(command, tmp_path):
    assert command("reproduce", "figure3", "--out", tmp_path).out == f"look at it: {tmp_path / 'figure3.png'}\n"
    assert command("reproduce", "figure3", "--out", tmp_path / "sextet.png").code == 0
    assert (tmp_path / "sextet.png").read_bytes() == (tmp_path / "figure3.png").read_bytes()
    printed = command("reproduce", "figure2", "--out", tmp_path, "--json").out
    assert json.loads(printed) == {"figure2": str(tmp_path / "figure2.png")}


@pytest.mark.parametrize(
    ("arguments", "problem", "way_out"),
    [
        (("table2", "--on", "moon"), "on = 'moon'; expected one of 'ORL'", "--on"),
        (("table1", "--on", "digits"), "table1 cannot be put on another set", "leave --on out"),
        (("figure4", "--on", "digits"), "figure4 is of no data set", "leave --on out"),
        (("table3", "--cell", "k-NN"), "cells have 'k-NN' in", "ROW / COLUMN"),
        (("table3", "--only", "nobody"), "no cell has 'nobody' in its name", "'k-NN / Oxford5k VGG'"),
        (("table1", "--seed", "3"), "--seed would do nothing: table1 is a table", "leave --seed out"),
        (("figure2", "--fresh"), "--fresh would do nothing: figure2 is a figure", "leave --fresh out"),
        (("figure2", "--seeds", "5"), "--seeds would do nothing: figure2 is a figure", "leave --seeds out"),
        (("table3", "--cell", "nobody"), "0 cells have 'nobody' in their name", "ROW / COLUMN"),
    ],
)
def test_a_mistake_is_told_with_a_way_out(refused, tmp_path, arguments, problem, way_out):
    kept = () if arguments[0].startswith("figure") else ("--results", tmp_path / "results.jsonl")
    printed, hint = refused("reproduce", *arguments, *kept)
    assert problem in printed
    assert way_out in hint


def test_after_an_interruption_the_same_command_goes_on(command, tmp_path, monkeypatch):
    from manifind.bench.paper import runner

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_missing", interrupted)
    kept = tmp_path / "results.jsonl"
    result = command("reproduce", "table3", "--on", "digits", "--only", "k-NN /", "--results", kept)
    assert result.code == 130
    assert f"what is finished is kept in {kept}: the same command goes on from there" in result.err


def test_a_file_of_something_else_is_not_taken_for_results(refused, tmp_path):
    (tmp_path / "notes.txt").write_text("my notes")
    printed, hint = refused("reproduce", "table1", "--render", "--results", tmp_path / "notes.txt")
    assert "holds something else than results of manifind" in printed
    assert "--results" in hint
    assert (tmp_path / "notes.txt").read_text() == "my notes"
