"""Rankings: best first by falling score, then by rising position; as a data frame, and as Jupyter shows them."""

import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import MissingExtraError
from manifind.ranking import Ranking, best_first


def best_by_loops(scores, positions, k):
    rows = [
        sorted(zip(row, places, strict=True), key=lambda pair: (-pair[0], pair[1]))[:k]
        for row, places in zip(scores.tolist(), positions.tolist(), strict=True)
    ]
    return [[place for _, place in row] for row in rows], [[score for score, _ in row] for row in rows]


def test_three_candidates_by_hand():
    scores = np.array([[0.5, 0.9, 0.5], [1, 2, 3]], dtype=np.float32)
    positions = np.array([[7, 4, 2], [10, 30, 20]])
    found = best_first(scores, positions, 2)
    assert found.ids.tolist() == [[4, 2], [20, 30]]
    np.testing.assert_array_equal(found.scores, np.array([[0.9, 0.5], [3, 2]], dtype=np.float32))


@given(data=st.data(), m=st.integers(1, 4), c=st.integers(1, 12), levels=st.integers(1, 12))
@settings(max_examples=150, derandomize=True)
def test_best_first_equals_the_loops_whatever_ties(data, m, c, levels):
    k = data.draw(st.integers(1, c))
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    scores = (rng.integers(0, levels, size=(m, c)) / 4 - 1).astype(np.float32)  # few levels: many ties
    positions = np.array([rng.permutation(100)[:c] for _ in range(m)])
    found = best_first(scores, positions, k)
    ids, best = best_by_loops(scores, positions, k)
    assert found.ids.tolist() == ids
    assert found.scores.tolist() == best


@given(seed=st.integers(0, 10**6))
@settings(max_examples=50, derandomize=True)
def test_the_order_of_the_candidates_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    scores, positions = rng.integers(0, 3, size=(1, 9)).astype(np.float32), rng.permutation(9)[None]
    order = rng.permutation(9)
    one, other = best_first(scores, positions, 6), best_first(scores[:, order], positions[:, order], 6)
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_keep_their_type_and_never_increase(dtype):
    scores = np.random.default_rng(0).normal(size=(5, 20)).astype(dtype)
    found = best_first(scores, np.tile(np.arange(20), (5, 1)), 20)
    assert found.scores.dtype == dtype
    assert (np.diff(found.scores, axis=1) <= 0).all()


def test_minus_zero_ties_with_zero_and_minus_infinity_comes_last():
    scores = np.array([[-np.inf, 0.0, -0.0]], dtype=np.float32)
    assert best_first(scores, np.array([[0, 2, 1]]), 3).ids.tolist() == [[1, 2, 0]]


def test_a_ranking_unpacks_into_ids_and_scores():
    ids, scores = Ranking(np.array([[1]]), np.array([[0.5]], dtype=np.float32))
    assert ids.tolist() == [[1]]
    assert scores.tolist() == [[0.5]]


def test_the_candidates_are_not_written_to():
    scores, positions = np.array([[1.0, 2.0]], dtype=np.float32), np.array([[1, 0]])
    scores.flags.writeable = positions.flags.writeable = False
    best_first(scores, positions, 1)
    assert scores.tolist() == [[1, 2]]
    assert positions.tolist() == [[1, 0]]


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;b&gt;",
    "\x1b[2J",
    "\u202egnp.exe",
    "</table>",
]


def text_ids():
    """Ids as a collection may have them: any text without lone surrogates and null characters."""
    letters = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
    return st.one_of(st.sampled_from(HOSTILE), st.text(letters, min_size=1, max_size=100))


class Table(HTMLParser):
    """The tags of a table, and the text of each of its cells."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.cells = set(), []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        assert not attributes
        self.tags.add(tag)
        if tag in ("td", "small"):
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


@given(data=st.data(), m=st.integers(0, 4), k=st.integers(0, 5))
@settings(max_examples=60)
def test_a_data_frame_has_one_row_for_each_item_found_with_its_own_id(data, m, k):
    names = data.draw(
        st.one_of(
            *(st.lists(ids, min_size=m * k, max_size=m * k) for ids in (text_ids(), st.integers(-(2**63), 2**63 - 1)))
        )
    )
    ids = np.array(names, dtype=np.int64 if names and isinstance(names[0], int) else object).reshape(m, k)
    scores = np.linspace(1, -1, m * k, dtype=np.float32).reshape(m, k)
    frame = Ranking(ids, scores).to_pandas()
    assert list(frame.columns) == ["query", "rank", "id", "score"]
    assert len(frame) == m * k
    for query, rank, item, score in frame.itertuples(index=False):
        assert item == ids[query, rank - 1]
        assert score == scores[query, rank - 1]
    assert frame["query"].tolist() == [row for row in range(m) for _ in range(k)]
    assert frame["rank"].tolist() == list(range(1, k + 1)) * m


def test_without_pandas_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pandas is not installed") as refusal:
        Ranking(np.array([[1]]), np.array([[0.5]], dtype=np.float32)).to_pandas()
    assert refusal.value.hint == 'pip install "manifind[pandas]"'


@given(ids=st.lists(text_ids(), min_size=1, max_size=6))
@settings(max_examples=100)
def test_no_id_acts_as_markup_in_a_notebook(ids):
    table = Table(Ranking(np.array([ids], dtype=object), np.zeros((1, len(ids)), np.float32))._repr_html_())
    assert table.tags == {"table", "caption", "tr", "th", "td", "br", "small"}
    assert len(table.cells) == 2 * len(ids)  # an id and a score each
    for shown, name in zip(table.cells[::2], ids, strict=True):
        assert len(name) > 60 or not name.isprintable() or shown == name
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_a_notebook_shows_the_id_and_the_score_of_each_item():
    html = Ranking(np.array([[7, 3]]), np.array([[0.98763, -0.5]], dtype=np.float32))._repr_html_()
    assert Table(html).cells == ["7", "0.9876", "3", "-0.5"]
    assert "1 query, 2 items each" in html


@pytest.mark.parametrize(("m", "k"), [(50_000, 3), (3, 50_000), (0, 10), (1, 0)])
def test_a_notebook_shows_only_the_beginning_of_a_long_ranking(m, k):
    html = Ranking(np.zeros((m, k), np.int64), np.zeros((m, k), np.float32))._repr_html_()
    assert len(html) < 10_000
    assert ("only the beginning" in html) == (m > 10 or k > 10)


def test_a_long_id_is_cut_in_a_notebook():
    html = Ranking(np.array([["x" * 4096]]), np.zeros((1, 1), np.float32))._repr_html_()
    assert Table(html).cells[0] == "x" * 59 + "…"
