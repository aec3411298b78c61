"""What published ground truth says: for each query, which images count and which are ignored."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from gradnet.arrays import Ints

CLASSIC = ("ok", "junk")
REVISITED = ("easy", "hard", "junk")


class GroundTruth(NamedTuple):
    """The lists of every query, as positions in `images`.

    lists: by name, one array of distinct positions (from 0, rising) per query; no position stands in two
        lists of one query. Names: CLASSIC for Oxford5k and Paris6k, REVISITED for ROxford and RParis.
    images: the name of each image of the database; None where the file does not name them.
    queries: the name of each query's image; None where the file does not name them.
    is_whole: True where `images` is the whole database in its order; False where it only holds the images
        that some list mentions, so that others may exist and are never right.
    """

    lists: dict[str, list[Ints]]
    images: tuple[str, ...] | None
    queries: tuple[str, ...] | None
    is_whole: bool = True

    @property
    def n_queries(self) -> int:
        """How many queries have lists."""
        return len(self.lists["junk"])


def bare_name(name: str) -> str:
    """The name of an image without folder and picture suffix, so that `jpg/x_000108.jpg` is `x_000108`."""
    path = PurePosixPath(name)
    return path.stem if path.suffix.lower() in (".jpg", ".jpeg", ".png") else path.name
