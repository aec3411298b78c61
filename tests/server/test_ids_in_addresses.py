"""Any text as an id in an address: an item, or a plain 404 or 422; never a fault."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import manifind
from server.made import HOST, SMALL, app_of, make_service, make_vectors

API = "/api/v1"
LARGE = [2**63 - 1, -(2**63), 1234567890123456789, -5]
ANY_TEXT = (
    st.text(max_size=30)
    | st.integers().map(str)
    | st.from_regex(r"[-+]{0,2}[0-9_. e]{0,25}", fullmatch=True)
    | st.sampled_from(["north/01.png", "7", "\0", "9" * 4097])
)
QUICKLY = settings(
    max_examples=120, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def every_request_with(id_):
    return [
        ("item", {"id": id_}),
        ("search", {"id": id_, "k": 2}),
        ("compare", {"id": id_, "k": 2}),
        ("why", {"id": id_, "result": id_}),
        ("thumbnail", {"id": id_}),
        ("picture", {"id": id_}),
        ("items", {"name": id_[:400]}),
    ]


@pytest.fixture(scope="module")
def large_numbers(tmp_path_factory):
    """A collection with ids of 19 digits, asked through an application that lets nobody see its exceptions."""
    folder = tmp_path_factory.mktemp("large")
    _, X = make_vectors(folder / "v")
    ids = [*LARGE, *range(len(X) - len(LARGE))]
    manifind.GradNet(**SMALL, random_state=0).fit(X).save(folder / "c", ids)
    service = make_service(folder / "c", folder)
    with TestClient(app_of(service), base_url=HOST, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("id_", LARGE)
def test_a_number_of_64_bits_is_fetched_searched_and_listed(large_numbers, id_):
    answer = large_numbers.get(f"{API}/item", params={"id": id_})
    assert (answer.status_code, answer.json()["id"]) == (200, str(id_))
    answer = large_numbers.get(f"{API}/search", params={"id": id_, "k": 1})
    assert answer.json()["results"][0]["id"] == str(id_)
    assert large_numbers.get(f"{API}/items", params={"name": id_}).json()["items"][0]["id"] == str(id_)


def test_the_answer_has_the_id_as_it_is_and_not_as_it_was_typed(large_numbers):
    for typed in ("-0", "000", "0"):
        assert large_numbers.get(f"{API}/item", params={"id": typed}).json()["id"] == "0"


@pytest.mark.parametrize("path", ["item", "search", "compare", "thumbnail", "picture"])
@pytest.mark.parametrize("id_", ["--5", "5.0", "+5", str(2**63)])
def test_what_is_no_number_of_64_bits_is_refused_in_words(large_numbers, path, id_):
    answer = large_numbers.get(f"{API}/{path}", params={"id": id_})
    assert answer.status_code == 404
    assert f"there is no item '{id_}' in c, whose ids are whole numbers of 64 bits" in answer.text
    assert "give a number" in answer.text


@given(id_=ANY_TEXT)
@example(id_="--5")
@example(id_=str(2**63))
@QUICKLY
def test_any_text_among_numbers_is_an_item_or_is_not_there(large_numbers, id_):
    for path, parameters in every_request_with(id_):
        answer = large_numbers.get(f"{API}/{path}", params=parameters)
        assert answer.status_code in (200, 404, 422), (path, id_, answer.text)


@given(id_=ANY_TEXT)
@QUICKLY
def test_any_text_among_texts_is_an_item_or_is_not_there(pictures, id_):
    for path, parameters in every_request_with(id_):
        answer = pictures.get(f"{API}/{path}", params=parameters)
        assert answer.status_code in (200, 404, 422), (path, id_, answer.text)
