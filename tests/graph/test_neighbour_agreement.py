"""Trust: full where neighbours are more than noise, gone where they are noise, and one plain sentence for it."""

import numpy as np
import pytest

from manifind import GradNet
from manifind.graph import neighbour_agreement as trust
from manifind.graph.neighbour_agreement import FULL_AGREEMENT, measure_neighbour_agreement, trust_in_words
from reference.graphs import clusters


def test_clusters_are_trusted():
    trust = measure_neighbour_agreement(clusters(300, 16, 10, seed=0), seed=0)
    assert trust.share == 1
    assert trust.warning() is None


def test_noise_is_not_trusted():
    X = np.random.default_rng(0).normal(size=(500, 64)).astype(np.float32)
    trust = measure_neighbour_agreement(X, seed=0)
    assert abs(trust.agreement) < 0.05
    assert trust.share == 0
    assert "plain nearest neighbours" in trust.warning()


def test_pairs_among_noise_are_trusted_in_part_only():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 64))
    X = np.concatenate([x + 0.6 * rng.normal(size=x.shape), x + 0.6 * rng.normal(size=x.shape)])
    assert measure_neighbour_agreement(X.astype(np.float32), seed=0).share < 0.6


@pytest.mark.parametrize("shape", [(4, 8), (3, 2), (50, 1)])
def test_what_cannot_be_measured_is_trusted(shape):
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    assert measure_neighbour_agreement(X, seed=0) == FULL_AGREEMENT == (None, 1.0)


def test_agreement_by_chance_counts_as_none():
    X = np.random.default_rng(2).normal(size=(40, 32)).astype(np.float32)  # nine of 39 others: a quarter by chance
    trusts = [measure_neighbour_agreement(X, seed).agreement for seed in range(20)]
    assert abs(np.mean(trusts)) < 0.1


def test_the_answer_is_the_same_for_the_same_seed():
    X = clusters(100, 8, 5, seed=3)
    assert measure_neighbour_agreement(X, 1) == measure_neighbour_agreement(X, 1)


def test_a_turned_basis_changes_little():
    X = clusters(400, 16, 60, seed=4)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(16, 16)))[0].astype(np.float32)
    assert measure_neighbour_agreement(X, 0).agreement == pytest.approx(
        measure_neighbour_agreement(X @ turn, 0).agreement, abs=0.1
    )


def test_a_large_set_is_asked_in_blocks_with_the_same_answer(monkeypatch):
    X = clusters(300, 8, 30, seed=5)
    whole = measure_neighbour_agreement(X, 0)
    monkeypatch.setattr(trust, "_ROWS_PER_BLOCK", 7)
    assert measure_neighbour_agreement(X, 0) == whole


def test_where_the_ten_nearest_stay_the_same_no_gain_is_promised():
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 16)), 11, axis=0)
    X += 0.01 * np.random.default_rng(1).normal(size=X.shape)  # groups of eleven: each item's ten nearest
    info = GradNet(random_state=0, max_steps=20).fit(X).info_
    assert info["neighbours_kept"] > 0.9
    assert "changes little" in trust_in_words(info)
    assert "something to learn" in trust_in_words({**info, "neighbours_kept": 0.5})
    assert "something to learn" in trust_in_words({**info, "neighbours_kept": None})
