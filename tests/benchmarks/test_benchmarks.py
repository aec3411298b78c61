"""Tests of benchmarks/run.py and the results file: the quick form of every benchmark works."""

import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest

from project import ROOT

FOLDER = ROOT / "benchmarks"


def run(*arguments):
    return subprocess.run([sys.executable, FOLDER / "run.py", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder that a quick run of everything leaves."""
    folder = tmp_path_factory.mktemp("quick")
    done = run("--quick", "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


def benchmarks_in(folder):
    return json.loads((folder / "results" / "performance.json").read_text())["benchmarks"]


@pytest.mark.slow
def test_the_quick_form_of_every_benchmark_leaves_finite_numbers(quick, module):
    found = benchmarks_in(quick)
    assert tuple(found) == module("run").BENCHMARKS
    for name, benchmark in found.items():
        assert {"machine", "versions", "date", "cases"} == set(benchmark)
        assert set(benchmark["cases"]) == {case.name for case in module(name).cases(quick=True)}
        for case in benchmark["cases"].values():
            for number in case["numbers"].values():
                assert all(map(math.isfinite, number.values()))
                assert number["min"] <= number["median"] <= number["max"]


@pytest.mark.slow
def test_the_page_of_a_quick_run_has_every_table_and_the_pictures_it_shows(quick):
    page = (quick / "performance.md").read_text()
    assert page.count("Not measured yet") == 1  # the GPU's, which has a command of its own
    assert page.count("<!-- ") == 2 * (page.count("|---|") + 1)
    pictures = re.findall(r"!\[.+\]\((.+)\)", page)
    assert len(pictures) == 2
    for picture in pictures:
        assert (quick / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_server_answers_while_raw_sockets_send_nothing_slowly_or_too_much(quick):
    (case,) = benchmarks_in(quick)["raw_sockets"]["cases"].values()
    assert case["numbers"]["asked"]["min"] > 0
    assert case["numbers"]["failed"]["max"] == 0


@pytest.mark.slow
def test_what_is_measured_is_not_measured_again_when_only_the_missing_is_asked_for(quick):
    before = benchmarks_in(quick)
    done = run("--quick", "--only-missing", "--out", quick)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("measured already") == sum(len(one["cases"]) for one in before.values())
    assert benchmarks_in(quick) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("nonsense",), "no benchmark is called nonsense"), (("--quick", "--out", ROOT / "docs"), "give another")],
)
def test_a_wrong_call_is_refused_with_the_reason(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_median_least_and_most_are_taken_over_the_repetitions(module):
    runs = [{"seconds": 3.0}, {"seconds": 1.0}, {"seconds": 7.0}]
    assert module("results_file").summary(runs) == {"seconds": {"median": 3.0, "min": 1.0, "max": 7.0}}


def test_results_of_other_versions_or_parameters_are_missing_and_replaced(module, tmp_path):
    results, case = module("results_file"), module("case").Case
    path, runs = tmp_path / "performance.json", [{"seconds": 1.0}]
    ours, theirs = {"machine": {"cores": 2}}, {"machine": {"cores": 64}}
    results.ResultsFile(path, theirs).add("growth", case("1", {"n": 1}, (0,)), runs)
    results.ResultsFile(path, theirs).add("growth", case("2", {"n": 2}, (0,)), runs)
    assert results.ResultsFile(path, theirs).has("growth", case("1", {"n": 1}, (0,)))
    assert not results.ResultsFile(path, theirs).has("growth", case("1", {"n": 5}, (0,)))
    assert not results.ResultsFile(path, ours).has("growth", case("1", {"n": 1}, (0,)))
    results.ResultsFile(path, ours).add("growth", case("1", {"n": 1}, (0,)), runs)
    assert list(results.read_benchmarks(path)["growth"]["cases"]) == ["1"]


def test_every_file_of_the_benchmarks_says_in_its_first_line_what_belongs_there():
    for file in FOLDER.glob("*.py"):
        assert re.match(r'"""[A-Z].{15,}', file.read_text().split("\n", 1)[0]), file.name


def test_the_plain_search_finds_k_originals_and_an_original_first_of_all_itself(module):
    query = module("query")
    X = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    ids = query.plain_search(X, "exact", {})(X[7:8])[1]
    assert ids.shape == (1, query.K)
    assert ids[0, 0] == 7
