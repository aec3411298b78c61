"""Answers of `manifind search`: a table that fits its terminal with whole names, and bare paths for scripts."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import unicodedata

import numpy as np
import pytest

import manifind
from images.painted import paint, paint_many
from manifind.text import visible

DEEP = [
    f"archive/of the municipal museum/nineteen-thirties/harbour and docks/box {n:03}/negative {n:05} front restored.tif"
    for n in range(20)
]
ODD = [
    "[bold]" * 12 + "[/bold]",
    "[/]",
    ":cat:",
    "a b" * 40,
    "x/" * 60,
    "/" * 70,
    "\u202e" * 9 + "gpj.exe",
    "two\nlines",
    "\\",
]
NAMES = [*DEEP, *ODD, *(f"cat {n}" for n in range(40 - len(DEEP) - len(ODD)))]
WIDE = "猫" * 45


def make(path, ids, fields=None):
    X = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    small = {"layers": (8, 4), "n_anchors": 4, "batch_size": 8, "max_steps": 2, "n_neighbors": 3}
    return manifind.GradNet(**small, random_state=0).fit(X).save(path, ids, fields).path


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Long names and odd ones, and nothing else."""
    return make(tmp_path_factory.mktemp("bare") / "c", NAMES)


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """The same with metadata, and with places that differ from some of the names."""
    fields = [{"year": 1900 + n, "tags": ["boats", "sea"], "title": f"Harbour at dawn, {n}"} for n in range(40)]
    for n in range(5):
        fields[n]["path"] = f"moved to another shelf/{'in the cellar/' * n}{n}.tif"
    return make(tmp_path_factory.mktemp("described") / "c", NAMES, fields)


def width_of(line):
    """Columns of a terminal that a line takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


def shown(printed):
    """What a table shows: for every rank the name, the lines below it, and the score."""
    found = []
    for line in printed.splitlines():
        if not line.startswith("│"):
            continue
        rank, name, *middle, score = line[2:-2].split(" │ ")[: 3 if "metadata" not in printed else None]
        if rank.strip():
            found.append({"name": "", "below": [], "score": score, "rank": rank, "middle": middle})
        if name.startswith("  ") and not rank.strip():
            found[-1]["below"].append(name.strip())
        elif name.strip():  # a line ends behind a slash, or is full, or is the last
            found[-1]["name"] += name.rstrip() if name.rstrip().endswith("/") else name
    return [{**one, "name": one["name"].rstrip(" ")} for one in found]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_every_name_is_whole_and_no_line_is_wider_than_the_terminal(command, bare, width):
    printed = command("search", bare, "cat 1", "-k", 40, columns=width).out
    assert max(map(width_of, printed.splitlines())) <= width
    answer = shown(printed)
    (expected,) = json.loads(command("search", bare, "cat 1", "-k", 40, "--json").out)
    assert [one["name"] for one in answer] == [visible(one["id"]) for one in expected["results"]]
    assert [float(one["score"]) for one in answer] == [round(one["score"], 4) for one in expected["results"]]
    assert "…" not in printed


@pytest.mark.parametrize("width", [40, 60, 80])
def test_what_has_no_room_beside_a_name_stands_below_it(command, described, width):
    printed = command("search", described, "cat 1", "-k", 40, columns=width).out
    assert max(map(width_of, printed.splitlines())) <= width
    answer = {one["name"]: one["below"] for one in shown(printed)}
    assert answer.keys() == set(map(visible, NAMES))
    for n, name in enumerate(NAMES):
        below = " ".join(answer[visible(name)])
        assert f"year {1900 + n}, tags [boats, sea], title Harbour at dawn, {n}" in below
        assert "".join(answer[visible(name)]).startswith("path moved to another shelf/") == (n < 5)
    moved = "".join(answer[DEEP[4]]).split("year")[0]
    assert moved == f"path moved to another shelf/{'in the cellar/' * 4}4.tif"


def test_where_there_is_room_path_and_metadata_stand_beside_the_name(command, described):
    lines = command("search", described, "cat 1", "-k", 40, columns=300).out.splitlines()
    assert [cell.strip() for cell in lines[2].split("┃")[1:-1]] == ["rank", "id", "path", "score", "metadata"]
    (line,) = (line for line in lines if f" {DEEP[2]} " in line)
    assert "│ moved to another shelf/in the cellar/in the cellar/2.tif " in line
    assert "│ year 1902, tags [boats, sea], title Harbour at dawn, 2 " in line


@pytest.mark.parametrize("width", [60, 80, 200])
def test_ranks_and_scores_are_aligned_with_their_signs(command, bare, width):
    printed = command("search", bare, "cat 1", "-k", 40, columns=width).out
    rows = [line for line in printed.splitlines() if re.match(r"│ +\d+ │", line)]
    assert len(rows) == 40
    assert any(re.search(r" -0\.\d{4} │$", line) for line in rows)
    assert len({line.rindex(".") - len(line) for line in rows}) == 1
    assert len({line.index("│", 1) for line in rows}) == 1


def test_a_name_of_wide_letters_takes_the_columns_that_it_has(command, tmp_path):
    path = make(tmp_path / "c", [WIDE, *NAMES[1:]])
    printed = command("search", path, WIDE, "-k", 40, columns=60).out
    assert {width_of(line) for line in printed.splitlines()[2:]} == {60}
    assert shown(printed)[0]["name"].replace(" ", "") == WIDE


def test_a_long_query_is_shown_whole_above_the_table(command, bare):
    lines = command("search", bare, DEEP[3], "-k", 1, columns=60).out.splitlines()
    above = lines[: next(row for row, line in enumerate(lines) if line.startswith("┏"))]
    assert "".join(above) == f"query {DEEP[3]}"
    assert max(map(len, lines)) <= 60


def test_a_terminal_narrower_than_any_table_loses_nothing(command, bare):
    assert command("search", bare, "cat 1", "-k", 40, columns=10) == command(
        "search", bare, "cat 1", "-k", 40, columns=40
    )


def test_nothing_found_is_said_and_no_empty_table_shown(command, described):
    printed = command("search", described, "cat 1", "cat 2", "--where", "year > 3000").out
    assert printed == "query cat 1: nothing is found\nquery cat 2: nothing is found\n"


def run(*arguments, **options):
    command = [sys.executable, "-m", "manifind", *map(os.fspath, map(str, arguments))]
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(command, env=env, check=True, capture_output=True, stdin=subprocess.DEVNULL, **options).stdout


def test_in_a_pipe_a_table_has_80_columns(bare):
    lines = run("search", bare, "cat 1", "-k", 40).decode().splitlines()
    assert max(map(len, lines)) == 80


@pytest.mark.parametrize("width", [60, 80, 200])
def test_on_a_terminal_a_table_has_the_width_of_the_terminal(bare, width):
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm-256color"}
    command = [sys.executable, "-m", "manifind", "search", str(bare), "cat 1", "-k", "40"]
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=env)
    os.close(terminal)
    sent = b""
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:  # how Linux tells the end of a terminal
            break
        if not chunk:
            break
        sent += chunk
    os.close(main)
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[0-9;]*m", "", sent.decode())
    assert max(map(width_of, text.splitlines())) <= width
    assert {one["name"] for one in shown(text)} == set(map(visible, NAMES))


@pytest.fixture(scope="module")
def photos(command, tmp_path_factory):
    """Twenty pictures, three of them with names that are hard on scripts."""
    folder = tmp_path_factory.mktemp("pictures")
    paint_many(folder / "photos")
    for number, name in enumerate(("a b.png", "it's.png", "-n.png")):
        paint(folder / "photos" / name, 100 + number)
    assert command("index", folder / "photos", folder / "c", "--extractor", "pixels").code == 0
    return folder


def expected_paths(command, photos, *asked):
    answers = json.loads(command("search", photos / "c", *asked, "--json").out)
    return [str(photos / "photos" / one["metadata"]["path"]) for answer in answers for one in answer["results"]]


def test_paths_are_absolute_one_a_line_in_the_order_of_queries_and_ranks(command, photos, monkeypatch):
    monkeypatch.chdir(photos)
    asked = ("south/02.png", "photos/north/01.png", "-k", 23)
    printed = command("search", "c", *asked, "--paths")
    assert printed.err == ""
    assert printed.out.splitlines() == expected_paths(command, photos, *asked)
    assert len(printed.out.splitlines()) == 46
    assert all(os.path.isabs(path) and os.path.isfile(path) for path in printed.out.splitlines())


def test_paths_follow_conditions_and_combined_queries(command, photos):
    for asked in (("south/02.png", "--where", "bytes > 0", "-k", 3), ("south/02.png", "--minus", "north/01.png")):
        assert command("search", photos / "c", *asked, "--paths").out.splitlines() == expected_paths(
            command, photos, *asked
        )
    assert command("search", photos / "c", "south/02.png", "--where", "bytes < 0", "--paths").out == ""


def test_paths_are_of_where_a_renamed_file_is_now(command, tmp_path):
    folder = paint_many(tmp_path / "photos")
    command("index", folder, tmp_path / "c", "--extractor", "pixels")
    (folder / "north" / "01.png").rename(folder / "harbour.png")
    command("index", folder, tmp_path / "c")
    asked = ("search", tmp_path / "c", "north/01.png", "-k", 1)
    assert command(*asked, "--paths").out == f"{folder / 'harbour.png'}\n"
    narrow = shown(command(*asked, columns=60).out)[0]
    assert (narrow["name"], narrow["below"][0]) == ("north/01.png", "path harbour.png")


def test_files_that_are_gone_are_noted_and_their_paths_not_printed(command, refused, tmp_path):
    folder = paint_many(tmp_path / "photos")
    command("index", folder, tmp_path / "c", "--extractor", "pixels")
    asked = ("search", tmp_path / "c", "north/01.png", "-k", 20, "--paths")
    before = command(*asked).out.splitlines()
    (folder / "north" / "01.png").unlink()
    (folder / "north" / "03.png").unlink()
    printed = command(*asked)
    assert printed.out.splitlines() == [path for path in before if not re.search("north/0[13]", path)]
    assert "note: 2 results without a file in " in printed.err
    assert "'north/01.png'" in printed.err
    problem, hint = refused("search", tmp_path / "c", "north/01.png", "-k", 1, "--paths")
    assert problem == f"1 result without a file in {folder}, such as 'north/01.png'"
    assert f"`manifind index FOLDER {tmp_path / 'c'}`" in hint
    folder.rename(tmp_path / "elsewhere")
    problem, hint = refused(*asked)
    assert problem == f"{folder} is gone, from which {tmp_path / 'c'} was indexed"
    assert "--images FOLDER" in hint
    found = command(*asked, "--images", tmp_path / "elsewhere").out.splitlines()
    assert found == [path.replace("/photos/", "/elsewhere/") for path in printed.out.splitlines()]


def test_paths_that_nobody_can_know_are_refused_with_what_to_do(refused, photos, named, monkeypatch):
    problem, hint = refused("search", named, "cat 01", "--paths")
    assert problem == f"{named} was made of vectors, so its items have no files"
    assert "--json" in hint
    monkeypatch.setenv("XDG_STATE_HOME", str(photos / "another user"))
    problem, hint = refused("search", photos / "c", "north/01.png", "--paths")
    assert problem == f"the folder of the pictures of {photos / 'c'} is not known, since you have not indexed it here"
    assert hint == "name it with --images FOLDER"
    problem, _ = refused("search", photos / "c", "north/01.png", "--paths", "--images", photos / "nowhere")
    assert "nowhere is not a folder" in problem


def test_with_a_folder_named_a_collection_of_somebody_else_has_paths_and_a_page(command, photos, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    asked = ("search", photos / "c", "north/01.png", "-k", 2, "--images", photos / "photos")
    first, *_ = command(*asked, "--paths").out.splitlines()
    assert first == str(photos / "photos" / "north" / "01.png")
    command(*asked, "--page", tmp_path / "answers.html")
    assert (tmp_path / "answers.html").read_text().count("data:image/jpeg") == 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--paths", "--json"), "--paths and --json both say"),
        (("-0",), "--null is for paths"),
        (("--null", "--json"), "--null"),
    ],
    ids=["two outputs", "no paths", "json"],
)
def test_options_that_contradict_each_other_are_refused(refused, photos, options, problem):
    assert problem in refused("search", photos / "c", "north/01.png", *options)[0]


def test_beside_a_page_only_paths_or_json_are_on_standard_output(command, photos, tmp_path):
    page = tmp_path / "answers.html"
    asked = ("search", photos / "c", "north/01.png", "-k", 2)
    for output in ("--paths", "--json"):
        printed = command(*asked, output, "--page", page)
        assert printed.out == command(*asked, output).out
        assert printed.err == f"{page}\n"
    assert command(*asked, "--page", page).out == f"{page}\n"


@pytest.fixture(scope="module")
def awkward(command, tmp_path_factory):
    """Files whose names hold a line break, bytes that are not UTF-8, an escape, and one that only looks like it."""
    base = tmp_path_factory.mktemp("awkward")
    folder = paint_many(base / "photos")
    for number, name in enumerate((b"two\nlines.png", b"\xff\xe9.png", b"\x1b[2J.png", rb"\xff.png")):
        paint(base / "new.png", 200 + number)
        os.rename(base / "new.png", os.path.join(os.fsencode(folder), name))
    assert command("index", folder, base / "c", "--extractor", "pixels").code == 0
    return base


def test_paths_separated_by_nul_are_the_bytes_of_the_files_whatever_they_are(awkward):
    printed = run("search", awkward / "c", "north/01.png", "-k", 30, "--paths", "-0")
    assert printed.endswith(b"\0")
    folder = os.fsencode(awkward / "photos")
    everything = {os.path.join(place, name) for place, _, names in os.walk(folder) for name in names}
    assert set(printed.split(b"\0")[:-1]) == everything
    assert len(everything) == 24
    listed = subprocess.run(["xargs", "-0", "ls", "-d", "--zero", "--"], input=printed, capture_output=True, check=True)
    assert set(listed.stdout.split(b"\0")[:-1]) == everything


def test_a_path_of_two_lines_is_refused_where_lines_separate_paths(refused, awkward):
    problem, hint = refused("search", awkward / "c", "north/01.png", "-k", 30, "--paths")
    assert f"a line break in the path '{awkward}/photos/two\\nlines.png'" in problem
    assert hint == "end each path with NUL: --paths --null"
