"""Preprocessing: lengths of rows, the mean of the database, and the rows that have no direction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from manifind.errors import InputError
from manifind.graph import preprocess
from manifind.graph.preprocess import Preprocessor, fit_preprocessor, unit_lengths, unit_rows, whitening_warning
from manifind.settings import PREPROCESS
from reference.descriptors import centred_by_loops, unit_row_by_loops

EPSILON = float(np.finfo(np.float32).eps)
matrices = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False),
)


def rows(*values):
    return np.array(values, dtype=np.float32)


def test_unit_scales_three_and_four_to_six_and_eight_tenths():
    X = rows([3, 4], [0, -2], [0, 0])
    out = fit_preprocessor("unit", X)(X)
    np.testing.assert_allclose(out, [[0.6, 0.8], [0, -1], [0, 0]], rtol=EPSILON)


def test_center_takes_the_mean_away_first():
    X = rows([1, 0], [3, 0], [2, 3])  # mean (2, 1)
    out = fit_preprocessor("center", X)(X)
    r = 0.5**0.5
    np.testing.assert_allclose(out, [[-r, -r], [r, -r], [0, 1]], rtol=2 * EPSILON, atol=EPSILON)


def spread_rows(n=2000, d=6, seed=0):
    """Rows whose directions vary by factors of up to 32, turned away from the axes, around a mean."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return (rng.normal(size=(n, d)) * 2.0 ** np.arange(d) @ turn + 7).astype(np.float32)


def test_whitened_rows_vary_alike_in_every_direction():
    X = spread_rows()
    preprocessor = fit_preprocessor("whiten", X)
    prepared, lengths = preprocessor.with_lengths(X)
    variances = np.linalg.eigvalsh(np.cov((prepared * lengths).T))
    assert variances.max() < 2 * variances.min()  # 1,000 times before
    centred = fit_preprocessor("center", X)
    assert np.ptp(np.linalg.eigvalsh(np.cov((centred(X)).T))) > 0.2


def test_whitening_what_already_varies_alike_only_centres():
    X = np.random.default_rng(1).normal(3, 1, size=(20_000, 4)).astype(np.float32)
    np.testing.assert_allclose(fit_preprocessor("whiten", X)(X), fit_preprocessor("center", X)(X), atol=0.03)


@pytest.mark.parametrize("n", [1, 2, 5, 300])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e15])
def test_whitened_rows_are_restored_even_where_rows_are_fewer_than_directions(n, scale):
    X = (spread_rows(n, 12, 2) * scale).astype(np.float32)
    preprocessor = fit_preprocessor("whiten", X)
    other = (spread_rows(20, 12, 3) * scale).astype(np.float32)
    restored = preprocessor.restore(*preprocessor.with_lengths(other))
    np.testing.assert_allclose(restored, other, atol=2e-3 * np.abs(other).max())
    assert np.isfinite(preprocessor(other)).all()


def test_a_whitening_without_an_inverse_is_named():
    flat = Preprocessor("whiten", np.zeros(2, np.float32), None, np.ones((2, 2), np.float32))
    with pytest.raises(InputError, match="no inverse"):
        flat.restore(rows([1, 0]), rows([1]))


def test_whitening_is_warned_of_where_few_directions_hold_the_variance():
    rng = np.random.default_rng(0)
    round_, flat = rng.normal(size=(500, 40)), rng.normal(size=(500, 40)) * np.where(np.arange(40) < 4, 10.0, 1.0)
    kinds = {"round": round_, "flat": flat}
    said = {name: whitening_warning(fit_preprocessor("whiten", X.astype(np.float32))) for name, X in kinds.items()}
    assert said["round"] is None
    assert "in about 5 of their 40 dimensions" in said["flat"]
    assert whitening_warning(fit_preprocessor("unit", flat.astype(np.float32))) is None
    assert whitening_warning(fit_preprocessor("whiten", flat[:, :1].astype(np.float32))) is None


def test_none_changes_nothing():
    X = rows([3, 4], [0, 0])
    assert fit_preprocessor("none", X)(X).tolist() == X.tolist()


@settings(max_examples=80)
@given(matrices)
def test_unit_rows_equal_the_loops(X):
    expected = [unit_row_by_loops(row) for row in X]
    np.testing.assert_allclose(unit_rows(X), expected, rtol=4 * EPSILON, atol=1e-37)


@pytest.mark.parametrize("d", [2, 7])
def test_center_equals_the_loops(d):
    X = np.random.default_rng(d).normal(5, 1, size=(30, d)).astype(np.float32)
    expected = [unit_row_by_loops(row) for row in centred_by_loops(X)]
    np.testing.assert_allclose(fit_preprocessor("center", X)(X), expected, atol=20 * EPSILON)


@settings(max_examples=80)
@given(matrices)
def test_a_row_comes_out_with_length_one_or_zero(X):
    lengths = np.linalg.norm(unit_rows(X).astype(np.float64), axis=1)
    expected = np.any(X != 0, axis=1).astype(np.float64)
    np.testing.assert_allclose(lengths, expected, rtol=4 * EPSILON)


@pytest.mark.parametrize("scale", [1e-37, 1e-30, 1e-20, 1e20, 1e30, 1e37])
def test_tiny_and_huge_rows_keep_their_direction(scale):
    X = rows([3, 4], [-4, 3]) * np.float32(scale)
    np.testing.assert_allclose(unit_rows(X), [[0.6, 0.8], [-0.8, 0.6]], rtol=8 * EPSILON)


def test_rows_at_the_upper_end_of_float32_keep_their_direction():
    X = rows([3e38, 3e38], [3e38, -3e38])  # each is longer than the largest float32
    r = 0.5**0.5
    np.testing.assert_allclose(unit_rows(X), [[r, r], [r, -r]], rtol=8 * EPSILON)


def test_rows_at_the_lower_end_of_float32_keep_their_direction():
    X = rows([1e-44, 1e-44], [3e-42, 4e-42])  # the length of a subnormal row is itself subnormal
    expected = [unit_row_by_loops(row) for row in X]
    np.testing.assert_allclose(unit_rows(X), expected, rtol=8 * EPSILON)


def test_centring_does_not_overflow_between_far_ends():
    X = rows([3e38, 0], [3e38, 0], [-3e38, 0])  # the last row is 4e38 away from the mean
    np.testing.assert_allclose(fit_preprocessor("center", X)(X), [[1, 0], [1, 0], [-1, 0]], rtol=8 * EPSILON)


@pytest.mark.parametrize("kind", PREPROCESS.choices)
def test_a_row_of_zeros_stays_a_row_of_zeros_or_becomes_minus_the_mean(kind):
    X = rows([0, 0, 0], [1, 2, 2], [3, 0, 4])
    out = fit_preprocessor(kind, X)(X)
    assert np.isfinite(out).all()
    if kind == "whiten":
        assert np.linalg.norm(out[0]) == pytest.approx(1)
    elif kind == "center":
        mean = X.mean(axis=0)
        np.testing.assert_allclose(out[0], -mean / np.linalg.norm(mean), rtol=4 * EPSILON)
    else:
        assert out[0].tolist() == [0, 0, 0]


def test_a_row_equal_to_the_mean_becomes_zero():
    X = rows([1, 1], [3, 3], [2, 2])
    assert fit_preprocessor("center", X)(X)[2].tolist() == [0, 0]


def test_queries_are_centred_on_the_database():
    X = rows([0, 0], [2, 2])
    preprocessor = fit_preprocessor("center", X)
    np.testing.assert_allclose(preprocessor(rows([1, 4], [9, 1])), [[0, 1], [1, 0]], atol=EPSILON)


def test_the_answer_for_a_row_does_not_depend_on_the_other_rows():
    X = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    preprocessor = fit_preprocessor("center", X)
    alone = np.concatenate([preprocessor(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_array_equal(alone, preprocessor(X))


@pytest.mark.parametrize("kind", ["unit", "center"])
def test_blocks_of_rows_do_not_change_the_answer(kind, monkeypatch):
    X = np.random.default_rng(1).normal(size=(40, 5)).astype(np.float32)
    whole = fit_preprocessor(kind, X)(X)
    monkeypatch.setattr(preprocess, "_ROWS_PER_BLOCK", 7)
    np.testing.assert_array_equal(fit_preprocessor(kind, X)(X), whole)


@pytest.mark.parametrize("kind", PREPROCESS.choices)
def test_the_input_is_not_written_to(kind):
    X = np.random.default_rng(2).normal(size=(10, 3)).astype(np.float32)
    X.flags.writeable = False
    out = fit_preprocessor(kind, X)(X)
    assert out.dtype == np.float32
    assert out.shape == X.shape


def test_one_dimension_is_scaled_by_one_number_so_that_more_than_its_sign_is_left():
    X = rows([1], [-4], [2])
    np.testing.assert_allclose(fit_preprocessor("unit", X)(X), [[0.25], [-1], [0.5]], rtol=EPSILON)


def test_one_dimension_is_centred_before_it_is_scaled():
    X = rows([0], [2], [10])  # mean 4: -4, -2, 6
    np.testing.assert_allclose(fit_preprocessor("center", X)(X), [[-4 / 6], [-2 / 6], [1]], rtol=2 * EPSILON)


@pytest.mark.parametrize("kind", ["unit", "center"])
def test_one_dimension_of_zeros_stays_zero(kind):
    X = rows([0], [0])
    assert fit_preprocessor(kind, X)(X).tolist() == [[0], [0]]


def test_one_dimension_of_queries_uses_the_scale_of_the_database():
    preprocessor = fit_preprocessor("unit", rows([1], [-4]))
    assert preprocessor(rows([8])).tolist() == [[2]]


def test_only_center_keeps_a_mean():
    X = rows([1, 2], [3, 4])
    assert fit_preprocessor("unit", X) == Preprocessor("unit")
    assert fit_preprocessor("none", X) == Preprocessor("none")
    assert fit_preprocessor("center", X).mean.tolist() == [2, 3]


def test_an_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"'bleach'.*'unit', 'center', 'whiten', 'none'"):
        fit_preprocessor("bleach", rows([1, 2]))


def test_the_length_of_a_row_of_zeros_counts_as_one():
    assert unit_lengths(rows([0, 0], [3, 4])).tolist() == [[1], [5]]


@pytest.mark.parametrize("kind", PREPROCESS.choices)
@pytest.mark.parametrize("d", [1, 4])
def test_restore_undoes_the_preprocessing(kind, d):
    X = np.random.default_rng(d).normal(3, 1, size=(20, d)).astype(np.float32)
    X[4] = 0
    preprocessor = fit_preprocessor(kind, X)
    prepared, lengths = preprocessor.with_lengths(X)
    assert lengths.shape == (20, 1)
    np.testing.assert_array_equal(prepared, preprocessor(X))
    np.testing.assert_allclose(preprocessor.restore(prepared, lengths), X, atol=16 * EPSILON)


@pytest.mark.parametrize("kind", PREPROCESS.choices)
def test_the_answer_is_a_copy_even_where_nothing_changes(kind):
    X = rows([0.6, 0.8], [1, 0])
    assert not np.shares_memory(fit_preprocessor(kind, X)(X), X)


@pytest.mark.parametrize("scale", [1e-19, 1e-30, 1e-44])
def test_a_database_whose_squared_distances_vanish_is_refused_where_nothing_is_to_scale_it(scale):
    X = np.full((3, 4), scale, dtype=np.float32)
    with pytest.raises(InputError, match="vanish in float32"):
        fit_preprocessor("none", X)
    assert fit_preprocessor("unit", X)(X).any()


def test_tiny_queries_and_a_database_of_zeros_are_as_good_as_others():
    X = rows([1, 2], [3, 4])
    tiny = rows([1e-40, 1e-42])
    np.testing.assert_array_equal(fit_preprocessor("none", X)(tiny), tiny)
    assert fit_preprocessor("none", X * 0) == Preprocessor("none")
