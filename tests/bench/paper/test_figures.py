"""Tests of the drawn figures: what they are drawn from, what they refuse, and that the same seed draws the same."""

from collections import Counter

import numpy as np
import pytest

from manifind.bench.html import as_png, write_figure
from manifind.bench.paper.figures import (
    FIGURES,
    Brief,
    _gains_most,
    _without_self,
    categories,
    direction,
    draw_ablation,
    draw_complexity,
)
from manifind.bench.paper.tables import METHODS, figure8, table4
from manifind.bench.results import Results
from manifind.errors import DataError, InputError

pytest.importorskip("matplotlib")
OF_NO_SET = ("figure1", "figure2", "figure3")


@pytest.mark.parametrize("name", OF_NO_SET)
def test_a_figure_of_no_set_is_not_put_on_one(name):
    with pytest.raises(InputError, match=f"{name} is of no data set"):
        FIGURES[name](Brief(on="digits"))


@pytest.mark.parametrize("name", ["figure5", "figure7"])
def test_pictures_are_drawn_of_sets_whose_descriptors_are_pixels(name):
    with pytest.raises(InputError, match="expected a set whose descriptors are pixels: 'digits'"):
        FIGURES[name](Brief(on="MPEG-7 EfficientNet"))


def test_a_figure_of_a_set_that_is_not_here_says_so(tmp_path):
    with pytest.raises(DataError, match="COIL-20 is not here"):
        FIGURES["figure5"](Brief(on="COIL-20", folder=tmp_path))


@pytest.mark.parametrize("name", ["figure2", "figure7"])
def test_the_same_seed_draws_the_same_picture(name, tmp_path):
    for copy in ("one.png", "two.png"):
        write_figure(FIGURES[name](Brief(smoke=True)), tmp_path / copy)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_the_query_that_is_shown_is_the_one_that_gains_most():
    labels = np.array([0, 0, 0, 1, 1, 1])
    before = np.array([[1, 3], [3, 4], [0, 1]])
    after = np.array([[1, 2], [0, 2], [0, 1]])
    assert _gains_most(before, after, labels, np.array([0, 1, 2])) == 1


def test_an_item_is_not_among_what_it_finds():
    ids = np.array([[0, 1, 2, 3, 4, 5], [0, 2, 1, 3, 4, 5]])
    assert _without_self(ids).tolist() == [[1, 2, 3, 4, 5], [0, 2, 3, 4, 5]]


def test_what_no_query_looks_for_is_grey_and_queries_of_one_list_share_a_colour(buildings, faces):
    np.testing.assert_array_equal(categories(faces), faces.truth.labels)
    groups = categories(buildings)
    junk = np.concatenate(buildings.truth.lists.lists["junk"])
    assert (groups[junk] == -1).all()
    assert set(groups) == {-1, *range(12)}


def test_figure_8_is_drawn_from_what_was_measured_and_says_what_was_not(tmp_path):
    results = Results(tmp_path / "results.jsonl")
    empty = as_png(draw_complexity(figure8(), results), 50)
    for entry in figure8().entries:
        values = {"memory, MB": 100.0, "a pass, s": 0.5}
        results.add(entry.run.key(0), {"state": "done", "reason": "", "hint": "", "values": values})
    figure = draw_complexity(figure8(), results)
    lines = {axes.get_title(): [line.get_label() for line in axes.lines] for axes in figure.axes}
    assert lines["(a) memory, MB"] == list(METHODS)
    assert lines["(b) GPU memory, MB"] == []
    assert "Efficient" not in lines["(c) a forward and backward pass, s"]
    assert as_png(figure, 50) != empty


def test_table_4_is_drawn_with_the_paper_s_differences_and_ours_where_they_were_run(tmp_path):
    results, table = Results(tmp_path / "results.jsonl"), table4("ORL aligned")
    (axes,) = draw_ablation(table, results).axes
    assert set(axes.get_legend_handles_labels()[1]) == {"paper, Oxford5k"}
    loss = {"base": 0.0, "w/o local loss": 5.0, "k = 8": -5.0, "w/o Z": 0.5}
    for entry in (one for one in table.entries if one.run and one.row in loss):
        for seed, noise in enumerate((-1.0, 1.0)):
            values = {"bullseye@15 counted": 70.0 - loss[entry.row] + noise}
            results.add(entry.run.key(seed), {"state": "done", "reason": "", "hint": "", "values": values})
    (axes,) = draw_ablation(table, results).axes
    labels = Counter(axes.get_legend_handles_labels()[1])
    assert labels.pop("paper, Oxford5k") == 21
    verdicts = ("same direction", "opposite direction", "too close to call")
    assert labels == {f"ORL aligned: {verdict}": 1 for verdict in verdicts}


@pytest.mark.parametrize(
    ("paper", "here", "deviation", "says"),
    [
        (1.0, 3.0, 1.0, "same direction"),
        (1.0, -3.0, 1.0, "opposite direction"),
        (1.0, 2.0, 1.0, "too close to call"),
        (1.0, 0.0, 0.0, "too close to call"),
    ],
)
def test_a_difference_points_somewhere_beyond_twice_its_deviation(paper, here, deviation, says):
    assert direction(paper, here, deviation) == says
