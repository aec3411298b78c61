"""Why a download failed: in words, without passwords, and whether it is worth another try."""

import ftplib
import ssl
from types import SimpleNamespace

import pytest

from manifind.datasets.download import CutShortError, diagnose, without_credentials


def answered(status):
    """An error as requests raises it for an answer with that status."""
    error = OSError(f"{status} for url: http://me:secret@example.org")
    error.response = SimpleNamespace(status_code=status)
    return error


@pytest.mark.parametrize(
    ("error", "words", "passing"),
    [
        (answered(404), "the server answered 404 (Not Found)", False),
        (answered(403), "the server answered 403 (Forbidden)", False),
        (answered(408), "the server answered 408 (Request Timeout)", True),
        (answered(502), "the server answered 502 (Bad Gateway)", True),
        (answered(799), "the server answered 799 (a status of its own)", True),
        (ftplib.error_perm("550 gone"), "the server answered '550 gone'", False),
        (ftplib.error_temp("421 later"), "the server answered '421 later'", True),
        (EOFError(), "the connection was dropped", True),
        (ConnectionResetError(104, "reset"), "the connection was dropped", True),
        (TimeoutError(), "the server was silent for 1.5 s", True),
        (ssl.SSLCertVerificationError(1, "expired"), "no secure connection to the server could be made", False),
        (CutShortError("dropped after 3 of 4 bytes"), "dropped after 3 of 4 bytes", True),
        (OSError("no proxy at http://me:secret@proxy:80/x"), "no proxy at http://proxy:80/x", True),
        (ValueError(), "ValueError", False),
    ],
)
def test_a_failure_is_told_in_words_and_tried_again_only_where_that_may_help(error, words, passing):
    assert diagnose(error, 1.5) == (words, passing)


def test_the_cause_counts_where_the_error_itself_says_little():
    error = OSError("HTTPSConnectionPool(host='me:secret@example.org')")
    error.__cause__ = ValueError("inner")
    error.__cause__.__context__ = TimeoutError()
    assert diagnose(error, 2)[0] == "the server was silent for 2 s"


def test_causes_in_a_circle_end():
    error = OSError("outer")
    error.__cause__ = ValueError("inner")
    error.__cause__.__cause__ = error
    assert diagnose(error, 2)[0] == "outer"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://me:secret@example.org/a@b", "http://example.org/a@b"),
        ("ftp://me@example.org", "ftp://example.org"),
        ("see http://a:b@c/ and ftp://d:e@f/", "see http://c/ and ftp://f/"),
        ("http://a:p@ss@host/", "http://host/"),
        ("http://example.org/user@home", "http://example.org/user@home"),
        ("nobody@example.org", "nobody@example.org"),
    ],
)
def test_names_and_passwords_are_taken_out_of_addresses(text, shown):
    assert without_credentials(text) == shown
