"""The data sets that gradnet knows, by name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from gradnet.data.dataset import DataSet, RemoteFile
from gradnet.data.declared_labelled import LABELLED
from gradnet.data.declared_landmarks import LANDMARKS
from gradnet.errors import InputError
from gradnet.wording import count

CATALOGUE: dict[str, DataSet] = {dataset.name: dataset for dataset in (*LABELLED, *LANDMARKS)}


def find_set(name: str) -> DataSet:
    """The data set of that name; an unknown name is refused with the nearest ones."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    near = get_close_matches(name.lower(), CATALOGUE)
    raise InputError(
        f"there is no data set called {name!r}; expected one of {', '.join(CATALOGUE)}",
        f"did you mean {' or '.join(near)}?" if near else "`gradnet data list` tells what they hold",
    )


def select_files(dataset: DataSet, parts: Sequence[str] = ()) -> list[RemoteFile]:
    """The files of these parts, in the catalogue's order; without parts those that are fetched by default."""
    unknown = [part for part in parts if part not in dataset.parts]
    if unknown:
        raise InputError(
            f"{dataset.name} has no part called {unknown[0]!r}; "
            f"expected {' or '.join(map(repr, dataset.parts)) or 'none: it has no files'}",
            "leave --part out for what is needed by default",
        )
    wanted = parts or dataset.default_parts
    return [file for file in dataset.files if file.part in wanted]


def bytes_text(size: int | None) -> str:
    """A number of bytes for people: 149871 is '150 kB'."""
    if size is None:
        return "not known"
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return count(size, "byte")


def items_text(dataset: DataSet) -> str:
    """How many items a set has, for people."""
    return f"{'about ' if dataset.about else ''}{dataset.items:,}"


def licence_text(dataset: DataSet) -> str:
    """The terms of a set, for people."""
    return dataset.licence or "not confirmed: see its source"


def size_text(dataset: DataSet) -> str:
    """What the default parts take, for people."""
    if not dataset.files:
        return "nothing to fetch"
    return bytes_text(dataset.size)
