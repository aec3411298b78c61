"""Tests of benchmarks/run.py and the results file: the quick form of every benchmark works."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest

from manifind.bench import runner
from manifind.bench.cell import finished
from manifind.bench.results import Results
from project import ROOT, load_script

FOLDER = ROOT / "benchmarks"
measuring = load_script("measuring", "benchmarks")
Case, is_measured, read_benchmarks = measuring.Case, measuring.is_measured, measuring.read_benchmarks


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
    return read_benchmarks(Results(folder / "results" / "performance.jsonl"))


@pytest.mark.endurance  # minutes: each case is measured in a process of its own
def test_the_quick_form_of_every_benchmark_leaves_finite_numbers(quick, module):
    found = benchmarks_in(quick)
    assert tuple(found) == module("run").BENCHMARKS
    for name, benchmark in found.items():
        assert {"machine", "versions", "code", "date", "cases"} == set(benchmark)
        assert set(benchmark["cases"]) == {case.name for case in module(name).cases(quick=True)}
        for case in benchmark["cases"].values():
            for number in case["numbers"].values():
                assert all(map(math.isfinite, number.values()))
                assert number["min"] <= number["median"] <= number["max"]


@pytest.mark.endurance  # minutes: each case is measured in a process of its own
def test_the_page_of_a_quick_run_has_every_table_and_the_pictures_it_shows(quick):
    page = (quick / "performance.md").read_text()
    assert page.count("Not measured yet") == 1  # the GPU's, which has a command of its own
    assert page.count("<!-- ") == 2 * (page.count("|---|") + 1)
    pictures = re.findall(r"!\[.+\]\((.+)\)", page)
    assert len(pictures) == 2
    for picture in pictures:
        assert (quick / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_the_server_answers_while_raw_sockets_send_nothing_slowly_or_too_much(tmp_path):
    done = run("--quick", "--out", tmp_path, "raw_sockets")
    assert done.returncode == 0, done.stderr
    (case,) = benchmarks_in(tmp_path)["raw_sockets"]["cases"].values()
    assert case["numbers"]["asked"]["min"] > 0
    assert case["numbers"]["failed"]["max"] == 0


@pytest.mark.endurance  # minutes: each case is measured in a process of its own
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


def test_median_least_and_most_are_taken_over_the_repetitions():
    runs = [{"values": {"seconds": value}} for value in (3.0, 1.0, 7.0)]
    assert measuring.summary(runs) == {"seconds": {"median": 3.0, "min": 1.0, "max": 7.0}}
    together = {"values": {"seconds": 3.0}, "least": {"seconds": 1.0}, "most": {"seconds": 7.0}, "repetitions": 3}
    assert measuring.summary([together]) == measuring.summary(runs)


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Adds a case that is measured at once, and returns the results file."""
    monkeypatch.setattr(runner.Runner, "_run_in", lambda *_: finished(seconds=1.0))

    def add(case):
        results = Results(tmp_path / "performance.jsonl")
        list(measuring.run_case("growth", case, results))
        return Results(results.path)

    return add


def test_results_of_other_machines_or_parameters_are_missing_and_replaced(add, monkeypatch):
    first, second = Case("1", {"n": 1}, (0, 0)), Case("2", {"n": 2}, (0,))
    add(second)
    results = add(first)
    assert is_measured("growth", first, results)
    assert is_measured("growth", second, results)
    assert not is_measured("growth", Case("1", {"n": 5}, (0, 0)), results)
    assert not is_measured("growth", Case("1", {"n": 1}, (0, 0, 0)), results)
    monkeypatch.setattr(measuring, "_memory", lambda: 64)
    assert not is_measured("growth", first, results)
    assert list(read_benchmarks(add(first))["growth"]["cases"]) == ["1"]


def test_every_file_of_the_benchmarks_says_in_its_first_line_what_belongs_there():
    for file in FOLDER.glob("*.py"):
        assert re.match(r'"""[A-Z].{15,}', file.read_text().split("\n", 1)[0]), file.name


def test_the_plain_search_finds_k_originals_and_an_original_first_of_all_itself(module):
    query = module("query")
    X = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    ids = query.plain_search(X, "exact", {})(X[7:8])[1]
    assert ids.shape == (1, query.K)
    assert ids[0, 0] == 7
