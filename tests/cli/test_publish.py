"""`manifind publish`: puts a collection into a database, says what it did, and never a password."""

import json
import logging
import subprocess
import sys

import pytest

import manifind
from manifind.stores.published import open_published
from stores.servers import PASSWORD, QUOTED
from stores.strangers import ROLES, everything, make_stranger


@pytest.fixture
def kept_address(server, tmp_path):
    file = tmp_path / "address"
    file.write_text(server.address, encoding="utf-8")
    return file


def test_a_collection_is_published_and_answers(command, named, queries, server, kept_address):
    for arguments in ((), ("--name", "cats")):
        result = command("publish", named, "--address-file", kept_address, *arguments)
        assert result.code == 0, result.err
        assert "40 items in" in result.out
        assert PASSWORD not in result.out + result.err
        assert QUOTED not in result.out + result.err
    for name in ("named", "cats"):
        published = open_published(server.address, name)
        assert published.search(queries, 5).ids.tolist() == manifind.load(named).search(queries, 5).ids.tolist()
        published.close()


@pytest.mark.parametrize("role", ROLES)
def test_a_table_that_gradnet_did_not_make_survives_and_no_other_is_made(named, server, kept_address, role):
    prefix = f"shop_{role}"
    collection = manifind.load(named)
    width = collection.features.shape[1] if "features" in role else 6
    make_stranger(server, f"{prefix}_{role}", width, has_texts=role == "features", description="ours")
    before = everything(server, prefix)
    command = [sys.executable, "-m", "manifind", "publish", named, "--address-file", kept_address]
    done = subprocess.run([*command, "--name", prefix], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    error, hint = done.stderr.splitlines()[-2:]
    assert f"{prefix}_{role} in " in error
    assert "was not made by manifind and is left as it is" in error
    assert "choose another name" in hint
    assert everything(server, prefix) == before


def test_programs_are_told_as_json(command, numbered, server, monkeypatch):
    monkeypatch.setenv("MANIFIND_STORE", server.address)
    output = json.loads(command("publish", numbered, "--json").out)
    assert output["items"] == output["nodes"] == 40
    assert output["name"] == "numbered"
    assert output["indexes"]["features"] == "exact"
    assert PASSWORD not in output["address"]


def test_a_password_on_the_command_line_is_refused(refused, named):
    pytest.importorskip("psycopg")
    problem, hint = refused("publish", named, f"postgresql://me:{QUOTED}@host/db")
    assert "password" in problem
    assert "MANIFIND_STORE" in hint
    assert PASSWORD not in problem + hint
    assert QUOTED not in problem + hint


@pytest.mark.parametrize("password", ["p[ssWORD", "pa/ssWORD", "p@ssWORD", "p?ssWORD", "p#ssWORD", "p℀ssWORD"])
@pytest.mark.parametrize("form", ["postgresql://me:{}@127.0.0.1:1/db", "http://me:{}@127.0.0.1:1"])
def test_a_password_with_special_characters_ends_in_a_sentence_without_it(
    refused, named, monkeypatch, tmp_path, form, password
):
    pytest.importorskip("psycopg")
    pytest.importorskip("pymilvus")
    address = form.format(password)
    (tmp_path / "address").write_text(address, encoding="utf-8")
    monkeypatch.setenv("MANIFIND_STORE", address)
    for arguments in ((), ("--address-file", tmp_path / "address"), (address,), ("--address-file", address)):
        output = "".join(refused("publish", named, *arguments))
        assert "ssWORD" not in output
    problem, hint = refused("publish", address)
    assert problem == "the first argument is no collection, but the address of a database"
    assert "ssWORD" not in hint


@pytest.mark.parametrize(
    "words",
    [
        ["x.db", "postgresql://me:p[zqX9]@127.0.0.1:1/db"],
        ["x.db", "postgresql://me:z'q\\X9@127.0.0.1:1/db"],
        ["host=127.0.0.1", "user=me", "password=zqX9"],
        ["x.db", "me:zqX9@127.0.0.1:1/db"],
        ["x.db", "--json=postgresql://me:zqX9@127.0.0.1:1/db"],
    ],
)
def test_an_address_in_the_wrong_place_of_a_command_line_is_not_repeated(command, named, words):
    result = command("publish", named, *words)
    assert result.code == 2
    assert "X9" not in result.out + result.err
    assert "Traceback" not in result.err


def test_a_name_that_is_none_is_refused(refused, named, kept_address):
    problem, hint = refused("publish", named, "--address-file", kept_address, "--name", "My Cats")
    assert "name = 'My Cats'" in problem
    assert "museum_2" in hint


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://postgres:{QUOTED}@127.0.0.1:1/postgres",
        f"postgresql://postgres:{QUOTED}@/postgres?host=/nowhere",
        f"http://me:{QUOTED}@127.0.0.1:1",
    ],
)
def test_where_nobody_answers_is_said_without_the_password(refused, named, address, tmp_path, caplog, capfd):
    pytest.importorskip("psycopg")
    pytest.importorskip("pymilvus")
    (tmp_path / "address").write_text(address, encoding="utf-8")
    with caplog.at_level(logging.DEBUG):
        problem, hint = refused("publish", named, "--address-file", tmp_path / "address")
    assert "cannot be" in problem
    assert "repeat the same" in hint
    printed = "".join(capfd.readouterr())
    for output in (problem, hint, caplog.text, printed):
        assert PASSWORD not in output
        assert QUOTED not in output


def test_a_wrong_password_is_said_without_it(refused, named, postgres, tmp_path, caplog):
    address = postgres.address.replace(QUOTED, "wr0ng-one")
    (tmp_path / "address").write_text(address, encoding="utf-8")
    problem, _ = refused("publish", named, "--address-file", tmp_path / "address")
    assert "password authentication failed" in problem
    assert "wr0ng-one" not in problem + caplog.text


def test_the_error_of_a_driver_is_not_dragged_along(postgres):
    with pytest.raises(manifind.StoreError) as failed:
        open_published(postgres.address.replace(QUOTED, "wr0ng-one"), "x")
    chain, shown = failed.value, ""
    while chain is not None:
        shown += f"{chain!r} {chain}"
        chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
    assert "wr0ng-one" not in shown


def test_a_driver_that_is_missing_is_named_with_its_extra(refused, named, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    for module in [name for name in sys.modules if name.startswith("manifind.stores.milvus")]:
        monkeypatch.delitem(sys.modules, module)
    problem, hint = refused("publish", named, "cats.db")
    assert "needs pymilvus" in problem
    assert hint == 'pip install "manifind[milvus]"'
    monkeypatch.setitem(sys.modules, "psycopg", None)
    problem, hint = refused("publish", named, "postgresql://host/db")
    assert hint == 'pip install "manifind[postgres]"'


def test_queries_need_no_torch(server, named, kept_address, command):
    command("publish", named, "--address-file", kept_address, "--name", "light")
    code = (
        "import sys, numpy as np, pathlib\nfrom manifind.stores import open_published\n"
        f"published = open_published(pathlib.Path({str(kept_address)!r}).read_text(encoding='utf-8'), 'light')\n"
        "published.search(np.ones((1, 6)), 3)\npublished.close()\nsys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
