"""The list of committed results whose code has changed since."""

import pytest

from manifind.bench.cell import finished
from manifind.bench.results import Results
from project import load_script


@pytest.fixture
def outdated(tmp_path, monkeypatch):
    """The script, with an empty folder of results."""
    script = load_script("outdated")
    monkeypatch.setattr(script, "FOLDER", tmp_path)
    return script


def add(script, code, **key):
    about = {"kind": "reproduce trial", "set": "digits", "method": "knn", "seed": 0}
    Results(script.FOLDER / "some.jsonl").add(about | key, finished(mAP=1.0) | {"code": code})


def test_a_result_of_todays_code_is_not_listed_and_one_of_other_code_is(outdated):
    today = outdated.Task("some.jsonl", "reproduce trial", "knn").code
    add(outdated, today)
    assert outdated.table(outdated.outdated()) == "None."
    add(outdated, "0123456789abcdef", seed=1)
    add(outdated, None, seed=2)
    assert sorted((code, number) for (_, code), number in outdated.outdated().items() if code) == [
        ("0123456789abcdef", 1)
    ]
    shown = outdated.table(outdated.outdated())
    assert "| reproduce trial knn | `01234567` | 1 |" in shown
    assert "| reproduce trial knn | not recorded | 1 |" in shown


def test_peers_and_our_rows_of_the_suite_are_looked_at(outdated):
    today = outdated.Task("some.jsonl", "suite tuning", "aqe").code
    assert today != outdated.Task("some.jsonl", "suite fit", "aqe").code
    add(outdated, today, kind="suite tuning", method="aqe")
    add(outdated, "old", kind="suite tuning", method="aqe", preprocess="center")
    add(outdated, None, kind="suite unseen", method="gradnet")
    assert {(task.method, code) for task, code in outdated.outdated()} == {("aqe", "old"), ("gradnet", None)}


def test_benchmarks_and_letters_have_todays_digest_too(outdated):
    assert outdated.outdated() == {}  # puts the folders of scripts and benchmarks on the path
    growth, busy = (outdated.Task("p", "performance", None, name).code for name in ("growth", "busy"))
    assert len({growth, busy, outdated.Task("l", "letters", None).code}) == 3
