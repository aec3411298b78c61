"""Tests of manifind.bench.demo: one valid page that stands alone and frames what is right."""

import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from manifind.bench.demo import page, write_report
from manifind.errors import InputError

VOID = {"meta", "img"}


class Outline(HTMLParser):
    """Every element with its attributes, and a complaint where one is not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text += data + "\n"


def outline(text):
    parser = Outline()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_parses_with_every_element_closed(demo_result):
    parsed = outline(page(demo_result))
    assert parsed.elements[0] == ("html", {"lang": "en"})
    assert [tag for tag, _ in parsed.elements].count("title") == 1


def test_the_page_refers_to_no_other_host_and_runs_no_script(demo_result):
    text = page(demo_result)
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<script|<link|<iframe", text)
    sources = [a["src"] for _, a in outline(text).elements if "src" in a]
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not [a for _, a in outline(text).elements if "href" in a or any(k.startswith("on") for k in a)]


def test_the_table_has_every_method_with_its_score_and_seconds(demo_result):
    text = outline(page(demo_result)).text
    for expected in ("k-NN", "61.23", "0.4", "71.01", "0.7", "GRAD-Net", "88.88", "31.6"):
        assert f"{expected}\n" in text


def test_results_are_framed_right_where_they_show_the_digit_of_the_query(demo_result):
    parsed = outline(page(demo_result))
    frames = [a["class"] for tag, a in parsed.elements if tag == "li" and "class" in a]
    right, wrong = "hit right", "hit wrong"
    assert frames == [right, right, wrong, right, right, wrong] + [right] * 5 + [wrong]
    alts = [a["alt"] for tag, a in parsed.elements if tag == "img"]
    assert alts[:4] == ["The query, a 3", "3, right", "3, right", "8, wrong"]


def test_wrong_results_differ_by_more_than_colour(demo_result):
    style = page(demo_result).split("<style>")[1].split("</style>")[0]
    assert re.search(r"\.hit\.wrong \{[^}]*dashed", style)
    assert re.search(r'\.hit\.wrong::after \{[^}]*content: "\xd7"', style)


def test_at_most_ten_results_are_pictured_and_all_that_were_kept_are_counted(demo_result):
    ids = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    example = replace(demo_result.examples[0], nearest=ids, learned=ids)
    parsed = outline(page(replace(demo_result, examples=(example,))))
    assert sum(tag == "li" and "hit" in a.get("class", "") for tag, a in parsed.elements) == 20
    assert parsed.text.count("5 of the first 11 right") == 2


def test_whatever_stands_in_the_result_is_escaped(demo_result):
    result = replace(demo_result, settings={"<i>": '"&"'}, versions={"<script>": "</main>"})
    text = page(result)
    assert "<b>" not in text
    assert "<i>" not in text
    assert "<script>" not in text
    parsed = outline(text)
    assert "<b>average</b> & more" in parsed.text
    assert "<script> </main>" in parsed.text


def test_the_page_is_made_for_light_dark_and_narrow_screens(demo_result):
    text = page(demo_result)
    assert "prefers-color-scheme: dark" in text
    assert "max-width: 34rem" in text
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in outline(text).elements


def test_every_drawing_has_a_name_for_those_who_do_not_see_it(demo_result):
    elements = outline(page(demo_result)).elements
    drawings = [a for tag, a in elements if tag == "svg"]
    assert len(drawings) == 2 + 3 + 2  # bars of two answers, three curves, two maps
    assert all(a["role"] == "img" and a["aria-label"] for a in drawings)


def test_how_it_was_made_names_seed_versions_and_settings(demo_result):
    text = outline(page(demo_result)).text
    assert "Seed 41" in text
    assert "manifind 9.9.9" in text
    assert "n_neighbors = 15" in text


def test_the_report_is_written_where_no_folder_was(demo_result, tmp_path):
    summary = []
    path = tmp_path / "deep" / "er" / "report.html"
    write_report(demo_result, path, listener=summary.append)
    assert path.read_text(encoding="utf-8") == page(demo_result)
    assert [(p.stage, p.done, p.total) for p in summary] == [("report", 0, 1), ("report", 1, 1)]


def test_a_failure_leaves_the_old_report_and_nothing_else(demo_result, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match=r"report\.html cannot be written: No space left on device"):
        write_report(demo_result, path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_path_below_a_file_is_refused_with_its_reason(demo_result, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_report(demo_result, tmp_path / "file" / "report.html")
