"""Indexes that are damaged, foreign or made to harm: made anew where there are vectors, refused where there are not."""

import io
import json
import shutil

import faiss
import numpy as np
import pytest

import manifind
from collection.crafting import arrays_of, change_manifest, changed_arrays, manifest_of, npz, set_manifest
from collection.small_collection import edit, put_segment, segment, tidy
from manifind.collection.version import INDEX_ROLES
from manifind.index import ivf as inverted_file

N, D = 300, 16
ROLES = sorted(INDEX_ROLES.values())


def rows(n, seed):
    return np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)


def items():
    X = rows(N, 0)
    X[[20, 40]] = X[10]  # of several equal items only one is a node
    return X


def answered(collection):
    Q = np.concatenate([rows(5, 1), items()[[7, 40]]])
    found = [collection.search(Q, 5), collection.search_ids([3, 40], 7), collection.search(Q, 4, "part = 1")]
    return [(ranking.ids.tolist(), ranking.scores.tobytes()) for ranking in found]


@pytest.fixture(scope="module", params=["sq8", "pq"])
def coded(request, tmp_path_factory):
    """A full collection searched through codes, the same without the vectors, and what both answer."""
    folder = tmp_path_factory.mktemp("coded")
    quick = {"n_neighbors": 3, "layers": (8, 4), "n_anchors": 4, "max_steps": 1, "batch_size": 8}
    model = manifind.GradNet(**quick, n_components=16, index=request.param, random_state=0).fit(items())
    full = model.save(folder / "full", metadata=[{"part": number % 3} for number in range(N)])
    full.export(folder / "compressed", "compressed", request.param)
    for name in ("full", "compressed"):
        tidy(folder / name)
    return {name: (folder / name, answered(manifind.load(folder / name))) for name in ("full", "compressed")}


@pytest.fixture
def full(coded, tmp_path):
    path, answers = coded["full"]
    return shutil.copytree(path, tmp_path / "c"), answers


@pytest.fixture
def compressed(coded, tmp_path):
    return shutil.copytree(coded["compressed"][0], tmp_path / "c")


def faiss_file(vectors):
    index = faiss.index_factory(vectors.shape[1], "IVF4,SQ8")
    index.train(vectors)
    index.add(vectors)
    return faiss.serialize_index(index).tobytes()


def pickled():
    stream = io.BytesIO()
    np.savez(stream, centres=np.array([{}], dtype=object))
    return stream.getvalue()


FOREIGN = {
    "nothing": b"",
    "noise": bytes(range(256)) * 9,
    "a faiss file": faiss_file(rows(N, 3)),
    "a faiss file of text": b"IwFl" + b"\xff" * 64,
    "another archive": npz(a=np.ones(3)),
    "pickled objects": pickled(),
}
HOSTILE = {
    "no centres": {"centres": None},
    "no codes": {"codes": None},
    "no order": {"order": None},
    "no sizes": {"sizes": None},
    "no quantiser": {"quantiser": None},
    "centres of nobody": {"centres": np.empty((0, D), dtype=np.float32)},
    "centres of doubles": {"centres": np.zeros((7, D))},
    "centres of another width": {"centres": np.zeros((7, D + 1), dtype=np.float32)},
    "centres without a width": {"centres": np.zeros(7, dtype=np.float32)},
    "centres that are one number": {"centres": np.float32(1)},
    "centres that are no numbers": {"centres": np.full((7, D), np.nan, dtype=np.float32)},
    "infinite centres": {"centres": np.full((7, D), np.inf, dtype=np.float32)},
    "centres too far away": {"centres": np.full((7, D), 3e38, dtype=np.float32)},
    "more centres than lists": {"centres": np.zeros((8, D), dtype=np.float32)},
    "more lists than items": {"centres": np.zeros((N + 1, D), dtype=np.float32), "sizes": np.array([N] + [0] * N)},
    "texts for centres": {"centres": np.array(["a"] * 7)},
    "negative sizes": {"sizes": lambda sizes: sizes + np.array([1000] + [-1000] + [0] * (len(sizes) - 2))},
    "sizes too small": {"sizes": lambda sizes: sizes * 0},
    "sizes too large": {"sizes": lambda sizes: sizes + 1},
    "sizes that only seem right": {"sizes": lambda sizes: wrapped(sizes)},
    "sizes of other integers": {"sizes": lambda sizes: sizes.astype(np.int32)},
    "sizes of numbers": {"sizes": lambda sizes: sizes.astype(np.float64)},
    "sizes in a column": {"sizes": lambda sizes: sizes[:, None]},
    "an order that repeats": {"order": lambda order: order * 0},
    "an order of two equal": {"order": lambda order: np.concatenate([order[1:2], order[1:]])},
    "an order below nothing": {"order": lambda order: order - 1},
    "an order that goes too far": {"order": lambda order: order + 1},
    "an order of huge numbers": {"order": lambda order: order + 2**62},
    "an order cut short": {"order": lambda order: order[:-1]},
    "an order of other integers": {"order": lambda order: order.astype(np.uint64)},
    "codes of another width": {"codes": lambda codes: np.hstack([codes, codes])},
    "codes without a width": {"codes": lambda codes: codes[:, 0]},
    "codes of no width": {"codes": lambda codes: codes[:, :0]},
    "codes cut short": {"codes": lambda codes: codes[:-1]},
    "codes of signed bytes": {"codes": lambda codes: codes.view(np.int8)},
    "codes of floats": {"codes": lambda codes: codes.astype(np.float32)},
    "a quantiser of nothing": {"quantiser": np.empty(0, dtype=np.float32)},
    "a quantiser too long": {"quantiser": lambda quantiser: np.concatenate([quantiser, quantiser])},
    "a quantiser of no numbers": {"quantiser": lambda quantiser: quantiser * np.float32(np.nan)},
    "a quantiser without bounds": {"quantiser": lambda quantiser: quantiser * 0 + np.float32(3e38)},
    "a quantiser of doubles": {"quantiser": lambda quantiser: quantiser.astype(np.float64)},
}
WRONG_QUALITY = [
    {"codes": "hnsw"},
    {"codes": None},
    {"codes": ["sq8"]},
    {"n_probes": 0},
    {"n_probes": -1},
    {"n_probes": 10**9},
    {"n_probes": 10**30},
    {"n_probes": 1.5},
    {"n_probes": "all"},
    {"n_probes": None},
    {"n_probes": True},
    {"n_lists": 0},
    {"n_lists": 8},
    {"n_lists": 7.0},
    {"n_lists": 10**30},
    {"n_lists": "x"},
    {"recall": "x"},
    {"recall": None},
    {"recall": -0.1},
    {"recall": 1.5},
    {"bytes_per_item": "x"},
    {"bytes_per_item": 0},
    {"more": 1},
]


def wrapped(sizes):
    """Sizes whose sum is right in 64 bits, and only there."""
    out = np.zeros_like(sizes)
    out[:4] = 2**62
    out[4] = sizes.sum()
    assert out.sum() == sizes.sum()
    return out


def made_hostile(path, role, changes):
    arrays = arrays_of(path, role)
    return {name: change(arrays[name]) if callable(change) else change for name, change in changes.items()}


def put_unsigned(path, role, content):
    """Another content of the same size, so that only its digest tells."""
    size = segment(path, role).stat().st_size
    segment(path, role).write_bytes(content[:size].ljust(size, b"\0"))


def test_an_index_that_was_kept_is_read_and_not_made_anew(full, monkeypatch):
    path, answers = full
    monkeypatch.setattr("manifind.index.ivf._trained", None)
    assert answered(manifind.load(path, verify=True)) == answers


def test_a_compressed_collection_answers_without_vectors(coded, compressed):
    assert answered(manifind.load(compressed, verify=True)) == coded["compressed"][1]


@pytest.mark.parametrize("role", ROLES)
def test_a_missing_index_is_made_anew(full, role):
    path, answers = full
    segment(path, role).unlink()
    assert answered(manifind.load(path)) == answers


@pytest.mark.parametrize("role", ROLES)
def test_an_index_that_the_tables_do_not_name_is_made_anew(full, role):
    path, answers = full
    edit(path, "DELETE FROM segments WHERE role = ?", role)
    assert answered(manifind.load(path)) == answers


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_indexes_cut_short_are_made_anew(full, share, signed):
    path, answers = full
    for role in ROLES:
        content = segment(path, role).read_bytes()
        cut = content[: int(len(content) * share)]
        put_segment(path, role, cut) if signed else segment(path, role).write_bytes(cut)
    assert answered(manifind.load(path)) == answers


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_indexes_are_made_anew_and_never_given_to_faiss(full, case, signed, monkeypatch):
    path, answers = full
    for role in ROLES:
        (put_segment if signed else put_unsigned)(path, role, FOREIGN[case])
    for name in ("read_index", "deserialize_index", "read_index_binary"):
        monkeypatch.delattr(faiss, name, raising=False)
    assert answered(manifind.load(path)) == answers


@pytest.mark.parametrize("case", HOSTILE)
def test_indexes_made_to_harm_are_made_anew(full, case):
    path, answers = full
    for role in ROLES:
        put_segment(path, role, changed_arrays(path, role, **made_hostile(path, role, HOSTILE[case])))
    assert answered(manifind.load(path)) == answers


@pytest.mark.parametrize("lie", WRONG_QUALITY, ids=lambda lie: "{} {}".format(*lie, *lie.values()))
def test_indexes_of_which_nonsense_is_said_are_made_anew(full, lie):
    path, answers = full
    summary = {name: {**quality, **lie} for name, quality in manifest_of(path, "indexes").items()}
    set_manifest(path, "indexes", json.dumps(summary))
    collection = manifind.load(path)
    assert answered(collection) == answers
    assert all(quality["recall"] > 0.9 for quality in collection.index_quality().values())


@pytest.mark.parametrize("value", ["{}", '{"features": null}', '{"descriptors": [], "features": "x"}'])
def test_indexes_of_which_nothing_is_said_are_made_anew(full, value):
    path, answers = full
    set_manifest(path, "indexes", value)
    assert answered(manifind.load(path)) == answers


@pytest.mark.parametrize(("role", "other"), [ROLES, ROLES[::-1]])
def test_the_index_of_something_else_is_made_anew(full, role, other):
    path, answers = full
    put_segment(path, role, segment(path, other).read_bytes())
    assert answered(manifind.load(path)) == answers


@pytest.mark.parametrize("role", [*ROLES, "graph"])
def test_a_compressed_collection_without_a_part_is_refused(compressed, refusal, role):
    segment(compressed, role).unlink()
    assert "is missing" in refusal(compressed)


@pytest.mark.parametrize("role", [*ROLES, "graph"])
def test_a_compressed_collection_that_does_not_name_a_part_is_refused(compressed, refusal, role):
    edit(compressed, "DELETE FROM segments WHERE role = ?", role)
    assert refusal(compressed) == f"{compressed} lacks its {role}"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999])
@pytest.mark.parametrize("role", [*ROLES, "graph"])
def test_a_compressed_collection_with_a_part_cut_short_is_refused(compressed, refusal, role, share):
    content = segment(compressed, role).read_bytes()
    put_segment(compressed, role, content[: int(len(content) * share)])
    refusal(compressed)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("case", FOREIGN)
@pytest.mark.parametrize("role", ROLES)
def test_a_compressed_collection_with_a_foreign_index_is_refused(compressed, refusal, role, case, signed):
    (put_segment if signed else put_unsigned)(compressed, role, FOREIGN[case])
    refusal(compressed)


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("role", ROLES)
def test_a_compressed_collection_with_an_index_made_to_harm_is_refused(compressed, refusal, role, case):
    changes = made_hostile(compressed, role, HOSTILE[case])
    put_segment(compressed, role, changed_arrays(compressed, role, **changes))
    assert "is damaged" in refusal(compressed)


@pytest.mark.parametrize("lie", WRONG_QUALITY, ids=lambda lie: "{} {}".format(*lie, *lie.values()))
def test_a_compressed_collection_of_whose_index_nonsense_is_said_is_refused(compressed, refusal, lie):
    summary = {**manifest_of(compressed, "indexes")["features"], **lie}
    change_manifest(compressed, "indexes", features=summary)
    assert "is damaged" in refusal(compressed)


@pytest.mark.parametrize("value", ["{}", '{"features": null}', '{"descriptors": [], "features": "x"}'])
def test_a_compressed_collection_of_whose_indexes_nothing_is_said_is_refused(compressed, refusal, value):
    set_manifest(compressed, "indexes", value)
    assert "is damaged" in refusal(compressed)


@pytest.mark.parametrize(
    "changes",
    [{"inside": np.arange(N) % 2 == 0}, {"nodes": np.arange(N - 3)}, {"nodes": np.arange(N)}, {"inside": None}],
    ids=["truncated", "fewer nodes", "more nodes", "no inside"],
)
def test_a_compressed_collection_whose_graph_does_not_fit_is_refused(compressed, refusal, changes):
    put_segment(compressed, "graph", changed_arrays(compressed, "graph", **changes))
    assert "is damaged" in refusal(compressed)


@pytest.mark.parametrize("shape", [{"items": N + 1}, {"dimension": D + 1}, {"feature_dimension": 8}], ids=str)
def test_a_compressed_collection_of_another_shape_is_refused(compressed, refusal, shape):
    change_manifest(compressed, "shape", **shape)
    refusal(compressed)


def test_a_full_collection_that_calls_itself_compressed_keeps_to_its_codes(full):
    path, _ = full
    set_manifest(path, "kind", json.dumps("compressed"))
    collection = manifind.load(path)
    assert collection.search(rows(2, 1), 5).ids.shape == (2, 5)
    with pytest.raises(manifind.ManifindError, match="only answers"):
        collection.add(rows(1, 2))


def test_a_compressed_collection_that_calls_itself_full_lacks_its_vectors(compressed, refusal):
    set_manifest(compressed, "kind", json.dumps("full"))
    assert "lacks its descriptors, features, lengths, model" in refusal(compressed)


@pytest.mark.parametrize("role", ROLES)
def test_an_index_is_not_even_opened_where_its_digest_differs(full, role, monkeypatch):
    path, answers = full
    edit(path, "UPDATE segments SET sha256 = ? WHERE role = ?", "0" * 64, role)
    collection, unpack = manifind.load(path), inverted_file.unpack
    unpacked = []
    monkeypatch.setattr(inverted_file, "unpack", lambda *given: unpacked.append(given) or unpack(*given))
    assert answered(collection) == answers
    assert len(unpacked) == 1  # the other one
