"""An address is read from where nobody else can read it, and shown without what must stay secret."""

import pickle
import traceback
from pathlib import Path

import pytest

from manifind.errors import InputError
from manifind.stores.address import parse_address, read_address
from stores.servers import PASSWORD, QUOTED

pytest.importorskip("psycopg")
SECRET = [
    f"postgresql://me:{QUOTED}@host:5433/db",
    f"postgres://me@host/db?password={QUOTED}",
    "host=host dbname=db user=me password='s3cret/p@ss\\'wörd'",
    f"http://me:{QUOTED}@host:19530",
    f"https://{QUOTED}@host",
]


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("postgresql://host/db", "postgres", "postgresql://host/db"),
        ("postgresql://me@host:5433/db", "postgres", "postgresql://host:5433/db"),
        ("host=host dbname=db", "postgres", "postgresql://host/db"),
        ("service=mine", "postgres", "postgresql://mine/"),
        ("http://host:19530", "milvus", "http://host:19530"),
        ("museum.db", "milvus", "museum.db"),
        ("  folder/museum.db\n", "milvus", "folder/museum.db"),
    ],
)
def test_an_address_says_which_database_it_is(text, kind, shown):
    address = parse_address(text)
    assert (address.kind, address.shown, address.secrets) == (kind, shown, ())


@pytest.mark.parametrize("text", SECRET)
def test_what_is_secret_reaches_the_driver_and_nobody_else(text):
    address = parse_address(text)
    assert PASSWORD in "".join(address.parameters.values())
    for text_of in (
        str(address),
        repr(address),
        f"{address}",
        address.scrubbed(f"cannot connect with {PASSWORD} there"),
    ):
        assert PASSWORD not in text_of
        assert QUOTED not in text_of
        assert "host" in text_of or "***" in text_of
    assert address.scrubbed(f"x {QUOTED} y") == "x *** y"
    assert address.scrubbed(ValueError()) == "ValueError"


def test_the_password_of_the_environment_is_secret_too(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert parse_address("postgresql://host/db").scrubbed(f"no {PASSWORD}") == "no ***"


@pytest.mark.parametrize("text", SECRET)
def test_a_password_on_the_command_line_is_refused_with_the_way_out(text):
    with pytest.raises(InputError, match="holds a password or a token") as refused:
        read_address(text, None)
    assert "MANIFIND_STORE" in refused.value.hint
    assert "--address-file" in refused.value.hint
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "ftp://host/s3cret",
        "postgresql://me:s3cret@host:port:5/db?nonsense=1",
        "password=s3cret nonsense",
        "nonsense=s3cret",
        "http://",
        "=",
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(text):
    with pytest.raises(InputError, match=r"the address of the .*database") as refused:
        parse_address(text)
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert "postgresql://host/database" in refused.value.hint


def test_an_address_comes_from_a_file_or_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("MANIFIND_STORE", raising=False)
    with pytest.raises(InputError, match="no address of a database is given"):
        read_address(None, None)
    monkeypatch.setenv("MANIFIND_STORE", SECRET[0])
    assert read_address(None, None).secrets == (PASSWORD,)
    (tmp_path / "address").write_text(SECRET[3] + "\n", encoding="utf-8")
    assert read_address(None, tmp_path / "address").kind == "milvus"
    assert read_address("x.db", None).kind == "milvus"
    with pytest.raises(InputError, match="two addresses"):
        read_address("x.db", tmp_path / "address")
    with pytest.raises(InputError, match="cannot be read"):
        read_address(None, tmp_path / "missing")
    (tmp_path / "bytes").write_bytes(b"\xff\xfes3cret")
    with pytest.raises(InputError, match="it is no text"):
        read_address(None, tmp_path / "bytes")


@pytest.mark.parametrize("text", [*SECRET, "postgresql://me:s3cret[@host/" + "x" * 5000])
def test_an_address_given_for_the_file_is_not_repeated(text):
    with pytest.raises(InputError, match="the --address-file cannot be read: ") as refused:
        read_address(None, Path(text))
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))


def test_an_address_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(parse_address(SECRET[0]))) == parse_address(SECRET[0])
