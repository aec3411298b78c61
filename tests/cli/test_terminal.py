"""Progress where nobody watches: a log is told now and then how it stands, and not each time."""

import pytest

from gradnet.cli import terminal
from gradnet.cli.terminal import progress_bars
from gradnet.progress import Progress, in_one_piece


def lines(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_a_log_says_in_words_how_far_each_stage_is(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_LINES", 0.0)
    with progress_bars() as listen:
        listen(Progress("graph", 500, 1000))
        with in_one_piece("saving", listen):
            pass
    told = lines(capsys)
    assert told[0].startswith("building the graph: 500 of 1000")
    assert told[1:3] == ["writing the collection: 0 of 1", "writing the collection: 1 of 1, 0:00:00 left"]


def test_what_is_soon_done_leaves_a_log_with_nothing_but_the_bars(capsys):
    with progress_bars() as listen:
        for step in range(100):
            listen(Progress("training", step + 1, 100, "loss 0.5"))
    told = lines(capsys)
    assert len(told) == 1
    assert "training" in told[0]
    assert "100/100" in told[0]


def test_a_stage_in_one_piece_that_fails_is_not_told_to_be_done():
    heard = []
    with pytest.raises(ValueError, match="no room"), in_one_piece("features", heard.append):
        raise ValueError("no room")
    assert heard == [Progress("features", 0, 1)]
