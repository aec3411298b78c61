"""GRAD-Net as an estimator: what it accepts, refuses, promises and keeps."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_digits

from manifind.errors import GraphError, InputError
from manifind.graph.neighbour_agreement import LittleToLearnWarning
from manifind.index.exact import nearest
from manifind.model import estimator as gradnet_module
from manifind.model.estimator import GradNet
from manifind.model.trainer import Trainer
from manifind.settings import PAPER
from project import load_script
from reference.graphs import clusters

SMALL = {"n_neighbors": 4, "n_anchors": 8, "layers": (16, 8), "max_steps": 3, "batch_size": 32, "random_state": 0}


def points(n=40, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def small(**settings):
    return GradNet(**{**SMALL, **settings})


# ---- what comes in


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_refused_with_its_place(bad):
    X = points()
    X[7, 3] = bad
    with pytest.raises(InputError, match="row 7, column 3"):
        small().fit(X)
    with pytest.raises(InputError, match="row 7, column 3"):
        small().fit(points()).search(X)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((0, 4)), "0 sample"),
        (np.zeros((4, 0)), "0 feature"),
        (np.ones((1, 4)), "1 sample"),
        (np.ones(4), "two dimensions"),
        (points(n=4), "n_neighbors = 4, but there are only 4 distinct items"),
        (np.ones((30, 4)), "only 1 distinct item"),
        (np.array([["a", "b"]] * 9), "real numbers"),
    ],
)
def test_descriptors_without_a_graph_are_refused_by_an_error_of_ours(X, words):
    with pytest.raises(InputError, match=words) as refusal:
        small().fit(X)
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize("n_neighbors", [None, 4])
@pytest.mark.parametrize("preprocess", ["unit", "center", "whiten", "none"])
@pytest.mark.parametrize("row", [[0, 0, 0], [1, 2, 3], [1e-40, 0, 0]], ids=["zeros", "numbers", "tiny"])
def test_rows_that_are_all_equal_are_refused_in_words(row, preprocess, n_neighbors):
    X = np.array([row] * 30, dtype=np.float32)
    with pytest.raises(InputError, match=r"all rows are equal|vanish in float32") as refusal:
        small(preprocess=preprocess, n_neighbors=n_neighbors).fit(X)
    assert refusal.value.hint


def test_scaled_to_length_one_tiny_numbers_are_descriptors_like_any_other():
    X = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    tiny = small().fit(X * np.float32(2.0**-110)).search(k=5)
    np.testing.assert_array_equal(tiny.ids, small().fit(X).search(k=5).ids)


def test_as_many_items_as_neighbours_and_one_is_enough():
    assert small().fit(points(n=5)).features_.shape[0] == 5


def test_a_graph_without_a_single_edge_is_refused_with_the_way_out():
    opposite = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(GraphError, match="not a single edge"):
        small(preprocess="none", similarity="cosine", n_neighbors=1).fit(opposite)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.uint8, np.int64])
def test_other_numbers_give_what_float32_gives(dtype):
    X = np.random.default_rng(0).integers(0, 100, size=(40, 6))
    expected = small().fit(X.astype(np.float32)).features_
    np.testing.assert_array_equal(small().fit(X.astype(dtype)).features_, expected)


def test_the_layout_in_memory_does_not_matter():
    X = points()
    expected = small().fit(X).features_
    wide = np.zeros((80, 12), dtype=np.float32)
    wide[::2, ::2] = X
    np.testing.assert_array_equal(small().fit(np.asfortranarray(X)).features_, expected)
    np.testing.assert_array_equal(small().fit(wide[::2, ::2]).features_, expected)
    np.testing.assert_array_equal(small().fit(X.tolist()).features_, expected)


def test_rows_of_zeros_are_items_like_others():
    X = points()
    X[[3, 8]] = 0
    model = small().fit(X)
    assert np.isfinite(model.features_).all()
    np.testing.assert_array_equal(model.features_[3], model.features_[8])
    assert np.isfinite(model.search(X[:9], k=40).scores).all()


def test_one_dimensional_descriptors_keep_their_size_and_not_only_their_sign():
    X = np.sort(np.random.default_rng(0).uniform(1, 2, size=(40, 1)), axis=0)
    ids = small().fit(X).search(k=40).ids
    assert (np.sort(ids, axis=1) == np.arange(40)).all()
    assert small().fit(X).info_["nodes"] == 40


def test_duplicates_are_one_node_and_share_their_features():
    X = points()
    model = small().fit(np.concatenate([X, X[:10], X[:10]]))
    assert model.info_["nodes"] == 40
    np.testing.assert_array_equal(model.features_[40:50], model.features_[:10])
    np.testing.assert_array_equal(model.features_[50:], model.features_[:10])


def test_copies_of_an_item_do_not_change_what_the_others_learn():
    X = points()
    copies = np.concatenate([X, np.repeat(X[5:6], 20, axis=0)])
    np.testing.assert_array_equal(small().fit(copies).features_[:40], small().fit(X).features_)


@given(
    X=hnp.arrays(
        dtype=st.sampled_from([np.float32, np.float64, np.int16]),
        shape=st.tuples(st.integers(6, 20), st.integers(1, 5)),
        elements=st.integers(-100, 100),
    ),
    preprocess=st.sampled_from(["unit", "center", "whiten", "none"]),
)
@settings(max_examples=40)
def test_any_matrix_is_fitted_or_refused_by_an_error_of_ours(X, preprocess):
    try:
        model = small(preprocess=preprocess, graph="union", max_steps=1).fit(X)
    except InputError:
        return
    assert np.isfinite(model.features_).all()
    np.testing.assert_array_equal(model.transform(X), model.features_)


# ---- what comes out


def test_features_are_float32_with_unit_rows_and_at_most_n_components_wide():
    model = small(n_components=5).fit(points())
    assert model.features_.dtype == np.float32
    assert model.features_.shape == (40, 5)
    np.testing.assert_allclose(np.linalg.norm(model.features_, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("walk_weight", [0.0, 2.0])
def test_descriptors_stand_beside_the_features_with_their_weight(walk_weight):
    X = points()
    settings = {"n_components": None, "guard": False, "walk_weight": walk_weight}
    model = small(**settings, descriptor_weight=0.5).fit(X)
    beside, without = model.features_, small(**settings, descriptor_weight=0.0).fit(X).features_
    share = 0.5 / (1.5 + walk_weight)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(beside @ beside.T, (1 - share) * without @ without.T + share * unit @ unit.T, atol=2e-2)


def test_without_a_limit_features_are_as_wide_as_all_layers_together():
    model = small(n_components=None, inputs="both", walk_weight=0.0, guard=False).fit(points())
    assert model.features_.shape[1] == 6 + 8 + 16 + 8
    walking = small(n_components=None, guard=False).fit(points())
    assert walking.features_.shape[1] == 6 + 16 + 8 + 40  # a walk has no more ends than there are items


def test_the_reduction_keeps_cosines_where_it_may_be_wide_enough():
    full, reduced = small(n_components=None).fit(points()), small(n_components=30).fit(points())
    cosines, kept = full.features_ @ full.features_.T, reduced.features_ @ reduced.features_.T
    assert reduced.info_["energy_kept"] > 0.99
    np.testing.assert_allclose(kept, cosines, atol=0.05)


def test_transform_of_the_database_is_features_and_of_strangers_is_not():
    X = points()
    model = small().fit(X)
    np.testing.assert_array_equal(model.transform(X), model.features_)
    np.testing.assert_array_equal(small().fit_transform(X), model.features_)
    assert not np.array_equal(model.transform(X + 0.01), model.features_)


@pytest.mark.equation(1)
def test_queries_in_the_graph_change_it_and_unseen_ones_do_not():
    X = points()
    alone, together = small().fit(X), small().fit(X, queries=points(n=5, seed=1))
    assert together.info_["nodes"] == 45
    assert together.query_features_.shape == (5, together.features_.shape[1])
    assert alone.query_features_ is None
    assert (together.features_.shape[1], alone.features_.shape[1]) == (45, 40)


def test_a_query_equal_to_an_item_is_the_same_node():
    X = points()
    model = small().fit(X, queries=X[:3])
    assert model.info_["nodes"] == 40
    np.testing.assert_array_equal(model.query_features_, model.features_[:3])


def test_labels_in_the_place_of_queries_are_ignored():
    X = points()
    np.testing.assert_array_equal(small().fit(X, np.arange(40)).features_, small().fit(X).features_)
    with pytest.raises(InputError, match="two dimensions"):
        small().fit(X, np.arange(6.0))


def test_truncation_ranks_what_no_query_wants_behind_by_original_similarity():
    X, Q = points(n=200), points(n=3, seed=1)
    model = small(truncation=20, preprocess="none").fit(X, queries=Q)
    ids, scores = model.search(k=200)
    distances = np.linalg.norm(Q[:, None] - X, axis=2)
    wanted = np.unique(np.argsort(distances, axis=1)[:, :20])
    assert model.info_["nodes"] == len(wanted) + 3
    for row in range(3):
        assert set(ids[row, : len(wanted)]) == set(wanted)
        tail = ids[row, len(wanted) :]
        assert (np.diff(distances[row, tail]) >= 0).all()
    assert (scores[:, : len(wanted)] >= -1.000001).all()
    assert (scores[:, len(wanted) :] <= -1).all()
    np.testing.assert_array_equal(model.transform(X), model.features_)


def test_what_truncation_left_out_joins_a_few_at_a_time_and_gets_the_same_features(monkeypatch):
    X, Q = points(200), points(3, seed=1)
    whole = small(truncation=20).fit(X, queries=Q).features_
    monkeypatch.setattr(gradnet_module, "_ROWS_PER_BLOCK", 7)
    np.testing.assert_array_equal(small(truncation=20).fit(X, queries=Q).features_, whole)


def test_trained_on_a_part_every_item_has_features_and_the_same_seed_gives_the_same():
    X = clusters(120, 6, 4, seed=0)
    whole, part, again = (small(training_nodes=n).fit(X) for n in (None, 50, 50))
    assert (whole.info_["training_nodes"], part.info_["training_nodes"]) == (120, 50)
    assert part.features_.shape == whole.features_.shape
    np.testing.assert_array_equal(part.features_, again.features_)
    assert (part.features_ != whole.features_).any()


@given(st.integers(3, 45), st.integers(0, 2**16))
@settings(max_examples=15, deadline=None)
def test_a_part_of_any_size_gives_features_or_says_that_it_is_too_small(training_nodes, seed):
    model = small(training_nodes=training_nodes, random_state=seed)
    try:
        features = model.fit(points(seed=seed)).features_
    except GraphError as error:
        assert "raise training_nodes" in str(error)  # noqa: PT017
    else:
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-5)


def test_a_graph_of_no_more_nodes_is_trained_on_as_without_a_limit():
    X = points(60)
    np.testing.assert_array_equal(
        small(training_nodes=60).fit(X).features_, small(training_nodes=None).fit(X).features_
    )


@pytest.mark.long
def test_what_a_network_learns_on_a_third_of_the_graph_serves_the_rest():
    """Precision at ten with classes: far better than the descriptors, nearly as good as trained on all."""
    X, y = load_digits(return_X_y=True)

    def precision(features):
        ids = nearest(features, features, 11, "cosine").ids[:, 1:]
        return float((y[ids] == y[:, None]).mean())

    model = GradNet(random_state=0, max_steps=40, walk_weight=0.0)
    whole, part = (precision(model.set_params(training_nodes=n).fit(X).features_) for n in (None, 600))
    assert part > whole - 0.01


def test_what_is_learned_on_a_tenth_of_the_graph_is_learned():
    """Positives of other nodes than those that are trained on would leave the loss where it was, or raise it."""
    X = load_script("landmark_cloud", "benchmarks").make_landmark_cloud(3000, 32).descriptors
    losses = GradNet(random_state=0, training_nodes=300, max_steps=20).fit(X).loss_curve_[:, 0]
    assert losses[-1] < 0.7 * losses[0]


def test_truncation_without_queries_leaves_nothing_out():
    assert small(truncation=5).fit(points()).info_["nodes"] == 40


@pytest.mark.parametrize(
    "setting",
    [
        {"graph": "mutual"},
        {"similarity": "gaussian"},
        {"similarity": "cosine"},
        {"inputs": "both"},
        {"positives": "edges"},
        {"walk_weight": 0.0},
        {"inputs": "codes"},
        {"layer": "gcn"},
        {"self_loops": "renormalised"},
        {"output": "last"},
        {"local_loss": "log"},
        {"global_coefficient": "printed"},
        {"global_coefficient": "attached"},
        {"local_weight": 130.0, "beta": 1e5},
        {"temperature": 1.0},
        {"epoch": "edges", "max_steps": None, "epochs": 1, "batch_size": 8},
        {"milestones": (0.5,)},
        {"layers": (8,)},
        {"layers": [8, 4, 4, 2]},
        {"dropout": 0.3},
        {"preprocess": "center"},
        {"l2": 1.0},
    ],
)
def test_every_setting_changes_what_is_learned(setting):
    X = clusters(60, 6, 4, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = small(**setting).fit(X)
    assert np.isfinite(model.features_).all()
    length = {k: v for k, v in setting.items() if k in ("max_steps", "epochs", "batch_size")}
    plain = small(**length).fit(X)
    assert not np.array_equal(model.features_, plain.features_)


def test_codes_change_what_is_learned_where_the_network_sees_them():
    X = clusters(60, 6, 4, seed=0)
    many, few = (small(inputs="both", n_codes=n).fit(X) for n in (5, 2))
    assert not np.array_equal(many.features_, few.features_)


def test_passes_and_neighbours_of_queries_change_unseen_queries_only():
    X, Q = points(), points(n=4, seed=1)
    plain, twice, few = small().fit(X), small(query_passes=2).fit(X), small(n_query_neighbors=2).fit(X)
    for other in (twice, few):
        np.testing.assert_array_equal(other.features_, plain.features_)
        assert not np.allclose(other.transform(Q), plain.transform(Q))


# ---- seeds, settings, state


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    X = points(n=300, d=20)
    settings = {"layers": (256, 64, 32), "batch_size": 256}
    one, two = small(**settings).fit(X), small(**settings).fit(X)
    np.testing.assert_array_equal(one.features_, two.features_)
    np.testing.assert_array_equal(one.loss_curve_, two.loss_curve_)
    other = small(**{**settings, "random_state": 1}).fit(X)
    assert not np.array_equal(one.features_, other.features_)


def test_seed_zero_is_a_seed_and_the_global_one_is_left_alone():
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    small(random_state=0).fit(points())
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize("seed", [-1, 2**32, "0"])
def test_a_random_state_that_is_no_seed_is_refused(seed):
    with pytest.raises(InputError, match="random_state ="):
        small(random_state=seed).fit(points())


def test_numpy_integers_are_integers():
    X = points()
    model = small(n_neighbors=np.int64(4), n_components=np.int32(5)).fit(X)
    np.testing.assert_array_equal(model.features_, small(n_components=5).fit(X).features_)
    assert model.search(k=np.int64(3)).ids.shape == (40, 3)


def test_the_number_of_pieces_of_the_graph_is_told():
    X = np.concatenate([points(), points() + 100])
    assert small(preprocess="none", similarity="euclidean").fit(X).info_["connected_components"] == 2


def test_the_training_loss_falls():
    X = points(n=200, d=10)
    curve = small(max_steps=60, layers=(64, 32), batch_size=128, dropout=0.0).fit(X).loss_curve_[:, 0]
    assert curve[-10:].mean() < curve[:10].mean() - 0.02


def test_zero_steps_give_the_untrained_network():
    model = small(max_steps=0).fit(points())
    assert model.loss_curve_.shape == (0, 3)
    assert np.isfinite(model.features_).all()


def test_the_paper_preset_is_what_the_paper_says():
    model = GradNet(**PAPER)
    assert (model.n_neighbors, model.n_anchors, model.layers) == (15, 100, (1024, 256, 128))
    assert (model.learning_rate, model.batch_size, model.epochs, model.max_steps) == (3e-4, 64, 300, None)
    assert model.milestones == (0.1, 1 / 3)
    assert (model.dropout, model.negative_slope, model.l2) == (0.3, 0.2, 1e-5)
    assert model.beta == pytest.approx(148.4131591)
    assert model.n_components is None


def test_progress_is_told_from_the_graph_to_the_features():
    reports = []
    small().fit(points(), listener=reports.append)
    assert [p.stage for p in reports if p.done == p.total] == ["graph", "walks", "positives", "training", "features"]
    assert [p.done for p in reports if p.stage == "training"] == [1, 2, 3]


def test_searching_before_fitting_says_so():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        small().search(points())


def test_a_pickled_model_answers_alike():
    model = small().fit(points())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.search(points(seed=2), k=5).ids, model.search(points(seed=2), k=5).ids)


def test_a_gpu_that_is_not_there_is_refused_in_words():
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(InputError, match="device = 'cuda'"):
        small(device="cuda").fit(points())


def test_numbers_too_large_for_their_squares_are_scaled_or_refused():
    X = points() * np.float32(1e30)
    assert np.isfinite(small().fit(X).features_).all()
    with pytest.raises(InputError, match="do not fit into float32"):
        small(preprocess="none").fit(X)
    with pytest.raises(InputError, match="do not fit into float32"):
        small(preprocess="none").fit(points()).search(X)


@pytest.mark.parametrize("index", ["sq8", "pq"])
def test_with_a_compressed_index_fitting_and_unseen_queries_work_and_its_recall_is_told(index):
    X = points(n=600, d=16)
    exact, coded = (small(index=kind).fit(X) for kind in ("exact", index))
    assert exact.info_["neighbour_search"] == {"codes": "exact", "recall": 1.0}
    assert coded.info_["neighbour_search"]["codes"] == index
    assert coded.info_["neighbour_search"]["recall"] >= 0.98
    ranking = coded.search(X[:5] + np.float32(0.01), k=3)
    assert ranking.ids.shape == (5, 3)
    np.testing.assert_allclose(coded.transform(X[:5]), coded.features_[:5])


@pytest.mark.long
def test_large_collections_choose_a_compressed_index_and_small_ones_none():
    assert small().fit(points()).info_["neighbour_search"]["codes"] == "exact"
    X = points(n=20_100, d=4)
    model = small(max_steps=1, n_anchors=4).fit(X)
    assert model.info_["neighbour_search"]["codes"] == "sq8"
    qualities = {name: index and index.quality for name, index in model._model.indexes().items()}
    assert all(quality.recall >= 0.98 for quality in qualities.values())
    ids = model.search(X[:3], k=len(X)).ids
    assert all(len(set(row)) == len(X) for row in ids)


SHORT = {"max_steps": 5, "random_state": 0}


def test_the_default_fits_transforms_and_searches():
    X = clusters(90, 8, 6, seed=3)
    model = GradNet(**SHORT).fit(X)
    assert np.isfinite(model.features_).all()
    np.testing.assert_allclose(np.linalg.norm(model.features_, axis=1), 1, rtol=1e-5)
    assert model.search(X[:4], k=3).ids[:, 0].tolist() == [0, 1, 2, 3]
    assert model.info_["trust"] == model.neighbour_agreement_.share == 1
    again = GradNet(**SHORT).fit(X)
    np.testing.assert_array_equal(model.features_, again.features_)


def test_noise_is_told_and_its_features_stay_what_the_descriptors_were():
    X = np.random.default_rng(0).normal(size=(300, 32)).astype(np.float32)
    with pytest.warns(LittleToLearnWarning, match="plain nearest neighbours"):
        model = GradNet(**SHORT).fit(X)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    plain = nearest(X, X, 10, "cosine").ids
    shared = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(plain, model.search(k=10).ids, strict=True)])
    assert shared > 0.9


def test_without_a_number_of_neighbours_a_small_set_takes_all_there_are():
    X = clusters(12, 4, 2, seed=0)
    model = GradNet(**SHORT).fit(X)
    assert model.manifold_.all_edges.nnz == 12 * 11


def test_a_gpu_that_has_too_little_memory_after_all_leaves_the_training_to_the_cpu(monkeypatch):
    expected = small().fit(points()).features_
    steps, calls = Trainer.steps, []

    def fails_first(trainer, *arguments):
        calls.append(trainer)
        if len(calls) == 1:
            raise torch.OutOfMemoryError
        return steps(trainer, *arguments)

    monkeypatch.setattr(Trainer, "steps", fails_first)
    with pytest.warns(UserWarning, match="begins again on the CPU"):
        features = small().fit(points()).features_
    np.testing.assert_array_equal(features, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_tensors_are_descriptors_whatever_tracks_their_gradient(dtype):
    X = torch.from_numpy(points()).to(dtype).requires_grad_()
    model = small().fit(X, queries=X[:3])
    as_array = X.detach().float().numpy()
    np.testing.assert_array_equal(model.features_, small().fit(as_array, queries=as_array[:3]).features_)
    np.testing.assert_array_equal(model.transform(X), model.transform(as_array))


@pytest.mark.parametrize("labels", [[f"item {i}" for i in range(40)], list(range(100, 140))], ids=["texts", "numbers"])
def test_a_frame_is_taken_whole_and_its_index_names_the_items(tmp_path, labels):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(points(), index=labels).rename(columns=lambda column: f"x{column}")
    model = small().fit(frame)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_array_equal(model.features_, small().fit(points()).features_)
    assert model.save(tmp_path / "saved").ids.tolist() == labels
    assert model.save(tmp_path / "named", ids=range(40)).ids.tolist() == list(range(40))


@pytest.mark.parametrize("labels", [["same"] * 40, np.arange(40) / 2], ids=["repeated", "fractions"])
def test_an_index_that_cannot_name_items_leaves_positions(tmp_path, labels):
    pandas = pytest.importorskip("pandas")
    model = small().fit(pandas.DataFrame(points(), index=labels).rename(columns=str))
    assert model.save(tmp_path / "saved").ids.tolist() == list(range(40))


def test_a_fitted_model_shows_its_fit_in_a_notebook():
    model = small()
    assert "manifind-fit" not in model._repr_html_()
    model.fit(points())
    for shown in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert shown.count("manifind-fit") == 1
        assert "40 of" in shown
        assert "last losses" in shown
        assert "neighbour agreement" in shown
