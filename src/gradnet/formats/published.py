"""Ground truth as its authors write it down, turned into `GroundTruth` once it is known to make sense."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gradnet.arrays import Ints
from gradnet.errors import FileFormatError
from gradnet.formats.positions import positions
from gradnet.formats.truth import CLASSIC, REVISITED, GroundTruth


class Published(NamedTuple):
    """What a file says, not yet checked.

    path: of the file, for messages. gnd: the lists of each query, by name. images, queries: names, or None.
    first: the position of the first image. are_floats: whether positions may be floats, as in MATLAB.
    """

    path: str
    gnd: Any
    images: Any
    queries: Any
    first: int = 0
    are_floats: bool = False


def from_dictionary(path: str, content: Any) -> GroundTruth:
    """Ground truth of the published .json and .pkl files: a dict of gnd, imlist and qimlist, counted from 0."""
    if not isinstance(content, dict) or "gnd" not in content:
        held = reprlib.repr(list(content)) if isinstance(content, dict) else f"a {type(content).__name__}"
        raise FileFormatError(
            f"{path} holds {held}; expected a dictionary with gnd, imlist and qimlist",
            "take the file as its authors publish it",
        )
    return checked(Published(path, content["gnd"], content.get("imlist"), content.get("qimlist")))


def checked(published: Published) -> GroundTruth:
    """The lists as sorted positions from 0; refused unless every one is in range and stands once in a query."""
    path, kind = published.path, _kind(published)
    images = _names(published.images, f"imlist in {path}")
    queries = _names(published.queries, f"qimlist in {path}")
    if images is not None and len(set(images)) < len(images):
        (twice, _), *_ = Counter(images).most_common(1)
        raise FileFormatError(f"imlist in {path} has {reprlib.repr(twice)} twice", "name every image once")
    if queries is not None and len(queries) != len(published.gnd):
        raise FileFormatError(
            f"{path} has lists for {len(published.gnd)} queries but {len(queries)} names in qimlist",
            "give every query its lists and its name",
        )
    per_query = [_lists(published, query, kind, images) for query in range(len(published.gnd))]
    return GroundTruth({name: [lists[name] for lists in per_query] for name in kind}, images, queries)


def _kind(published: Published) -> tuple[str, ...]:
    """The names of the lists, the same for every query."""
    path, gnd = published.path, published.gnd
    if not isinstance(gnd, list | tuple) or not gnd or not all(isinstance(one, Mapping) for one in gnd):
        raise FileFormatError(
            f"gnd in {path} is {reprlib.repr(gnd)}; expected lists for each of one or more queries",
            "take the file as its authors publish it",
        )
    kinds = [{name for name in {*CLASSIC, *REVISITED} if name in one} for one in gnd]
    for query, names in enumerate(kinds):
        if names != kinds[0] or names not in (set(CLASSIC), set(REVISITED)):
            raise FileFormatError(
                f"gnd in {path} has for query {query} (counted from 0) the lists {sorted(names)}, "
                f"for query 0 {sorted(kinds[0])}; expected for all queries {' and '.join(CLASSIC)}, "
                f"or for all {', '.join(REVISITED)}",
                "keep the classic and the revisited ground truth apart",
            )
    return CLASSIC if kinds[0] == set(CLASSIC) else REVISITED


def _names(names: Any, where: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, np.ndarray) and names.dtype.kind == "U" and names.ndim == 1:
        names = names.tolist()
    if not isinstance(names, list | tuple):
        raise FileFormatError(f"{where} is {reprlib.repr(names)}; expected names", "write a list of names")
    for name in names:
        if type(name) is not str or not name:
            raise FileFormatError(f"{where} has {reprlib.repr(name)}; expected names", "write names as text")
    return tuple(names)


def _lists(
    published: Published, query: int, kind: tuple[str, ...], images: tuple[str, ...] | None
) -> dict[str, Ints]:
    lists: dict[str, Ints] = {}
    owner: dict[int, str] = {}
    for name in kind:
        where = f"the list {name!r} of query {query} (counted from 0) in {published.path}"
        entries = published.gnd[query][name]
        lists[name] = positions(entries, where, published.first, images, published.are_floats)
        for position in lists[name].tolist():
            if position in owner:
                image = f"position {position + published.first}" if images is None else repr(images[position])
                raise FileFormatError(
                    f"{where} has the image {image}, which stands in {owner[position]!r} too",
                    "put every image into one list of a query",
                )
            owner[position] = name
    return lists
