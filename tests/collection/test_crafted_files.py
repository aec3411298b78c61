"""Files cut short at every length, exchanged, of another type, or claiming to be huge: refused, and nothing is lost."""

import hashlib
import io
import itertools
import json
import shutil
import struct
import subprocess
import sys
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import manifind
from collection.crafting import arrays_of, changed_arrays, npy, npy_claiming, set_manifest
from collection.small_collection import D, N, edit, files_of, put_segment, segment, tidy
from collection.test_kept import KEPT
from manifind.collection.format import DATABASE, FULL
from manifind.collection.version import open_version, read_snapshot
from manifind.errors import CollectionError, ManifindError
from manifind.graph.joining import NodeScales
from manifind.text import count

ANSWERING = ["descriptors", "features", "graph"]
REFITTING = ["lengths", "model"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A collection of which every file is small; whoever changes it puts it right again."""
    path = shutil.copytree(KEPT / "version1.gradnet", tmp_path_factory.mktemp("tiny") / "c")
    return path, read_snapshot(path)


def with_content(snapshot, role, content):
    """The same collection with another content for a role, of which size and digest are right."""
    snapshot.segments[role].write_bytes(content)
    digests = {**snapshot.digests, role: hashlib.sha256(content).hexdigest()}
    return replace(snapshot, sizes={**snapshot.sizes, role: len(content)}, digests=digests)


@pytest.mark.parametrize("role", ANSWERING)
def test_a_segment_cut_short_is_refused_at_every_length_even_if_it_was_signed(tiny, role):
    path, snapshot = tiny
    whole = snapshot.segments[role].read_bytes()
    try:
        for length in range(len(whole)):
            with pytest.raises(CollectionError) as refused:
                open_version(with_content(snapshot, role, whole[:length]))
            assert str(path) in refused.value.problem, length
    finally:
        snapshot.segments[role].write_bytes(whole)


@pytest.mark.parametrize("role", REFITTING)
def test_a_segment_cut_short_is_not_refitted_from_at_many_lengths_even_if_it_was_signed(tiny, role):
    path, snapshot = tiny
    collection = manifind.load(path)
    file = snapshot.segments[role]
    whole = file.read_bytes()
    try:
        for length in [*range(0, len(whole), 13), len(whole) - 1]:
            file.write_bytes(whole[:length])
            with pytest.raises(CollectionError) as refused:
                manifind.refit(collection)
            assert str(file) in refused.value.problem, length
    finally:
        file.write_bytes(whole)


@pytest.mark.parametrize("role", sorted(FULL))
def test_a_segment_cut_short_is_refused_by_its_size(tiny, refusal, role):
    path, snapshot = tiny
    file = snapshot.segments[role]
    whole = file.read_bytes()
    try:
        for length in range(0, len(whole), max(1, len(whole) // 25)):
            file.write_bytes(whole[:length])
            assert refusal(path) == f"{file} has {count(length, 'byte')}, and {len(whole):,} were recorded"
    finally:
        file.write_bytes(whole)


@pytest.mark.long
def test_a_database_cut_short_is_refused_at_many_lengths(tiny, refusal):
    path, _ = tiny
    whole = (path / DATABASE).read_bytes()
    lengths = {*range(120), *range(0, len(whole), 97), *range(0, len(whole), 4096), len(whole) - 1}
    try:
        for length in sorted(lengths):
            tidy(path)
            (path / DATABASE).write_bytes(whole[:length])
            assert str(path) in refusal(path), length
    finally:
        tidy(path)
        (path / DATABASE).write_bytes(whole)
    assert len(manifind.load(path, verify=True)) == 13


@pytest.mark.parametrize("pages", [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [1, 5]])
def test_exchanged_pages_of_the_database_are_noticed(tiny, refusal, pages):
    path, _ = tiny
    whole = (path / DATABASE).read_bytes()
    parts = [whole[start : start + 4096] for start in range(0, len(whole), 4096)]
    one, other = pages
    parts[one], parts[other] = parts[other], parts[one]
    try:
        tidy(path)
        (path / DATABASE).write_bytes(b"".join(parts))
        refusal(path)
    finally:
        tidy(path)
        (path / DATABASE).write_bytes(whole)


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(sorted(FULL), 2)))
def test_the_content_of_another_segment_is_refused_where_it_is_needed(living, refusal, one, other):
    put_segment(living, one, segment(living, other).read_bytes())
    if one in ANSWERING:
        assert str(living) in refusal(living)
        return
    with pytest.raises(CollectionError, match=str(living)):
        manifind.refit(manifind.load(living))


@pytest.mark.parametrize("role", sorted(FULL))
def test_a_segment_of_another_collection_is_found_by_verifying(living, other_model, refusal, role, tmp_path):
    other_model.save(tmp_path / "other", [f"{number}" for number in range(N)])
    content = segment(tmp_path / "other", role).read_bytes()
    segment(living, role).write_bytes(content)
    edit(living, "UPDATE segments SET size = ? WHERE role = ?", len(content), role)
    assert str(segment(living, role)) in refusal(living, verify=True)


@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<f2", "<i4", "<u4", "<c8", "|b1", "<U1", "|S4", "|V4", "<M8[s]"])
@pytest.mark.parametrize("role", ["descriptors", "features"])
def test_an_array_of_another_type_is_refused(living, refusal, role, dtype):
    shape = np.load(segment(living, role)).shape
    put_segment(living, role, npy(np.zeros(shape, dtype=dtype)))
    assert str(segment(living, role)) in refusal(living)


@pytest.mark.parametrize(
    "shape", [(), (N,), (N * D,), (N, D, 1), (1, N, D), (0, D), (N, 0), (D, N), (N + 1, D), (N, D + 1)]
)
def test_an_array_of_another_shape_is_refused(living, refusal, shape):
    put_segment(living, "descriptors", npy(np.ones(shape, dtype=np.float32)))
    assert str(segment(living, "descriptors")) in refusal(living)


@pytest.mark.parametrize("name", ["nodes", "inside", "loss_curve"])
@pytest.mark.parametrize("dtype", ["<f8", ">i8", "<u8", "<i2", "<c8", "|b1", "<U3", "|S3"])
def test_an_array_of_the_graph_of_another_type_is_refused(living, refusal, name, dtype):
    wrong = arrays_of(living, "graph")[name].astype(dtype)
    if name == "inside" and dtype == "|b1":
        wrong = wrong[:-1]
    put_segment(living, "graph", changed_arrays(living, "graph", **{name: wrong}))
    refusal(living)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_mean_that_is_no_number_is_refused(living, refusal, value):
    set_manifest(living, "preprocess", json.dumps({"kind": "center", "scale": None}))
    mean = np.full(D, value, dtype=np.float32)
    put_segment(living, "graph", changed_arrays(living, "graph", mean=mean))
    assert "mean" in refusal(living)


@pytest.mark.parametrize(
    "change",
    [
        {"affinity_indices": np.full(5, 10**6, dtype=np.int32)},
        {"affinity_indices": None},
        {"affinity_indptr": np.arange(N + 1, dtype=np.int32)[::-1]},
        {"affinity_indptr": np.array(3)},
        {"affinity_data": np.array(["a", "b"])},
        {"affinity_data": np.zeros((3, 3))},
    ],
    ids=["elsewhere", "nowhere", "backwards", "a number", "texts", "a matrix"],
)
def test_a_graph_that_points_elsewhere_is_refused_where_it_is_used(living, change):
    put_segment(living, "graph", changed_arrays(living, "graph", **change))
    with pytest.raises(CollectionError, match="graph"):
        manifind.measure_drift(manifind.load(living))


@pytest.mark.parametrize("role", ["descriptors", "features", "lengths"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_drift_is_not_measured_where_a_segment_holds_what_is_no_number(living, role, value):
    array = np.load(segment(living, role))
    array[-1, 0] = value
    put_segment(living, role, npy(array))
    with pytest.raises(CollectionError, match=r"is damaged: .*(not finite numbers|is no number)"):
        manifind.measure_drift(manifind.load(living))


@pytest.mark.parametrize("indices", ["too large", "below nothing"])
def test_a_graph_whose_edges_lead_out_of_memory_is_refused(living, indices):
    wrong = arrays_of(living, "graph")["affinity_indices"]
    wrong[len(wrong) // 2] = 2**31 - 1 if indices == "too large" else -(2**31)
    put_segment(living, "graph", changed_arrays(living, "graph", affinity_indices=wrong))
    with pytest.raises(CollectionError, match="graph"):
        manifind.measure_drift(manifind.load(living))


def test_additions_whose_neighbours_are_no_nodes_are_refused(living, refusal):
    nodes = np.arange(0, N, 2)
    scales = {f"node_{name}": arrays_of(living, "graph")[f"node_{name}"][nodes] for name in NodeScales._fields}
    put_segment(living, "graph", changed_arrays(living, "graph", nodes=nodes, **scales))
    assert "neighbours that are no nodes" in refusal(living)


@pytest.mark.parametrize("name", NodeScales._fields)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda scale: scale[:-1],
        lambda scale: scale[:, None],
        lambda scale: scale.astype(np.float64),
        lambda scale: scale - 100,
        lambda scale: scale * np.float32(np.nan),
        lambda scale: scale + np.float32(np.inf),
    ],
    ids=["too few", "of two dimensions", "of another kind", "negative", "no numbers", "infinite"],
)
def test_scales_that_no_nodes_have_are_refused(living, refusal, name, wrong):
    scale = arrays_of(living, "graph")[f"node_{name}"]
    put_segment(living, "graph", changed_arrays(living, "graph", **{f"node_{name}": wrong(scale)}))
    assert name in refusal(living)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("role", ["descriptors", "lengths"])
def test_numbers_that_are_none_are_not_refitted(living, role, value):
    array = np.load(segment(living, role)).copy()
    array[7] = value
    put_segment(living, role, npy(array))
    with pytest.raises(CollectionError, match=str(living)):
        manifind.refit(manifind.load(living))


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
@pytest.mark.parametrize("role", ["descriptors", "features"])
def test_numbers_that_are_none_crash_no_search(living, queries, role, value):
    array = np.load(segment(living, role)).copy()
    array[::2] = value
    put_segment(living, role, npy(array))
    with np.errstate(all="ignore"), suppress(ManifindError):
        ids = manifind.load(living).search(queries, 20).ids
        assert set(ids.ravel()) <= set(manifind.load(living).ids)


def zipped(name, content, method=zipfile.ZIP_DEFLATED, behind=0):
    """A zip file with one member: some content, and many zeros behind it."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(stream, "w", method, compresslevel=1) as archive,
        archive.open(f"{name}.npy", "w", force_zip64=True) as member,
    ):
        member.write(content)
        for start in range(0, behind, 1 << 20):
            member.write(bytes(min(1 << 20, behind - start)))
    return stream.getvalue()


def shared_members(content, n):
    """A zip file whose members all have the same bytes, so that it unpacks to n times what it has."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("m0.npy", content)
        for number in range(1, n):
            info = zipfile.ZipInfo(f"m{number}.npy")
            info.header_offset, info.CRC = archive.filelist[0].header_offset, archive.filelist[0].CRC
            info.file_size = info.compress_size = len(content)
            archive.filelist.append(info)
            archive.NameToInfo[info.filename] = info
            archive._didModify = True
    return stream.getvalue()


def huge_safetensors(shape, end):
    header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(64)


MULTIPLIED = b"{'descr': '<f4', 'fortran_order': False, 'shape': (9**9**9, 6)}".ljust(117) + b"\n"
HUGE = {
    "an array of a million billions": ("descriptors", npy_claiming((10**15, D))),
    "an array as the manifest has it, and no data": ("descriptors", npy_claiming((N, D))),
    "an array too large for any number": ("descriptors", npy_claiming((2**62, 2**62))),
    "an array with a dimension below nothing": ("descriptors", npy_claiming((-1, D))),
    "a header of four billion bytes": ("features", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"),
    "a header of nested brackets": ("features", b"\x93NUMPY\x01\x00\x00\x20" + b"(" * 8192),
    "a header that multiplies": ("features", b"\x93NUMPY\x01\x00\x76\x00" + MULTIPLIED),
    "a graph of a million billions": ("graph", zipped("nodes", npy_claiming((10**15,), "<i8"))),
    "a graph that is packed otherwise": (
        "graph",
        zipped("nodes", npy_claiming((10**5,), "<i8"), zipfile.ZIP_LZMA, 8 * 10**5),
    ),
    "weights of a million billions": ("model", huge_safetensors([10**15], 4 * 10**15)),
    "weights without a number for their size": ("model", huge_safetensors([2**62, 2**62], 64)),
    "weights with a header of all memory": ("model", struct.pack("<Q", 2**60) + b"{}"),
    "weights with a header below nothing": ("model", b"\xff" * 8 + b"{}"),
}
LIMITED = """
import json, resource, sys, warnings
warnings.simplefilter("ignore")
import manifind, manifind.model.refit, faiss
from manifind.errors import CollectionError
manifind.load(sys.argv[1]).search([[1.0] * 6], 3)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (256 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for path in sys.argv[2:]:
    try:
        manifind.refit(manifind.load(path))
        print(json.dumps([path, "taken"]))
    except CollectionError as error:
        print(json.dumps([path, error.problem[:1500]]))
    except BaseException as error:
        print(json.dumps([path, repr(error)[:1500]]))
"""


def refusals_in_little_memory(good, paths):
    """What another process with 256 MB to spare says of collections."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(good), *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux keeps to such a limit")
def test_whatever_size_a_file_claims_it_is_refused_in_little_memory(living, lived_in, tmp_path):
    paths = {}
    growing = {
        "a graph that grows a thousandfold": (
            "graph",
            zipped("nodes", npy_claiming((4 * 10**7,), "<i8"), behind=32 * 10**7),
        ),
        "a graph that counts its bytes many times": ("graph", shared_members(npy(np.zeros(10**5)), 500)),
    }
    for number, (case, (role, content)) in enumerate({**HUGE, **growing}.items()):
        path = paths[case] = shutil.copytree(living, tmp_path / f"huge{number}")
        put_segment(path, role, content)
    for number, shape in enumerate(({"items": 2**39}, {"dimension": 2**39}, {"neighbors": 2**39})):
        path = paths[str(shape)] = shutil.copytree(living, tmp_path / f"shape{number}")
        summary = {"items": N, "dimension": D, "feature_dimension": 30, "neighbors": 3, **shape}
        set_manifest(path, "shape", json.dumps(summary))
        gone = summary["items"] - (N - 2)
        set_manifest(path, "changes", json.dumps({"added": 4, "removed": gone}))
    path = paths["a blob"] = shutil.copytree(living, tmp_path / "blob")
    edit(path, "UPDATE additions SET feature = zeroblob(100000000) WHERE position = 120", sign=False)
    reported = refusals_in_little_memory(lived_in, paths.values())
    for case, path in paths.items():
        assert str(path) in reported[str(path)], (case, reported[str(path)])
        assert "Error(" not in reported[str(path)][:12], (case, reported[str(path)])


def test_a_graph_in_which_more_stands_than_is_needed_is_read_as_far_as_it_is(living, queries):
    expected = manifind.load(living).search(queries, 5).ids.tolist()
    more = {"x": np.zeros(3), "../../y": np.ones(2), "allow_pickle": np.zeros(1)}
    arrays = {**arrays_of(living, "graph"), **more}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", npy(array))
    put_segment(living, "graph", stream.getvalue())
    before = sorted(files_of(living.parent))
    assert manifind.load(living).search(queries, 5).ids.tolist() == expected
    assert sorted(files_of(living.parent)) == before
