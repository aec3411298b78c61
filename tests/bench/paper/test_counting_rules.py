"""Tests of the distances between our Table 2 and the paper's, by set and rule."""

import pytest

from manifind.bench.paper.tables import METHODS_2, score_run
from project import load_script

script = load_script("findings")
distances, distances_table = script.distances, script.distances_table


def test_a_distance_is_of_k_nn_and_the_mean_size_over_what_was_run(results):
    for row, above in (("k-NN", -1.0), ("SD", 3.0)):
        printed = {"k-NN": 62.35, "SD": 71.67}[row]
        run = score_run("ORL", METHODS_2[row])
        values = dict.fromkeys(run.options["measures"], printed + above)
        results.add(run.key(0), {"state": "done", "reason": "", "hint": "", "values": values})
    found = distances(results)
    assert [one.rule for one in found] == [f"bullseye@15 {rule}" for rule in ("counted", "left-out", "left-out-others")]
    assert {one.on for one in found} == {"ORL"}
    assert (found[0].knn, found[0].mean, found[0].n_methods) == (pytest.approx(-1), pytest.approx(2), 2)
    assert "| ORL | bullseye@15 left-out | -1.00 | 2.00 | 2 |" in distances_table(found)


def test_without_results_there_is_no_distance(results):
    assert distances(results) == []
