"""Progress as people see it: bars that move in a terminal and in a notebook, and lines now and then in a log."""

import builtins
import io
import subprocess
import sys
from types import ModuleType

import pytest

from manifind import progress
from manifind.progress import Progress, in_one_piece, progress_bars, with_bars


def lines(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_a_log_says_in_words_how_far_each_stage_is(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    with progress_bars() as listen:
        listen(Progress("graph", 500, 1000))
        with in_one_piece("saving", listen):
            pass
    received = lines(capsys)
    assert received[0].startswith("building the graph: 500 of 1000")
    assert received[1:3] == ["writing the collection: 0 of 1", "writing the collection: 1 of 1, 0:00:00 left"]


def test_what_is_soon_done_leaves_a_log_with_nothing_but_the_bars(capsys):
    with progress_bars() as listen:
        for step in range(100):
            listen(Progress("training", step + 1, 100, "loss 0.5"))
    received = lines(capsys)
    assert len(received) == 1
    assert "training" in received[0]
    assert "100/100" in received[0]


def test_a_stage_in_one_piece_that_fails_is_not_told_to_be_done():
    reports = []
    with pytest.raises(ValueError, match="no room"), in_one_piece("features", reports.append):
        raise ValueError("no room")
    assert reports == [Progress("features", 0, 1)]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def report_training():
    with progress_bars() as listen:
        listen(Progress("training", 50, 100, "loss 0.5"))
        listen(Progress("training", 100, 100, "loss 0.4"))


def written_to_a_terminal(monkeypatch, kind):
    stream = Terminal()
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    for name in ("TTY_COMPATIBLE", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        report_training()
    return stream.getvalue()


def test_a_terminal_gets_bars_that_move_and_no_lines(monkeypatch):
    written = written_to_a_terminal(monkeypatch, "xterm")
    assert "\x1b[?25l" in written  # the cursor is hidden while bars move
    assert "100/100" in written
    assert "50 of 100" not in written


def test_a_terminal_that_cannot_move_back_gets_lines(monkeypatch):
    assert "training: 50 of 100" in written_to_a_terminal(monkeypatch, "dumb")


class ZMQInteractiveShell:
    """What a notebook calls its shell."""


class Handle:
    """What shows one thing below a cell, and others in its place."""

    def __init__(self, shown):
        self.pictures = [shown]

    def update(self, shown):
        self.pictures.append(shown)


def test_a_notebook_gets_bars_below_its_cell_up_to_the_last_state(monkeypatch, capsys):
    handles = []

    def display(shown, display_id):
        handles.append(Handle(shown))
        return handles[-1]

    module = ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # rich would warn that it needs them
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    report_training()
    (handle,) = handles
    drawn = handle.pictures[-1]._repr_mimebundle_([], [])
    assert "100/100" in drawn["text/plain"]
    assert "loss 0.4" in drawn["text/html"]
    assert lines(capsys) == []


def test_who_brings_a_listener_hears_everything_with_bars_and_without(capsys):
    for wanted in (False, True):
        reports = []
        with with_bars(reports.append, wanted) as listener:
            listener(Progress("graph", 1, 2))
            listener(Progress("graph", 2, 2))
        assert reports == [Progress("graph", 1, 2), Progress("graph", 2, 2)]
        assert bool(lines(capsys)) == wanted


def test_listening_alone_does_not_load_what_draws():
    code = "import sys, manifind.progress; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
