"""Databases with more in them than tables: whatever could run what somebody else wrote is refused, and nothing runs."""

import json
import shutil
import sqlite3
from contextlib import closing, suppress

import pytest

import manifind
from collection.crafting import rows_of, set_manifest
from collection.small_collection import NAMES, edit, files_of, random_rows, tidy
from manifind.collection.format import DATABASE, FITTED_TABLES, JUDGED_TABLES, NOTES, SCHEMA
from manifind.errors import CollectionError

TABLES = (*FITTED_TABLES, *JUDGED_TABLES)
RAN = "INSERT OR REPLACE INTO manifest VALUES ('ran', '1')"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT 'format', x FROM c"


def viewed(table, select="SELECT * FROM {}_"):
    return [f"ALTER TABLE {table} RENAME TO {table}_", f"CREATE VIEW {table} AS {select.format(table)}"]


def made_anew(table, definition):
    """The table with another definition and the rows that it had."""
    columns = ", ".join(definition[0])
    return [
        f"ALTER TABLE {table} RENAME TO old",
        f"CREATE TABLE {table} {definition[1]}",
        f"INSERT INTO {table} ({columns}) SELECT {columns} FROM old",
        "DROP TABLE old",
    ]


ITEM = ("position", "id", "metadata")
FOREIGN = {
    "a trigger on insert": [f"CREATE TRIGGER t AFTER INSERT ON items BEGIN {RAN}; END"],
    "a trigger before insert": [f"CREATE TRIGGER t BEFORE INSERT ON additions BEGIN {RAN}; END"],
    "a trigger on delete": [f"CREATE TRIGGER t AFTER DELETE ON items BEGIN {RAN}; END"],
    "a trigger that deletes": ["CREATE TRIGGER t BEFORE DELETE ON items BEGIN DELETE FROM items; END"],
    "a trigger that refuses": ["CREATE TRIGGER t AFTER INSERT ON items BEGIN SELECT raise(ABORT, 'no'); END"],
    "a trigger on update": [f"CREATE TRIGGER t AFTER UPDATE ON items BEGIN {RAN}; END"],
    "a trigger on the manifest": [f"CREATE TRIGGER t AFTER INSERT ON manifest BEGIN {RAN}; END"],
    "a trigger on segments": [f"CREATE TRIGGER t AFTER DELETE ON segments BEGIN {RAN}; END"],
    "a trigger with an extension": [
        "CREATE TRIGGER t AFTER INSERT ON items BEGIN SELECT load_extension('/tmp/x.so'); END"
    ],
    "a trigger with a short name": [f"CREATE TRIGGER ' ' AFTER INSERT ON items BEGIN {RAN}; END"],
    "a view": ["CREATE VIEW v AS SELECT * FROM items"],
    "a view of an extension": ["CREATE VIEW v AS SELECT load_extension('/tmp/x.so')"],
    **{f"a view for {table}": viewed(table) for table in TABLES},
    "an endless view for the manifest": viewed("manifest", ENDLESS),
    "an endless view for the items": viewed("items", ENDLESS.replace("'format', x", "x, x, NULL")),
    "a view in capitals": ["ALTER TABLE items RENAME TO items_", "CREATE VIEW ITEMS AS SELECT * FROM items_"],
    "a view that can be written": [*viewed("items"), f"CREATE TRIGGER t INSTEAD OF INSERT ON items BEGIN {RAN}; END"],
    "a table of others": ["CREATE TABLE notes (text)"],
    "a table with a strange name": ['CREATE TABLE "x\'); DROP TABLE items;--" (a)'],
    "an index": ["CREATE INDEX i ON items (metadata)"],
    "an index of an expression": ["CREATE INDEX i ON items (abs(position))"],
    "an index of some rows": ["CREATE INDEX i ON items (id) WHERE metadata LIKE '%x%'"],
    "statistics": ["ANALYZE"],
    "generated columns": ["ALTER TABLE items ADD COLUMN more TEXT GENERATED ALWAYS AS (id || '!') VIRTUAL"],
    "one more column": ["ALTER TABLE items ADD COLUMN more TEXT"],
    "a column of another name": ["ALTER TABLE items RENAME COLUMN metadata TO meta"],
    "positions that are no key": made_anew("items", (ITEM, "(position INTEGER, id, metadata TEXT)")),
    "ids that need not be unique": made_anew(
        "items", (ITEM, "(position INTEGER PRIMARY KEY, id NOT NULL, metadata TEXT)")
    ),
    "ids of numbers": made_anew(
        "items", (ITEM, "(position INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, metadata TEXT)")
    ),
    "ids in any case": made_anew(
        "items", (ITEM, "(position INTEGER PRIMARY KEY, id NOT NULL UNIQUE COLLATE NOCASE, metadata TEXT)")
    ),
    "a check": made_anew(
        "items", (ITEM, "(position INTEGER PRIMARY KEY, id NOT NULL UNIQUE, metadata TEXT, CHECK (length(id) < 50))")
    ),
    "a default": made_anew(
        "items", (ITEM, "(position INTEGER PRIMARY KEY, id NOT NULL UNIQUE, metadata TEXT DEFAULT (random()))")
    ),
    "a reference that deletes": made_anew(
        "items",
        (
            ITEM,
            "(position INTEGER PRIMARY KEY REFERENCES additions (position) ON DELETE CASCADE, "
            "id NOT NULL UNIQUE, metadata TEXT)",
        ),
    ),
    "a full text search": ["CREATE VIRTUAL TABLE v USING fts5(text)"],
    "a tree": ["CREATE VIRTUAL TABLE v USING rtree(id, low, high)"],
}
WRITTEN = {  # what SQLite itself would not take from a statement
    "a check that loads an extension": (
        "UPDATE sqlite_master SET sql = 'CREATE TABLE items (position INTEGER PRIMARY KEY, id NOT NULL UNIQUE, "
        "metadata TEXT, CHECK (load_extension(''/tmp/x.so'') IS NULL))' WHERE name = 'items'"
    ),
    "text that is no SQL": "UPDATE sqlite_master SET sql = 'CREATE nonsense' WHERE name = 'items'",
    "no text at all": "UPDATE sqlite_master SET sql = NULL WHERE name = 'items'",
    "bytes for text": "UPDATE sqlite_master SET sql = x'00ff' WHERE name = 'items'",
    "text of no encoding": "UPDATE sqlite_master SET sql = CAST(x'43ff' AS TEXT) WHERE name = 'items'",
    "another name for a table": "UPDATE sqlite_master SET name = 'things' WHERE name = 'items'",
    "another kind for a table": "UPDATE sqlite_master SET type = 'view' WHERE name = 'items'",
    "a page that is not there": "UPDATE sqlite_master SET rootpage = 1000000 WHERE name = 'items'",
    "the page of another table": (
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'manifest') "
        "WHERE name = 'items'"
    ),
    "the page of the schema": "UPDATE sqlite_master SET rootpage = 1 WHERE name = 'items'",
    "the table a second time": "INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE name = 'items'",
}


def run(path, statements):
    with closing(sqlite3.connect(path / DATABASE, isolation_level=None)) as database:
        for statement in statements:
            try:
                database.execute(statement)
            except sqlite3.OperationalError as error:
                if "no such module" not in str(error):
                    raise
                pytest.skip(f"this SQLite has no such thing: {error}")


@pytest.fixture
def opened(living):
    """Opened before anything was done to it."""
    return manifind.load(living)


@pytest.mark.parametrize("case", FOREIGN)
def test_what_is_no_table_of_ours_is_refused_by_readers_and_writers_and_never_runs(
    living, opened, model, refusal, case
):
    run(living, FOREIGN[case])
    problem = refusal(living)
    assert str(living / DATABASE) in problem
    tidy(living)
    before = files_of(living)
    for write in (
        lambda: opened.add(random_rows(1, 8), ["new"]),
        lambda: opened.remove(["late/0.jpg"]),
        lambda: opened.update([NAMES[5]], metadata=[{"year": 1}]),
        lambda: model.save(living, NAMES, overwrite=True),
    ):
        with pytest.raises(CollectionError) as refused:
            write()
        assert str(living) in refused.value.problem
    assert files_of(living) == before
    if "view for the manifest" not in case:
        assert rows_of(living, "SELECT * FROM manifest WHERE key = 'ran'") == []


@pytest.mark.parametrize("case", ["a view for manifest", "an endless view for the manifest"])
def test_a_view_for_the_manifest_is_not_even_asked_for_the_commit(living, opened, case):
    run(living, FOREIGN[case])
    with pytest.raises(CollectionError, match="holds the view 'manifest'"):
        opened.refresh()


@pytest.mark.parametrize("case", WRITTEN)
def test_a_schema_that_was_written_by_hand_is_refused(living, opened, refusal, case):
    with closing(sqlite3.connect(living / DATABASE, isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute(WRITTEN[case])
    assert str(living / DATABASE) in refusal(living)
    with pytest.raises(CollectionError) as refused:
        opened.add(random_rows(1, 8), ["new"])
    assert str(living) in refused.value.problem


def test_a_table_of_the_right_text_passes_whatever_spaces_it_has(living, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(living, again)
    (again / DATABASE).unlink()
    with (
        closing(sqlite3.connect(again / DATABASE, isolation_level=None)) as database,
        closing(sqlite3.connect(living / DATABASE)) as source,
    ):
        database.execute("PRAGMA application_id = 1735549284")
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(SCHEMA.replace(", ", ",\n\t ").replace("IF NOT EXISTS ", ""))
        for table in TABLES:
            for row in source.execute(f"SELECT * FROM {table}"):
                database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    assert manifind.load(again, verify=True).ids.tolist() == manifind.load(living).ids.tolist()
    manifind.load(again).add(random_rows(1, 8), ["new"])
    assert "new" in manifind.load(again)


@pytest.mark.parametrize("table", NOTES)
def test_a_collection_that_lost_its_notes_answers_and_can_be_replaced(living, model, refusal, table):
    edit(living, f"DROP TABLE {table}", sign=False)
    assert len(manifind.load(living).search(random_rows(1, 1), 3).ids[0]) == 3
    assert f"no such table: {table}" in refusal(living, verify=True)
    model.save(living, NAMES, overwrite=True)
    manifind.load(living, verify=True)


@pytest.mark.parametrize("table", ["segments", "items", "additions"])
def test_a_collection_that_lost_a_table_can_be_replaced(living, model, refusal, table):
    edit(living, f"DROP TABLE {table}", sign=False)
    assert f"no such table: {table}" in refusal(living)
    model.save(living, NAMES, overwrite=True)
    assert manifind.load(living, verify=True).ids.tolist() == NAMES


def test_a_newer_format_is_called_that_whatever_tables_it_has(living, refusal):
    set_manifest(living, "format", "4", sign=False)
    run(living, [*FOREIGN["a table of others"], *FOREIGN["a trigger on insert"]])
    assert "has format 4" in refusal(living)


def test_a_database_elsewhere_is_not_followed(living, opened, refusal, model, tmp_path):
    moved = (living / DATABASE).rename(tmp_path / "elsewhere.sqlite")
    (living / DATABASE).symlink_to(moved)
    before = moved.read_bytes()
    assert refusal(living) == f"{living / DATABASE} is a link, and no collection has one"
    for write in (lambda: opened.add(random_rows(1, 8), ["new"]), lambda: model.save(living, NAMES, overwrite=True)):
        with pytest.raises(CollectionError, match=str(living)):
            write()
    assert moved.read_bytes() == before


def test_segments_elsewhere_are_neither_read_nor_written_nor_removed(living, pristine, refusal, model, tmp_path):
    victim = shutil.copytree(pristine, tmp_path / "victim")
    before = files_of(victim)
    shutil.rmtree(living / "segments")
    (living / "segments").symlink_to(victim / "segments")
    assert refusal(living) == f"{living / 'segments'} is a link, and no collection has one"
    with pytest.raises(CollectionError, match="is a link"):
        model.save(living, NAMES, overwrite=True)
    assert files_of(victim) == before


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_what_sqlite_writes_beside_a_database_goes_nowhere_else(living, opened, tmp_path, suffix):
    tidy(living)
    precious = tmp_path / "precious"
    precious.write_text(json.dumps(NAMES) * 100)
    before = precious.read_bytes()
    (living / f"{DATABASE}{suffix}").symlink_to(precious)
    with suppress(CollectionError):  # what can be read without it may be read
        manifind.load(living)
    with pytest.raises(CollectionError, match=str(living)):
        opened.add(random_rows(1, 8), ["new"])
    assert precious.read_bytes() == before
