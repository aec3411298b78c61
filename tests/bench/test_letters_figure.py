"""Tests of manifind.bench.letters: who owns a point, the file, and life without matplotlib."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from manifind.bench.letters import LettersResult, LettersSnapshot, draw_letters, letter_precision, owners, titles
from manifind.datasets.synthetic import make_letters
from manifind.errors import MissingExtraError


@pytest.fixture
def result():
    """Random rankings of forty points: good enough to be drawn."""
    letters = make_letters(40)
    rng = np.random.default_rng(0)
    ids = np.array([rng.permutation(40) for _ in range(4)])
    precision = letter_precision(ids, letters.labels)
    places = rng.normal(size=(40, 2)).astype(np.float32)
    snapshots = tuple(LettersSnapshot(steps, ids[2], float(precision[2])) for steps in (0, 3, 30))
    return LettersResult(letters, ids, ids, precision, precision, snapshots, np.arange(40), places, places)


def test_a_point_belongs_to_the_query_that_ranks_it_best_and_to_none_if_nobody_retrieves_it():
    labels = np.array([0, 0, 1, 1, 1])
    rankings = np.array([[0, 2, 1, 3, 4], [2, 3, 0, 1, 4]])  # the first query retrieves two, the second three
    assert owners(rankings, labels).tolist() == [0, -1, 1, 1, -1]


def test_of_equal_ranks_the_first_query_has_the_point():
    labels = np.array([0, 1])
    assert owners(np.array([[0, 1], [0, 1]]), labels).tolist() == [0, -1]


def test_titles_tell_the_mean_share_and_in_e_that_of_the_blue_query(result):
    few = replace(
        result,
        euclidean_precision=np.array([0.5, 0.7, 0.6, 0.6]),
        gradnet_precision=np.ones(4),
        snapshots=tuple(
            LettersSnapshot(n, s.ids, p) for n, s, p in zip((0, 3, 30), result.snapshots, (0.2, 0.4, 1), strict=True)
        ),
    )
    a, b, _, _, *e = titles(few)
    assert "60%" in a
    assert "100%" in b
    assert ["untrained: 20%" in e[0], "3 steps: 40%" in e[1], "30 steps: 100%" in e[2]] == [True] * 3


def test_the_figure_is_a_png_with_nothing_left_beside_it(result, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "new" / "letters.png"
    draw_letters(result, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in path.parent.iterdir()] == ["letters.png"]


def test_drawing_leaves_pyplot_alone(result, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # an import of it would fail
    draw_letters(result, tmp_path / "letters.png")


def test_without_matplotlib_the_error_names_the_extra(result, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="matplotlib") as caught:
        draw_letters(result, tmp_path / "letters.png")
    assert caught.value.hint == 'pip install "manifind[plot]"'
    assert not list(tmp_path.iterdir())
