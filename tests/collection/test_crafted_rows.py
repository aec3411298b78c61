"""Items, additions and segments that lie, signed as if they were ours: each is refused by name."""

import hashlib
import json
import sqlite3
import struct
from contextlib import suppress

import numpy as np
import pytest

import manifind
from collection.crafting import rows_of, set_manifest
from collection.small_collection import NAMES, D, N, edit, random_rows, segment
from manifind.collection.format import FULL
from manifind.errors import CollectionError, InputError

LAST = N + 4  # the position of the last that came later
WIDTHS = {"descriptor": D, "feature": 30, "neighbours": 3, "distances": 3}


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def integers(*values):
    return struct.pack(f"<{len(values)}q", *values)


WRONG_ITEMS = {
    "a number among texts": ("UPDATE items SET id = 5 WHERE position = 7", []),
    "a broken number": ("UPDATE items SET id = 2.5 WHERE position = 7", []),
    "only broken numbers": ("UPDATE items SET id = position + 0.5", []),
    "bytes": ("UPDATE items SET id = ? WHERE position = 7", [b"a"]),
    "bytes of no text": ("UPDATE items SET id = CAST(? AS TEXT) WHERE position = 7", [b"\xff\xfe"]),
    "a lone surrogate": ("UPDATE items SET id = CAST(? AS TEXT) WHERE position = 7", [b"\xed\xa0\x80"]),
    "metadata of bytes": ("UPDATE items SET metadata = ? WHERE position = 7", [b"{}"]),
    "metadata of no text": ("UPDATE items SET metadata = CAST(? AS TEXT) WHERE position = 7", [b"\xff"]),
    "before the first": ("UPDATE items SET position = -1 WHERE position = 0", []),
    "long before the first": ("UPDATE items SET position = ? WHERE position = 0", [-(2**63)]),
    "a fitted item behind the fitted": ("UPDATE items SET position = 500 WHERE position = 7", []),
    "a fitted item at the end of numbers": ("UPDATE items SET position = ? WHERE position = 7", [2**63 - 1]),
    "an item too few": ("DELETE FROM items WHERE position = 7", []),
    "an added item too few": ("DELETE FROM items WHERE position = 120", []),
    "no items at all": ("DELETE FROM items", []),
    "an item too many": ("INSERT INTO items VALUES (3, 'x', NULL)", []),
    "an added item too many": ("INSERT INTO items VALUES (500, 'x', NULL)", []),
    "an item of another place": ("UPDATE items SET position = 3 WHERE position = 120", []),
    "an added item elsewhere": ("UPDATE items SET position = 130 WHERE position = 120", []),
}
WRONG_ADDITIONS = {
    "one too few": ("DELETE FROM additions WHERE position = 120", []),
    "none": ("DELETE FROM additions", []),
    "one too many": ("INSERT INTO additions SELECT 500, length, descriptor, feature, neighbours, distances "
                     "FROM additions WHERE position = 120", []),
    "one for a fitted item": ("UPDATE additions SET position = 5 WHERE position = 120", []),
    "one before the first": ("UPDATE additions SET position = -5 WHERE position = 120", []),
    "one elsewhere": ("UPDATE additions SET position = 130 WHERE position = 120", []),
}  # fmt: skip
WRONG_VALUES = {
    "length": ["x", b"1234", "", float("inf"), -1.0, 0.0, 1e300, -float("inf")],
    "descriptor": [floats(*[0.1] * (D - 1), np.nan), floats(*[np.inf] * D), floats(*[0.1] * (D - 1))],
    "feature": [floats(*[0.1] * 29, np.nan), floats(-np.inf, *[0.1] * 29), floats(*[0.1] * 31)],
    "distances": [floats(0.1, 0.2, np.nan), floats(-0.1, 0.2, 0.3), floats(0.1, 0.2, 0.3, 0.4)],
    "neighbours": [
        integers(1, 2, -1),
        integers(1, 2, N),
        integers(2**63 - 1, 1, 2),
        integers(-(2**63), 1, 2),
        integers(1, 2),
        integers(1, 2, 3, 4),
    ],
}
NO_BLOB = ["x", "", 5, 2.5, b"", b"\0", b"\xff" * 7, bytes(1 << 20)]


def refused_after(path, refusal, statement, values):
    with suppress(TypeError, sqlite3.OperationalError):  # what is no text cannot be signed, and stands there
        edit(path, statement, *values)
    refusal(path)


@pytest.mark.parametrize("case", WRONG_ITEMS)
def test_items_that_no_collection_has_are_refused(living, refusal, case):
    refused_after(living, refusal, *WRONG_ITEMS[case])


@pytest.mark.parametrize("case", WRONG_ADDITIONS)
def test_additions_without_their_items_and_items_without_their_additions_are_refused(living, refusal, case):
    refused_after(living, refusal, *WRONG_ADDITIONS[case])


@pytest.mark.parametrize(
    ("column", "value"),
    [(column, value) for column in WRONG_VALUES for value in WRONG_VALUES[column]]
    + [(column, value) for column in WIDTHS for value in NO_BLOB],
    ids=lambda value: repr(value)[:30],
)
def test_an_addition_that_nobody_could_have_made_is_refused(living, refusal, column, value):
    refused_after(living, refusal, f"UPDATE additions SET {column} = ? WHERE position = {LAST}", [value])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE items SET id = 'x' || id",
        "UPDATE items SET metadata = NULL WHERE position = 7",
        "UPDATE additions SET length = 9",
        "UPDATE additions SET feature = zeroblob(length(feature))",
    ],
)
def test_rows_that_differ_from_their_digest_are_refused(living, refusal, statement):
    edit(living, statement, sign=False)
    assert "differ from the digest" in refusal(living)


WRONG_SEGMENTS = {
    "a role that nobody knows": ("UPDATE segments SET role = 'code' WHERE role = 'features'", []),
    "a role in capitals": ("UPDATE segments SET role = 'Features' WHERE role = 'features'", []),
    "a role of bytes": ("UPDATE segments SET role = ? WHERE role = 'features'", [b"features"]),
    "no role": ("UPDATE segments SET role = '' WHERE role = 'features'", []),
    "a role of SQL": ("UPDATE segments SET role = ? WHERE role = 'features'", ["'; DROP TABLE items;--"]),
    "a role that is a path": ("UPDATE segments SET role = '../segments/features' WHERE role = 'features'", []),
    "one role more": ("INSERT INTO segments VALUES ('x', 'x-0123456789abcdef.npy', 1, '')", []),
    "a name of bytes": ("UPDATE segments SET name = CAST(name AS BLOB) WHERE role = 'features'", []),
    "a name of no text": ("UPDATE segments SET name = CAST(? AS TEXT) WHERE role = 'features'", [b"\xff"]),
    "a name with a null": ("UPDATE segments SET name = name || char(0) WHERE role = 'features'", []),
    "a name with a null inside": (
        "UPDATE segments SET name = 'features-' || char(0) || '.npy' WHERE role = 'features'",
        [],
    ),
    "a name of SQL": ("UPDATE segments SET name = ? WHERE role = 'features'", ["'; DROP TABLE items;--"]),
    "a long name": ("UPDATE segments SET name = ? WHERE role = 'features'", ["x" * 100_000]),
    "a name that leads up": ("UPDATE segments SET name = '../' || name WHERE role = 'features'", []),
    "a name from the root": ("UPDATE segments SET name = '/' || name WHERE role = 'features'", []),
    "a name of a home": ("UPDATE segments SET name = '~/' || name WHERE role = 'features'", []),
    "a name with another separator": ("UPDATE segments SET name = '..\\' || name WHERE role = 'features'", []),
    "a file that is not there": (
        "UPDATE segments SET name = 'features-0123456789abcdef.npy' WHERE role = 'features'",
        [],
    ),
    "an empty file": ("UPDATE segments SET size = 0", []),
    "a size below nothing": ("UPDATE segments SET size = -1", []),
    "a huge size": ("UPDATE segments SET size = ?", [2**62]),
    "a broken size": ("UPDATE segments SET size = size + 0.5", []),
    "a size in words": ("UPDATE segments SET size = 'many'", []),
    "a size of bytes": ("UPDATE segments SET size = ?", [b"1234"]),
    "a digest of bytes": ("UPDATE segments SET sha256 = ?", [b"1234"]),
    "no segments": ("DELETE FROM segments", []),
}


@pytest.mark.parametrize("case", WRONG_SEGMENTS)
def test_segments_that_no_collection_has_are_refused(living, refusal, case):
    refused_after(living, refusal, *WRONG_SEGMENTS[case])


@pytest.mark.parametrize("digest", ["", "0" * 64, "x", "é"])
@pytest.mark.parametrize("role", sorted(FULL))
def test_a_digest_that_is_none_is_found_by_verifying(living, refusal, role, digest):
    edit(living, "UPDATE segments SET sha256 = ? WHERE role = ?", digest, role)
    assert str(segment(living, role)) in refusal(living, verify=True)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "5", '"x"', "null", "[" * 100_000, "9" * 5000, '{"year": NaN}', '{"year": -Infinity}'],
    ids=lambda text: text[:20],
)
def test_metadata_that_is_none_is_refused_when_it_is_asked_for(living, queries, text):
    edit(living, "UPDATE items SET metadata = ? WHERE position = 7", text)
    collection = manifind.load(living)
    assert collection.search(queries, 3).ids.shape == (7, 3)
    for ask in (lambda: collection.search(queries, 3, "year > 3"), lambda: collection.metadata([NAMES[7]])):
        with pytest.raises(CollectionError, match=r"metadata in .* is damaged") as refused:
            ask()
        assert str(living) in refused.value.problem


def test_nested_and_foreign_metadata_satisfies_nothing_and_harms_nothing(living, queries):
    nested = json.dumps({"year": {"year": [[1901]]}, "a b": [1, "x"], "x'); DROP TABLE items;--": 1})
    edit(living, "UPDATE items SET metadata = ? WHERE position = 7", nested)
    collection = manifind.load(living)
    assert NAMES[7] not in collection.search(queries, 50, "year < 3000").ids
    assert collection.search(queries[:1], 50, "'a b' contains 'x'").ids.tolist() == [[NAMES[7]]]


@pytest.mark.parametrize("position", [500, 2**40, 2**63 - 1])
def test_a_position_far_behind_the_others_does_no_harm(living, lived_in, queries, refusal, position):
    for table in ("items", "additions"):
        edit(living, f"UPDATE {table} SET position = {position} WHERE position = 124")
    set_manifest(living, "next_position", str(position))
    assert f"at least {position + 1} was expected" in refusal(living)
    set_manifest(living, "next_position", str(position + 1))
    collection = manifind.load(living)
    assert collection.search(queries, 9).ids.tolist() == manifind.load(lived_in).search(queries, 9).ids.tolist()
    collection.remove(["late/4.jpg"])
    assert manifind.load(living).ids.tolist() == manifind.load(lived_in).ids.tolist()[:-1]
    if position < 2**63 - 1:
        collection.add(random_rows(1, 8), ["new"])
        assert manifind.load(living).ids[-1] == "new"


HOSTILE_IDS = [
    "x'); DROP TABLE items;--",
    '"; DELETE FROM manifest; --',
    "' OR '1'='1",
    "%",
    "_",
    "*",
    "?",
    ":id",
    "$id",
    "../../etc/passwd",
    "NULL",
    "1",
    "1.0",
    "0x10",
    "a\nb",
    "\t",
    "🐱",
    "ß",
    "SS",
    "É",
    "e\u0301",
    "\u202eabc",
    "x" * 4096,
]


def test_whatever_a_user_calls_an_item_is_nothing_but_its_name(saved):
    collection = manifind.load(saved)
    rows = random_rows(len(HOSTILE_IDS), 11)
    assert collection.add(rows, HOSTILE_IDS, [{name[:40]: name} for name in HOSTILE_IDS]) == HOSTILE_IDS
    for opened in (collection, manifind.load(saved, verify=True)):
        assert opened.search(rows, 1).ids[:, 0].tolist() == HOSTILE_IDS
        assert opened.search_ids(HOSTILE_IDS, 1).ids[:, 0].tolist() == HOSTILE_IDS
        assert [next(iter(fields.values())) for fields in opened.metadata(HOSTILE_IDS)] == HOSTILE_IDS
    for name in HOSTILE_IDS:
        collection.update([name], metadata=[{"was": name}])
        collection.remove([name])
        with pytest.raises(InputError, match="no item with the id"):
            collection.remove([name])
    assert manifind.load(saved).ids.tolist() == NAMES
    assert rows_of(saved, "SELECT count(*) FROM additions") == [(0,)]


def test_ids_that_differ_only_for_people_are_different_items(saved):
    twins = ["É", "E\u0301", "é", "A", "a", " a", "a ", "1", "01", "1.0"]
    collection = manifind.load(saved)
    collection.add(random_rows(len(twins), 12), twins)
    collection.remove(twins[1:2])
    assert set(manifind.load(saved).ids) - set(NAMES) == set(twins) - {twins[1]}


def test_a_content_that_somebody_replaced_is_found_by_its_digest(living, refusal):
    for role in sorted(FULL):
        file = segment(living, role)
        before = file.read_bytes()
        file.write_bytes(hashlib.sha256(before).digest() * (len(before) // 32) + bytes(len(before) % 32))
        assert str(file) in refusal(living, verify=True)
        file.write_bytes(before)
