"""Tests of manifind.bench.html and .thumbnails: smoothing by hand, bars, and pixels that survive."""

import base64
import io
import re

import numpy as np
import pytest

from manifind.bench.html import bars, curve, data_address, labelled_map, png, smooth


def test_smoothing_is_a_centred_mean_that_shrinks_at_the_ends():
    np.testing.assert_allclose(smooth(np.array([3.0, 6.0, 9.0, 0.0]), 3), [4.5, 6, 5, 4.5])


def test_a_constant_stays_constant_under_smoothing():
    np.testing.assert_allclose(smooth(np.full(25, 7.0), 10), 7)


def test_a_window_longer_than_the_values_is_cut_to_their_number():
    assert smooth(np.array([1.0, 3.0]), 9).shape == (2,)


@pytest.mark.parametrize("values", [np.array([2.0]), np.full(5, 2.0)])
def test_a_curve_without_height_can_be_drawn(values):
    assert "nan" not in curve("loss", values)


def test_a_curve_falls_on_the_page_where_the_values_fall():
    points = re.search(r'points="([^"]+)" class="raw"', curve("loss", np.array([3.0, 2.0, 1.0]))).group(1)
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert heights == sorted(heights)
    assert heights[0] < heights[-1]


def test_there_is_a_tall_bar_for_each_right_result_and_a_short_one_for_each_wrong():
    drawn = bars(np.array([True, False, True]))
    tall, short = re.findall(r' d="([^"]*)"', drawn)
    assert re.findall(r"M(\d)", tall) == ["0", "2"]
    assert re.findall(r"M(\d)", short) == ["1"]
    assert "2 of the first 3 results are right" in drawn


def test_a_map_keeps_every_point_inside_and_up_above_down():
    places = np.array([[0.0, 0.0], [0.0, 10.0], [5.0, 0.0]], dtype=np.float32)
    drawn = labelled_map("a map", places, np.array([0, 1, 2]))
    at = np.array([[float(v) for v in pair] for pair in re.findall(r"M([\d.]+) ([\d.]+)h0", drawn)])
    assert at.shape == (3, 2)
    assert ((at > 0) & (at < 400)).all()
    assert at[1, 1] < at[0, 1]
    assert at[2, 0] > at[0, 0]


def test_a_png_has_the_pixels_it_was_made_of():
    image = pytest.importorskip("matplotlib.image")
    grey = np.random.default_rng(0).integers(0, 256, size=(5, 9)).astype(np.uint8)
    np.testing.assert_allclose(image.imread(io.BytesIO(png(grey))) * 255, grey, atol=1e-3)


def test_a_scan_becomes_dark_ink_on_white_paper():
    image = pytest.importorskip("matplotlib.image")
    address = data_address(np.array([[0, 16], [8, 4]], dtype=np.uint8))
    content = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    np.testing.assert_allclose(image.imread(io.BytesIO(content)) * 255, [[255, 0], [128, 192]], atol=1)
