"""Names of anybody's making on a real terminal: nothing in them moves its cursor, colours it, or turns its lines."""

import errno
import json
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manifind
from images.painted import paint_many
from manifind.progress import Progress, progress_bars
from manifind.text import visible

OWN = re.compile(r"\x1b\[(?:[0-9;]*m|[0-9]*[AK]|\?25[lh])")
"""What the command line itself sends: colours, and the cursor for bars that move."""

UNSEEN = (
    "".join(
        map(chr, [*range(32), 127, *range(128, 160), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
    )
    + "\u061c\u200b\u200e\u200f\u2060\ufeff"
)
HOSTILE = ["\x1b]0;owned\x07", "\x1b[2J\x1b[5;41mred", "\u009b31mred", "\x7f\x08b", "\u202egpj.exe", "two\nlines\r\t"]
SEEN = ["\\x1b]0;owned\\x07", "\\x1b[2J", "\\x9b31mred", "\\x7f\\x08b", "\\u202egpj.exe", "two\\nlines\\r\\t"]


def on_a_terminal(*arguments, **environment):
    """What a terminal is sent by `manifind ...`, and how it ended."""
    main, terminal = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "250", **environment}
    command = [sys.executable, "-m", "manifind", *map(str, arguments)]
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=env)
    os.close(terminal)
    sent = b""
    try:
        while chunk := os.read(main, 65536):
            sent += chunk
    except OSError as error:
        if error.errno != errno.EIO:  # how the end of a terminal is told
            raise
    finally:
        os.close(main)
    return sent.decode(), process.wait()


def harmless(sent):
    """The text without our own colours; nothing else in it is more than text."""
    text = OWN.sub("", sent.replace("\r\n", "\n"))
    assert not set(text) & set(UNSEEN) - {"\n", "\r"}, ascii(text)
    return text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    X = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    small = {"layers": (8, 4), "n_anchors": 4, "batch_size": 8, "max_steps": 2, "n_neighbors": 3}
    fields = [{name: name} for name in HOSTILE]
    ids = [*HOSTILE, *(f"cat {number:02}" for number in range(40 - len(HOSTILE)))]
    manifind.GradNet(**small, random_state=0).fit(X).save(folder / "c", ids, [*fields, *[None] * (40 - len(fields))])
    return folder / "c"


def test_ids_and_metadata_are_shown_and_not_obeyed(hostile):
    sent, code = on_a_terminal("search", hostile, HOSTILE[1], "-k", 40)
    assert code == 0
    text = harmless(sent)
    for seen in SEEN:
        assert text.count(seen) >= 3, seen  # as an id, and as the name and the value of a field


def test_json_escapes_them_and_says_the_same(hostile):
    sent, code = on_a_terminal("search", hostile, HOSTILE[1], "-k", 40, "--json")
    assert code == 0
    (answer,) = json.loads(harmless(sent))
    assert {one["id"] for one in answer["results"]} >= set(HOSTILE)
    assert answer["query"] == HOSTILE[1]


@pytest.mark.long
def test_info_and_the_paths_of_files_are_shown_and_not_obeyed(tmp_path):
    folder = paint_many(tmp_path / "\x1b[2J\u202ephotos")
    names = ("\x1b[2J.png", "\u202egpj.png", os.fsdecode(b"\xff.png"))
    for name, known in zip(names, sorted((folder / "north").iterdir()), strict=False):
        known.rename(folder / name)
    sent, code = on_a_terminal("index", folder, tmp_path / "c", "--extractor", "pixels", "--max-steps", 2)
    assert code == 0, sent
    sent, code = on_a_terminal("search", tmp_path / "c", "south/02.png", "-k", 20, "--paths", "-0")
    assert code == 0
    lines = harmless(sent).splitlines()
    assert len(lines) == 20
    for seen in ("\\x1b[2J.png", "\\u202egpj.png", "\\xff.png"):
        assert f"{tmp_path}/\\x1b[2J\\u202ephotos/{seen}" in lines
    sent, code = on_a_terminal("info", tmp_path / "c", "--all")
    assert code == 0
    assert f"20 pictures of {tmp_path}/\\x1b[2J\\u202ephotos" in harmless(sent)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["search", "{c}", "\x1b[2Jnobody"], 1),
        (["search", "{c}", "cat 01", "--where", "'\x1b[2J' = 1"], 1),
        (["search", "\x1b[2J\u202e/nowhere", "x"], 1),
        (["info", "a", "\x1b[2J\u009b31m"], 2),
        (["\x1b[2J"], 2),
        (["search", "c", "q", "--x\x1b[2J"], 2),
    ],
    ids=["id", "filter", "path", "argument", "verb", "option"],
)
def test_a_mistake_is_shown_and_not_obeyed(hostile, arguments, code):
    sent, ended = on_a_terminal(*(one.format(c=hostile) for one in arguments))
    assert ended == code
    assert "\\x1b[2J" in harmless(sent)


@pytest.mark.long
def test_files_of_a_folder_are_shown_and_not_obeyed(tmp_path):
    folder = paint_many(tmp_path / "photos")
    for name in ("\x1b[2J.png", "\u202egpj.png", "\x9b31m.jpg"):
        (folder / name).write_text("hello")
    sent, code = on_a_terminal("index", folder, tmp_path / "c", "--extractor", "pixels", "--max-steps", 2)
    assert code == 0
    text = harmless(sent)
    for seen in ("\\x1b[2J.png", "\\u202egpj.png", "\\x9b31m.jpg"):
        assert seen in text


def test_notes_of_progress_are_shown_and_neither_obeyed_nor_read_as_markup(capsys):
    with progress_bars() as listen:
        listen(Progress("stage \x1b[2J", 1, 2, "at \x1b[2J\u202e [/bold] [red]x"))
    printed = capsys.readouterr().err
    assert "at \\x1b[2J\\u202e [/bold] [red]x" in printed
    harmless(printed)


@given(text=st.text() | st.text(alphabet=UNSEEN + "ab", max_size=20))
@settings(max_examples=300, derandomize=True)
def test_whatever_is_shown_has_no_character_that_is_more_than_text(text):
    shown = visible(text)
    assert not set(shown) & set(UNSEEN)
    assert shown == text or set(text) & set(UNSEEN)
