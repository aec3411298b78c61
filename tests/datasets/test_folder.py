"""Where data sets live: argument, environment, cache folder, in this order."""

import sys
from pathlib import Path

import pytest

from manifind.datasets.catalogue import data_root, make_writable
from manifind.errors import DataError, MissingExtraError


def test_an_argument_comes_before_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("MANIFIND_DATA", "/elsewhere")
    assert data_root(tmp_path) == tmp_path


def test_the_environment_comes_before_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MANIFIND_DATA", str(tmp_path))
    assert data_root() == tmp_path


@pytest.mark.parametrize("value", [None, ""])
def test_without_both_it_is_the_folder_for_caches(monkeypatch, value):
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("MANIFIND_DATA", raising=False)
    monkeypatch.delenv("GRADNET_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("MANIFIND_DATA", value)
    assert data_root() == Path(pooch.os_cache("manifind"))


def test_the_variable_of_the_old_name_is_read_with_a_warning_and_gives_way_to_the_new_one(monkeypatch, tmp_path):
    monkeypatch.setenv("GRADNET_DATA", str(tmp_path / "old"))
    monkeypatch.delenv("MANIFIND_DATA", raising=False)
    with pytest.warns(FutureWarning, match="set MANIFIND_DATA instead"):
        assert data_root() == tmp_path / "old"
    monkeypatch.setenv("MANIFIND_DATA", str(tmp_path / "new"))
    assert data_root() == tmp_path / "new"


def test_a_tilde_is_the_home_folder(monkeypatch):
    monkeypatch.setenv("MANIFIND_DATA", "~/sets")
    assert data_root() == data_root("~/sets") == Path.home() / "sets"


def test_without_pooch_a_folder_must_be_named(monkeypatch):
    monkeypatch.delenv("MANIFIND_DATA", raising=False)
    monkeypatch.delenv("GRADNET_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r'pip install "manifind\[data\]", or name a folder'):
        data_root()


def test_a_missing_folder_is_made(tmp_path):
    make_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written to: Not a directory") as caught:
        make_writable(tmp_path / "file" / "tiny")
    assert "MANIFIND_DATA" in caught.value.hint
