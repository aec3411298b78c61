"""Whatever stands in an address and however it is written: no part of a password reaches anybody but the driver."""

import functools
import re
import traceback
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manifind.errors import InputError, ManifindError
from manifind.stores.address import parse_address
from manifind.stores.publish import connect

pytest.importorskip("psycopg")
pytest.importorskip("pymilvus")

CLOSED = "127.0.0.1:1"  # where nothing answers
FORMS = [
    f"postgresql://me:{{}}@{CLOSED}/db",
    f"postgres://me:{{}}@{CLOSED}/db?sslmode=disable",
    f"postgresql://{CLOSED}/db?user=me&password={{}}",
    f"postgresql://me@{CLOSED}/db?sslpassword={{}}&connect_timeout=2",
    "postgresql://me:{}@/db?host=/nowhere",
    "postgresql://me:{}@[::1]:1/db",
    "postgresql://me:{}@127.0.0.1,127.0.0.1:1,1/db",
    "postgresql:/me:{}@host/db",
    "host=127.0.0.1 port=1 dbname=db user=me password={}",
    "host=127.0.0.1 port=1 dbname=db user=me password='{}'",
    "password={} host=127.0.0.1 port=1 dbname=my.db",
    "dbname=postgresql://me:{}@127.0.0.1:1/db",
    "dbname='postgresql://me:{}@127.0.0.1:1/db'",
    f"http://me:{{}}@{CLOSED}",
    f"https://{{}}@{CLOSED}/",
    "ftp://me:{}@host",
    "me:{}@host/museum.db",
]
SPECIAL = "@/:?#[]%&=+ '\"\\,;.-_~!$()*\n\t"
PASSWORDS = st.text(st.sampled_from(SPECIAL) | st.sampled_from("QZXJ5789") | st.characters(), min_size=4, max_size=24)
WRITTEN = {
    "raw": str,
    "percent-encoded": lambda password: quote(password, safe="", errors="replace"),
    "escaped for libpq": lambda password: password.replace("\\", "\\\\").replace("'", "\\'"),
}


def outcome(text):
    """All that anybody could be shown: of the address, and of what comes of connecting to it."""
    shown = ""
    try:
        address = parse_address(text)
        shown = f"{address} {address!r} {address.shown}"
        connect(address)
    except ManifindError as error:
        chain = error
        while chain is not None:
            shown += f"{chain} {chain!r} {chain.args}"
            chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
        shown += "".join(traceback.format_exception(error)) + str(getattr(error, "hint", ""))
    return shown


def parts(text):
    return {text[i : i + 4] for i in range(len(text) - 3)}


@functools.cache
def usual_parts(form):
    """What is shown of a form of address anyway: where it is read, and where it is refused."""
    return parts(outcome(form.format("Kkkk"))) | parts(outcome(""))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60)
@given(password=PASSWORDS, written=st.sampled_from(sorted(WRITTEN)))
@example("p[ssWORD", "raw")
@example("]pssWORD[", "raw")
@example("pa/ssWORD", "raw")
@example("/ssWORD", "raw")
@example("1/ssWORD", "raw")
@example("p@ssWORD", "raw")
@example("p@ssWORD/x", "raw")
@example("p@ssWORD:1/x", "raw")
@example("p@ssWORD?user=x", "raw")
@example("1234/ssWORD?password=x", "raw")
@example("x?ssWORD=1", "raw")
@example("p#ssWORD", "raw")
@example("100%ssWORD", "raw")
@example("ssWORD%80", "raw")
@example("p℀ssWORD", "raw")  # NFKC makes a/c of it
@example("ssWORD\udcff", "raw")  # bytes of the environment that are no text
@example("ssWO\0RD", "raw")
@example("ssWO\nRD", "raw")
@example("it's ssWORD", "raw")
@example("ssWORD' port='2", "raw")
@example("ssWORDssWORD", "percent-encoded")
@example("s3cret/p@ss'wörd", "percent-encoded")
def test_no_part_of_a_password_is_shown_whatever_happens(form, password, written):
    shown = outcome(form.format(WRITTEN[written](password)))
    assert shown, "nothing answers there, so an error was expected"
    for secret in {password, WRITTEN[written](password)}:
        assert not {part for part in parts(secret) if part in shown} - usual_parts(form)


@given(text=st.text(max_size=40) | st.text(st.sampled_from("postgresqlhttp:/@?#[]=%&.db "), max_size=40))
def test_a_text_is_an_address_or_refused_in_the_same_words(text):
    refused = None
    try:
        assert parse_address(text).kind in ("postgres", "milvus")
    except InputError as error:
        refused = error
    if refused is not None:
        assert refused.problem == "the address of the database cannot be read"
        assert "percent-encode special characters" in refused.hint
        assert refused.__context__ is None


@pytest.mark.parametrize("password", ["p[ss", "p]ss", "p?ss=1", "p#ss", "p:ss", "a&b", "pässwörd", "℀"])
def test_a_password_that_the_driver_can_read_as_it_is_reaches_it(password):
    for text in (f"postgresql://me:{password}@host/db", f"postgresql://me:{quote(password)}@host/db"):
        address = parse_address(text)
        assert address.shown == "postgresql://host/db"
        assert address.parameters["password"] == password
    if not set(password) & set("?#"):
        assert parse_address(f"http://me:{password}@host:19530").parameters["token"] == f"me:{password}"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:p%5Bss@db.example.org:5433/museum-2",
        "postgresql://me%40firm:x@[2001:db8::1]:5433/db",
        "postgresql://a.example,b.example:5432,5433/db",
        "postgresql://me@/db?host=/var/run/my%20sockets",
        "postgresql://host/db?password=p%40ss&client_encoding=latin1",
        "host=/tmp dbname='my db' password='p@ss://x'",
        "service=my-service",
        "http://[::1]:19530",
        "https://KEY@in03-abc.example.com/",
        "./C/museum 2.db",
    ],
)
def test_an_address_that_is_written_well_is_read(text):
    assert re.search("[a-z]", parse_address(text).shown)


def test_a_client_that_raises_whatever_it_likes_is_an_error_of_the_store(monkeypatch):
    import manifind.stores.milvus as module

    for raised in (KeyError("me:ssWORD"), TypeError("token=ssWORD"), RuntimeError("ssWORD"), OSError("ssWORD")):

        def broken(*_, raised=raised, **__):
            raise raised

        monkeypatch.setattr(module, "MilvusClient", broken)
        shown = outcome("http://me:ssWORD@host")
        assert "cannot be asked" in shown
        assert "ssWORD" not in shown.replace(f"{type(raised).__name__}(", "")


def test_an_encoding_of_the_address_does_not_stop_the_connection(postgres):
    connect(parse_address(f"{postgres.address}&client_encoding=latin1")).close()
