"""Ids as people type them: one reading for the command line and for the page."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import manifind
from collection.small_collection import NAMES, random_rows
from manifind.collection.ids import parse_id
from manifind.errors import InputError
from manifind.text import closest

TOO_LARGE = [str(2**63), str(-(2**63) - 1), "9" * 5000]


@pytest.fixture(scope="module")
def numbered(model, tmp_path_factory):
    return model.save(tmp_path_factory.mktemp("numbered") / "c").version.items


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("007", 7),
        ("-12", -12),
        ("0" * 4000 + "5", 5),
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
        ("1234567890123456789", 1234567890123456789),
    ],
    ids=lambda value: str(value)[:20],
)
def test_digits_within_64_bits_are_a_number(numbered, text, number):
    assert parse_id(text, numbered.has_texts, "c") == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "--5",
        "+5",
        " 5",
        "5 ",
        "5\n",
        "1_0",
        "٣",
        "²",
        "5.0",
        "1e3",
        "0x10",
        "NaN",
        "x",
        *TOO_LARGE,
        "\0",
        "\ud800",
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_anything_else_is_no_number(numbered, text):
    with pytest.raises(InputError, match="whole numbers of 64 bits") as refused:
        parse_id(text, numbered.has_texts, "c")
    assert len(str(refused.value)) < 500


@given(text=st.text(max_size=30) | st.from_regex(r"-{0,2}[0-9_ ]{0,25}", fullmatch=True))
@example(text="--5")
@settings(max_examples=300, derandomize=True)
def test_any_text_is_a_number_of_64_bits_or_an_error_of_ours(numbered, text):
    try:
        number = parse_id(text, numbered.has_texts, "c")
    except InputError:
        return
    assert -(2**63) <= number < 2**63
    assert int(text) == number


def test_a_text_is_itself_where_ids_are_texts(pristine):
    items = manifind.load(pristine).version.items
    for text in ("--5", "7", "", "pictures/001.jpg", "ü猫\n"):
        assert parse_id(text, items.has_texts, "c") == text


@pytest.fixture(scope="module")
def moved(model, tmp_path_factory):
    """Pictures of which some have moved since they got their ids, and one that came later."""
    path = tmp_path_factory.mktemp("moved") / "c"
    places = {"pictures/001.jpg": "rome/forum.jpg", "pictures/002.jpg": "rome/007.jpg", "pictures/003.jpg": "x"}
    collection = model.save(path, NAMES, [{"path": places.get(name, name)} for name in NAMES])
    collection.update(["pictures/004.jpg"], metadata=[{"path": 5}])
    collection.add(random_rows(2, 3), ["late/a.jpg", "late/b.jpg"], [{"path": "late/new.jpg"}, None])
    collection.remove(["pictures/009.jpg"])
    return collection


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("pictures/005.jpg", "pictures/005.jpg"),
        ("pictures/001.jpg", "pictures/001.jpg"),
        ("rome/forum.jpg", "pictures/001.jpg"),
        ("x", "pictures/003.jpg"),
        ("late/new.jpg", "late/a.jpg"),
        ("forum.jpg", "pictures/001.jpg"),
        ("005.jpg", "pictures/005.jpg"),
        ("001.jpg", "pictures/001.jpg"),
        ("new.jpg", "late/a.jpg"),
        ("b.jpg", "late/b.jpg"),
    ],
)
def test_an_item_is_found_by_id_by_current_path_and_by_a_file_name_that_only_one_has(moved, text, id_):
    assert moved.find_id(text) == id_


def test_a_file_name_that_several_have_is_refused_with_their_ids(moved):
    with pytest.raises(InputError, match=r"2 items of .* have a file called '007.jpg'") as refused:
        moved.find_id("007.jpg")
    assert "'pictures/002.jpg', 'pictures/007.jpg'" in refused.value.problem
    assert refused.value.hint == "give the id of one of them"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("picture/005.jpg", "did you mean 'pictures/005.jpg'"),
        ("PICTURES/005.JPG", "did you mean 'pictures/005.jpg'"),
        ("pictures/009.jpg", "did you mean 'pictures/"),
        ("009.jpg", "did you mean 'pictures/"),
        ("rome/forun.jpg", "did you mean 'rome/forum.jpg'"),
        ("forun.jpg", "did you mean 'rome/forum.jpg'"),
        ("zebra", "give an id of one of its items, such as 'pictures/000.jpg'"),
        ("", "give an id of one of its items, such as 'pictures/000.jpg'"),
    ],
)
def test_what_no_item_is_called_is_refused_with_those_nearest_to_it(moved, text, hint):
    with pytest.raises(InputError, match="there is no item with the id") as refused:
        moved.find_id(text)
    assert hint in refused.value.hint


def test_numbers_are_found_by_id_and_by_path_and_no_other_text_is(model, tmp_path):
    collection = model.save(tmp_path / "c", metadata=[{"path": f"p/{i}.jpg"} for i in range(120)])
    assert [collection.find_id(text) for text in ("7", "p/9.jpg", "11.jpg")] == [7, 9, 11]
    for text, problem in (("200", "with the id 200"), ("p/200.jpg", "whose ids are whole numbers")):
        with pytest.raises(InputError, match=problem):
            collection.find_id(text)


def test_a_misspelt_id_in_python_is_refused_with_those_nearest_to_it(pristine):
    collection = manifind.load(pristine)
    for ask in (collection.search_ids, collection.metadata, collection.remove):
        with pytest.raises(InputError, match=r"did you mean 'pictures/017.jpg'"):
            ask(["picture/017.jpg"])
    with pytest.raises(InputError, match="there is no item with the id 5 in"):
        collection.search_ids([5])


@pytest.mark.parametrize("number", [12345, 512345, 999999])
def test_of_a_million_names_the_nearest_is_suggested(number):
    names = [f"pictures/2019/IMG_{number:07}.jpg" for number in range(1_000_000)]
    right = names[number]
    for typed in (
        right.replace("pictures", "picture"),
        right.replace("2019", "2091"),
        right.replace("IMG_", "IMG"),
        right.replace("_0", "_"),
        right.replace(".jpg", ".jpeg"),
        right.replace("IMG", "img"),
    ):
        assert right in closest(typed, names), typed
    assert closest("zebra", names) == []


@given(text=st.text(max_size=20), names=st.lists(st.text(max_size=10), max_size=8))
@settings(max_examples=200, derandomize=True)
def test_what_is_suggested_is_among_the_names_and_a_name_itself_comes_first(text, names):
    found = closest(text, names)
    assert len(found) <= 3
    assert set(found) <= set(names)
    if text in names and text:
        assert found[0].casefold() == text.casefold()
