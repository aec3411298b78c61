"""Suites: questions that belong together, for judging a default by more than one set."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from gradnet.data.folder import data_root
from gradnet.data.pairs import make_pairs
from gradnet.errors import DataError, InputError
from gradnet.experiments.compare_data import read_questions
from gradnet.experiments.compare_question import LabelTruth, Question
from gradnet.progress import Listener, ignore


class Member(NamedTuple):
    """A question of a suite.

    source: a file or folder under the root of the data sets, or a set that needs none. only, window, protocol: as for
    `gradnet compare`. measure: the score. preprocess: what k-NN and its peers get. too_slow: peers that are left out,
    because tuning them there would take hours.
    """

    name: str
    source: str
    measure: str
    only: str | None = None
    window: int | None = None
    protocol: str | None = None
    preprocess: str = "unit"
    too_slow: tuple[str, ...] = ()


_PAIRS = "pairs"
_BUILT_IN = ("digits", _PAIRS)

SUITES: dict[str, tuple[Member, ...]] = {
    "local": (
        Member(
            "ORL 112x92 pixels",
            "orl/orl_112x92.npz",
            "bullseye@15 counted",
            window=15,
            preprocess="center",
            too_slow=("gss",),  # a square network over 10,304 dimensions
        ),
        Member(
            "ORL aligned 32x32",
            "orl/orl_aligned_32x32.npz",
            "bullseye@15 counted",
            window=15,
            preprocess="center",
        ),
        Member("MPEG-7 masks", "mpeg7/mpeg7.npz", "bullseye@40 counted", only="masks", window=40),
        Member(
            "MPEG-7 EfficientNet",
            "mpeg7/mpeg7.npz",
            "bullseye@40 counted",
            only="efficientnet_lite0_gem",
            window=40,
            preprocess="center",
        ),
        Member("COIL-20 pixels", "coil20/coil20_32x32.npz", "mAP"),
        Member("digits", "digits", "mAP"),
        Member("Paris subset ResNet-34", "paris1274", "mAP", only="gnd_paris6k.json", protocol="landmarks"),
        Member("Oxford5k CaffeNet-128", "oxford5k", "mAP", only="gnd_oxford5k.json", protocol="official"),
        Member("pairs", _PAIRS, "mAP"),
    )
}
"""By name. "local" has the sets that the default was developed on, in the form of their README."""


def read_member(member: Member, folder: Path | None = None, listener: Listener = ignore) -> Question:
    """The question; DataError where its files are not there."""
    if member.source == _PAIRS:
        pairs = make_pairs()
        return Question(member.name, pairs.descriptors, None, None, LabelTruth(pairs.labels, None))
    source = member.source if member.source in _BUILT_IN else str(_present(data_root(folder) / member.source))
    questions = read_questions(source, None, member.window, member.protocol, member.only, listener)
    if len(questions) != 1:
        names = ", ".join(question.name for question in questions)
        raise InputError(f"{member.source} holds {len(questions)} questions, {names}; expected one")
    return questions[0]._replace(name=member.name)


def _present(path: Path) -> Path:
    if not path.exists():
        raise DataError(
            f"{path} is not there", "put it there, or name the folder of the data sets with --folder"
        )
    return path
