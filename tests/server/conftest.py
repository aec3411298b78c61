"""What tests of the page share: collections, and clients that ask without a network."""

import pytest
from starlette.testclient import TestClient

from manifind.collection import version
from server.made import HOST, app_of, make_pictures, make_service, make_vectors


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("web")


@pytest.fixture(scope="module")
def vectors(folder):
    make_vectors(folder / "vectors")
    with TestClient(app_of(make_service(folder / "vectors", folder)), base_url=HOST) as client:
        yield client


@pytest.fixture(scope="module")
def pictures(folder):
    make_pictures(folder / "pictures", folder / "photos")
    with TestClient(app_of(make_service(folder / "pictures", folder)), base_url=HOST) as client:
        yield client


@pytest.fixture
def editable(tmp_path):
    """A collection of pictures of its own, which may be changed."""
    make_pictures(tmp_path / "pictures", tmp_path / "photos")
    with TestClient(app_of(make_service(tmp_path / "pictures", tmp_path), True), base_url=HOST) as client:
        yield client


@pytest.fixture(scope="module", autouse=True)
def everybody_belongs():
    """Small collections of a few steps know little of who belongs: lists show all of them, but for test_cut_page.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(version, "read_cutoff", lambda _: None)
        yield
