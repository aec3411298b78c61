"""The labelled sets that need no file: digits and letters."""

from __future__ import annotations

from collections.abc import Callable

from gradnet.data.labels import Labelled, number_labels


def _digits() -> Labelled:
    from gradnet.data.digits import load_digits  # imports scikit-learn: not for every use of the catalogue

    digits = load_digits()
    labels, classes = number_labels(digits.labels.tolist(), "digits")
    return Labelled("pixels", digits.descriptors, labels, classes, tuple(map(str, range(len(labels)))))


def _letters() -> Labelled:
    from gradnet.data.letters import WORD, make_letters

    letters = make_letters()
    names = tuple(map(str, range(len(letters.labels))))
    return Labelled("points", letters.points, letters.labels, tuple(WORD), names)


BUILT_IN: dict[str, Callable[[], Labelled]] = {"digits": _digits, "letters": _letters}
