"""Tests of what a cell shows: means, deviations, differences, epochs, drops, and what was not run."""

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifind.bench.paper.declared import Artefact, CellSpec, Drop, EpochsTo, Gain, Run, Value
from manifind.bench.paper.render import NOT_RUN, as_markdown, as_plain, cell_in_full, cell_values, footnotes, table_rows
from manifind.bench.paper.tables import artefacts_of
from manifind.bench.results import Results
from manifind.bench.sets import SETS
from manifind.datasets.catalogue import VARIABLE
from project import ROOT

RUN = Run("curve", "ORL", "gradnet-paper", {"n_neighbors": 8}, {"measures": ["mAP"]})
BASE = Run("curve", "ORL", "gradnet-paper", {}, {"measures": ["mAP"]})
KNN = Run("score", "ORL", "knn", {}, {"measures": ["mAP"]})


def keep(results, run, *values, curve=(), state="done"):
    for seed, value in enumerate(values):
        record = {"state": state, "reason": "", "hint": "", "values": {"mAP": float(value)}}
        epochs = {"epochs": list(range(len(curve))), "curve": list(curve)}
        results.add(run.key(seed), {**record, **epochs, "command": "gradnet", "versions": {"gradnet": "0"}})


def shown(results, show=None, paper=None, run=RUN):
    (cell,) = cell_values(Artefact("t", "T", (CellSpec("r", "c", run, show or Value("mAP"), paper),)), results)
    return cell


def text(results, show=None, paper=None, run=RUN):
    return table_rows(Artefact("t", "T", (CellSpec("r", "c", run, show or Value("mAP"), paper),)), results)[0][1]


def test_a_cell_shows_the_mean_the_deviation_of_single_runs_the_paper_and_the_difference(results):
    keep(results, RUN, 90, 92, 94)
    assert text(results, paper=95.95) == "92.00 ± 2.00 (paper 95.95, -3.95)"
    assert shown(results, paper=95.95).difference == pytest.approx(-3.95)


def test_one_seed_has_no_deviation(results):
    keep(results, RUN, 90)
    assert text(results) == "90.00"
    assert shown(results).deviation is None


@given(st.lists(st.floats(0, 100), min_size=2, max_size=6))
def test_mean_and_deviation_are_those_of_the_values(tmp_path_factory, values):
    results = Results(tmp_path_factory.mktemp("r") / "results.jsonl")
    keep(results, RUN, *values)
    assert shown(results).mean == pytest.approx(np.mean(values))
    assert shown(results).deviation == pytest.approx(np.std(values, ddof=1))


def test_what_was_not_run_says_so_and_what_to_obtain(results):
    artefact = Artefact("t", "T", (CellSpec("r", "c", RUN, Value("mAP"), 62.35),))
    assert table_rows(artefact, results) == [["r", "not run (paper 62.35)"]]
    assert any(
        "Not run on ORL: `manifind reproduce t` runs it, with `manifind data fetch orl`" in note
        for note in footnotes(artefact, results)
    )
    assert as_plain(artefact, results)["cells"][0]["obtain"].startswith("`manifind data fetch orl`")


def test_what_failed_says_why_and_shows_no_number(results):
    keep(results, RUN, 1)
    results.add(RUN.key(1), {"state": "failed", "reason": "the loss is nan", "hint": "lower beta"})
    assert text(results, paper="OOM") == "failed (paper OOM)"
    artefact = Artefact("t", "T", (CellSpec("r", "c", RUN, Value("mAP")),))
    assert "r / c failed: the loss is nan; lower beta." in footnotes(artefact, results)
    three = Artefact("t", "T", tuple(CellSpec(f"r{number}", "c", RUN, Value("mAP")) for number in range(3)))
    assert "r0 / c and 2 more failed: the loss is nan; lower beta." in footnotes(three, results)


def test_a_cell_that_the_paper_does_not_have_is_a_dash(results):
    assert text(results, run=None) == "-"


def test_what_needs_a_gpu_says_so_until_it_was_run_on_one(results):
    run = replace(RUN, procedure="gpu cost")
    cell = shown(results, Value("GPU memory, MB"), run=run)
    assert (cell.state, cell.why) == (NOT_RUN, "it needs a GPU")


def test_a_value_that_this_machine_cannot_give_is_not_run(results):
    keep(results, RUN, 5)
    cell = shown(results, Value("GPU memory, MB"))
    assert cell.state == NOT_RUN
    assert "gives no GPU memory" in cell.why


def test_a_drop_is_how_far_the_mean_of_the_base_lies_above(results):
    keep(results, RUN, 90, 92)
    assert shown(results, Drop("mAP", BASE)).state == NOT_RUN
    keep(results, BASE, 95, 97)
    assert shown(results, Drop("mAP", BASE)).values == (6, 4)


def test_a_gain_is_how_far_a_value_lies_above_the_mean_of_the_other_run(results):
    keep(results, RUN, 90, 92)
    assert shown(results, Gain("mAP", BASE)).state == NOT_RUN
    keep(results, BASE, 80, 84)
    assert shown(results, Gain("mAP", BASE)).values == (8, 10)


def test_a_cell_whose_reference_failed_says_so(results):
    keep(results, RUN, 90)
    results.add(BASE.key(0), {"state": "failed", "reason": "it crashed", "hint": ""})
    cell = shown(results, Drop("mAP", BASE))
    assert (cell.state, cell.why) == ("failed", "it crashed")


def epochs(target):
    return EpochsTo("mAP", target, BASE, KNN)


def test_epochs_are_counted_to_the_first_that_reaches_the_target(results):
    keep(results, RUN, 80, curve=[50, 91, 92, 91, 93])
    keep(results, BASE, 90)
    keep(results, KNN, 70)
    assert shown(results, epochs(92.0)).values == (2,)
    assert text(results, epochs(99.0), paper="never") == "never (paper never)"
    assert shown(results, epochs(None)).values == (1,), "70 and 95 % of 20 are 89"


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30), st.floats(0, 100))
def test_before_the_epoch_that_is_shown_the_target_was_never_reached(tmp_path_factory, curve, target):
    results = Results(tmp_path_factory.mktemp("r") / "results.jsonl")
    for run in (RUN, BASE, KNN):
        keep(results, run, 1, curve=curve)
    (epoch,) = shown(results, epochs(target)).values
    if epoch is None:
        assert max(curve) < target
    else:
        assert curve[int(epoch)] >= target
        assert all(score < target for score in curve[: int(epoch)])


def test_one_trial_that_never_reaches_the_target_makes_the_cell_never(results):
    for seed, curve in enumerate(([1, 9], [1, 2])):
        record = {"state": "done", "reason": "", "hint": "", "values": {"mAP": 1.0}, "epochs": [0, 1], "curve": curve}
        results.add(RUN.key(seed), record)
    keep(results, BASE, 1)
    keep(results, KNN, 1)
    cell = shown(results, epochs(5.0))
    assert cell.values == (1, None)
    assert cell.mean is None
    assert text(results, epochs(5.0)) == "never"


def test_a_cell_in_full_has_the_command_the_seed_and_the_versions(results):
    keep(results, RUN, 90, 91)
    full = cell_in_full(shown(results), results)
    assert [record["seed"] for record in full["records"]] == [0, 1]
    assert full["settings"] == {"n_neighbors": 8}
    assert full["records"][0]["versions"] == {"gradnet": "0"}


@pytest.mark.parametrize(("loads", "summary"), [([1.0, 3.5], "1.0 to 3.5"), ([1.0, None], "not recorded")])
def test_seconds_come_with_the_load_of_the_machine(results, loads, summary):
    runs = [Run("cost", "ORL", "knn", {}, {"number": number}) for number in range(2)]
    for run, load in zip(runs, loads, strict=True):
        record = {"state": "done", "reason": "", "hint": "", "values": {"s": 1.0}, "machine": {"load": load}}
        results.add(run.key(0), record)
    entries = tuple(CellSpec(f"r{number}", "c", run, Value("s")) for number, run in enumerate(runs))
    assert any(f"of: {summary}." in note for note in footnotes(Artefact("t", "T", entries), results))


def test_a_page_has_the_command_a_row_for_each_row_and_the_notes(results):
    keep(results, RUN, 90)
    entries = tuple(CellSpec(row, "c", RUN, Value("mAP")) for row in ("first", "second"))
    page = as_markdown(Artefact("table9", "Title", entries, ("A note.",), on="ORL"), results)
    assert "## Title" in page
    assert '`manifind reproduce table9 --on "ORL"`' in page
    assert "| first | 90.00 |\n| second | 90.00 |" in page
    assert "- A note." in page


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} does not name a folder with the data sets")
def test_nothing_that_the_sets_at_hand_allow_is_left_not_run():
    """In the committed results; what is missing there needs descriptors that are not at hand."""
    known = Results(ROOT / "docs" / "results" / "reproduction.jsonl")
    cells = [cell for artefact in artefacts_of("all") for cell in cell_values(artefact, known)]
    missing = {cell.entry.run.on.split(",")[0]: cell.entry.name for cell in cells if cell.state == NOT_RUN}
    at_hand = {on: name for on, name in missing.items() if SETS[on].find(None) is not None}
    assert at_hand == {}
