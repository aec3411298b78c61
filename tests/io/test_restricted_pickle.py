"""The reader of pickles: plain values of every protocol come back, and nothing in a pickle is ever run."""

from __future__ import annotations

import collections
import contextlib
import datetime
import functools
import os
import pickle
import pickletools
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from manifind.errors import FileFormatError
from manifind.io import ground_truth
from manifind.io import pickles as restricted_pickle
from manifind.io.ground_truth import read_ground_truth
from manifind.io.pickles import read_plain_pickle

PROTOCOLS = range(6)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8), st.binary(max_size=8)
)
KEYS = st.one_of(SCALARS, st.tuples(SCALARS, st.tuples(SCALARS)))
VALUES = st.recursive(
    st.one_of(SCALARS, st.sets(KEYS, max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple), st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)
ARRAYS = st.one_of(
    arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    for kind in ("?", "i1", ">i2", "<i8", "u4", "f2", ">f4", "f8", "U3", ">U2", "S3")
)


def read(fresh, content):
    return read_plain_pickle(fresh(".pkl", content))


def refused(fresh, content):
    """The problem that a pickle is refused for."""
    path = fresh(".pkl", content)
    with pytest.raises(FileFormatError) as caught:
        read_plain_pickle(path)
    assert str(path) in caught.value.problem
    assert caught.value.hint
    assert len(str(caught.value)) < 1500
    return caught.value.problem


def same(first, second):
    if type(first) is not type(second):
        return False
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return same(list(first.items()), list(second.items()))
    return first == second


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=40)
@given(value=VALUES)
@example(value=["é\n\\\ud800\r\0\x1a", b"", b"\xff\n", 2**100, -(2**100), -1, 255, 256, 65536, -0.0, set()])
@example(value=[list(range(3000)), dict.fromkeys(range(1500), ()), set(range(1500)), "x" * 300])
def test_plain_values_of_every_protocol_come_back(fresh, protocol, value):
    assert same(read(fresh, pickle.dumps(value, protocol)), value)
    assert same(read(fresh, pickletools.optimize(pickle.dumps(value, protocol))), value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=40)
@given(array=ARRAYS, transposed=st.booleans())
def test_arrays_of_every_protocol_come_back_read_only(fresh, protocol, array, transposed):
    array = array.transpose(*np.roll(range(array.ndim), 1)) if transposed and array.ndim else array
    again = read(fresh, pickle.dumps({"array": array}, protocol))["array"]
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == array.tobytes()
    assert not again.flags.writeable


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "scalar", [np.float32(1.5), np.int64(-3), np.bool_(True), np.str_("é"), np.bytes_(b"x"), np.uint8(7)]
)
def test_scalars_of_numpy_come_back_also_as_keys(fresh, protocol, scalar):
    again = read(fresh, pickle.dumps({scalar: scalar}, protocol))
    assert again == {scalar: scalar}
    assert type(next(iter(again))) is type(scalar)


@pytest.mark.parametrize("home", [b"numpy.core", b"numpy._core"])
def test_arrays_of_older_and_newer_numpy_are_known_by_their_names(fresh, home):
    for protocol in (2, 3):
        content = pickle.dumps(np.arange(3), protocol)
        here = content[content.index(b"numpy") :].split(b".multiarray")[0]
        np.testing.assert_array_equal(read(fresh, content.replace(here, home)), np.arange(3))


def test_pickles_of_python_2_come_back_as_text(fresh):
    content = (
        b"\x80\x02}q\x00(U\x03gndq\x01]q\x02(K\x01cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\n"
        b"q\x04K\x00\x85U\x01b\x87R(K\x01K\x02\x85cnumpy\ndtype\nU\x02i2K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff"
        b"\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x04\x01\x00\xff\x01tbeU\x06imlistq\x05]U\x02\xe9xau."
    )
    value = read(fresh, content)
    assert value["imlist"] == ["éx"]
    assert value["gnd"][0] == 1
    np.testing.assert_array_equal(value["gnd"][1], [1, 0x1FF])


def test_text_protocol_of_python_2_is_read(fresh):
    assert read(fresh, b"(dp0\nS'ok'\np1\n(lp2\nI1\naI01\naL5L\naF1.5\nas.") == {"ok": [1, True, 5, 1.5]}


def test_a_value_in_several_places_comes_out_in_each(fresh):
    inner = [1, 2]
    value = read(fresh, pickle.dumps([inner, inner, "name", "name"]))
    assert value == [[1, 2], [1, 2], "name", "name"]
    assert value[0] is not value[1]


class Runs:
    """Pickles as a call of whatever it is given."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


class WithState:
    """Pickles as a class and a state that its method takes."""

    def __setstate__(self, state):
        Path(state).touch()

    def __getstate__(self):
        return "state"


def attacks(mark: str) -> dict[str, bytes]:
    """Pickles that would create the file `mark`, or would import, call or build what is not plain."""
    touch = f"touch {mark}"
    python = f"open({mark!r}, 'w').close()"
    objects = np.empty(1, object)
    objects[0] = Runs(os.system, (touch,))
    calls = {
        "os.system": Runs(os.system, (touch,)),
        "eval": Runs(eval, (python,)),
        "exec": Runs(exec, (python,)),
        "open": Runs(open, (mark, "w")),
        "nested": {"gnd": [{"ok": (1, [Runs(os.system, (touch,))])}]},
        "as a key": {"a": {(1, 2): Runs(eval, (python,))}},
        "in an array": objects,
        "array of objects": np.array([None, "x"], object),
        "partial": functools.partial(os.system, touch),
        "numpy.load": Runs(np.load, (mark,)),
        "class": WithState(),
        "ordered": collections.OrderedDict(a=1),
        "date": datetime.date(2020, 1, 1),
        "complex": 1 + 2j,
        "bytearray": bytearray(b"x"),
        "frozenset": frozenset([1]),
        "function": os.system,
        "type": dict,
        "recarray": np.zeros(2, [("a", "i4")]),
        "dates": np.zeros(2, "M8[s]"),
        "complex array": np.zeros(2, complex),
        "matrix": np.zeros((2, 2)).view(np.matrix),
        "dtype alone": np.dtype("f4"),
        "ndarray alone": np.ndarray,
        "encoder alone": __import__("_codecs").encode,
    }
    found = {
        f"{name}, protocol {protocol}": pickle.dumps(value, protocol)
        for name, value in calls.items()
        for protocol in PROTOCOLS
    }
    line = touch.encode()
    return found | {
        "global, protocol 0": b"cos\nsystem\n(S'" + line + b"'\ntR.",
        "inst": b"(S'" + line + b"'\nios\nsystem\n.",
        "obj": b"(cos\nsystem\nS'" + line + b"'\no.",
        "newobj": b"\x80\x02cos\nsystem\n(S'" + line + b"'\nt\x81.",
        "newobj_ex": b"\x80\x04cos\nsystem\n(S'" + line + b"'\nt}\x92.",
        "getattr": b"cbuiltins\ngetattr\n(cos\nsystem\nS'x'\ntR.",
        "getattr of python 2": b"c__builtin__\ngetattr\n(NS'x'\ntR.",
        "import": b"c__builtin__\n__import__\n(S'os'\ntR.",
        "dotted name": b"\x80\x04\x8c\x08builtins\x8c\x0bset.__class__\x93.",
        "through numpy": b"cnumpy\nos.system\n(S'" + line + b"'\ntR.",
        "through numpy's set": b"\x80\x04\x8c\x05numpy\x8c\x09ndarray.x\x93.",
        "torch": b"ctorch._utils\n_rebuild_tensor_v2\n(tR.",
        "torch storage": b"ctorch\nload\n(S'x'\ntR.",
        "joblib": b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n)R.",
        "computed name": b"\x80\x04\x8c\x02os\x94\x8c\x06system\x940h\x00h\x01\x93\x8c\x01x\x85R.",
        "remembered name": b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x8c\x01x\x85R.",
        "name that is no text": b"\x80\x04K\x01K\x02\x93.",
        "name of bytes": b"\x80\x04C\x02osC\x06system\x93.",
        "build on a dict": b"}(S'__class__'\nI1\nsb}(S'a'\nI1\nsb.",
        "build on a list": b"](I1\ntb.",
        "build on a set": b"\x80\x04\x8f}b.",
        "build on a number": b"I1\n}b.",
        "call of a text": b"S'os.system'\n(S'x'\ntR.",
        "call of a list": b"](tR.",
        "call without a tuple": b"c__builtin__\nset\n]R.",
        "set of a text": b"c__builtin__\nset\n(S'ab'\ntR.",
        "set of lists": b"c__builtin__\nset\n((l]atR.",
        "bytes of a number": b"c__builtin__\nbytes\n(I1000000000\ntR.",
        "encode as rot13": b"c_codecs\nencode\n(Vabc\nVrot13\ntR.",
        "encode as hex": b"c_codecs\nencode\n(Vabc\nVhex_codec\ntR.",
        "persistent": b"P1\n.",
        "binary persistent": b"I1\nQ.",
        "extension": b"\x80\x02\x82\x01.",
        "extension 2": b"\x80\x02\x83\x01\x00.",
        "extension 4": b"\x80\x02\x84\x01\x00\x00\x00.",
        "buffer": b"\x80\x05\x97.",
        "read-only buffer": b"\x80\x05C\x01x\x98.",
        "duplicate": b"]2.",
        "pop": b"]]0.",
        "ndarray called": b"cnumpy\nndarray\n(I1000000000\ntR.",
    }


NAMES = sorted(attacks("mark"))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_plain_is_refused_and_nothing_runs(fresh, name):
    mark = fresh(".mark")
    refused(fresh, attacks(str(mark))[name])
    assert not mark.exists()


def test_the_attacks_would_work_on_a_reader_that_is_not_restricted(fresh):
    mark = fresh(".mark")
    pickle.loads(attacks(str(mark))["eval, protocol 2"])
    assert mark.exists()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (pickle.dumps(Runs(os.system, ("x",))), f"{os.name}.system"),
        (b"cos\nsystem\n(S'x'\ntR.", "os.system"),
        (pickle.dumps(Runs(eval, ("1",))), "builtins.eval"),
        (pickle.dumps(functools.partial(print)), "functools.partial"),
        (b"ctorch\nload\n(S'x'\ntR.", "torch.load"),
    ],
)
def test_the_name_that_a_pickle_asks_for_is_shown(fresh, content, name):
    assert f"it names '{name}'" in refused(fresh, content)


ARRAY = pickle.dumps(np.arange(3, dtype="<i8"), 3)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (ARRAY.replace(b"K\x01K\x03\x85", b"K\x01K\x04\x85"), "24 bytes for an array of shape (4,)"),
        (ARRAY.replace(b"K\x01K\x03\x85", b"K\x01J\xfd\xff\xff\xff\x85"), "an array of shape (-3,)"),
        (ARRAY.replace(b"K\x01K\x03\x85", b"K\x01N\x85"), "an array of shape (None,)"),
        (ARRAY.replace(b"i8", b"O8"), "an array of type 'O8'"),
        (ARRAY.replace(b"i8", b"V8"), "an array of type 'V8'"),
        (ARRAY.replace(b"i8", b"i3"), "an array of type 'i3'"),
        (ARRAY.replace(b"X\x01\x00\x00\x00<", b"X\x01\x00\x00\x00S"), "an array with fields"),
        (ARRAY[: ARRAY.index(b"(K\x01")] + b".", "an array without data"),
        (pickle.dumps(np.array(["ab"]), 3).replace(b"a\0\0\0", b"a\0\xff\xff"), "codec can't decode"),
    ],
)
def test_an_array_that_contradicts_itself_is_refused(fresh, content, problem):
    assert problem in refused(fresh, content)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02})" + b"\x85" * 1_000_000 + b"Ns.",  # crashes Python's own unpickler
        b"\x80\x02)" + b"\x85" * 100_000 + b".",
        b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
        b"\x80\x04\x8f(" + b")" + b"\x85" * 100_000 + b"\x90.",
        b"\x80\x02})" + b"q\x00h\x00\x86" * 60 + b"Ns.",  # as a key, hashed in 2^60 steps
        b"\x80\x02)" + b"q\x00h\x00\x86" * 60 + b".",
        b"\x80\x02]q\x00" + b"(h\x00h\x00eq\x00" * 3 + b".",
        b"\x80\x02]q\x00h\x00a.",
        b"\x80\x02}q\x00Nh\x00s.",
        b"\x80\x02]" + b"".join(b"q\x00](" + b"h\x00" * 10 + b"e" for _ in range(20)) + b".",
        b"\x80\x02]q\x00cnumpy\ndtype\n(h\x00" + b"(h\x00h\x00tq\x00" * 60 + b"tR.",  # shown in a message
    ],
    ids=range(11),
)
def test_nesting_and_sharing_without_end_are_refused_in_good_time(fresh, content):
    refused(fresh, content)


@pytest.mark.parametrize(
    "step",
    [
        b"h\x01h\x02h\x03\x86R",  # the same text, encoded again and again
        b"c__builtin__\nset\nh\x00\x85R",  # the same list, made into sets again and again
    ],
)
def test_the_same_bytes_made_again_and_again_are_refused_without_memory_for_them(fresh, step):
    text = b"X" + (1_000_000).to_bytes(4, "little") + b"x" * 1_000_000
    start = b"\x80\x02(" + b"](" + b"K\x01K\x02" * 1000 + b"eq\x00" + b"c_codecs\nencode\nq\x01" + text + b"q\x02"
    content = start + b"X\x06\x00\x00\x00latin1q\x03" + step * 600 + b"l."
    tracemalloc.start()
    try:
        assert "again and again" in refused(fresh, content)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("content", [b"]p1000000000\n.", b"]r\xff\xff\xff\x7f.", b"]q\xff."])
def test_a_memo_index_beyond_the_size_of_the_file_is_refused(fresh, content):
    assert "remembers a value under the number" in refused(fresh, content)


@pytest.mark.parametrize(
    "content",
    [
        b".",
        b"a.",
        b"t.",
        b"]a.",
        b"q\x00.",
        b"]p-1\n.",
        b"h\x00.",
        b"\x85.",
        b"(.",
        b"]].",
        b"](.",
        b"(I1\nd.",
        b"}I1\ns.",
        b"I1\nI2\na.",
        b"\xff.",
        b"]",
        b"I" + b"9" * 5000 + b"\n.",
        b"F1.2.3\n.",
        b"S'\\xzz'\n.",
        b"Sno quotes\n.",
        b"X\xff\xff\xff\x7fabc.",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
        b"\x8b\xff\xff\xff\xff.",
    ],
)
def test_opcodes_that_make_no_sense_are_refused(fresh, content):
    refused(fresh, content)


SAMPLE = {
    "gnd": [{"ok": np.arange(3), "junk": [1, 2], "bbx": [1.5, 2.5]}, {"ok": (1,), "junk": {2}}],
    "imlist": ["a.jpg", "é", b"x"],
    "scalar": np.float32(1),
    "more": [None, True, 2**40],
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_cut_short_is_refused(fresh, protocol):
    content = pickle.dumps(SAMPLE, protocol)
    assert read(fresh, content)["more"] == SAMPLE["more"]
    path = fresh(".pkl")
    for length in range(1 + protocol, len(content), 5):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError):
            read_plain_pickle(path)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=100)
@given(data=st.data())
def test_a_pickle_changed_anywhere_is_refused_or_read(fresh, protocol, data):
    content = bytearray(pickle.dumps(SAMPLE, protocol))
    edits = st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255))
    for position, byte in data.draw(st.lists(edits, min_size=1, max_size=6)):
        content[position] = byte
    with contextlib.suppress(FileFormatError):
        read(fresh, bytes(content))


@settings(max_examples=300)
@given(opcodes=st.lists(st.sampled_from([code.code.encode("latin-1") for code in pickletools.opcodes])))
def test_opcodes_in_any_order_are_refused_or_read(fresh, opcodes):
    with contextlib.suppress(FileFormatError):
        read(fresh, b"\x80\x04" + b"".join(opcodes) + b".")


def test_a_pickle_that_is_too_large_is_refused(fresh, monkeypatch):
    monkeypatch.setattr(ground_truth, "_LARGEST_FILE", 50)
    with pytest.raises(FileFormatError, match="at most 50"):
        read_ground_truth(fresh(".pkl", pickle.dumps(list(range(100)))))


def test_files_that_are_not_there_or_empty_are_refused(fresh):
    refused(fresh, b"")
    with pytest.raises(FileFormatError, match="does not exist"):
        read_ground_truth(fresh(".pkl"))


def test_memory_that_does_not_suffice_is_an_error_of_ours(fresh, monkeypatch):
    def exhausted(_unpickler):
        raise MemoryError

    monkeypatch.setattr(restricted_pickle._PlainUnpickler, "load", exhausted)
    assert "MemoryError" in refused(fresh, pickle.dumps([]))
