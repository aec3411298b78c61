"""Tests of benchmarks/render.py: the page on performance shows what its results file says."""

import pytest

from manifind.bench.results import Results
from project import ROOT

PAGE = ROOT / "docs" / "performance.md"


def same(value):
    return {"median": value, "min": value, "max": value}


def test_the_page_shows_what_its_results_file_says(module):
    render = module("render")
    found = module("measuring").read_benchmarks(Results(render.results_path(ROOT / "docs")))
    gpu = ROOT / "docs" / "results" / "gpu.json"
    assert PAGE.read_text() == render.rendered_page(PAGE.read_text(), found, gpu), "run benchmarks/render.py"


def test_a_page_without_results_says_so_in_every_place(module, tmp_path):
    render = module("render")
    page = render.rendered_page(PAGE.read_text(), {}, tmp_path / "none")
    assert page.count("Not measured yet.") == len(module("run").BENCHMARKS) + 2


def test_every_benchmark_has_a_table(module):
    assert set(module("rendered_tables").TABLES) == set(module("run").BENCHMARKS)


def test_a_number_on_the_wrong_side_of_its_limit_is_said_to_be_there(module):
    def table(ratio):
        numbers = dict.fromkeys(("step_ms", "products_ms", "products", "dense_gigaflops", "sparse_gigaflops"), same(1))
        case = {"numbers": {**numbers, "ratio": same(ratio)}}
        return module("rendered_tables").paper_step_table({"some": case})

    limit = module("paper_step").LIMIT
    assert f"at most {limit}: held" in table(limit - 0.1)
    assert f"at most {limit}: **not held**" in table(limit + 0.1)


def test_the_default_is_compared_with_the_paper_by_medians(module):
    cases = {
        "digits default": {"numbers": {"seconds": same(10), "score": {"median": 90, "min": 80, "max": 95}}},
        "digits paper": {"numbers": {"seconds": same(250), "score": same(90.5)}},
    }
    *_, row = module("rendered_tables").default_vs_paper_table(cases).splitlines()
    assert "| 25.0 | at least 20: held | 90.0 (80.0 to 95.0) | 90.5 | -0.50 |" in row
    assert row.endswith("at least -0.3: **not held** |")


def test_the_exponent_of_a_power_law_is_found(module):
    sizes = [10, 20, 50, 100]
    assert module("growth").exponent(sizes, [3 * n**1.2 for n in sizes]) == pytest.approx(1.2)
