"""What every method promises, whichever it is; one suite over all of METHODS."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import manifind
from manifind.baselines import METHODS
from manifind.baselines.estimators import GraphEstimator
from manifind.errors import InputError

# Small and quick where a method can be; the promises do not depend on size.
SMALL_NETWORK = {"n_neighbors": 6, "n_anchors": 12, "layers": (32, 16), "max_steps": 15, "random_state": 0}
QUICK = {
    "codes": {"n_anchors": 12, "random_state": 0},
    "gss": {"steps": 5, "random_state": 0},
    "gradnet": SMALL_NETWORK,
    "gradnet-paper": SMALL_NETWORK,
}
ON_GRAPH = [name for name, method in METHODS.items() if issubclass(method, GraphEstimator)]
RANDOM = [name for name in METHODS if "random_state" in METHODS[name]().get_params()]
TRANSDUCTIVE = [name for name, method in METHODS.items() if not method.answers_unseen]
names = pytest.mark.parametrize("name", list(METHODS))


def quick(name, **settings):
    graph = {"n_neighbors": 6} if name in ON_GRAPH else {}
    return METHODS[name](**{**graph, **QUICK.get(name, {}), **settings})


def answers(name, X, Q, k):
    """The ranking of queries that are no items: unseen ones where a method can, else known to `fit`."""
    if name in TRANSDUCTIVE:
        return quick(name).fit(X, queries=Q).search(k=k)
    return quick(name).fit(X).search(Q, k=k)


def two_arcs(n=60, seed=0):
    """Two half circles that interlock: the far end of an arc is farther than the other arc."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, np.pi, n)
    one = np.stack([np.cos(t), np.sin(t)], axis=1)
    other = np.stack([1 - np.cos(t), 0.5 - np.sin(t)], axis=1)
    X = np.concatenate([one, other]) + rng.normal(scale=0.01, size=(2 * n, 2))
    return X.astype(np.float32), np.repeat([0, 1], n)


def clusters(n=90, d=8, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, d))
    labels = np.repeat(np.arange(3), n // 3)
    return (centres[labels] + 0.3 * rng.normal(size=(n, d))).astype(np.float32), labels


@pytest.fixture(scope="module")
def fitted():
    X, _ = clusters()
    return {name: quick(name).fit(X) for name in METHODS}


@names
def test_with_k_equal_to_n_every_item_appears_once(name, fitted):
    X, _ = clusters()
    ids = fitted[name].search(k=len(X)).ids
    np.testing.assert_array_equal(np.sort(ids, axis=1), np.tile(np.arange(len(X)), (len(X), 1)))


@names
def test_scores_never_increase_and_equal_scores_stand_by_position(name, fitted):
    X, _ = clusters()
    ids, scores = fitted[name].search(k=len(X))
    fall = np.diff(scores, axis=1)
    assert (fall <= 0).all()
    assert (np.diff(ids, axis=1)[fall == 0] > 0).all()


@names
@given(k=st.integers(1, 90))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_top_k_is_the_head_of_the_full_ranking(name, fitted, k):
    X, _ = clusters()
    Q = X[:5] if name in TRANSDUCTIVE else X[:5] + 0.01
    full, head = fitted[name].search(Q, k=90), fitted[name].search(Q, k=k)
    np.testing.assert_array_equal(head.ids, full.ids[:, :k])
    np.testing.assert_array_equal(head.scores, full.scores[:, :k])


@names
def test_the_input_is_not_written_to(name):
    X, _ = clusters()
    before = X.copy()
    X.setflags(write=False)
    model = quick(name).fit(X, queries=X[:3])
    model.search(k=5)
    model.search(X[:4], k=5)
    np.testing.assert_array_equal(X, before)


@names
def test_the_same_seed_gives_the_same_answer_bit_for_bit(name, fitted):
    X, _ = clusters()
    again, first = clone(fitted[name]).fit(X).search(k=20), fitted[name].search(k=20)
    np.testing.assert_array_equal(again.ids, first.ids)
    np.testing.assert_array_equal(again.scores, first.scores)


@names
def test_an_exact_duplicate_of_an_item_scores_as_it_does(name):
    X, _ = clusters()
    ids, scores = answers(name, np.concatenate([X, X[7:8]]), X[:12] + 0.05, len(X) + 1)
    for row_ids, row_scores in zip(ids, scores, strict=True):
        assert row_scores[row_ids == 7] == row_scores[row_ids == len(X)]


@names
def test_one_query_or_many_give_the_same_answer(name, fitted):
    X, _ = clusters()
    Q = X[:10] if name in TRANSDUCTIVE else X[:10] + 0.03
    many = fitted[name].search(Q, k=15)
    for row in range(10):
        one = fitted[name].search(Q[row : row + 1], k=15)
        np.testing.assert_array_equal(one.ids[0], many.ids[row])
        np.testing.assert_array_equal(one.scores[0], many.scores[row])


@names
def test_queries_known_to_fit_are_what_search_answers_without_any(name):
    X, labels = clusters()
    ranking = quick(name).fit(X[3:], queries=X[:3]).search(k=10)
    assert ranking.ids.shape == ranking.scores.shape == (3, 10)
    assert (labels[3:][ranking.ids[:, 0]] == labels[:3]).all()


@pytest.mark.parametrize("name", ["knn", "gradnet"])  # an expanded query may prefer a neighbour
def test_without_queries_every_item_finds_itself_first(name, fitted):
    ids, _ = fitted[name].search(k=1)
    np.testing.assert_array_equal(ids[:, 0], np.arange(len(ids)))


@names
@pytest.mark.parametrize("k", [0, -1, 2.0, True, None])
def test_a_k_that_is_no_number_of_results_is_refused(name, fitted, k):
    with pytest.raises(manifind.InputError, match="k ="):
        fitted[name].search(k=k)


@names
def test_more_results_than_there_are_items_are_all_items(name, fitted):
    assert fitted[name].search(k=1000).ids.shape[1] == 90


@names
def test_queries_of_another_dimension_are_refused(name, fitted):
    with pytest.raises(manifind.InputError, match=r"9 features.*expecting 8"):
        fitted[name].search(np.zeros((2, 9)))


@names
def test_the_constructor_only_stores_and_the_label_says_what_differs(name):
    model = METHODS[name](preprocess="center")
    assert model.get_params()["preprocess"] == "center"
    assert repr(model) == f"{type(model).__name__}(preprocess='center')"


@names
def test_a_wrong_setting_is_refused_with_its_name_and_value(name):
    with pytest.raises(manifind.InputError, match="preprocess = 'upside-down'; expected one of 'unit'"):
        METHODS[name](preprocess="upside-down").fit(clusters()[0])


@pytest.mark.parametrize("name", [name for name in METHODS if name not in RANDOM])
def test_permuting_the_database_permutes_the_answer_of_a_deterministic_method(name):
    X, _ = clusters()
    order = np.random.default_rng(1).permutation(len(X))
    plain, permuted = answers(name, X, X[:6] + 0.01, 90), answers(name, X[order], X[:6] + 0.01, 90)
    of_item = np.take_along_axis(plain.scores, np.argsort(plain.ids, axis=1), 1)
    of_item_permuted = np.take_along_axis(permuted.scores, np.argsort(order[permuted.ids], axis=1), 1)
    np.testing.assert_allclose(of_item_permuted, of_item, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", TRANSDUCTIVE)
def test_a_method_that_cannot_answer_unseen_queries_says_so_and_names_one_that_can(name, fitted):
    X, _ = clusters()
    with pytest.raises(manifind.UnseenQueriesError, match=r"row 1 of the queries was not.*'efficient'"):
        fitted[name].search(np.stack([X[0], X[1] + 0.01]))
    np.testing.assert_array_equal(fitted[name].search(X[:3], k=5).ids, fitted[name].search(k=5).ids[:3])


@names
def test_every_method_says_what_it_costs(name):
    assert len(METHODS[name].cost) > 10


# GSS straightens no arc, and k-reciprocal neighbourhoods look only around the corner.
@pytest.mark.parametrize("name", [name for name in ON_GRAPH if name not in ("gss", "k-reciprocal")])
def test_a_method_on_a_graph_finds_its_own_arc_better_than_distance_does(name):
    X, labels = two_arcs()
    own = labels[:, None] == labels
    kernel = {"similarity": "euclidean"} if "similarity" in METHODS[name]().get_params() else {}
    ids = quick(name, preprocess="none", **kernel).fit(X).search(k=60).ids
    plain = METHODS["knn"](preprocess="none").fit(X).search(k=60).ids
    assert np.take_along_axis(own, ids, 1).mean() > np.take_along_axis(own, plain, 1).mean() + 0.01


def test_gradnet_finds_its_own_arc_where_distance_does_not():
    X, labels = two_arcs()
    own = labels[:, None] == labels
    learned = METHODS["gradnet"](preprocess="none", n_neighbors=10, random_state=0).fit(X)
    precision = {
        "gradnet": np.take_along_axis(own, learned.search(k=60).ids, 1).mean(),
        "knn": np.take_along_axis(own, METHODS["knn"](preprocess="none").fit(X).search(k=60).ids, 1).mean(),
    }
    assert precision["gradnet"] > 0.95
    assert precision["knn"] < 0.85


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("scale", [1e-38, 1e-42, 1e-45])
def test_numbers_whose_squares_vanish_are_refused_by_every_method_that_is_not_to_scale_them(name, scale):
    X = (np.random.default_rng(0).normal(size=(60, 8)) * scale).astype(np.float32)
    with pytest.raises(InputError, match="vanish in float32") as refusal:
        METHODS[name](preprocess="none").fit(X)
    assert "preprocess='unit'" in refusal.value.hint
