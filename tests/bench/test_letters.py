"""Tests of manifind.bench.letters: the precision by hand, the shape of a run, and the claim itself."""

import numpy as np
import pytest

from manifind.bench.letters import BLUE, draw_letters, letter_precision, retrieved, run_letters, settings
from manifind.datasets.synthetic import make_letters
from manifind.errors import InputError
from manifind.model.estimator import GradNet


@pytest.fixture(scope="module")
def small():
    reports = []
    result = run_letters(n_points=240, seed=1, listener=reports.append, max_steps=20)
    return result, reports


def test_a_query_retrieves_as_many_points_as_its_letter_has():
    labels = np.array([0, 0, 0, 1, 1])
    assert retrieved(np.array([4, 0, 1, 2, 3]), 0, labels).tolist() == [4, 0, 1]
    assert retrieved(np.array([4, 0, 1, 2, 3]), 1, labels).tolist() == [4, 0]


def test_precision_is_the_share_of_the_own_letter_in_what_is_retrieved():
    labels = np.array([0, 0, 0, 1, 1])
    ids = np.array([[4, 0, 1, 2, 3], [4, 0, 1, 2, 3]])
    np.testing.assert_allclose(letter_precision(ids, labels), [2 / 3, 1 / 2])


def test_every_ranking_has_each_point_once(small):
    result, _ = small
    for ids in (*result.euclidean, *result.learned, *(s.ids for s in result.snapshots)):
        assert sorted(ids.tolist()) == list(range(240))


def test_the_precisions_of_a_run_are_those_of_its_rankings(small):
    result, _ = small
    labels = result.letters.labels
    np.testing.assert_array_equal(result.euclidean_precision, letter_precision(result.euclidean, labels))
    np.testing.assert_array_equal(result.gradnet_precision, letter_precision(result.learned, labels))


def test_euclidean_retrieval_is_by_distance(small):
    result, _ = small
    distances = np.linalg.norm(result.letters.points[result.euclidean[0]] - result.letters.queries[0], axis=1)
    assert (np.diff(distances) >= -1e-6).all()


def test_snapshots_go_from_untrained_over_a_tenth_to_the_end(small):
    result, _ = small
    assert [s.steps for s in result.snapshots] == [0, 2, 20]
    np.testing.assert_array_equal(result.snapshots[-1].ids, result.learned[BLUE])
    assert result.snapshots[-1].precision == result.gradnet_precision[BLUE]


def test_a_short_training_is_the_beginning_of_a_long_one():
    letters = make_letters(120)
    short, long = (
        GradNet(**settings("word", 0) | {"max_steps": steps}).fit(letters.points, queries=letters.queries)
        for steps in (2, 5)
    )
    np.testing.assert_allclose(short.loss_curve_, long.loss_curve_[:2], rtol=1e-5)


def test_maps_show_the_points_that_the_result_names(small):
    result, _ = small
    assert result.shown.tolist() == list(range(240))
    assert result.original_map.shape == result.learned_map.shape == (240, 2)


def test_every_stage_that_begins_is_reported_to_its_end(small):
    _, reports = small
    stages = dict.fromkeys(p.stage for p in reports)
    assert "final state: training" in stages
    assert list(stages)[-1] == "maps"
    last = {p.stage: p for p in reports}
    assert all(p.done == p.total for p in last.values())


def test_letters_of_1500_points_each_have_four_times_the_neighbours():
    assert settings("letter", 0)["n_neighbors"] == 4 * settings("word", 0)["n_neighbors"]


def test_an_unknown_count_is_refused_before_anything_is_fitted():
    with pytest.raises(InputError, match="count"):
        run_letters(count="page")


@pytest.mark.long
def test_gradnet_finds_the_letters_that_euclidean_distance_mixes_and_the_picture_stays_small(tmp_path):
    result = run_letters()
    assert result.gradnet_precision.mean() >= 0.98
    assert result.euclidean_precision.mean() < 0.8
    draw_letters(result, tmp_path / "letters.png")
    assert (tmp_path / "letters.png").stat().st_size < 350_000
