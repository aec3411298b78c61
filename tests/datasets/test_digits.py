"""Tests of manifind.datasets.labelled: shapes, types, and pixels that are the images."""

import numpy as np

from manifind.datasets.labelled import load_digits


def test_there_are_1797_scans_of_ten_digits():
    digits = load_digits()
    assert digits.images.shape == (1797, 8, 8)
    assert digits.descriptors.shape == (1797, 64)
    assert np.bincount(digits.labels).min() == 174
    assert np.unique(digits.labels).tolist() == list(range(10))


def test_types_are_those_that_the_names_promise():
    digits = load_digits()
    assert digits.images.dtype == np.uint8
    assert digits.descriptors.dtype == np.float32
    assert digits.descriptors.flags.c_contiguous
    assert digits.labels.dtype == np.int64


def test_descriptors_are_the_pixels_of_the_images():
    digits = load_digits()
    np.testing.assert_array_equal(digits.descriptors, digits.images.reshape(1797, 64))
    assert digits.images.max() == 16
