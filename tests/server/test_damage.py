"""A damaged collection on the page: the damage is named, and nothing is called a fault of the program."""

import json
import shutil

import numpy as np
import pytest
from starlette.testclient import TestClient

from collection.crafting import changed_arrays, npy, set_manifest
from collection.small_collection import edit, put_segment, segment
from manifind.errors import CollectionError
from server.made import HOST, app_of, make_service, make_vectors

API = "/api/v1"
ASKED = [
    ("collection", {}),
    ("items", {}),
    ("item", {"id": 7}),
    ("search", {"id": 7}),
    ("search", {"id": 7, "where": "year > 1"}),
    ("search", {"id": 7, "method": "knn"}),
    ("compare", {"id": 7}),
    ("why", {"id": 7, "result": 9}),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "c"
    make_vectors(path)
    return path


@pytest.fixture
def spoilt(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "c")


def spoil_rows(path, role, value):
    rows = np.load(segment(path, role)).copy()
    rows[7] = value
    put_segment(path, role, npy(rows))


def statuses(path):
    """What each request answers; every answer says what is wrong, and none calls it our fault."""
    service = make_service(path, path.parent)
    with TestClient(app_of(service), base_url=HOST, raise_server_exceptions=False) as client:
        answers = [client.get(f"{API}/{name}", params=given) for name, given in ASKED]
    for answer in answers:
        assert answer.status_code in (200, 409), answer.text
        if answer.status_code == 409:
            assert "is damaged" in answer.json()["error"]
        else:
            json.loads(answer.text, parse_constant=lambda name: pytest.fail(name))
    return [answer.status_code for answer in answers]


def test_a_whole_collection_answers_all_of_these(whole):
    assert set(statuses(whole)) == {200}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e400"])
def test_metadata_whose_number_is_none_is_named(spoilt, number):
    edit(spoilt, "UPDATE items SET metadata = ? WHERE position = 7", f'{{"year": {number}}}')
    assert statuses(spoilt) == [200] + [409] * 7


@pytest.mark.parametrize("key", ["info", "settings"])
@pytest.mark.parametrize("number", ["NaN", "1e999", "9" * 400])
def test_a_manifest_whose_number_is_none_is_named_when_it_is_opened(spoilt, key, number):
    set_manifest(spoilt, key, f'{{"neighbour_agreement": {number}, "trust": 1}}')
    with pytest.raises(CollectionError, match="is damaged"):
        make_service(spoilt, spoilt.parent)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_loss_curve_whose_number_is_none_is_named_when_it_is_opened(spoilt, value):
    curve = np.full((2, 3), value, dtype=np.float32)
    put_segment(spoilt, "graph", changed_arrays(spoilt, "graph", loss_curve=curve))
    with pytest.raises(CollectionError, match="loss curve has values that are not finite"):
        make_service(spoilt, spoilt.parent)


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("role", ["features", "descriptors"])
def test_rows_whose_numbers_are_none_are_named(spoilt, role, value):
    spoil_rows(spoilt, role, value)
    found = dict(zip(["gradnet", "filtered", "knn", "compare"], statuses(spoilt)[3:7], strict=True))
    if role == "features":
        assert found == {"gradnet": 409, "filtered": 409, "knn": 200, "compare": 409}
    else:
        assert found == {"gradnet": 200, "filtered": 200, "knn": 409, "compare": 409}


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("value", [np.nan, -1.0, 3e38, 0.0, 1e-45])
def test_edges_whose_weights_are_none_give_no_fault(spoilt, value):
    with np.load(segment(spoilt, "graph")) as arrays:
        weights = np.full_like(arrays["affinity_data"], value)
    put_segment(spoilt, "graph", changed_arrays(spoilt, "graph", affinity_data=weights))
    assert statuses(spoilt)[3:7] == [200] * 4
