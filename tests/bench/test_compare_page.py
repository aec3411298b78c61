"""Tests of manifind.bench.report: one page that stands alone, with bars that are true."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from manifind.bench.cell import Cell, Scored
from manifind.bench.comparison import Entry, Row, Table, Tuned
from manifind.bench.html import Scale, cost_bar, cost_text, score_bar
from manifind.bench.report import page, write_page
from manifind.evaluation.measures import Score
from manifind.evaluation.protocols import Difference


class Outline(HTMLParser):
    """Every element with its attributes, and a complaint where one is not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data + "\n"


def entry(value, seconds=0.25, peak=500_000_000, against=None):
    score = Score("mAP", "a rule", "in the graph", np.full(3, value), np.ones(3))
    scored = Scored(score, value - 2, value + 2)
    cell = Cell("done", settings={}, seconds=seconds, milliseconds=1.5, peak=peak, scores=(scored,))
    return Entry(cell, False, scored, against)


@pytest.fixture
def table():
    above = Difference(7.5, 6.25, 8.75, 0.95, 3, 0, 0)
    tuned = Tuned(entry(81.5), {"n_neighbors": 4}, 70, 2)
    rows = [
        Row("knn", entry(60.0)),
        Row("<b>own</b>", entry(67.5, against=above, peak=None), tuned),
        Row("cdm", Entry(Cell("refused", "too many items", "take <fewer>"), False)),
        Row("gradnet", entry(72.25, seconds=123.4), Tuned(entry(72.25), {}, 3, 0)),
    ]
    return Table("toy: points", 1200, 2, 300, "0" * 64, "unit", "mAP", "a rule", rows)


def test_the_page_refers_to_no_other_host_and_runs_nothing(table):
    text = page("toy", [table], 0)
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<script|<link|<iframe|<img", text)
    elements = Outline(text).elements
    assert not [a for _, a in elements if "href" in a or "src" in a or any(k.startswith("on") for k in a)]
    (policy,) = [a["content"] for tag, a in elements if "http-equiv" in a]
    assert policy.startswith("default-src 'none'")


def test_every_method_has_its_numbers_and_every_refusal_its_reason(table):
    text = Outline(page("toy", [table], 0)).text
    for expected in ("60.00", "58.00 to 62.00", "67.50", "+7.50", "+6.25 to +8.75", "123", "500", "1.5"):
        assert f"\n{expected}\n" in text
    assert "refused: too many items; take <fewer>" in text
    assert "not known" in text


def test_tuned_scores_stand_beside_the_default_and_are_called_so(table):
    text = page("toy", [table], 0)
    seen = Outline(text).text
    assert seen.index("67.50") < seen.index("81.50") < seen.index("72.25")
    assert "tuned with the labels: \ntheir settings were chosen by the very score that they show" in seen
    assert "<b>own</b>: n_neighbors=4 (70 settings tried, 2 of them refused or failed)" in seen
    assert "gradnet: the default is the best (3 settings tried)" in seen
    assert text.count('<tr class="tuned">') == 1
    style = text.split("<style>")[1].split("</style>")[0]
    assert re.search(r"\.tuned \.bar \.length \{[^}]*dasharray", style), "they differ by more than colour"


def test_without_tuning_nothing_is_said_of_it(table):
    rows = [row._replace(tuned=None) for row in table.rows]
    assert "tuned with" not in Outline(page("toy", [table._replace(rows=rows)], 0)).text


def test_whatever_stands_in_a_name_is_escaped(table):
    text = page("<i>toy</i>", [table], 0)
    assert "<b>own" not in text
    assert "<i>" not in text
    assert "<fewer>" not in text


def test_every_bar_has_a_name_for_those_who_do_not_see_it(table):
    drawings = [a for tag, a in Outline(page("toy", [table], 0)).elements if tag == "svg"]
    assert len(drawings) == 4 * 4 - 1  # four lines with a score and three costs, one of them not known
    assert all(a["role"] == "img" and a["aria-label"] for a in drawings)
    assert drawings[0]["aria-label"] == "knn: 60.00, 58.00 to 62.00"


def test_the_page_is_made_for_light_and_dark_and_tells_how_it_was_made(table):
    text = page("toy", [table], 41)
    assert "prefers-color-scheme: dark" in text
    assert ", seed 41; " in Outline(text).text
    assert "manifind 0." in Outline(text).text


def test_a_table_in_which_nothing_was_done_can_be_shown(table):
    nothing = table._replace(measure=None, rule=None, rows=[table.rows[2]])
    assert "refused" in Outline(page("toy", [nothing], 0)).text


def test_the_page_is_written_where_no_folder_was(table, tmp_path):
    write_page("toy", [table], tmp_path / "deep" / "p.html", 0)
    assert (tmp_path / "deep" / "p.html").read_text(encoding="utf-8") == page("toy", [table], 0)


def length(bar):
    return float(re.search(r'd="M0 1.5h([\d.]+)v7', bar).group(1))


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "< 0.001"), (0.00459, "0.00459"), (18.46, "18.5"), (999.7, "1,000"), (52e3, "52,000")]
)
def test_costs_are_read_without_powers(value, text):
    assert cost_text(value) == text


def test_a_bar_of_a_score_is_as_long_as_the_score_with_its_interval_across():
    bar = score_bar("knn", 62.5, 60.0, 65.0)
    assert length(bar) == 62.5
    assert "M60.00 5H65.00" in bar


def test_ten_times_the_cost_is_one_line_more():
    scale = Scale.around([0.02, 5.0, 30.0])
    assert scale == (-2, 2)
    assert str(scale) == "0.01 to 100"
    assert scale.lines() == [25, 50, 75]
    bars = [length(cost_bar("", cost, "s", scale)) for cost in (0.1, 1.0, 10.0)]
    assert bars == scale.lines()


@pytest.mark.parametrize(
    ("values", "expected"), [([], (0, 1)), ([1.0], (0, 1)), ([0.0], (-4, -3)), ([10.0, 10.0], (1, 2))]
)
def test_a_scale_has_a_length_whatever_it_is_for(values, expected):
    scale = Scale.around(values)
    assert scale == expected
    for value in values:
        assert 1 <= length(cost_bar("", value, "s", scale)) <= 100
