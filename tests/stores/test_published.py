"""A published collection answers as the collection does, follows it, and outlives whatever happens to its server."""

import json
from contextlib import closing

import numpy as np
import pytest

import manifind
from collection.small_collection import segment
from manifind import QueryPart
from manifind.errors import CollectionError, InputError, StoreError
from manifind.stores.address import parse_address
from manifind.stores.publish import connect, publish
from manifind.stores.published import open_published
from manifind.stores.store import Shape
from stores.servers import CannotRunError, MilvusServer, PostgresServer
from stores.strangers import ROLES, everything, make_stranger

N, D = 500, 8
QUICK = {"n_neighbors": 5, "layers": (8, 4), "n_anchors": 4, "max_steps": 2, "batch_size": 8, "random_state": 0}
WHERE = "year >= 1995 and not (place = 'Rome' or tags contains 'red')"


def random_rows(n, seed):
    return np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)


def metadata_of(n):
    places = ("Rome", "Paris", "O'xford")
    return [{"year": 1980 + i % 40, "place": places[i % 3], "tags": ["red", i] if i % 4 else []} for i in range(n)]


def fitted(**settings):
    X = random_rows(N, 0)
    X[40:50] = X[40]  # ten of the same, which are one node
    return manifind.GradNet(**{**QUICK, **settings}).fit(X)


@pytest.fixture(scope="module")
def model():
    return fitted(n_components=20)


@pytest.fixture
def museum(model, tmp_path):
    """A collection with texts for ids, of which some have gone and others came."""
    collection = model.save(tmp_path / "museum.manifind", ids=[f"it's {i}" for i in range(N)], metadata=metadata_of(N))
    collection.remove(["it's 7", "it's 8"])
    collection.add(random_rows(5, 3), ids=[f"gift '{i}" for i in range(5)], metadata=[{"year": 2026}] * 5)
    return collection


@pytest.fixture(scope="module")
def queries():
    """Fifty rows, of which some are items, and one is an item that has gone in `museum`."""
    return np.concatenate([random_rows(45, 9), random_rows(N, 0)[[3, 7, 40, 44, 300]]])


def assert_same_answers(published, collection, queries, k=10):
    np.testing.assert_array_equal(published.transform(queries), collection.transform(queries))
    for where in (None, WHERE, "year = 2026", "year = 1"):
        found, expected = published.search(queries, k, where), collection.search(queries, k, where)
        np.testing.assert_array_equal(found.scores, expected.scores)
        assert_same_but_for_ties(found, expected)
    ids = collection.ids[:5].tolist()
    parts = [QueryPart(id=ids[0]), QueryPart(vector=queries[0], weight=0.5), QueryPart(text=queries[1], weight=-0.3)]
    for ask in (lambda one: one.search_text(queries, k), lambda one: one.search_combined(parts, k)):
        np.testing.assert_array_equal(ask(published).ids, ask(collection).ids)
        np.testing.assert_allclose(ask(published).scores, ask(collection).scores, atol=1e-6)
    for refused in (lambda: published.search_text("a red boat"), lambda: published.search_pictures(["a.jpg"])):
        with pytest.raises(InputError, match="does not record what described it"):
            refused()
    assert_same_but_for_ties(published.search_ids(ids, k), collection.search_ids(ids, k))
    assert len(published) == len(collection)


def assert_same_but_for_ties(found, expected):
    """The same ids at each score, but for those that tie with the last, of which others may have been found."""
    for ours, theirs, scores in zip(found.ids, expected.ids, expected.scores, strict=True):
        for score in np.unique(scores)[1:]:
            assert set(ours[scores == score].tolist()) == set(theirs[scores == score].tolist())


def test_answers_are_those_of_the_collection_bit_for_bit(server, museum, queries, name):
    done = publish(museum, server.address, name)
    assert done.items == len(museum) == N + 3
    assert done.nodes == N - 9
    assert done.indexes == {"descriptors": "exact", "node_features": "exact", "features": "exact"}
    published = open_published(server.address, name)
    assert_same_answers(published, museum, queries)
    with pytest.raises(InputError, match="by = 'descriptors'; a published collection is searched by 'features'"):
        published.search(queries, by="descriptors")
    published.close()


@pytest.mark.parametrize(
    "settings",
    [
        {"preprocess": "none"},
        {"preprocess": "center", "query_passes": 2},
        {"preprocess": "whiten", "similarity": "cosine"},
        {"similarity": "euclidean", "n_neighbors": 12},
    ],
    ids=str,
)
def test_answers_are_the_same_whatever_it_was_fitted_with(server, queries, name, tmp_path, settings):
    collection = fitted(**settings).save(tmp_path / "c.manifind", metadata=metadata_of(N))
    publish(collection, server.address, name)
    published = open_published(server.address, name)
    assert_same_answers(published, collection, queries)
    published.close()


def test_publishing_again_follows_the_collection(server, museum, queries, name):
    for change in (
        lambda: None,
        lambda: museum.remove(["it's 9", "gift '0"]),
        lambda: museum.update(["it's 11"], X=random_rows(1, 77), metadata=[{"year": 1700}]),
        lambda: museum.update(["it's 12"], metadata=[{"place": "Rome"}]),
        lambda: manifind.refit(museum, seed=1),
    ):
        change()
        publish(museum, server.address, name)
        published = open_published(server.address, name)
        assert_same_answers(published, museum, queries)
        published.close()


def test_another_collection_of_another_width_takes_the_place(server, museum, model, queries, name, tmp_path):
    publish(museum, server.address, name)
    other = manifind.GradNet(**QUICK, n_components=6).fit(random_rows(60, 5)[:, :4]).save(tmp_path / "other.manifind")
    publish(other, server.address, name)
    published = open_published(server.address, name)
    found = published.search(queries[:, :4], 3)
    assert found.ids.tolist() == other.search(queries[:, :4], 3).ids.tolist()
    published.close()


def test_an_index_answers_nearly_as_the_collection_does(server, museum, queries, name):
    assert set(publish(museum, server.address, name, index="hnsw").indexes.values()) == {"hnsw"}
    published = open_published(server.address, name)
    found, expected = published.search(queries, 10), museum.search(queries, 10)
    shared = [len(set(a) & set(b)) for a, b in zip(found.ids.tolist(), expected.ids.tolist(), strict=True)]
    assert sum(shared) >= 490
    filtered = published.search(queries, 600, "year = 1999")
    assert set(filtered.ids[0].tolist()) == set(museum.search(queries, 600, "year = 1999").ids[0].tolist())
    published.close()


def test_what_was_told_of_progress_ends_with_all(server, museum, name):
    summary = []
    publish(museum, server.address, name, listener=summary.append)
    assert {report.stage for report in summary} == {"publishing"}
    assert summary[-1].done == summary[-1].total == 2 * (N - 9) + N + 3
    summary.clear()
    publish(museum, server.address, name, listener=summary.append)  # of the same fit, nodes are there already
    assert summary[0].done > 2 * (N - 9)


def test_what_cannot_be_asked_is_refused_as_by_the_collection(server, museum, queries, name):
    publish(museum, server.address, name)
    published = open_published(server.address, name)
    for k in (0, -1, True, "3"):
        with pytest.raises(InputError, match="k = "):
            published.search(queries, k)
    with pytest.raises(InputError, match="expecting 8"):
        published.search(queries[:, :3])
    with pytest.raises(InputError, match="NaN"):
        published.search(queries * np.nan)
    with pytest.raises(InputError, match="X is empty"):
        published.search(queries[:0])
    assert published.search_ids([], 3).ids.shape[0] == 0
    for where in (None, "year > 2000"):  # a k beyond the number of items finds all of them
        everyone = museum.search(queries[:2], 10**6, where).ids
        assert everyone.shape[1] == N + 3 if where is None else 0 < everyone.shape[1] < N
        assert published.search(queries[:2], 10**6, where).ids.tolist() == everyone.tolist()
    published.close()


def test_the_longest_name_is_published_and_opened_and_a_longer_one_refused(server, museum, queries, name):
    longest = f"{name}_{'x' * 40}"[:40]
    publish(museum, server.address, longest, index="hnsw")
    published = open_published(server.address, longest)
    assert published.search(queries, 3).ids.shape == (50, 3)
    published.close()
    for refused in (
        lambda: publish(museum, server.address, f"{longest}x"),
        lambda: open_published(server.address, f"{longest}x"),
    ):
        with pytest.raises(InputError, match="expected at most 40 small letters"):
            refused()


def test_what_was_never_published_is_not_opened(server, name):
    with pytest.raises(StoreError, match=f"there is no collection {name} in .* published to its end") as refused:
        open_published(server.address, name)
    assert "manifind publish" in refused.value.hint


def test_what_holds_no_descriptors_is_refused(server, museum, name, tmp_path):
    museum.export(tmp_path / "small.manifind", "compressed")
    with pytest.raises(CollectionError, match="it is compressed"):
        publish(manifind.load(tmp_path / "small.manifind"), server.address, name)
    cut = manifind.GradNet(**QUICK, truncation=20).fit(random_rows(N, 0), random_rows(3, 1))
    cut = cut.save(tmp_path / "cut.manifind")
    with pytest.raises(CollectionError, match="fitted with truncation"):
        publish(cut, server.address, name)


def test_a_damaged_or_newer_model_is_refused(server, museum, name):
    publish(museum, server.address, name)
    database = connect(parse_address(server.address))
    model = database.open(f"{name}_model", "euclidean")
    for manifest, problem in (
        ('{"format": 2}', "published in format 2"),
        ("{", "is damaged"),
        ('{"format": 1}', "is damaged"),
        ("[]", "is damaged"),
    ):
        model.upsert([0], np.zeros((1, D)), [{"manifest": manifest}])
        with pytest.raises(StoreError, match=problem):
            open_published(server.address, name)
    database.close()


def test_the_fields_of_the_metadata_and_their_kinds_are_published(server, model, name, tmp_path):
    metadata_of = [{"year": 1990, "tags": ["red"], "é '\"\\": None}, {"year": "unknown", "sold": True}, None]
    collection = model.save(tmp_path / "c.manifind", metadata=metadata_of + [None] * (N - 3))
    for change, expected in (
        (lambda: None, {"year": {"number", "text"}, "tags": {"list", "texts"}, "sold": {"truth"}, "é '\"\\": set()}),
        (lambda: collection.remove([1]), {"year": {"number"}, "tags": {"list", "texts"}, "é '\"\\": set()}),
        (lambda: collection.remove([0]), {}),
    ):
        change()
        publish(collection, server.address, name)
        with closing(open_published(server.address, name)) as published:
            assert published.model.kinds == expected


def test_fields_too_many_to_be_kept_are_published_as_unknown(server, model, name, tmp_path):
    metadata_of = [{f"'field {i}' é": i} for i in range(N)]
    publish(model.save(tmp_path / "c.manifind", metadata=metadata_of), server.address, name)
    published = open_published(server.address, name)
    assert published.model.kinds is None
    assert published.search(random_rows(1, 1), 3, "\"'field 3' é\" = 3").ids.tolist() == [[3]]
    published.close()


def test_what_an_earlier_version_published_has_unknown_fields(server, museum, name):
    publish(museum, server.address, name)
    database = connect(parse_address(server.address))
    table = database.open(f"{name}_model", "euclidean")
    (row,), vectors = table.rows([0]).metadata, table.rows([0]).vectors
    summary = json.loads(row["manifest"])
    for fields, problem in (
        ("absent", None),
        ([], "no table of lists"),
        ({"year": "number"}, "no table of lists"),
        ({"year": ["colour"]}, "unknown kind"),
        ({"year": [{}]}, "is damaged"),
    ):
        changed = {**summary, "fields": fields} if fields != "absent" else summary.copy()
        if fields == "absent":
            del changed["fields"], changed["elements"]
        table.upsert([0], vectors, [{"manifest": json.dumps(changed)}])
        if problem is None:
            published = open_published(server.address, name)
            assert published.model.kinds is None
            published.close()
        else:
            with pytest.raises(StoreError, match=problem):
                open_published(server.address, name)
    database.close()


@pytest.fixture(params=[PostgresServer, MilvusServer])
def mortal(request):
    """A server of one's own, to kill."""
    try:
        server = request.param()
    except CannotRunError as why:
        pytest.skip(str(why))
    yield server
    server.remove()


def test_a_server_that_is_killed_meanwhile_loses_nothing_and_the_same_goes_on(mortal, museum, queries):
    publish(museum, mortal.address, "museum")
    before = museum.search(queries, 10)
    manifind.refit(museum, seed=1)
    museum.remove(["it's 20"])

    def die(report):
        if report.done > 500:
            mortal.kill()

    with pytest.raises(StoreError) as failed:
        publish(museum, mortal.address, "museum", listener=die)
    assert "repeat the same" in failed.value.hint
    mortal.start()
    if isinstance(mortal, PostgresServer):  # one transaction: what was there is there
        published = open_published(mortal.address, "museum")
        assert_same_but_for_ties(published.search(queries, 10), before)
        published.close()
    else:  # Milvus has none: what is half there is not opened
        with pytest.raises(StoreError, match="published to its end"):
            open_published(mortal.address, "museum")
    publish(museum, mortal.address, "museum")
    published = open_published(mortal.address, "museum")
    assert_same_answers(published, museum, queries)
    published.close()


def test_who_serves_goes_on_when_the_server_comes_back(mortal, museum, queries):
    publish(museum, mortal.address, "museum")
    published = open_published(mortal.address, "museum")
    expected = published.search(queries, 10)
    mortal.kill()
    for _ in range(2):
        with pytest.raises(StoreError, match="cannot be"):
            published.search(queries, 10)
    with pytest.raises(StoreError, match="cannot be"):
        open_published(mortal.address, "museum")
    mortal.start()
    assert published.search(queries, 10).ids.tolist() == expected.ids.tolist()
    published.close()


@pytest.mark.long
def test_ten_thousand_items_have_the_same_top_ten_everywhere(server, name, tmp_path):
    rng = np.random.default_rng(4)
    centres = rng.normal(size=(200, 32))
    X = (centres[rng.integers(200, size=10_100)] + 0.4 * rng.normal(size=(10_100, 32))).astype(np.float32)
    model = manifind.GradNet(**QUICK, n_components=64).fit(X[:10_000])
    collection = model.save(tmp_path / "c.manifind", metadata=[{"n": i, "even": i % 2 == 0} for i in range(10_000)])
    publish(collection, server.address, name)
    published = open_published(server.address, name)
    for where in (None, "even = true", "n < 30", "n in (1, 5000, 9999)"):
        found, expected = published.search(X[9_950:], 10, where), collection.search(X[9_950:], 10, where)
        assert found.ids.shape == expected.ids.shape == (150, 3 if where and "in" in where else 10)
        np.testing.assert_array_equal(found.scores, expected.scores)
        assert_same_but_for_ties(found, expected)
    published.close()


@pytest.mark.parametrize("role", ROLES)
def test_a_table_put_in_the_place_of_a_published_one_stops_publishing_before_any_change(server, museum, name, role):
    publish(museum, server.address, name)
    drop(server, f"{name}_{role}")
    make_stranger(server, f"{name}_{role}", 20 if "features" in role else D, role == "features", "published by gradnet")
    before = everything(server, name)
    manifind.refit(museum, seed=1)
    museum.remove(["it's 30"])
    with pytest.raises(StoreError, match=f"{name}_{role} in .* was not made by manifind") as refused:
        publish(museum, server.address, name)
    assert "choose another name" in refused.value.hint
    with pytest.raises(StoreError, match=f"{name}_{role} in .* was not made by manifind"):
        open_published(server.address, name)
    assert everything(server, name) == before


def drop(server, table):
    """As its owner would, without manifind."""
    if isinstance(server, PostgresServer):
        import psycopg

        with psycopg.connect(server.address, autocommit=True) as connection:
            connection.execute(f"DROP TABLE {table}")
    else:
        from pymilvus import MilvusClient

        client = MilvusClient(server.address)
        client.drop_collection(table)
        client.close()


def test_milvus_in_a_file_answers_too(museum, queries, tmp_path):
    pytest.importorskip("milvus_lite")
    publish(museum, str(tmp_path / "museum.db"), "museum")
    published = open_published(str(tmp_path / "museum.db"), "museum")
    assert_same_but_for_ties(published.search(queries, 10), museum.search(queries, 10))
    published.close()


def test_shapes_that_a_database_cannot_keep_are_refused(database):
    with pytest.raises(InputError, match=r"wide; .* takes at most"):
        database.create("too_wide", Shape(40_000, "cosine", "number"))


def test_damage_is_not_published_as_if_it_were_whole(model, tmp_path):
    collection = model.save(tmp_path / "c.manifind")
    file = segment(collection.path, "features")
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)
    with pytest.raises(CollectionError, match="differs from the digest"):
        publish(collection, str(tmp_path / "milvus.db"), "museum")
    assert not (tmp_path / "milvus.db").exists()


@pytest.mark.parametrize("where", ["yaer >= 5", "n >= 'a'", "even contains 'x'", "tags contains 3", "tags = 'red'"])
def test_a_filter_on_unknown_fields_or_other_kinds_is_refused_as_by_the_collection(
    server, model, name, tmp_path, queries, where
):
    collection = model.save(
        tmp_path / "c.manifind", metadata=[{"n": i, "even": i % 2 == 0, "tags": ["red"][: i % 2]} for i in range(N)]
    )
    publish(collection, server.address, name)
    published = open_published(server.address, name)
    problems = []
    for asked in (collection, published):
        with pytest.raises(InputError) as caught:
            asked.search(queries, 5, where)
        problems.append(str(caught.value))
    assert problems[0] == problems[1]
    published.close()
