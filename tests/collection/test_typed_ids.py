"""Ids as people type them: one reading for the command line and for the page."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import gradnet
from gradnet.collection.typed_ids import parse_id
from gradnet.errors import InputError

TOO_LARGE = [str(2**63), str(-(2**63) - 1), "9" * 5000]


@pytest.fixture(scope="module")
def numbered(model, tmp_path_factory):
    return model.save(tmp_path_factory.mktemp("numbered") / "c").version


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
    assert parse_id(numbered, text) == number


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
        parse_id(numbered, text)
    assert len(str(refused.value)) < 500


@given(text=st.text(max_size=30) | st.from_regex(r"-{0,2}[0-9_ ]{0,25}", fullmatch=True))
@example(text="--5")
@settings(max_examples=300, derandomize=True)
def test_any_text_is_a_number_of_64_bits_or_an_error_of_ours(numbered, text):
    try:
        number = parse_id(numbered, text)
    except InputError:
        return
    assert -(2**63) <= number < 2**63
    assert int(text) == number


def test_a_text_is_itself_where_ids_are_texts(pristine):
    version = gradnet.load(pristine).version
    for text in ("--5", "7", "", "pictures/001.jpg", "ü猫\n"):
        assert parse_id(version, text) == text
