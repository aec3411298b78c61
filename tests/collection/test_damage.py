"""Damaged, foreign, newer and malicious collections: each is refused by name, and none runs code."""

import io
import json
import os
import pickle
import random
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manifind
from collection.crafting import changed_arrays, manifest_of, npy, npz, set_manifest
from collection.small_collection import D, N, edit, files_of, put_segment, segment, tidy
from manifind.collection import version
from manifind.collection.format import DATABASE, FULL, SEGMENTS
from manifind.errors import CollectionError

NPY = ["descriptors", "features"]


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_path_that_does_not_exist_is_named(tmp_path, refusal):
    assert refusal(tmp_path / "nowhere") == f"{tmp_path / 'nowhere'} does not exist"


def test_an_empty_directory_and_a_plain_file_hold_no_collection(tmp_path, refusal):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("empty", "file"):
        assert refusal(tmp_path / name) == f"{tmp_path / name} holds no collection"


def test_a_name_that_no_file_can_have_is_refused(tmp_path, refusal):
    assert "cannot be read" in refusal(tmp_path / ("x" * 300))


def test_a_directory_that_may_not_be_entered_is_refused(saved, refusal, monkeypatch):
    def denied(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_file", denied)
    assert "Permission denied" in refusal(saved)


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + b"\xff" * 4080, os.urandom(5000)])
def test_a_file_that_is_no_database_is_refused(saved, refusal, content):
    (saved / DATABASE).write_bytes(content)
    assert DATABASE in refusal(saved)


@pytest.mark.parametrize("application_id", [0, 1, 0x67726165])
def test_a_database_of_another_program_is_refused(saved, refusal, application_id):
    edit(saved, f"PRAGMA application_id = {application_id}", sign=False)
    assert refusal(saved) == f"{saved / DATABASE} is no manifind collection"


@pytest.mark.parametrize("version", ["4", "0", '"1"', "null", "[1]"])
def test_another_format_is_refused_with_its_number(saved, refusal, version):
    set_manifest(saved, "format", version, sign=False)
    problem = refusal(saved)
    assert f"{saved} has format {json.loads(version)!r}" in problem
    assert "reads format 1 and 2 and 3" in problem


def test_a_newer_format_is_refused_as_such_whatever_else_it_changed(saved, refusal):
    set_manifest(saved, "format", "4", sign=False)
    edit(saved, "DELETE FROM manifest WHERE key <> 'format'", sign=False)
    edit(saved, "DROP TABLE segments", sign=False)
    assert "has format 4" in refusal(saved)


@pytest.mark.parametrize("table", ["manifest", "segments", "items"])
def test_a_missing_table_is_damage(saved, refusal, table):
    edit(saved, f"DROP TABLE {table}", sign=False)
    assert f"no such table: {table}" in refusal(saved)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE manifest SET value = replace(value, '5', '6') WHERE key = 'queries'",
        "UPDATE items SET id = 'another' WHERE position = 5",
        "UPDATE segments SET sha256 = replace(sha256, 'a', 'b')",
        "INSERT INTO manifest VALUES ('note', '1')",
        "UPDATE manifest SET value = '\"0\"' WHERE key = 'digest'",
        "DELETE FROM manifest WHERE key = 'digest'",
    ],
)
def test_tables_that_differ_from_their_digest_are_damaged(saved, refusal, statement):
    edit(saved, statement, sign=False)
    assert refusal(saved) == f"{saved / DATABASE} is damaged: its tables differ from the digest that was recorded"


@pytest.mark.parametrize("key", ["format", "shape", "preprocess", "queries", "settings", "info", "versions"])
def test_a_manifest_without_an_entry_is_damaged(saved, refusal, key):
    edit(saved, "DELETE FROM manifest WHERE key = ?", key)
    assert key in refusal(saved)


@pytest.mark.parametrize(
    "value", ["", "{", "nonsense", "[" * 100_000, '{"a":' * 100_000, "9" * 5000, b"\xff\xfe", b"", "NaN", "[]", "5"]
)
@pytest.mark.parametrize("key", ["shape", "queries", "info"])
def test_a_manifest_that_is_not_what_it_should_be_is_damaged(saved, refusal, key, value):
    set_manifest(saved, key, value, sign=not isinstance(value, bytes))
    assert DATABASE in refusal(saved)


@pytest.mark.parametrize("name", ["items", "dimension", "feature_dimension"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "120", None, [], True, 10**30, 119])
def test_a_shape_that_is_none_or_does_not_fit_is_refused(saved, refusal, name, value):
    set_manifest(saved, "shape", json.dumps({**manifest_of(saved, "shape"), name: value}))
    refusal(saved)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("queries", {"n_neighbors": 0}),
        ("queries", {"n_neighbors": "3"}),
        ("queries", {"n_neighbors": 2.5}),
        ("queries", {"similarity": "nonsense"}),
        ("queries", {"similarity": ["cosine"]}),
        ("queries", {"passes": 0}),
        ("queries", {"passes": None}),
        ("queries", {"unheard_of": 1}),
        ("preprocess", {"kind": "nonsense"}),
        ("preprocess", {"kind": None}),
        ("preprocess", {"kind": "center"}),
        ("preprocess", {"scale": "1"}),
        ("preprocess", {"scale": 0}),
        ("preprocess", {"scale": float("nan")}),
    ],
)
def test_settings_that_no_search_could_use_are_refused(saved, refusal, key, value):
    set_manifest(saved, key, json.dumps({**manifest_of(saved, key), **value}))
    assert "is damaged" in refusal(saved)


@pytest.mark.parametrize("key", ["queries", "preprocess"])
def test_settings_that_are_incomplete_are_refused(saved, refusal, key):
    set_manifest(saved, key, "{}")
    assert "is damaged" in refusal(saved)


@pytest.mark.parametrize("value", [5, 2.5, b"bytes"])
def test_ids_of_mixed_types_are_refused(saved, refusal, value):
    edit(saved, "UPDATE items SET id = ? WHERE position = 7", value, sign=not isinstance(value, bytes))
    assert DATABASE in refusal(saved)


def test_ids_that_are_all_of_the_wrong_type_are_refused(saved, refusal):
    edit(saved, "UPDATE items SET id = position + 0.5")
    assert "neither all strings nor all integers" in refusal(saved)


def test_a_missing_item_is_refused_with_both_numbers(saved, refusal):
    edit(saved, "DELETE FROM items WHERE position = 7")
    assert f"has {N - 1} items where {N} were fitted" in refusal(saved)


@pytest.mark.parametrize("role", sorted(FULL))
def test_a_missing_segment_is_named(saved, refusal, role):
    file = segment(saved, role)
    file.unlink()
    assert refusal(saved) == f"{file} is missing"


@pytest.mark.parametrize("role", sorted(FULL))
def test_a_segment_that_the_tables_do_not_name_is_missed(saved, refusal, role):
    edit(saved, "DELETE FROM segments WHERE role = ?", role)
    assert refusal(saved) == f"{saved} lacks its {role}"


def test_segments_that_are_no_folder_are_refused(saved, refusal):
    shutil.rmtree(saved / SEGMENTS)
    (saved / SEGMENTS).write_text("")
    assert str(saved / SEGMENTS) in refusal(saved)


@pytest.mark.parametrize("role", sorted(FULL))
@pytest.mark.parametrize("change", ["empty", "one byte less", "one byte more"])
def test_a_segment_of_another_size_is_refused_with_both_sizes(saved, refusal, role, change):
    file = segment(saved, role)
    content = file.read_bytes()
    other = {"empty": b"", "one byte less": content[:-1], "one byte more": content + b"\0"}[change]
    file.write_bytes(other)
    assert refusal(saved) == f"{file} has {len(other):,} bytes, and {len(content):,} were recorded"


@pytest.mark.parametrize("role", sorted(FULL))
def test_a_segment_that_is_a_link_or_a_folder_or_a_pipe_is_refused(saved, refusal, role, tmp_path):
    file = segment(saved, role)
    moved = file.rename(tmp_path / "elsewhere")
    for put in (lambda: file.symlink_to(moved), file.mkdir, lambda: os.mkfifo(file)):
        put()
        assert refusal(saved) == f"{file} is not a plain file"
        file.rmdir() if file.is_dir() else file.unlink()


@pytest.mark.parametrize(
    "name",
    [
        "../x.npy",
        "../../segments/features-0123456789abcdef.npy",
        "/etc/passwd",
        "features-0123456789abcdef.npy/../../x.npy",
        "features-0123456789abcdef.npy\n",
        "features-0123456789ABCDEF.npy",
        "features-0123456789abcdef.pkl",
        "descriptors-0123456789abcdef.npy",
        "features-.npy",
        "",
        ".",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(saved, refusal, name):
    (saved / "x.npy").write_bytes(segment(saved, "features").read_bytes())
    edit(saved, "UPDATE segments SET name = ? WHERE role = 'features'", name)
    assert refusal(saved) == f"{saved} refers to {name!r}, which is no name of a segment"


def test_a_role_that_does_not_exist_is_refused(saved, refusal):
    edit(saved, "INSERT INTO segments VALUES ('code', 'code-0123456789abcdef.npy', 1, '')")
    assert "no name of a segment" in refusal(saved)


def test_swapped_files_are_refused(saved, refusal):
    one, other = segment(saved, "descriptors"), segment(saved, "features")
    spare = one.rename(saved / "spare")
    other.rename(one)
    spare.rename(other)
    assert "were recorded" in refusal(saved)


@pytest.mark.parametrize("role", NPY)
@pytest.mark.parametrize(
    "change",
    [
        lambda array: array.view("<i4"),
        lambda array: array.astype(">f4"),
        lambda array: array.reshape(array.shape[::-1]),
        lambda array: np.asfortranarray(array),
        lambda array: array.reshape(-1).view("<f8").reshape(N // 2, -1),
    ],
    ids=["integers", "big endian", "other shape", "columns first", "doubles"],
)
def test_an_array_of_another_kind_and_the_same_size_is_refused(saved, refusal, role, change):
    file = segment(saved, role)
    content = npy(change(np.load(file)))
    assert len(content) == file.stat().st_size
    file.write_bytes(content)
    assert f"{file} holds" in refusal(saved)


@pytest.mark.parametrize("role", NPY)
@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04", npz(a=np.ones(3)), b"x" * 500], ids=len)
def test_a_segment_that_is_no_array_is_refused(saved, refusal, role, content):
    put_segment(saved, role, content)
    assert str(segment(saved, role)) in refusal(saved)


@pytest.mark.parametrize("role", [*NPY, "graph"])
def test_pickled_objects_are_never_opened(saved, refusal, role, tmp_path):
    bomb = np.array([Bomb(tmp_path / "boom")], dtype=object)
    for content in (pickle.dumps(bomb), npy(bomb, allow_pickle=True), npz(nodes=bomb)):
        put_segment(saved, role, content)
        assert str(segment(saved, role)) in refusal(saved)
    assert not (tmp_path / "boom").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": None},
        {"inside": None},
        {"loss_curve": None},
        {"nodes": np.arange(N, dtype=np.int32)},
        {"nodes": np.arange(N) + 1},
        {"nodes": np.arange(N) - 1},
        {"nodes": np.arange(N)[::-1]},
        {"nodes": np.zeros(0, dtype=np.int64)},
        {"nodes": np.zeros((N, 1), dtype=np.int64)},
        {"nodes": np.array(3)},
        {"inside": np.ones(N - 1, dtype=np.bool_)},
        {"inside": np.ones(N, dtype=np.uint8)},
        {"mean": np.zeros(D, dtype=np.float32)},
        {"loss_curve": np.zeros(3, dtype=np.float32)},
        {"loss_curve": np.zeros((2, 2), dtype=np.float32)},
        {"loss_curve": np.array([["a", "b", "c"]])},
    ],
    ids=lambda change: "{}".format(*change),
)
def test_a_graph_that_does_not_fit_is_refused(saved, refusal, change):
    put_segment(saved, "graph", changed_arrays(saved, "graph", **change))
    assert "is damaged" in refusal(saved)


@pytest.mark.parametrize("mean", [np.zeros(D + 1, dtype=np.float32), np.zeros(D), np.array(["a"] * D), None])
def test_a_mean_that_does_not_fit_is_refused(saved, refusal, mean):
    set_manifest(saved, "preprocess", json.dumps({"kind": "center", "scale": None}))
    put_segment(saved, "graph", changed_arrays(saved, "graph", mean=mean))
    assert "the mean does not fit" in refusal(saved)


@pytest.mark.parametrize(
    "array", [np.zeros((D, D + 1), np.float32), np.eye(D), np.full((D, D), np.nan, np.float32), None]
)
def test_a_whitening_that_does_not_fit_is_refused(saved, refusal, array):
    set_manifest(saved, "preprocess", json.dumps({"kind": "whiten", "scale": None}))
    mean = np.zeros(D, dtype=np.float32)
    put_segment(saved, "graph", changed_arrays(saved, "graph", mean=mean, whitening=array))
    assert "the whitening does not fit" in refusal(saved)


def test_a_graph_that_claims_to_be_huge_is_refused(saved, refusal):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        header = {"descr": "<i8", "fortran_order": False, "shape": (10**15,)}
        member = io.BytesIO()
        np.lib.format.write_array_header_1_0(member, header)
        archive.writestr("nodes.npy", member.getvalue())
    put_segment(saved, "graph", stream.getvalue())
    assert str(segment(saved, "graph")) in refusal(saved)


@pytest.mark.parametrize("role", sorted(FULL))
def test_a_changed_byte_is_found_by_verifying(saved, refusal, role):
    file = segment(saved, role)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert refusal(saved, verify=True) == (f"{file} is damaged: its content differs from the digest that was recorded")


def test_a_segment_that_may_not_be_read_is_refused(saved, refusal, monkeypatch):
    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(version.hashlib, "file_digest", denied)
    assert "Permission denied" in refusal(saved, verify=True)


@pytest.fixture(scope="module")
def victim(pristine, tmp_path_factory, answers):
    """A collection whose files are changed and put right again, and what it answers."""
    path = shutil.copytree(pristine, tmp_path_factory.mktemp("victim") / "c")
    return path, files_of(path), answers(manifind.load(path, verify=True))


def answers_with(path, name, content, answers, verify):
    """What the collection answers, or None where it is refused by name, when one file has another content."""
    before = (path / name).read_bytes()
    tidy(path)
    try:
        (path / name).write_bytes(content)
        return answers(manifind.load(path, verify=verify))
    except CollectionError as error:
        return None if str(path) in error.problem else error
    finally:
        (path / name).write_bytes(before)


@given(data=st.data())
@settings(max_examples=150, derandomize=True)
def test_changed_bytes_change_no_answer_without_being_noticed(victim, answers, data):
    path, files, expected = victim
    name = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[name])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    found = answers_with(path, name, content, answers, verify=True)
    assert found is None or found == expected


def test_changed_bytes_in_the_database_change_no_answer_even_unverified(victim, answers):
    path, files, expected = victim
    rng = random.Random(0)
    in_use = [i for i, byte in enumerate(files[DATABASE]) if byte]  # the rest is mostly empty space
    refused = 0
    for offset in [*range(100), *rng.sample(in_use, 100)]:
        content = bytearray(files[DATABASE])
        content[offset] ^= rng.randrange(1, 256)
        found = answers_with(path, DATABASE, content, answers, verify=False)
        assert found is None or found == expected, offset
        refused += found is None
    assert refused > 60


@pytest.mark.parametrize("role", sorted(FULL))
def test_changed_bytes_in_a_segment_raise_nothing_else_even_unverified(victim, role):
    path, files, _ = victim
    name = str(segment(path, role).relative_to(path))
    rng = random.Random(0)
    for offset in [*range(64), *(rng.randrange(len(files[name])) for _ in range(30))]:
        content = bytearray(files[name])
        content[offset % len(content)] ^= rng.randrange(1, 256)
        assert answers_with(path, name, content, len, verify=False) in (N, None)


@pytest.mark.parametrize("length", [0, 1, 99, 100, 1024, 4095, 4096, 4097, 8192, 16000])
def test_a_database_cut_short_is_refused(victim, answers, length):
    path, files, _ = victim
    assert answers_with(path, DATABASE, files[DATABASE][:length], answers, verify=False) is None


QUESTIONS = {
    "search": lambda collection: collection.search(np.ones((1, D), np.float32)),
    "search_ids": lambda collection: collection.search_ids(collection.ids[:1]),
    "transform": lambda collection: collection.transform(np.ones((1, D), np.float32)),
    "features": lambda collection: collection.features,
    "add": lambda collection: collection.add(np.ones((1, D), np.float32), ["new.jpg"]),
    "export": lambda collection: collection.export(collection.path.with_name("out.npy"), "npy"),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
@given(cut=st.integers(1, N * D * 4), role=st.sampled_from(NPY))
@settings(max_examples=10, derandomize=True)
def test_a_segment_that_is_cut_off_under_an_open_collection_is_refused_by_name(victim, ask, cut, role):
    path, _, _ = victim
    file = segment(path, role)
    before, collection = file.read_bytes(), manifind.load(path)
    try:
        os.truncate(file, len(before) - cut)
        with pytest.raises(
            CollectionError, match=rf"{file.name} is damaged: (it has {len(before) - cut} bytes|its content differs)"
        ):
            ask(collection)
    finally:
        file.write_bytes(before)


def test_a_segment_that_is_replaced_after_it_was_cut_off_is_still_refused_until_it_is_opened_again(saved):
    file = segment(saved, "features")
    before, collection = file.read_bytes(), manifind.load(saved)
    os.truncate(file, 0)
    file.unlink()
    file.write_bytes(before)
    with pytest.raises(CollectionError, match="is damaged: it has 0 bytes"):
        collection.search_ids(collection.ids[:1])
    assert len(manifind.load(saved).search_ids(collection.ids[:1]).ids) == 1


def test_segments_that_are_deleted_under_an_open_collection_change_no_answer(saved, answers):
    collection = manifind.load(saved)
    expected = answers(collection)
    for role in NPY:
        segment(saved, role).unlink()
    assert answers(collection) == expected


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("role", NPY)
def test_what_is_no_number_in_a_segment_is_not_committed_with_an_item_that_is_added(saved, value, role):
    file = segment(saved, role)
    damaged = np.load(file)
    damaged[:] = value
    np.save(file, damaged)
    collection, X = manifind.load(saved), np.random.default_rng(0).random((1, D))
    for change in (
        lambda: collection.add(X, ["new"]),
        lambda: collection.update(collection.ids[:1].tolist(), X),
        lambda: collection.transform(X),
    ):
        with pytest.raises(CollectionError, match=r"is damaged: its .* hold values that are not finite numbers"):
            change()
    assert manifind.load(saved).ids.tolist() == collection.ids.tolist()
