"""Conditions on metadata: they mean what they say, and whatever cannot be read is refused with its place."""

import contextlib
import operator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manifind.collection.filters import check_fields, field_kinds, parse_where
from manifind.errors import InputError

ITEM = {
    "year": 1990,
    "price": 12.5,
    "place": "Rome",
    "sold": True,
    "tags": ["red", "blue", 3, True],
    "nothing": None,
    "a b": "with a space",
    "größe": 7,
    "ns:key-1.x": "dotted",
    "not": "a word of ours",
    "x": {"nested": 1},
}


@pytest.mark.parametrize(
    "text",
    [
        "year = 1990",
        "year == 1990",
        "year=1990",
        "  year\t=\n1990  ",
        "year = 1990.0",
        "year = 1.99e3",
        "year = +1990",
        "year != 1991",
        "year > 1989.5",
        "year >= 1990 and year <= 1990",
        "year > -5",
        "year < 1e400",
        f"year < {'9' * 5000}",
        f"year > -{'9' * 5000}",
        "price = 12.5",
        "price > .5",
        "price < 13.",
        "place = 'Rome'",
        'place = "Rome"',
        "place != 'Paris'",
        "place > 'Paris' and place < 'Romeo'",
        r"place = 'R\ome'",
        "place contains 'om'",
        "place contains ''",
        "tags contains 'red'",
        "tags contains 3",
        "tags contains true",
        "sold = true",
        "sold != false",
        "not sold = false",
        "place in ('Paris', 'Rome')",
        "year in (1, 2, 1990.0)",
        "sold in (true)",
        "'a b' = 'with a space'",
        '"place" = "Rome"',
        "'not' = 'a word of ours'",
        "größe = 7",
        "ns:key-1.x = 'dotted'",
        "year = 1 or year = 2 or year = 1990",
        "year = 1 and year = 2 or year = 1990",
        "year = 1990 or year = 1 and year = 2",
        "not (year = 1 or place = 'Paris')",
        "not not year = 1990",
        "((((year = 1990))))",
        "not missing = 1",
        "not x = 1",
    ],
)
def test_what_is_so_is_found(text):
    assert parse_where(text)(ITEM) is True


@pytest.mark.parametrize(
    "text",
    [
        "year = 1991",
        "year = '1990'",
        "year != '1990'",
        "year = true",
        "sold = 1",
        "sold != 1",
        "sold = 'true'",
        "tags contains 'green'",
        "tags contains 1",
        "tags contains '3'",
        "tags = 'red'",
        "year contains 1",
        "place contains 3",
        "missing = 1",
        "missing != 1",
        "missing contains 1",
        "missing in (1, 2)",
        "missing < 5 or missing >= 5",
        "nothing = 'None'",
        "nothing != 1",
        "x != 1",
        "place in ('rome', 'ROME')",
        "(year = 1 or year = 1990) and place = 'Paris'",
        "year = 1990 and not place = 'Rome'",
        "year = 1 and (year = 2 or year = 1990)",
        "Year = 1990",
    ],
)
def test_what_is_not_so_is_not_found(text):
    assert parse_where(text)(ITEM) is False


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("year", "it ends"),
        ("year =", "it ends"),
        ("year = and", "there is 'and'"),
        ("year = 1 year = 2", "there is 'year = 2'"),
        ("year = 1)", "there is ')'"),
        ("(year = 1", "it ends"),
        ("()", "there is ')'"),
        ("year in 5", "there is '5'"),
        ("year in ()", "there is ')'"),
        ("year in (1,)", "there is ')'"),
        ("year in (1 2)", "there is '2)'"),
        ("year = x", "there is 'x'"),
        ("1 = year", "there is '1 = year'"),
        ("and = 1", "there is 'and = 1'"),
        ("true = 1", "there is 'true = 1'"),
        ("not", "it ends"),
        ("or year = 1", "there is 'or year = 1'"),
        ("year = 1 and", "it ends"),
        ("year AND place", "there is 'AND place'"),
        ("'place'", "there is \"'place'\""),
        ("year not in (1)", "there is 'not in (1)'"),
        ("year <> 1", "there is '> 1'"),
    ],
)
def test_a_mistake_is_shown_where_it_is(text, place):
    with pytest.raises(InputError) as refused:
        parse_where(text)
    assert place in refused.value.problem
    assert "year >= 1990 and place = 'Rome'" in refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n",
        None,
        5,
        b"year = 1",
        ["year = 1"],
        "year = 'Rome",
        "year = \"Rome'",
        "year = 1; DROP TABLE items",
        "year = 1 -- x",
        "__import__('os').system('true')",
        "year = 1.2.3",
        "year = 5x",
        "year = 0x10",
        "year = 1e",
        "year = #",
        "year & 1",
        "{'a': 1}",
        "year = \ud800",
        "year = \0",
        "x" * 10_001,
        "year = 1 " * 2000,
        "1" * 9990 + "x",
        "'" + "\\a" * 4990,
        "(" * 5000,
        "not " * 2400 + "year = 1",
        "((((((((((" * 6 + "year = 1" + "))))))))))" * 6,
    ],
)
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(InputError) as refused:
        parse_where(text)
    assert len(str(refused.value)) < 1500


def test_fifty_levels_are_read_and_a_long_list_of_conditions_too():
    assert parse_where("(" * 50 + "year = 1990" + ")" * 50)(ITEM)
    assert parse_where("not " * 50 + "year = 1990")(ITEM)
    assert parse_where(" or ".join(["year = 1"] * 800) + " or year = 1990")(ITEM)
    assert parse_where(f"year in ({', '.join(map(str, range(1500, 1991)))})")(ITEM)


def test_a_text_may_hold_quotes_and_anything_else_behind_a_backslash():
    for value in ["it's", 'say "x"', "back\\slash", "\\'", "and or not", ")(", "猫 🐱", " ", ""]:
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        assert parse_where(f"place = '{escaped}'")({"place": value})
        doubled = value.replace("\\", "\\\\").replace('"', '\\"')
        assert parse_where(f'place = "{doubled}"')({"place": value})


NAMES = ["year", "place", "a b", "größe", "not", "x'y", "1st", "in"]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.none() | st.booleans() | NUMBERS | TEXTS
METADATA = st.dictionaries(st.sampled_from(NAMES), PLAIN | st.lists(PLAIN, max_size=3))
COMPARED = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
VALUES = st.booleans() | NUMBERS | TEXTS


def conditions_of(values):
    """Trees: ("=", name, value), ("in", name, values), ("not", tree), ("and", trees)."""
    compared = st.tuples(st.sampled_from([*COMPARED, "contains"]), st.sampled_from(NAMES), values)
    listed = st.tuples(st.just("in"), st.sampled_from(NAMES), st.lists(values, min_size=1, max_size=3))

    def deeper(trees):
        several = st.lists(trees, min_size=2, max_size=3)
        return st.tuples(st.just("not"), trees) | st.tuples(st.sampled_from(["and", "or"]), several)

    return st.recursive(compared | listed, deeper, max_leaves=8)


def conditions():
    return conditions_of(VALUES)


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def shown(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else repr(value)


def rendered(tree):
    sign, *rest = tree
    if sign == "not":
        return f"not ({rendered(rest[0])})"
    if sign in ("and", "or"):
        return f" {sign} ".join(f"({rendered(part)})" for part in rest[0])
    if sign == "in":
        return f"{quoted(rest[0])} in ({', '.join(map(shown, rest[1]))})"
    return f"{quoted(rest[0])} {sign} {shown(rest[1])}"


def kind(value):
    return {bool: "truth", int: "number", float: "number", str: "text"}.get(type(value), "other")


def holds(tree, item):
    sign, *rest = tree
    if sign == "not":
        return not holds(rest[0], item)
    if sign in ("and", "or"):
        return (all if sign == "and" else any)(holds(part, item) for part in rest[0])
    if rest[0] not in item:
        return False
    own, value = item[rest[0]], rest[1]
    if sign == "in":
        return any(kind(own) == kind(one) and own == one for one in value)
    if sign == "contains" and isinstance(own, str):
        return isinstance(value, str) and value in own
    if sign == "contains":
        return isinstance(own, list) and any(kind(one) == kind(value) and one == value for one in own)
    return kind(own) == kind(value) and COMPARED[sign](own, value)


def answered_or_refused(text, item):
    """Whether a text answers for an item with yes or no, or is refused in few words; nothing else is raised."""
    try:
        return parse_where(text)(item) in (True, False)
    except InputError as error:
        return len(str(error)) < 1500


@given(tree=conditions(), items=st.lists(METADATA, min_size=1, max_size=4))
@settings(max_examples=300, derandomize=True)
def test_any_condition_is_what_its_parts_are(tree, items):
    condition = parse_where(rendered(tree))
    for item in items:
        assert condition(item) == holds(tree, item)


@given(tree=conditions(), item=METADATA, cut=st.integers(0, 60), junk=st.sampled_from(["", "(", ")", "'", "not"]))
@settings(max_examples=200, derandomize=True)
def test_a_condition_that_was_cut_or_spoilt_is_read_or_refused(tree, item, cut, junk):
    text = rendered(tree)
    spoilt = text[:cut] + junk + text[cut + 1 :]
    assert answered_or_refused(spoilt, item)


WORDS = st.sampled_from(["and", "or", "not", "in", "contains", "(", ")", ",", "=", "<", "year", "'a'", "1", "true"])


@given(text=st.text(max_size=40) | st.lists(WORDS, max_size=12).map(" ".join))
@example(text="'\\\n' = 1")
@example(text="a='\\")
@example(text="x = ٣")
@example(text="² = 1")
@example(text="x = 1²")
@example(text="\x1c")
@example(text="'' = ''")
@settings(max_examples=300, derandomize=True)
def test_any_text_is_a_condition_or_an_error_of_ours(text):
    assert answered_or_refused(text, {"year": 1, "a": "1"})


SAID = [
    {"year": 1990, "place": "Rome", "sold": True, "tags": ["red", 3], "nothing": None, "both": 1},
    {"year": 12.5, "taken": "2019-07-31", "both": "one", "a b": 1},
    {},
]


def test_the_kinds_of_a_field_are_those_of_all_its_values():
    assert field_kinds(SAID) == {
        "year": {"number"}, "place": {"text"}, "sold": {"truth"}, "tags": {"list", "texts", "numbers"},
        "nothing": set(), "both": {"number", "text"}, "taken": {"text"}, "a b": {"number"},
    }  # fmt: skip
    assert field_kinds([]) == field_kinds([{}]) == {}


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("takn >= '2019'", "no item has a metadata field 'takn'; there are 'a b', both, nothing,", "'taken'"),
        ("Year = 1", "no item has a metadata field 'Year'", "did you mean 'year'?"),
        ("not missing = 1", "no item has a metadata field 'missing'", "filter by one of these"),
        ("year = 1 or (place = 'x' and not yaer in (1, 2))", "field 'yaer'", "did you mean 'year'?"),
        ("'' = 1", "no item has a metadata field ''", "filter by one of these"),
        ("year >= 'a'", "year holds numbers, and the filter compares it with the text 'a'", "year >= 1990"),
        ("place = 5", "place holds texts, and the filter compares it with the number 5", "place = 'Rome'"),
        ("place in ('Rome', 5)", "compares it with the number 5", "place = 'Rome'"),
        ("place = true", "place holds texts, and the filter compares it with true", "place = 'Rome'"),
        ("sold = 1", "sold holds true or false, and the filter compares it with the number 1", "sold = true"),
        ("tags = 'red'", "tags holds lists, and the filter compares it with the text 'red'", "tags contains 'red'"),
        ("both = true", "both holds numbers and texts, and the filter compares it with true", "both >= 1990"),
        ("place contains 3", "place holds texts, and the filter looks in it for the number 3", "place = 'Rome'"),
        ("year contains 1", "year holds numbers, and the filter looks in it for the number 1", "year >= 1990"),
        ("'a b' = 'x'", "field 'a b' holds numbers", "'a b' >= 1990"),
        ("nothing = 1", "the metadata field nothing has no value in any item", "leave that part"),
    ],
)
def test_a_comparison_that_can_hold_of_no_item_is_refused_with_what_there_is(text, problem, hint):
    with pytest.raises(InputError) as refused:
        check_fields(parse_where(text), field_kinds(SAID))
    assert problem in refused.value.problem
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    "text",
    ["year > 3000", "both = 1 and both = 'one'", "tags contains 'blue' or tags contains 7", "place contains 'x'"],
)
def test_a_comparison_that_happens_to_hold_of_no_item_is_none_to_refuse(text):
    check_fields(parse_where(text), field_kinds(SAID))


def test_where_nothing_is_said_of_any_item_that_is_told():
    with pytest.raises(InputError, match="no item has any metadata"):
        check_fields(parse_where("year = 1"), {})


def test_of_many_fields_a_dozen_is_named_and_the_nearest_of_all():
    known = {f"field {number:03}": {"text"} for number in range(500)} | {"x" * 5000: {"text"}}
    with pytest.raises(InputError) as refused:
        check_fields(parse_where("'field_499' = 'a'"), known)
    assert refused.value.problem.endswith("'field 011' and 489 more")
    assert refused.value.hint == "did you mean 'field 499'?"
    with pytest.raises(InputError) as refused:
        check_fields(parse_where(f"{'y' * 9000} = 1"), known)
    assert len(str(refused.value)) < 1500


@given(tree=conditions(), items=st.lists(METADATA, min_size=1, max_size=4))
@settings(max_examples=300, derandomize=True)
def test_a_condition_is_never_refused_where_each_of_its_comparisons_holds_of_some_item(tree, items):
    def leaves(tree):
        sign, *rest = tree
        if sign in ("and", "or"):
            return [leaf for part in rest[0] for leaf in leaves(part)]
        if sign == "in":
            return [("=", rest[0], value) for value in rest[1]]
        return leaves(rest[0]) if sign == "not" else [tree]

    if all(any(holds(leaf, item) for item in items) for leaf in leaves(tree)):
        check_fields(parse_where(rendered(tree)), field_kinds(items))
    else:
        with contextlib.suppress(InputError):
            check_fields(parse_where(rendered(tree)), field_kinds(items))
