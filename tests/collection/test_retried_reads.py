"""Reads that are tried again where a commit changed the file under a reader who may not write."""

import sqlite3

import pytest

from manifind.collection import database
from manifind.collection.database import retried_while_changing
from manifind.errors import CollectionError


def reader(failures, code=sqlite3.SQLITE_IOERR_SHORT_READ):
    """A function that fails so many times, and the list of its calls."""
    calls = []

    @retried_while_changing
    def read(directory):
        calls.append(directory)
        if len(calls) <= failures:
            cause = sqlite3.OperationalError("disk I/O error")
            cause.sqlite_errorcode = code
            raise CollectionError("it cannot be read") from cause
        return "read"

    return read, calls


@pytest.fixture
def not_ours(monkeypatch):
    monkeypatch.setattr(database.os, "access", lambda *_, **__: False)


def test_a_file_that_was_shorter_for_a_moment_is_read_again(not_ours, tmp_path):
    read, calls = reader(failures=2)
    assert read(tmp_path) == "read"
    assert len(calls) == 3


def test_one_that_stays_short_is_an_error_in_the_end(not_ours, tmp_path, monkeypatch):
    monkeypatch.setattr(database, "_CHANGING_PATIENCE", 0.05)
    read, calls = reader(failures=10**6)
    with pytest.raises(CollectionError, match="cannot be read"):
        read(tmp_path)
    assert len(calls) > 1


def test_another_error_is_raised_at_once(not_ours, tmp_path):
    read, calls = reader(failures=1, code=sqlite3.SQLITE_CANTOPEN)
    with pytest.raises(CollectionError, match="cannot be read"):
        read(tmp_path)
    assert len(calls) == 1


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_CORRUPT])
def test_whoever_may_write_is_told_of_damage_long_before_the_patience_of_others_ends(tmp_path, monkeypatch, code):
    monkeypatch.setattr(database, "_CHANGING_PATIENCE", float("inf"))
    read, calls = reader(failures=10**6, code=code)
    with pytest.raises(CollectionError, match="cannot be read"):
        read(tmp_path)
    assert len(calls) > 1


def test_whoever_may_write_reads_a_file_of_two_versions_again_too(tmp_path):
    read, calls = reader(failures=1, code=sqlite3.SQLITE_CORRUPT)
    assert read(tmp_path) == "read"
    assert len(calls) == 2
