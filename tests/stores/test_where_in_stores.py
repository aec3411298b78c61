"""A condition selects in each database the rows that it selects in a collection, or is refused by name."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from collection.test_filters import NAMES, conditions_of, rendered
from manifind.collection.filters import parse_where
from manifind.errors import InputError

TEXTS = ["", "a", "A", "ab", "b", "Rome", "rome", "é", "e\u0301", "猫", "🐱", "\uffff", "'", '"', "\\", "%", "_", "a%b",
         "true", "1", "\n", "\x01", "{}", "$1"]  # fmt: skip
NUMBERS = [0, 1, -1, 3, 1990, 0.5, 0.1, -0.0, 1.0, 2**53, -(2**53), 2.0**53, 2.0**60, 1e22, 1e23, 1e300, -1e300, 5e-324,
           0.30000000000000004, 123456789.125]  # fmt: skip
LARGE = [2**53 + 1, 2**60, 2**60 + 1, 10**22, 10**23, -(10**30), 2**1000]
VALUES = [*TEXTS, *NUMBERS, True, False, None]
SIGNS = ["=", "!=", "<", "<=", ">", ">="]
# A condition may speak of any number, also of those that no double is and of those beyond all doubles.
TREES = conditions_of(
    st.sampled_from([value for value in VALUES if value is not None] + [*LARGE, 10**400, -(10**400), 2**53 + 3])
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)
)


def metadata_of(large):
    """Rows that say every value under one name, and a few hundred that say several things."""
    rng, values = np.random.default_rng(0), [*VALUES, *(LARGE if large else [])]
    rows = [{"year": value} for value in values] + [{"year": [value]} for value in values] + [{}, {"year": []}]
    for _ in range(150):
        names = [NAMES[i] for i in rng.choice(len(NAMES), size=3, replace=False)]
        drawn = [values[i] for i in rng.integers(len(values), size=6)]
        rows.append({names[0]: drawn[0], names[1]: drawn[1:4], names[2]: drawn[5]})
    return rows


@pytest.fixture(scope="module")
def described(database, server):
    """A store of rows, and what they say."""
    from manifind.stores.store import Shape

    rows = metadata_of(large="postgres" in type(server).__name__.lower())
    store = database.create("described", Shape(2, "cosine", "number"))
    store.upsert(range(len(rows)), np.ones((len(rows), 2)), rows)
    return store, rows


def selected(store, rows, where):
    return sorted(store.search(np.ones((1, 2)), len(rows), where).ids[0].tolist())


def wanted(rows, where):
    condition = parse_where(where)
    return [row for row, fields in enumerate(rows) if condition(fields)]


def test_every_value_compares_with_every_other_as_in_a_collection(described):
    store, rows = described
    values = [value for value in VALUES if value is not None] + LARGE
    for sign, value in itertools.product(SIGNS, values):
        where = rendered((sign, "year", value))
        assert selected(store, rows, where) == wanted(rows, where), where


def test_what_is_contained_is_as_in_a_collection_or_refused(described, server):
    store, rows = described
    for value in [value for value in VALUES if value is not None] + LARGE:
        where = rendered(("contains", "year", value))
        if type(server).__name__ == "MilvusServer" and isinstance(value, str) and set(value) & set("%_\\"):
            with pytest.raises(InputError, match="which Milvus cannot be asked"):
                store.count(where)
        else:
            assert selected(store, rows, where) == wanted(rows, where), where


def speaks_of_patterns(tree):
    sign, *rest = tree
    if sign == "not":
        return speaks_of_patterns(rest[0])
    if sign in ("and", "or"):
        return any(map(speaks_of_patterns, rest[0]))
    return sign == "contains" and isinstance(rest[1], str) and bool(set(rest[1]) & set("%_\\"))


@given(tree=TREES)
@example(tree=("not", (">", "missing", 1)))
@example(tree=("not", ("!=", "year", True)))
@example(tree=("<", "year", float(2**53 + 2)))
@settings(max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_condition_selects_what_it_selects_in_a_collection(described, server, tree):
    store, rows = described
    where = rendered(tree)
    if type(server).__name__ == "MilvusServer" and speaks_of_patterns(tree):
        with pytest.raises(InputError, match="cannot be asked"):
            store.count(where)
    else:
        assert selected(store, rows, where) == wanted(rows, where)
        assert store.count(where) == len(wanted(rows, where))


@pytest.mark.parametrize("where", ["year = 'a\0b'", "year < '\ud800'", "year contains '\0'"])
def test_a_text_that_no_database_keeps_is_refused(described, where):
    with pytest.raises(InputError, match=r"no valid text, which .* cannot be asked"):
        described[0].count(where)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_nobody_can_have_is_refused_or_found_nowhere(described, server, name):
    store, where = described[0], f"'{name}' = 1"
    if type(server).__name__ == "PostgresServer":
        with pytest.raises(InputError, match="no valid text"):
            store.count(where)
    else:
        assert store.count(where) == 0


@pytest.mark.parametrize("name", ["", "never", "%", "said", "number"])
def test_a_name_that_nobody_has_is_found_nowhere(described, name):
    assert described[0].count(f"'{name}' = 1 or '{name}' contains 'x'") == 0


@pytest.mark.parametrize("where", ["", "year =", "1 = year", "year = 1; DROP TABLE described", 5])
def test_what_is_no_condition_is_refused_as_everywhere(described, where):
    store, rows = described
    for ask in (store.count, lambda where: store.search(np.ones((1, 2)), 3, where)):
        with pytest.raises(InputError, match="where = "):
            ask(where)
    assert store.count() == len(rows)


def test_hundreds_of_conditions_are_asked_at_once(described):
    store, rows = described
    many = f"year in ({', '.join(map(str, range(1700, 1991)))}) or {' or '.join(['year = 1'] * 300)}"
    assert selected(store, rows, many) == wanted(rows, many)
    deep = "(" * 45 + "not " * 5 + "year = 1" + ")" * 45
    assert selected(store, rows, deep) == wanted(rows, deep)
