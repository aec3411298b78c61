"""Words, pictures, parts of pictures, and several of these in one query: by formula, by hand, and alike everywhere."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from starlette.testclient import TestClient

import manifind
from cli.conftest import command, refused  # noqa: F401
from collection.small_collection import fit, random_rows
from images.painted import paint_many
from images.themes import mean_average_precision, save_model, save_pictures
from manifind import QueryPart
from manifind.collection.searchable import combine, prepare_words
from manifind.errors import InputError
from manifind.graph.preprocess import fit_preprocessor
from server.made import HOST, app_of, make_service

SETTINGS = {"n_neighbors": 8, "max_steps": 30}
WORDS = [f"theme {number}" for number in range(6)]


@pytest.fixture(scope="module")
def collections(tmp_path_factory):
    """Themes that are heaps, and themes that are curves."""
    found = {}
    for name, angle in (("heap", 0.0), ("curve", 3.0)):
        place = tmp_path_factory.mktemp(name)
        model = save_model(place / "towers.py", angle)
        found[name] = manifind.index_folder(save_pictures(place / "photos"), place / "c", model, SETTINGS).collection
    return found


@pytest.fixture
def curve(collections):
    return collections["curve"]


# Words.


def test_words_find_a_theme_at_least_as_well_as_plain_cosine_and_better_along_a_curve(collections):
    for name, ahead in (("heap", 0.0), ("curve", 0.1)):
        everything = len(collections[name])
        learned = mean_average_precision(collections[name].search_text(WORDS, everything))
        plain = mean_average_precision(collections[name].search_text(WORDS, everything, by="descriptors"))
        assert learned >= plain + ahead
    assert learned > 0.95


def test_words_or_their_descriptors_give_the_same_answer_one_or_many(curve):
    rows = curve.extractor().describe_texts(WORDS)
    by_words, by_rows = curve.search_text(WORDS, 5), curve.search_text(rows, 5)
    assert by_words.ids.tolist() == by_rows.ids.tolist()
    assert curve.search_text(WORDS[2], 5).ids.tolist() == [by_words.ids[2].tolist()]
    assert manifind.load(curve.path).search_text(WORDS[2], 5).ids.tolist() == [by_words.ids[2].tolist()]


@pytest.mark.parametrize("kind", ["unit", "center", "whiten", "none"])
def test_words_meet_pictures_as_the_model_compares_them_whatever_the_preprocessing(kind):
    rng = np.random.default_rng(0)
    X, T = (rng.normal(size=(n, 5)).astype(np.float32) + 2 for n in (30, 4))
    prepare = fit_preprocessor(kind, X)
    prepared, lengths = prepare.with_lengths(X)
    mean = 0 if prepare.mean is None else prepare.mean
    found = prepare_words(prepare, T, 5) @ (prepared * lengths).T
    wanted = T @ (X - mean).T
    np.testing.assert_allclose(found / found[:, :1], wanted / wanted[:, :1], rtol=2e-3)


def test_who_does_not_understand_words_names_a_model_that_does(tmp_path):
    collection = manifind.index_folder(paint_many(tmp_path / "photos"), tmp_path / "c", "pixels", SETTINGS).collection
    with pytest.raises(InputError, match=r"pixels describes pictures and does not understand words.*hf:openai/clip"):
        collection.search_text("a red boat")
    vectors = fit().save(tmp_path / "v")
    for ask in (lambda: vectors.search_text("a red boat"), lambda: vectors.search_pictures(["a.jpg"])):
        with pytest.raises(InputError, match="made from a file of vectors"):
            ask()


def test_empty_words_are_refused(curve):
    for words in ("", "   ", ["theme 1", ""]):
        with pytest.raises(InputError, match="is empty"):
            curve.search_text(words)


# Several in one query.


def slow(rows, weights):
    total = [sum(w * row[at] for w, row in zip(weights, rows, strict=True)) for at in range(len(rows[0]))]
    return np.array(total) / sum(value**2 for value in total) ** 0.5


def unit(n, d=4, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, d))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@given(st.integers(2, 6), st.data())
@settings(max_examples=50, deadline=None)
def test_a_combined_query_is_the_weighted_sum_in_any_order(n, data):
    weights = data.draw(st.lists(st.floats(0.1, 5) | st.floats(-5, -0.1), min_size=n, max_size=n))
    rows = unit(n, seed=n)
    order = data.draw(st.permutations(range(n)))
    try:
        found = combine(rows, weights)
    except InputError:
        assert np.linalg.norm(np.array(weights) @ rows) < 1e-3 * np.abs(weights).sum()
        return
    np.testing.assert_allclose(found[0], slow(rows, weights), atol=1e-4)
    np.testing.assert_array_equal(found, combine(rows[order], [weights[at] for at in order]))


def parts_of(curve):
    picture = curve.path.parent / "photos" / "2-03.png"
    vector = curve.extractor()([np.full((4, 4, 3), (30, 100, 7), np.uint8)])[0]
    return [
        QueryPart(id="0-01.png", weight=2),
        QueryPart(picture=picture),
        QueryPart(text="theme 4", weight=0.5),
        QueryPart(vector=vector, weight=-1),
    ]


@pytest.mark.parametrize("by", ["features", "descriptors"])
def test_parts_of_all_kinds_are_combined_in_any_order(curve, by):
    parts = parts_of(curve)
    found = curve.search_combined(parts, 20, by=by)
    for order in itertools.permutations(parts):
        again = curve.search_combined(order, 20, by=by)
        assert again.ids.tolist() == found.ids.tolist()
        np.testing.assert_array_equal(again.scores, found.scores)


def test_the_features_of_the_parts_are_what_is_added(curve):
    parts = parts_of(curve)
    described, learned = curve.extractor(), curve.version.learned
    words = learned.prepared(described.describe_texts(["theme 4"]))
    features = np.concatenate([
        curve.features[curve.ids.tolist().index("0-01.png")][None],
        curve.transform(described([np.asarray(Image.open(parts[1].picture))])),
        learned.features_of(words, apart=True).features,
        curve.transform(parts[3].vector[None]),
    ])  # fmt: skip
    expected = curve.features @ slow(features, [2, 1, 0.5, -1])
    found = curve.search_combined(parts, len(curve))
    scores = dict(zip(found.ids[0].tolist(), found.scores[0].tolist(), strict=True))
    np.testing.assert_allclose([scores[id_] for id_ in curve.ids.tolist()], expected, atol=1e-4)


def test_one_part_is_that_query_and_its_weight_does_not_matter(curve):
    for weight in (1.0, 0.2, 7):
        found = curve.search_combined([QueryPart(id="3-05.png", weight=weight)], 9)
        np.testing.assert_array_equal(found.ids, curve.search_ids(["3-05.png"], 9).ids)
        np.testing.assert_array_equal(found.scores, curve.search_ids(["3-05.png"], 9).scores)
    twice = curve.search_combined([QueryPart(id="3-05.png"), QueryPart(id="3-05.png")], 9)
    np.testing.assert_array_equal(twice.ids, curve.search_ids(["3-05.png"], 9).ids)


def test_what_is_subtracted_falls_behind(curve):
    plus, minus = QueryPart(id="0-00.png"), QueryPart(id="1-00.png", weight=-1)
    both = curve.search_combined([plus, QueryPart(id="1-00.png")], len(curve)).ids[0].tolist()
    less = curve.search_combined([plus, minus], len(curve)).ids[0].tolist()
    assert both.index("1-00.png") < 24 < less.index("1-00.png")
    assert less[0].startswith("0-")


def test_queries_that_say_nothing_are_refused(curve):
    part = QueryPart(id="0-00.png")
    with pytest.raises(InputError, match="cancel each other"):
        curve.search_combined([part, QueryPart(id="0-00.png", weight=-1)])
    for parts in ([], [QueryPart(id="0-00.png", weight=-1)]):
        with pytest.raises(InputError, match="no part that counts positively"):
            curve.search_combined(parts)
    for wrong in (
        {},
        {"id": "a", "text": "b"},
        {"id": "a", "weight": 0},
        {"id": "a", "weight": float("nan")},
        {"id": "a", "weight": True},
    ):
        with pytest.raises(InputError, match=r"a part of a query has|weight = "):
            QueryPart(**wrong)
    with pytest.raises(InputError, match="a text has no part to crop"):
        QueryPart(text="a", crop=(0, 0, 1, 1))


def test_a_compressed_collection_answers_combined_queries(tmp_path):
    whole = fit().save(tmp_path / "whole")
    whole.export(tmp_path / "small", "compressed")
    small = manifind.load(tmp_path / "small")
    parts = [QueryPart(id=3), QueryPart(vector=random_rows(1, 5)[0], weight=0.5), QueryPart(id=8, weight=-0.3)]
    assert len(set(small.search_combined(parts, 5).ids[0]) & set(whole.search_combined(parts, 5).ids[0])) >= 3


def test_truncated_items_follow_behind_a_combined_query_too(tmp_path):
    collection = fit(truncation=20).save(tmp_path / "c")
    parts = [QueryPart(id=0), QueryPart(id=1, weight=-1), QueryPart(id=2, weight=np.float32(0.3))]
    found = collection.search_combined(parts, len(collection))
    np.testing.assert_array_equal(found.scores, collection.search_combined(parts[::-1], len(collection)).scores)
    assert sorted(found.ids[0].tolist()) == sorted(collection.ids.tolist())
    assert (np.diff(found.scores[0]) <= 0).all()


# Parts of pictures.


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """Pictures whose left half is of one theme and whose right half of another, beside those of one theme."""
    place = tmp_path_factory.mktemp("halves")
    photos = save_pictures(place / "photos")
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:, :30], pixels[:, 30:] = (0, 120, 200), (90, 120, 201)
    Image.fromarray(pixels).save(photos / "both.png")
    return manifind.index_folder(photos, place / "c", save_model(place / "towers.py", 3.0), SETTINGS).collection


@pytest.mark.parametrize("crop", [(30, 0, 30, 40), (0.5, 0, 0.5, 1), (30, 10, 1000, 1000)])
def test_a_part_of_a_picture_is_searched_as_if_it_were_the_picture(halves, crop, tmp_path):
    file = halves.path.parent / "photos" / "both.png"
    Image.open(file).crop((30, 0, 60, 40)).save(tmp_path / "right.png")
    expected = halves.search_pictures([tmp_path / "right.png"], 8)
    for found in (
        halves.search_pictures([file], 8, crop=crop),
        halves.search_combined([QueryPart(id="both.png", crop=crop)], 8),
        halves.search_combined([QueryPart(picture=file, crop=crop)], 8),
    ):
        assert found.ids.tolist() == expected.ids.tolist()
    assert all(name.startswith("3-") for name in expected.ids[0][:4])


@pytest.mark.parametrize(
    "crop", [(1, 2, 3), (0, 0, 0, 1), (-1, 0, 5, 5), (0, 0, float("nan"), 1), "all", (0, 0, "a", 1)]
)
def test_what_is_no_part_of_a_picture_is_refused(halves, crop):
    with pytest.raises(InputError, match=r"crop = .*expected left, top, width and height"):
        halves.search_pictures([halves.path.parent / "photos" / "both.png"], crop=crop)


def test_a_part_outside_of_the_picture_is_refused(halves):
    with pytest.raises(InputError, match="60 x 40 pixels, and the crop is outside of them"):
        halves.search_pictures([halves.path.parent / "photos" / "both.png"], crop=(100, 0, 10, 10))


# The same everywhere.


def test_python_the_command_line_and_the_api_give_one_answer(curve, command, tmp_path):  # noqa: F811
    picture = curve.path.parent / "photos" / "2-03.png"
    parts = [
        QueryPart(id="0-01.png", weight=2),
        QueryPart(picture=picture, crop=(0, 0, 16, 16)),
        QueryPart(text="theme 4", weight=0.5),
        QueryPart(id="5-05.png", weight=-1),
        QueryPart(text="theme 1", weight=-0.25),
    ]
    expected = curve.search_combined(parts, 12)
    said = command(
        "search", curve.path, "2*0-01.png", picture, "--text", "0.5*theme 4", "--minus", "5-05.png",
        "--minus-text", "0.25*theme 1", "-k", 12, "--json", "--crop", "0,0,16,16",
    )  # fmt: skip
    # The crop holds for every picture, which are of one colour here.
    (shown,) = json.loads(said.out)
    assert shown["query"] == f"2*0-01.png + {picture} + 0.5*theme 4 - 5-05.png - 0.25*theme 1"
    assert [one["id"] for one in shown["results"]] == expected.ids[0].tolist()
    with TestClient(app_of(make_service(curve.path, tmp_path)), base_url=HOST) as client:
        upload = client.post(
            "/api/v1/search/picture", params={"crop": "0,0,16,16"}, content=picture.read_bytes(),
            headers={"content-type": "image/png"},
        ).json()["upload"]  # fmt: skip
        body = [
            {"text": "theme 1", "weight": -0.25},
            {"upload": upload},
            {"id": "0-01.png", "weight": 2, "crop": [0, 0, 1, 1]},
            {"id": "5-05.png", "weight": -1},
            {"text": "theme 4", "weight": 0.5},
        ]
        found = client.post("/api/v1/search/combined", json={"parts": body, "k": 12}).json()
        assert [one["id"] for one in found["results"]] == expected.ids[0].tolist()
        np.testing.assert_allclose([one["score"] for one in found["results"]], expected.scores[0], atol=1e-3)
        words = client.get("/api/v1/search", params={"text": "theme 3", "k": 6}).json()
        assert [one["id"] for one in words["results"]] == curve.search_text("theme 3", 6).ids[0].tolist()
        assert client.get("/api/v1/collection").json()["understands_words"]
        for path, status in (
            ("search?text=", 400), ("search?text=a&id=0-01.png", 422), ("search?id=0-01.png&crop=1,2", 422),
            ("search?id=0-01.png&crop=0,0,a,1", 400), ("search?text=theme 1&crop=0,0,1,1", 422),
            ("why?text=theme 2&result=2-03.png", 200), ("compare?text=theme 2", 200),
        ):  # fmt: skip
            assert client.get(f"/api/v1/{path}").status_code == status, path
        wrong = [
            {"parts": []},
            {"parts": [{"id": "0-01.png", "weight": -1}]},
            {"parts": [{}]},
            {"parts": [{"id": "x"}]},
        ]
        for refused_body in wrong:
            assert 400 <= client.post("/api/v1/search/combined", json=refused_body).status_code < 500


def test_the_command_line_searches_by_words_and_by_parts_of_pictures(curve, halves, command, refused):  # noqa: F811
    assert json.loads(command("info", curve.path, "--json").out)["extractor"].endswith("towers.py:TwoTowers")
    answers = json.loads(command("search", curve.path, "--text", "theme 3", "--text", "theme 1", "--json").out)
    assert [one["query"] for one in answers] == ["theme 3", "theme 1"]
    assert answers[0]["results"][0]["id"].startswith("3-")
    (answer,) = json.loads(command("search", halves.path, "both.png", "--crop", "0.5,0,0.5,1", "--json").out)
    assert answer["results"][1]["id"].startswith("3-")
    nothing = command("search", curve.path)
    assert nothing.code == 2
    assert "nothing to search with: give a QUERY, or words with --text" in nothing.err
    problem, _ = refused("search", curve.path, "--minus", "0-01.png")
    assert "no part that counts positively" in problem
    problem, _ = refused("search", curve.path, "0*0-01.png", "--together")
    assert "the weight of '0*0-01.png' is 0" in problem
    problem, _ = refused("search", curve.path, "--text", "theme 1", "--crop", "0,0,1,1")
    assert "no query is one" in problem
    problem, _ = refused("search", curve.path, "0-01.png", "--crop", "1,2")
    assert "expected left, top, width and height" in problem
