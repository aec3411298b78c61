"""Items come, go and change: at once, without touching others, and without a trace when they go again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manifind
from collection.small_collection import NAMES, D, N, fit, random_rows
from manifind.collection import items
from manifind.collection.filters import field_kinds
from manifind.errors import CollectionError, InputError

NEW = random_rows(7, 5)
NEW_NAMES = [f"new/{i}.jpg" for i in range(7)]


@pytest.fixture
def museum(saved):
    return manifind.load(saved)


def same(one, other):
    return np.array_equal(one.ids, other.ids) and one.scores.tobytes() == other.scores.tobytes()


def test_added_items_are_found_at_once_by_this_handle_and_by_every_later_one(museum):
    assert museum.add(NEW, NEW_NAMES) == NEW_NAMES
    for collection in (museum, manifind.load(museum.path, verify=True)):
        assert len(collection) == N + 7
        assert collection.ids[-7:].tolist() == NEW_NAMES
        assert "new/3.jpg" in collection
        np.testing.assert_array_equal(collection.search(NEW, 1).scores.round(5), np.ones((7, 1)))
        assert set(collection.search(NEW, N + 7).ids[0]) == {*NAMES, *NEW_NAMES}


def test_an_added_item_has_the_features_that_it_would_have_had_as_a_query(museum):
    expected = museum.transform(NEW)
    museum.add(NEW, NEW_NAMES)
    np.testing.assert_array_equal(museum.features[-7:], expected)
    np.testing.assert_array_equal(museum.transform(NEW), expected)


def test_adding_changes_nobody_elses_features(museum, pristine):
    museum.add(NEW, NEW_NAMES)
    np.testing.assert_array_equal(museum.features[:N], manifind.load(pristine).features)


@pytest.mark.parametrize("again", [False, True])
def test_removing_what_was_added_restores_every_answer(museum, answers, again):
    before = answers(museum)
    museum.add(NEW, NEW_NAMES)
    assert answers(museum) != before
    museum.remove(NEW_NAMES)
    assert answers(manifind.load(museum.path, verify=True) if again else museum) == before


def test_adding_one_by_one_is_adding_together(museum, saved, tmp_path, answers):
    import shutil

    other = manifind.load(shutil.copytree(saved, tmp_path / "other"))
    museum.add(NEW, NEW_NAMES)
    for row, name in zip(NEW, NEW_NAMES, strict=True):
        other.add(row[None], [name])
    assert answers(museum) == answers(other)


def test_a_removed_item_is_found_no_more_and_others_move_up(museum, queries):
    before = museum.search(queries, N)
    museum.remove(NAMES[10:20])
    gone = set(NAMES[10:20])
    for collection in (museum, manifind.load(museum.path, verify=True)):
        assert len(collection) == N - 10
        found = collection.search(queries, N - 10)
        for row in range(len(queries)):
            expected = [id_ for id_ in before.ids[row] if id_ not in gone]
            assert found.ids[row].tolist() == expected
        assert NAMES[10] not in collection


def test_an_item_that_comes_back_is_where_it_was(museum, answers, queries):
    before = museum.search(queries, N)
    museum.remove([NAMES[3]])
    museum.add(random_rows(N, 0)[[3]], [NAMES[3]])
    after = museum.search(queries, N)
    np.testing.assert_array_equal(before.scores, after.scores)


def test_an_updated_item_keeps_its_id_and_its_metadata(museum):
    museum.update([NAMES[5]], metadata=[{"room": 4}])
    museum.update([NAMES[5]], NEW[:1])
    assert museum.metadata([NAMES[5]]) == [{"room": 4}]
    assert museum.search(NEW[:1], 1).ids.tolist() == [[NAMES[5]]]
    assert len(museum) == N
    museum.update([NAMES[5]], NEW[1:2], [{"room": 5}])
    again = manifind.load(museum.path)
    assert again.metadata([NAMES[5]]) == museum.metadata([NAMES[5]]) == [{"room": 5}]
    assert same(again.search(NEW, 9), museum.search(NEW, 9))


def test_numbers_go_on_where_they_ended_and_are_never_given_twice(model, tmp_path):
    collection = model.save(tmp_path / "c")
    assert collection.add(NEW[:2]) == [N, N + 1]
    collection.remove([N + 1])
    assert collection.add(NEW[1:3]) == [N + 2, N + 3]
    assert collection.add(NEW[3:4], [1000]) == [1000]
    assert manifind.load(tmp_path / "c").add(NEW[4:5]) == [1001]


def test_everything_may_be_removed_and_something_added_again(museum):
    museum.remove(museum.ids.tolist())
    assert len(museum) == len(manifind.load(museum.path)) == 0
    with pytest.raises(InputError, match="every item has been removed"):
        museum.search(NEW, 1)
    museum.add(NEW, NEW_NAMES)
    assert museum.search(NEW, 1).ids[:, 0].tolist() == NEW_NAMES


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda c: c.add(NEW[:1], [NAMES[0]]), "there is an item with the id 'pictures/000.jpg'"),
        (lambda c: c.add(NEW[:2], ["a", "a"]), "stands for more than one item"),
        (lambda c: c.add(NEW[:2], ["a"]), "there is 1 id for 2 items"),
        (lambda c: c.add(NEW[:1], [7]), "is no text"),
        (lambda c: c.add(NEW[:1]), "ids are not given"),
        (lambda c: c.add(NEW[:, :4], NEW_NAMES), "4 features, but it is expecting 6"),
        (lambda c: c.add(NEW * np.nan, NEW_NAMES), "NaN"),
        (lambda c: c.add(NEW[:1], ["a"], [{"x": object()}]), "the metadata 'x' is a object"),
        (lambda c: c.add(NEW[:1], ["a"], [{"x": float("nan")}]), "the metadata 'x' is nan"),
        (lambda c: c.remove(["nobody"]), "no item with the id 'nobody'"),
        (lambda c: c.remove([NAMES[0], "nobody"]), "no item with the id 'nobody'"),
        (lambda c: c.remove([NAMES[0], NAMES[0]]), "more than one item"),
        (lambda c: c.update(["nobody"], NEW[:1]), "no item with the id 'nobody'"),
        (lambda c: c.update(["nobody"], metadata=[{}]), "no item with the id 'nobody'"),
    ],
)
def test_a_mistake_is_refused_by_name_and_nothing_changes(museum, answers, change, problem):
    before = answers(museum)
    with pytest.raises(InputError, match=problem):
        change(museum)
    assert answers(museum) == answers(manifind.load(museum.path, verify=True)) == before


def test_a_handle_keeps_its_version_until_it_is_refreshed(museum, answers):
    other = manifind.load(museum.path)
    before = answers(other)
    museum.add(NEW, NEW_NAMES)
    museum.remove(NAMES[:3])
    assert answers(other) == before
    assert other.refresh()
    assert answers(other) == answers(museum)
    assert not other.refresh()


def test_two_handles_may_take_turns(museum, answers):
    other = manifind.load(museum.path)
    museum.add(NEW[:1], NEW_NAMES[:1])
    other.add(NEW[1:2], NEW_NAMES[1:2])
    museum.remove([NEW_NAMES[1]])
    other.refresh()
    assert answers(museum) == answers(other) == answers(manifind.load(museum.path, verify=True))


def test_another_descriptor_keeps_what_somebody_else_has_said_meanwhile(museum):
    other = manifind.load(museum.path)
    other.update([NAMES[5]], metadata=[{"room": 9}])
    museum.update([NAMES[5]], NEW[:1])
    assert museum.metadata([NAMES[5]]) == [{"room": 9}]


def test_metadata_filters_are_exact_however_few_satisfy_them(model, tmp_path, queries):
    fields = [{"number": i, "even": i % 2 == 0, "tags": ["a"] if i == 70 else []} for i in range(N)]
    collection = model.save(tmp_path / "c", NAMES, fields)
    collection.add(NEW, NEW_NAMES, [{"number": 1000 + i} for i in range(7)])
    everyone = collection.search(queries, N + 7)
    for where, wanted in (
        ("number = 70", [NAMES[70]]),
        ("even = true and number < 20", NAMES[:20:2]),
        ("tags contains 'a'", [NAMES[70]]),
        ("number >= 1003", NEW_NAMES[3:]),
        ("number in (4, 1001)", [NAMES[4], NEW_NAMES[1]]),
        ("not number < 1006", [NEW_NAMES[6]]),
        ("number > 5000", []),
    ):
        found = collection.search(queries, 20, where)
        assert found.ids.shape == (len(queries), min(20, len(wanted)))
        for row in range(len(queries)):
            best = [id_ for id_ in everyone.ids[row] if id_ in set(wanted)]
            assert found.ids[row].tolist() == best
    assert collection.search_ids([NAMES[0]], 3, "number = 70").ids.tolist() == [[NAMES[70]]]


@pytest.mark.parametrize("index", ["sq8", "pq"])
def test_a_coded_collection_lives_like_an_exact_one(tmp_path, queries, index):
    collection = fit(index=index).save(tmp_path / "c", NAMES)
    before = collection.search(queries, 5)
    collection.add(NEW, NEW_NAMES, [{"new": True}] * 7)
    assert collection.search(NEW, 1).ids[:, 0].tolist() == NEW_NAMES
    assert set(collection.search(queries, 7, "new = true").ids[0]) == set(NEW_NAMES)
    collection.remove(NEW_NAMES)
    assert same(collection.search(queries, 5), before)
    assert same(manifind.load(tmp_path / "c").search(queries, 5), before)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_sequence_of_changes_leaves_what_the_same_items_added_afresh_leave(pristine, tmp_path_factory, data):
    import shutil

    path = shutil.copytree(pristine, tmp_path_factory.mktemp("any") / "c")
    collection, rows = manifind.load(path), random_rows(40, 11)
    present = {}
    for step in range(data.draw(st.integers(1, 8))):
        if present and data.draw(st.booleans()):
            gone = data.draw(st.lists(st.sampled_from(sorted(present)), min_size=1, unique=True))
            collection.remove(gone)
            for name in gone:
                del present[name]
        else:
            count = data.draw(st.integers(1, 4))
            names = [f"{step}-{i}" for i in range(count)]
            collection.add(rows[step * 4 : step * 4 + count], names)
            present |= {name: step * 4 + i for i, name in enumerate(names)}
    fresh = manifind.load(shutil.copytree(pristine, path.parent / "fresh"))
    if present:
        fresh.add(rows[list(present.values())], list(present))
    asked = random_rows(3, 12)
    for one in (collection, manifind.load(path, verify=True)):
        assert same(one.search(asked, len(fresh)), fresh.search(asked, len(fresh)))
    assert collection.changed == len(present) / N


def test_what_is_called_after_each_commit_sees_the_change(saved):
    seen = []
    collection = manifind.load(saved, after_commit=lambda c: seen.append(len(c)))
    collection.add(NEW, NEW_NAMES)
    collection.remove(NEW_NAMES[:2])
    assert seen == [N + 7, N + 5]


def test_a_compressed_collection_answers_nearly_as_the_whole_one_and_takes_no_changes(museum, tmp_path, queries):
    museum.add(NEW, NEW_NAMES, [{"new": True}] * 7)
    museum.remove(NAMES[:5])
    small = manifind.load(museum.export(tmp_path / "small", "compressed")[0], verify=True)
    assert small.ids.tolist() == museum.ids.tolist()
    assert set(small.segment_bytes) == {"graph", "descriptor_index", "feature_index"}
    whole, coded = museum.search(queries, 20), small.search(queries, 20)
    overlap = np.mean([len(set(a) & set(b)) / 20 for a, b in zip(whole.ids, coded.ids, strict=True)])
    assert overlap > 0.9
    np.testing.assert_allclose(coded.scores[:, 0], whole.scores[:, 0], atol=0.05)
    assert small.search_ids([NEW_NAMES[0]], 1).ids.tolist() == [[NEW_NAMES[0]]]
    assert set(small.search(queries, 9, "new = true").ids[0]) == set(NEW_NAMES)
    for change in (lambda: small.add(NEW[:1], ["x"]), lambda: small.remove([NEW_NAMES[0]])):
        with pytest.raises(CollectionError, match="is compressed: it only answers"):
            change()
    assert small.features.shape == (N + 2, museum.features.shape[1])
    with pytest.raises(CollectionError, match="compressed already"):
        small.export(tmp_path / "smaller", "compressed")
    with pytest.raises(CollectionError, match="the collection itself"):
        museum.export(museum.path, "compressed")


def test_the_dimension_of_a_query_is_checked_whatever_the_kind(museum, tmp_path):
    small = manifind.load(museum.export(tmp_path / "small", "compressed")[0])
    with pytest.raises(InputError, match=f"expecting {D}"):
        small.search(np.ones((1, D + 1)), 1)


def test_the_fields_of_what_was_fitted_are_gathered_once_however_often_it_is_filtered_and_added_to(living, monkeypatch):
    gathered = []

    def counting(fields):
        gathered.append(len(fields))
        return field_kinds(fields)

    monkeypatch.setattr(items, "field_kinds", counting)
    collection = manifind.load(living)
    for number in range(3):
        collection.search_ids([NAMES[0]], 2, "year > 1900")
        collection.search_ids([NAMES[0]], 2, "year > 1950")
        collection.add(random_rows(1, number), [f"new {number}"], [{"year": 2001, f"field {number}": "x"}])
        assert collection.search_ids([NAMES[0]], 2, f"'field {number}' = 'x'").ids.tolist() == [[f"new {number}"]]
    assert gathered.count(N) == 1
    assert len(gathered) == 5  # and those that came later, once for each version


def test_a_filter_on_a_field_that_only_came_later_is_answered_and_on_none_is_refused(living):
    collection = manifind.load(living)
    with pytest.raises(InputError, match="no item has a metadata field 'room'; there are year"):
        collection.search_ids([NAMES[0]], 2, "room = 'attic'")
    collection.update(["late/2.jpg"], metadata=[{"room": "attic"}])
    assert collection.search_ids([NAMES[0]], 2, "room = 'attic'").ids.tolist() == [["late/2.jpg"]]
    with pytest.raises(InputError, match="room holds texts, and the filter compares it with the number 3"):
        collection.search_ids([NAMES[0]], 2, "room = 3")
    collection.remove(collection.ids.tolist())
    assert collection.search(random_rows(1, 1), 2, "room = 'attic'").ids.shape == (1, 0)


@pytest.mark.parametrize(
    ("update", "problem"),
    [
        (lambda c: c.update([NAMES[1]]), "neither descriptors nor metadata are given for 1 item"),
        (lambda c: c.update(NAMES[:2], None, None), "neither descriptors nor metadata are given for 2 items"),
        (lambda c: c.update([NAMES[1]], metadata=[]), "there are 0 entries of metadata for 1 item"),
        (lambda c: c.update(NAMES[:2], metadata=[{"a": 1}]), "there is 1 entry of metadata for 2 items"),
        (lambda c: c.update([NAMES[1]], metadata={"a": 1}), "metadata is a dict"),
        (lambda c: c.update([NAMES[1]], NEW[:0]), "there is 1 id for 0 items"),
        (lambda c: c.update(NAMES[:2], NEW[:1]), "there are 2 ids for 1 item"),
        (lambda c: c.update([NAMES[1]], np.full((1, D), 1e-300)), "which is zero in float32"),
        (lambda c: c.add(np.full((1, D), 1e-300), ["x"]), "which is zero in float32"),
        (lambda c: c.search(np.full((1, D), 1e-300)), "which is zero in float32"),
    ],
)
def test_an_update_of_nothing_or_of_too_little_is_refused_in_words_and_changes_nothing(museum, update, problem):
    commit = museum.version.manifest.commit
    with pytest.raises(InputError) as refused:
        update(museum)
    assert problem in refused.value.problem
    assert manifind.load(museum.path).version.manifest.commit == commit
    assert NAMES[1] in museum


@pytest.mark.parametrize("scale", [1e-38, 1e-42])
def test_tiny_rows_are_added_and_found_where_they_are_scaled_to_length_one(museum, scale):
    row = (NEW[:1] * scale).astype(np.float32)
    museum.add(row, ["tiny"])
    museum.update(["tiny"], row)
    found = manifind.load(museum.path).search(row, 2)
    assert "tiny" in found.ids[0]
    assert np.isfinite(found.scores).all()


def test_a_k_beyond_the_number_of_items_finds_all_of_them_with_and_without_a_filter(living):
    collection, Q = manifind.load(living), random_rows(2, 4)
    n = len(collection)
    for by in ("features", "descriptors"):
        everyone = collection.search(Q, n, by=by)
        assert collection.search(Q, 10 * n, by=by).ids.tolist() == everyone.ids.tolist()
        assert collection.search_ids(NAMES[:1], n + 1, by=by).ids.shape == (1, n)
        some = collection.search(Q, n, "year >= 1950", by=by).ids
        assert 0 < some.shape[1] < n
        assert collection.search(Q, 10 * n, "year >= 1950", by=by).ids.tolist() == some.tolist()


@pytest.mark.parametrize("ids", ["p1", b"p1", 5, None, np.array("p1")])
@pytest.mark.parametrize(
    "use",
    [
        lambda c, ids: c.update(ids, metadata=[{"a": 1}]),
        lambda c, ids: c.update(ids),
        lambda c, ids: c.remove(ids),
        lambda c, ids: c.search_ids(ids),
        lambda c, ids: c.metadata(ids),
    ],
)
def test_a_single_id_in_the_place_of_a_list_is_refused_in_words(museum, use, ids):
    with pytest.raises(InputError, match="expected a list of ids") as refused:
        use(museum, ids)
    assert f"give a list: [{ids!r}]" in refused.value.hint
    assert len(museum) == N


@pytest.mark.parametrize(
    ("where", "problem", "hint"),
    [
        ("tags contains 3", "tags holds lists of texts, and the filter looks in it for the number 3", "contains 'red'"),
        ("not tags contains true", "tags holds lists of texts, and the filter looks in it for true", "contains 'red'"),
        ("sizes contains '3'", "sizes holds lists of numbers, and the filter looks in it for the text", "contains 3"),
    ],
)
def test_a_filter_that_looks_for_a_number_in_lists_of_texts_is_refused(museum, where, problem, hint):
    museum.update(NAMES[:2], metadata=[{"tags": ["red", "3"], "sizes": [3]}, {"tags": [], "sizes": [4, 5.5]}])
    with pytest.raises(InputError) as refused:
        museum.search_ids(NAMES[:1], 3, where)
    assert problem in refused.value.problem
    assert hint in refused.value.hint
    assert museum.search_ids(NAMES[:1], 3, "tags contains '3' and sizes contains 3").ids.tolist() == [[NAMES[0]]]


def test_lists_of_several_kinds_and_empty_lists_can_be_asked_for_all_of_theirs(museum):
    museum.update(NAMES[:2], metadata=[{"tags": ["red", 3], "none": []}, {"tags": [True]}])
    for value, found in (("'red'", NAMES[0]), ("3", NAMES[0]), ("true", NAMES[1])):
        assert museum.search_ids(NAMES[:1], 3, f"tags contains {value}").ids.tolist() == [[found]]
    assert museum.search_ids(NAMES[:1], 3, "none contains 3").ids.shape == (1, 0)
