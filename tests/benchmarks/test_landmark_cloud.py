"""Tests of benchmarks/landmark_cloud.py: shapes and counts, whose neighbours views have, what can be gained."""

import numpy as np
import pytest

from manifind.baselines import METHODS
from manifind.errors import InputError
from manifind.evaluation.protocols import evaluate_labels
from project import load_script

script = load_script("landmark_cloud", "benchmarks")
DISTRACTOR, FEWEST_VIEWS, MOST_VIEWS = script.DISTRACTOR, script.FEWEST_VIEWS, script.MOST_VIEWS
make_landmark_cloud = script.make_landmark_cloud


@pytest.fixture(scope="module")
def cloud():
    return make_landmark_cloud(3000, 64)


def score(method, cloud, **settings):
    """mAP with every view of a landmark as a query."""
    query_items = np.flatnonzero(cloud.labels != DISTRACTOR)
    ids = METHODS[method](**settings).fit(cloud.descriptors).search(k=len(cloud.labels)).ids[query_items]
    return evaluate_labels(ids, cloud.labels, query_items=query_items, cutoffs=())[0].value


@pytest.mark.parametrize("d", [2, 31, 128])
def test_there_is_a_unit_row_and_a_label_for_every_item(d):
    cloud = make_landmark_cloud(500, d)
    assert cloud.descriptors.shape == (500, d)
    assert cloud.descriptors.dtype == np.float32
    assert cloud.descriptors.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(cloud.descriptors, axis=1), 1, rtol=1e-5)
    assert cloud.labels.shape == (500,)
    assert cloud.labels.dtype == np.int64


@pytest.mark.parametrize("share", [0.3, 0.71, 1.0])
def test_the_asked_share_of_the_items_are_views_but_for_less_than_one_landmark(share):
    labels = make_landmark_cloud(2000, 8, share_of_landmarks=share).labels
    missing = round(share * 2000) - np.count_nonzero(labels != DISTRACTOR)
    assert 0 <= missing < FEWEST_VIEWS


def test_every_landmark_has_20_to_60_views_and_its_label_is_a_number_from_0_up(cloud):
    views = np.bincount(cloud.labels[cloud.labels != DISTRACTOR])
    assert (views >= FEWEST_VIEWS).all()
    assert (views <= MOST_VIEWS).all()
    assert len(np.unique(views)) > 5


def test_the_items_of_a_landmark_do_not_stand_together(cloud):
    same_as_before = cloud.labels[1:] == cloud.labels[:-1]
    assert same_as_before[cloud.labels[1:] != DISTRACTOR].mean() < 0.1


def test_the_nearest_neighbours_of_a_view_are_mostly_views_of_its_landmark(cloud):
    views = np.flatnonzero(cloud.labels != DISTRACTOR)
    others = METHODS["knn"]().fit(cloud.descriptors).search(k=6).ids[views, 1:]
    assert (cloud.labels[others] == cloud.labels[views, None]).mean() > 0.9


def test_far_views_of_a_landmark_are_nearer_to_other_things_than_to_each_other(cloud):
    one = cloud.labels == 0
    similarity = cloud.descriptors[one] @ cloud.descriptors.T
    farthest_own = similarity[:, one].min(axis=1)
    assert (similarity[:, ~one].max(axis=1) > farthest_own).all()


def test_distractors_have_neighbours_as_near_as_landmarks_have_strangers(cloud):
    """They come from where the centres come from, so they are not told apart by being alone."""
    is_view = cloud.labels != DISTRACTOR
    distractors = cloud.descriptors[~is_view]
    nearest_distractor = np.partition(cloud.descriptors @ distractors.T, -2, axis=1)
    of_views, of_distractors = nearest_distractor[is_view, -1], nearest_distractor[~is_view, -2]
    assert abs(np.median(of_views) - np.median(of_distractors)) < 0.1


def test_most_of_the_variance_lies_in_few_dimensions():
    descriptors = make_landmark_cloud(3000, 512).descriptors
    energy = np.linalg.svd(descriptors, compute_uv=False) ** 2
    assert energy[:32].sum() / energy.sum() > 0.8


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nearest_neighbours_alone_are_right_for_40_to_80_percent(seed):
    assert 40 < score("knn", make_landmark_cloud(3000, 64, seed=seed)) < 80


@pytest.mark.long
def test_gradnet_gains_more_than_five_points_over_nearest_neighbours(cloud):
    assert score("gradnet", cloud, random_state=0, max_steps=40) > score("knn", cloud) + 5


def test_the_same_seed_gives_the_same_cloud_and_another_seed_another():
    first, again, other = (make_landmark_cloud(300, 16, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.descriptors, again.descriptors)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not np.array_equal(first.descriptors, other.descriptors)
    assert not np.array_equal(first.labels, other.labels)


def test_a_cloud_too_small_for_one_landmark_is_refused():
    with pytest.raises(InputError, match=r"0\.3 of 60 items are 18; expected at least 20"):
        make_landmark_cloud(60, 8)


@pytest.mark.parametrize("share", [0, 1.5])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InputError, match=f"share_of_landmarks = {share}; expected above 0 and at most 1"):
        make_landmark_cloud(100, 8, share_of_landmarks=share)


def test_descriptors_of_one_dimension_are_refused():
    with pytest.raises(InputError, match="d = 1; expected at least 2"):
        make_landmark_cloud(100, 1)
