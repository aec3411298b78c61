"""Collections with every file forged: whatever is done with them, nothing outside of them is touched."""

import logging
import os
import random
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

import manifind
from collection.crafting import change_manifest, set_manifest
from collection.small_collection import edit
from collection.test_foreign_files import hot_journal
from images.painted import paint, paint_many
from manifind.collection.database import work_folder
from manifind.collection.format import DATABASE, LAST_COMMIT, SEGMENTS
from manifind.errors import ManifindError
from manifind.images.extractors import make_extractor
from manifind.model.index_folder import index_folder
from manifind.server.service import Service

SMALL = {"n_neighbors": 3, "layers": (8, 4), "max_steps": 2, "batch_size": 8}
LOG = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A collection of pictures, with an item that was added and one that was removed."""
    base = tmp_path_factory.mktemp("forged")
    collection = index_folder(paint_many(base / "photos"), base / "c", make_extractor("pixels"), SMALL).collection
    paint(base / "photos" / "late.png", 50)
    (base / "photos" / "north" / "01.png").unlink()
    index_folder(base / "photos", collection.path)
    return base


def make_decoys(folder):
    """Things that somebody may not want to lose."""
    (folder / "segments").mkdir(parents=True)
    (folder / "letter.txt").write_text("dear diary")
    (folder / "empty").mkdir()
    paint(folder / "private.png", 7)
    with closing(sqlite3.connect(folder / "other.sqlite")) as database:
        database.execute("CREATE TABLE t (x)")
    (folder / "segments" / "features-0123456789abcdef.npy").write_bytes(b"mine")
    return folder


def state_of(folder):
    """Everything about a tree that a write, a rename or a removal changes."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[str(path)] = (status.st_mode, status.st_ino, status.st_mtime_ns, content)
    return found


class Forger:
    """Ways to forge a collection, one drawn at a time."""

    def __init__(self, path, decoys, seed):
        self.path, self.decoys, self.random = path, decoys, random.Random(seed)

    def forge(self):
        """One to four ways; tables first, since SQLite would follow what stands beside them."""
        tables = [self.folder, self.paths, self.manifest, self.schema, self.flip]
        files = [self.segment, self.partials, self.journal, self.beside]
        drawn = self.random.sample([*tables, *files, *files], self.random.randint(1, 4))
        for way in sorted(set(drawn), key=[*tables, *files].index):
            with suppress(sqlite3.Error):  # what was forged before may stand in the way
                way()

    def put(self, place):
        """Something at a place: a link or another name of a decoy, garbage, a pipe, a folder."""
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        target = self.random.choice([file for file in self.decoys.rglob("*") if file.is_file()])
        kind = self.random.choice(["link", "name", "garbage", "pipe", "folder", "link to a folder", "dangling"])
        if kind == "link":
            place.symlink_to(target)
        elif kind == "name":
            os.link(target, place)
        elif kind == "garbage":
            place.write_bytes(self.random.randbytes(self.random.choice([0, 5, 200, 40_000])))
        elif kind == "pipe":
            os.mkfifo(place)
        elif kind == "folder":
            place.mkdir()
        elif kind == "link to a folder":
            place.symlink_to(self.decoys)
        else:
            place.symlink_to(self.decoys / "new file")

    def journal(self):
        if self.random.random() < 0.5:
            with closing(sqlite3.connect(self.path / DATABASE)) as database:
                database.execute("PRAGMA journal_mode = DELETE")
        victim = self.random.choice(["letter.txt", "private.png", "other.sqlite"])
        content = hot_journal(self.decoys / victim, self.path / DATABASE)
        (self.path / f"{DATABASE}-journal").write_bytes(content)

    def beside(self):
        names = [f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal", LAST_COMMIT]
        for name in self.random.sample(names, self.random.randint(1, 3)):
            self.put(self.path / name)

    def segment(self):
        place = self.path / SEGMENTS
        if self.random.random() < 0.3:
            shutil.rmtree(place)
            place.symlink_to(self.decoys / "segments")
        elif self.random.random() < 0.5:
            self.put(self.random.choice(sorted(place.iterdir())))
        else:
            self.put(place / f"features-{self.random.randbytes(8).hex()}.npy")

    def folder(self):
        change_manifest(self.path, "source", folder=str(self.decoys))

    def paths(self):
        path = self.random.choice(["../decoys/private.png", str(self.decoys / "private.png"), "letter.txt"])
        edit(self.path, "UPDATE items SET metadata = json_set(metadata, '$.path', ?)", path)

    def manifest(self):
        key = self.random.choice(["collection", "sequence", "format", "fit", "shape", "source", "next_id"])
        value = self.random.choice(["null", "-1", "1e999", "[]", '"x"', "99999999999", "{}", "NaN"])
        set_manifest(self.path, key, value)

    def schema(self):
        statement = self.random.choice([
            "CREATE TRIGGER t AFTER INSERT ON items BEGIN DELETE FROM items; END",
            "CREATE VIEW v AS SELECT * FROM items",
            "CREATE VIRTUAL TABLE f USING fts5(x)",
            "UPDATE segments SET name = '../../decoys/letter.txt' WHERE role = 'features'",
            "UPDATE segments SET name = 'features-0123456789abcdef.npy' WHERE role = 'features'",
        ])  # fmt: skip
        edit(self.path, statement)

    def flip(self):
        file = self.random.choice([self.path / DATABASE, *(self.path / SEGMENTS).iterdir()])
        content = bytearray(file.read_bytes())
        for _ in range(self.random.choice([1, 3, 50])):
            content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
        file.write_bytes(content)

    def partials(self):
        places = [self.path / f".{LAST_COMMIT}.01234567.partial", work_folder(self.path)]
        self.put(self.random.choice([*places, self.path.with_name(f".{self.path.name}.01234567.partial")]))


def use(path, base, model, with_map):
    """Do everything that can be done with a collection; whatever is refused is refused in words."""
    done = []

    def attempt(name, action):
        with suppress(ManifindError):
            action()
            done.append(name)

    def serve():
        service = Service(path)
        try:
            attempt("look", lambda: [service.file(str(id_)) for id_ in service.collection.ids])
            attempt("upload", lambda: finished(service.add_picture((base / "new.png").read_bytes())))
            if with_map:
                attempt("map", lambda: finished(service.maps.get(service.view().version, "features")))
        finally:
            service.close()

    attempt("load", lambda: manifind.load(path, verify=True))
    attempt("add", lambda: add(path))
    attempt("remove", lambda: manifind.load(path).remove(manifind.load(path).ids[:1].tolist()))
    attempt("update", lambda: update(path))
    attempt("index", lambda: index_folder(base / "photos", path, allow_removals=True))
    attempt("refit", lambda: manifind.refit(manifind.load(path), checkpoint=work_folder(path)))
    attempt("export", lambda: manifind.load(path).export(base / "out", "compressed", overwrite=True))
    attempt("serve", serve)
    attempt("save", lambda: model.save(path, overwrite=True))
    attempt("load again", lambda: manifind.load(path, verify=True))
    return done


def add(path):
    collection = manifind.load(path)
    collection.add(collection.version.learned.descriptors[:1] * 3, ["added"])


def update(path):
    collection = manifind.load(path)
    collection.update(collection.ids[:1].tolist(), metadata=[{"title": "x"}])


def finished(job):
    while job.state in ("waiting", "working"):
        time.sleep(0.01)


@pytest.mark.long
@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.endurance)])
def test_nothing_outside_of_a_forged_collection_is_touched(made, tmp_path, count, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    paint(tmp_path / "new.png", 60)
    shutil.copytree(made / "photos", tmp_path / "photos", copy_function=shutil.copy2)
    model = manifind.GradNet(**SMALL, random_state=0).fit(manifind.load(made / "c").features[:12])
    counts: dict[str, int] = {}
    for seed in range(count):
        decoys = make_decoys(tmp_path / f"run {seed}" / "decoys")
        path = shutil.copytree(made / "c", decoys.parent / "here" / "c")
        Forger(path, decoys, seed).forge()
        before = state_of(decoys)
        beside = {place.name for place in decoys.parent.iterdir()}
        for name in use(path, tmp_path, model, with_map=seed % 20 == 0):  # laying out a map takes seconds
            counts[name] = counts.get(name, 0) + 1
        assert state_of(decoys) == before, f"seed {seed}"
        assert {place.name for place in decoys.parent.iterdir()} == beside, f"seed {seed}"
        assert {place.name for place in path.parent.iterdir()} <= {
            "c", ".c.work", ".c.01234567.partial"
        }, f"seed {seed}"  # fmt: skip
        shutil.rmtree(decoys.parent)
    LOG.info("of %d forged collections, so many allowed each: %s", count, counts)
    assert 0 < counts["load"] < count
    assert counts["load again"] > counts["load"]  # who replaces all of it has a whole one
    assert Path(tmp_path / "new.png").exists()
