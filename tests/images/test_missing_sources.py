"""Files and folders that cannot be read remove nothing, and many removals have to be allowed."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import manifind
from images.painted import NOTHING, paint, paint_many
from manifind.collection.sync import needs_permission
from manifind.errors import InputError
from manifind.images.extractors import make_extractor
from manifind.images.files import Found, Known, match, take_inventory
from manifind.model import index_folder as indexing
from manifind.model.index_folder import index_folder

SMALL = {"n_neighbors": 3, "layers": (8, 4), "max_steps": 2, "batch_size": 8}
# Gives up the capabilities of root by which permissions do not hold for it, then becomes the program. This is not done
# between fork and exec, where threads of libraries that other tests have imported may fail.
WITHOUT_PRIVILEGES = """
import ctypes, os, sys
DAC_OVERRIDE, DAC_READ_SEARCH, DROP = 1, 2, 24
for capability in (DAC_OVERRIDE, DAC_READ_SEARCH):
    ctypes.CDLL(None).prctl(DROP, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "manifind", *sys.argv[1:]])
"""


def run_command(*arguments, program=("-m", "manifind")):
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def without_privileges(*arguments):
    """Runs the command as a user for whom permissions hold, even where that is root."""
    return run_command(*arguments, program=("-c", WITHOUT_PRIVILEGES))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of twenty pictures, and its collection."""
    base = tmp_path_factory.mktemp("sources")
    index_folder(paint_many(base / "photos"), base / "c", make_extractor("pixels"), SMALL)
    return base


@pytest.fixture
def base(made, tmp_path):
    """A copy that a test may change."""
    shutil.copytree(made / "photos", tmp_path / "photos", copy_function=shutil.copy2)
    shutil.copytree(made / "c", tmp_path / "c")
    return tmp_path


def ids(base):
    return set(manifind.load(base / "c", verify=True).ids.tolist())


def index(base, folder=None, **options):
    return index_folder(folder or base / "photos", base / "c", **options)


@pytest.mark.long
def test_an_empty_folder_empties_no_collection(base):
    (base / "empty").mkdir()
    before = ids(base)
    result = run_command("index", base / "empty", base / "c")
    assert result.returncode == 1
    assert "20 of the 20 items" in result.stderr
    assert "--allow-removals" in result.stderr
    assert "'north/01.png'" in result.stderr
    assert ids(base) == before
    result = run_command("index", base / "empty", base / "c", "--dry-run", "--json")
    summary = json.loads(result.stdout)
    assert result.returncode == 0
    assert (summary["removed"], summary["needs_allow_removals"]) == (20, True)
    result = run_command("index", base / "empty", base / "c", "--allow-removals", "--json")
    assert json.loads(result.stdout)["removed"] == 20
    assert ids(base) == set()


@pytest.mark.long
def test_a_folder_that_may_not_be_entered_keeps_its_items(base):
    before = ids(base)
    (base / "photos" / "north").chmod(0)
    try:
        would = without_privileges("index", base / "photos", base / "c", "--dry-run", "--json")
        result = without_privileges("index", base / "photos", base / "c", "--json")
    finally:
        (base / "photos" / "north").chmod(0o755)
    assert result.returncode == 0, result.stderr
    summary = json.loads(result.stdout)
    assert {name: summary[name] for name in NOTHING} == {**NOTHING, "kept": 10, "unchanged": 10}
    assert {**summary, "dry_run": True} == json.loads(would.stdout)
    assert summary["problems"] == [{"path": "north", "reason": "cannot be entered: Permission denied"}]
    assert ids(base) == before


def test_the_folder_itself_must_be_readable(base):
    (base / "photos").chmod(0)
    try:
        result = without_privileges("index", base / "photos", base / "c")
    finally:
        (base / "photos").chmod(0o755)
    assert result.returncode != 0
    reported = " ".join(result.stderr.replace("│", " ").split())  # wherever the lines of the box break
    assert "is not readable" in reported
    assert "Traceback" not in result.stderr
    assert len(ids(base)) == 20


def test_a_file_that_cannot_be_read_keeps_its_item_and_a_new_one_is_not_added(base, monkeypatch):
    read = indexing.sha256_of

    def failing(file):
        if file.name in ("05.png", "new.png"):
            raise OSError(5, "Input/output error")
        return read(file)

    monkeypatch.setattr(indexing, "sha256_of", failing)
    paint(base / "photos" / "new.png", 100)
    os.utime(base / "photos" / "north" / "05.png", ns=(1, 1))
    would, outcome = index(base, dry_run=True), index(base)
    assert would.counts == outcome.counts == {**NOTHING, "kept": 1, "unchanged": 19}
    assert [path for path, _ in outcome.problems] == ["new.png", "north/05.png"]
    assert len(ids(base)) == 20


def test_a_new_file_that_cannot_be_decoded_is_counted_as_added_by_neither_run(base):
    (base / "photos" / "broken.png").write_bytes((base / "photos" / "north" / "01.png").read_bytes()[:60])
    would, outcome = index(base, dry_run=True), index(base)
    assert would.counts == outcome.counts == {**NOTHING, "unchanged": 20}
    assert would.problems == outcome.problems != []


def test_a_folder_that_became_a_link_keeps_its_items(base):
    (base / "photos" / "north").rename(base / "elsewhere")
    (base / "photos" / "north").symlink_to(base / "elsewhere")
    assert index(base).counts == {**NOTHING, "kept": 10, "unchanged": 10}


def test_more_than_a_third_has_to_be_allowed_and_less_does_not(base):
    files = sorted((base / "photos").rglob("*.png"))
    for file in files[:7]:
        file.unlink()
    with pytest.raises(InputError, match="7 of the 20 items"):
        index(base)
    assert len(ids(base)) == 20
    paint(files[0], 0)  # another picture at this path
    assert index(base).counts["removed"] == 6
    assert len(ids(base)) == 14


@pytest.mark.parametrize(
    ("gone", "items", "expected"),
    [(0, 0, False), (0, 5, False), (1, 1, True), (4, 5, False), (5, 5, True), (18, 19, False), (6, 20, False),
     (7, 20, True), (10, 30, False), (11, 30, True)],
)  # fmt: skip
def test_what_has_to_be_allowed(gone, items, expected):
    assert needs_permission(gone, items) == expected


def test_items_that_were_added_as_vectors_stay(base):
    collection = manifind.load(base / "c")
    collection.add(collection.version.learned.descriptors[:1] * 2, ["a vector"], [{"title": "mine"}])
    assert index(base).counts == {**NOTHING, "unchanged": 20}
    assert "a vector" in ids(base)


@pytest.mark.parametrize("n_vectors", [1, 60])
def test_items_that_were_added_as_vectors_do_not_make_up_for_pictures_that_would_go(base, n_vectors):
    collection = manifind.load(base / "c")
    rows = np.random.default_rng(0).random((n_vectors, collection.manifest["shape"]["dimension"]))
    collection.add(rows, [f"vector {number}" for number in range(n_vectors)])
    (base / "empty").mkdir()
    before = ids(base)
    assert index(base, base / "empty", dry_run=True).needs_permission
    with pytest.raises(InputError, match="20 of the 20 items"):
        index(base, base / "empty")
    assert ids(base) == before


@pytest.mark.parametrize("content", [b"", bytes(100)])
def test_a_picture_without_a_suffix_that_is_damaged_now_keeps_its_item(base, content):
    file = base / "photos" / "north" / "scan"
    (base / "photos" / "north" / "01.png").rename(file)
    assert index(base).counts["moved"] == 1
    file.write_bytes(content)
    would, outcome = index(base, dry_run=True), index(base)
    assert would.counts == outcome.counts == {**NOTHING, "kept": 1, "unchanged": 19}
    assert outcome.problems == [("north/scan", "is no picture any more")]
    assert outcome.n_others == 0
    assert len(ids(base)) == 20


def test_a_folder_with_too_few_pictures_is_refused_by_the_dry_run_too(tmp_path):
    for number in range(3):
        paint(tmp_path / "photos" / f"{number}.png", number % 2)
    for dry_run in (True, False):
        with pytest.raises(InputError, match=r"3 pictures .* at least 3 different ones"):
            index_folder(tmp_path / "photos", tmp_path / "c", make_extractor("pixels"), dry_run=dry_run)


def test_an_item_below_an_unreadable_folder_is_not_taken_for_a_moved_one():
    known = {"a": Known("x/a.png", "one", 1, 1), "b": Known("y/b.png", "two", 1, 1)}
    copy = Found("copy.png", "one", 1, 2)
    matched = match([copy], known, lambda file: file.file, {"x"})
    assert (matched.unread, matched.new, matched.moved, matched.gone) == (["a"], [copy], [], ["b"])
    matched = match([copy], known, lambda file: file.file, {"xy"})
    assert (matched.unread, matched.moved) == ([], [("a", copy)])


def test_a_file_that_is_swapped_between_hashing_and_decoding_is_not_kept_under_the_wrong_digest(tmp_path, monkeypatch):
    folder = paint_many(tmp_path / "photos")
    paint(tmp_path / "other.png", 999)
    read = indexing.sha256_of

    def swapping(file):
        found = read(file)
        if file.name == "05.png":
            os.replace(tmp_path / "other.png", file)
        return found

    monkeypatch.setattr(indexing, "sha256_of", swapping)
    outcome = index_folder(folder, tmp_path / "c", make_extractor("pixels"), SMALL)
    assert outcome.counts["added"] == 19
    assert outcome.problems[0][0] == "north/05.png"
    assert "changed while it was being read" in outcome.problems[0][1]
    monkeypatch.undo()
    outcome = index_folder(folder, tmp_path / "c")
    assert outcome.counts["added"] == 1
    described = make_extractor("pixels")
    fresh = index_folder(folder, tmp_path / "fresh", described, SMALL).collection
    assert fresh.metadata(["north/05.png"]) == outcome.collection.metadata(["north/05.png"])


def test_names_of_bytes_and_names_that_look_like_their_escapes_are_different_items(tmp_path):
    folder = paint_many(tmp_path / "photos")
    names = [b"\xff.png", rb"\xff.png", rb"\x5cxff.png", "é.png".encode(), b"\xc3.png", rb"back\slash.png"]
    for number, name in enumerate(names):
        paint(tmp_path / "one.png", 100 + number)
        os.rename(tmp_path / "one.png", os.path.join(os.fsencode(folder), name))
    found = {os.fsencode(one.file.name): one.path for one in take_inventory(folder).pictures}
    assert len({found[name] for name in names}) == len(names)
    collection = index_folder(folder, tmp_path / "c", make_extractor("pixels"), SMALL).collection
    assert {rb"\xff.png".decode(), r"\x5cxff.png", "é.png", r"back\slash.png"} <= set(collection.ids.tolist())
    assert index_folder(folder, tmp_path / "c").counts == {**NOTHING, "unchanged": 26}
