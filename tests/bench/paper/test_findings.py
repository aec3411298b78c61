"""Tests of the findings: each speaks of cells that exist, and its verdict is what the numbers say."""

import pytest

from manifind.bench.paper.declared import Artefact, CellSpec, Run, Value
from project import load_script

script = load_script("findings")
FAILS, HOLDS, NOT_RUN, UNDECIDED = script.FAILS, script.HOLDS, script.NOT_RUN, script.UNDECIDED
Finding, findings, findings_table, judge = script.Finding, script.findings, script.findings_table, script.judge

OWN, OTHER = (Run("score", "ORL", "gradnet-paper", {"n_neighbors": k}, {"measures": ["mAP"]}) for k in (1, 2))
ARTEFACT = Artefact("t", "T", (CellSpec("own", "c", OWN, Value("mAP")), CellSpec("other", "c", OTHER, Value("mAP"))))


@pytest.mark.parametrize("finding", findings(), ids=lambda one: one.says)
def test_a_finding_speaks_of_cells_of_its_artefact(finding):
    names = {entry.name for entry in finding.artefact.entries}
    assert {finding.cell, *finding.others} <= names
    assert finding.cell not in finding.others


def verdict(results, own, other, lower=False):
    for run, values in ((OWN, own), (OTHER, other)):
        for seed, value in enumerate(values):
            results.add(run.key(seed), {"state": "done", "reason": "", "hint": "", "values": {"mAP": float(value)}})
    return judge(Finding("it is so", ARTEFACT, "own / c", ("other / c",), lower), results)


@pytest.mark.parametrize(
    ("own", "other", "lower", "expected"),
    [
        ([9, 9], [5, 5], False, HOLDS),
        ([5, 5], [9, 9], False, FAILS),
        ([5, 5], [9, 9], True, HOLDS),
        ([5, 9], [8, 8], False, UNDECIDED),
        ([5], [5], False, UNDECIDED),
        ([5], [], False, NOT_RUN),
    ],
)
def test_a_verdict_needs_more_than_twice_the_deviation(results, own, other, lower, expected):
    assert verdict(results, own, other, lower).verdict == expected


def test_a_verdict_says_where_it_rests_on_one_seed(results):
    assert verdict(results, [9], [5, 5]).on_one_seed
    assert not verdict(results, [9, 9], [5, 5]).on_one_seed


@pytest.mark.parametrize(("value", "expected"), [(21, HOLDS), (20, FAILS)])
def test_a_finding_without_others_must_exceed_its_least(results, value, expected):
    verdict(results, [value], [])
    finding = Finding("over twenty", ARTEFACT, "own / c", (), least=20.0)
    assert judge(finding, results).verdict == expected
    assert f"| over twenty | {expected}, on one seed | own {value:.2f} |" in findings_table([judge(finding, results)])


def test_the_table_shows_the_numbers_behind_a_verdict(results):
    table = findings_table([verdict(results, [5, 5], [9, 9])])
    assert "| it is so | **does not hold** | own 5.00 ± 0.00 against other 9.00 ± 0.00 |" in table
