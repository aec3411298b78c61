"""Reads published ground truth in every form in which its authors write it: .json, .pkl, .mat, text files."""

from __future__ import annotations

import json
import math
import os
import reprlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Ints
from manifind.errors import FileFormatError
from manifind.files import check_regular_file, readable
from manifind.io.checks import parse_in_child
from manifind.io.hdf5 import Hdf5, is_hdf5, open_hdf5
from manifind.io.mat import load_variables, references, targets, text, values
from manifind.io.pickles import read_plain_pickle
from manifind.text import count
from manifind.worker import Reply

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


_LAST = 2**63 - 1
_EXACT = 2.0**53  # up to here every float that is a whole number is the number that was written
_HINT = "published .json and .pkl files count images from 0, .mat files from 1"


def positions(entries: Any, where: str, first: int, images: Sequence[str] | None, are_floats: bool) -> Ints:
    """The positions counted from 0, rising; refused unless they are distinct whole numbers in range.

    first: how the file counts the first image. images: their names; None where the file has none.
    """
    numbers = _array(entries, where) if isinstance(entries, np.ndarray) else _list(entries, where)
    if not len(numbers):
        return np.empty(0, np.int64)
    if are_floats and numbers.dtype.kind == "f":
        numbers = _whole(numbers, where)
    if numbers.dtype.kind not in "iu":
        raise _not_whole(numbers[0], where)
    last = _LAST if images is None else first + len(images) - 1
    for number in (int(numbers.min()), int(numbers.max())):
        if not first <= number <= last:
            end = "up" if images is None else f"to {last}, as imlist has {count(len(images), 'name')}"
            raise FileFormatError(f"{where} has the position {number}; expected {first} {end}", _HINT)
    ordered = np.sort(numbers.astype(np.int64)) - first
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        image = f"position {repeated[0] + first}" if images is None else repr(images[repeated[0]])
        raise FileFormatError(f"{where} has the image {image} twice", "list every image once")
    return ordered


def _array(entries: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    if entries.size and max(entries.shape, default=1) != entries.size:
        raise FileFormatError(f"{where} has shape {entries.shape}; expected one row", "list the positions")
    return entries.ravel()


def _list(entries: Any, where: str) -> np.ndarray[Any, Any]:
    if not isinstance(entries, list | tuple):
        raise FileFormatError(f"{where} is {reprlib.repr(entries)}; expected a list of positions", _HINT)
    for entry in entries:
        if type(entry) is not int and not isinstance(entry, np.integer):
            raise _not_whole(entry, where)
    try:
        return np.array(entries, np.int64)
    except OverflowError:
        largest = reprlib.repr(max(entries, key=abs))
        raise FileFormatError(f"{where} has the position {largest}, which is too large", _HINT) from None


def _whole(numbers: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    wrong = ~(np.isfinite(numbers) & (np.abs(numbers) <= _EXACT) & (numbers == np.trunc(numbers)))
    if wrong.any():
        raise _not_whole(numbers[wrong][0], where)
    return numbers.astype(np.int64)


def _not_whole(entry: Any, where: str) -> FileFormatError:
    return FileFormatError(f"{where} has {reprlib.repr(entry)}; expected whole numbers, the positions of images", _HINT)


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


def _lists(published: Published, query: int, kind: tuple[str, ...], images: tuple[str, ...] | None) -> dict[str, Ints]:
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


_KINDS = ("query", "good", "ok", "junk")
_PREFIX = "oxc1_"  # the name of the data set, in front of the queries of Oxford
_LARGEST = 1 << 26


def read_text_folder(folder: Path) -> GroundTruth:
    """Ground truth of `<query>_query.txt`, `_good.txt`, `_ok.txt` and `_junk.txt`, queries sorted by `<query>`.

    `ok` joins good and ok. The images are those that some file mentions, sorted by name: not the whole set.
    """
    with readable(folder):
        files = {file.name for file in folder.iterdir()}
        queries = sorted({query for file in files if (query := _query_of(file)) is not None})
        if not queries:
            raise FileFormatError(
                f"{folder} has no file such as all_souls_1_query.txt; "
                "expected four text files for each query, as Oxford and Paris were published",
                "name the folder that holds these files, or a .json, .pkl or .mat file",
            )
        lists = {query: {kind: _names_in_text(folder, files, query, kind) for kind in _KINDS} for query in queries}
    images = sorted({name for one in lists.values() for names in one.values() for name in names})
    position = {name: number for number, name in enumerate(images)}
    gnd = [
        {"ok": [position[name] for name in one["good"] + one["ok"]], "junk": [position[name] for name in one["junk"]]}
        for one in lists.values()
    ]
    asked = [one["query"][0] for one in lists.values()]
    return checked(Published(str(folder), gnd, images, asked))._replace(is_whole=False)


def _query_of(file: str) -> str | None:
    return next((file.removesuffix(end) for kind in _KINDS if file.endswith(end := f"_{kind}.txt")), None)


def _names_in_text(folder: Path, files: set[str], query: str, kind: str) -> list[str]:
    """The names in one file, one a line; for a query only its image, without the name of the data set."""
    file = folder / f"{query}_{kind}.txt"
    if file.name not in files:
        raise FileFormatError(
            f"{file} does not exist, though others of {query!r} do; expected {', '.join(_KINDS)}",
            "copy it from the published archive; without names in it, it would be empty",
        )
    lines = [line.split() for line in _text(file).splitlines() if line.strip()]
    if kind != "query":
        wrong = next((line for line in lines if len(line) != 1), None)
        if wrong is not None:
            raise _odd(file, wrong, "one name a line")
        return [name for (name,) in lines]
    if len(lines) != 1 or not _is_query(lines[0]):
        words = [word for line in lines for word in line]
        raise _odd(file, words, "one line with a name and four coordinates")
    return [lines[0][0].removeprefix(_PREFIX)]


def _odd(file: Path, words: list[str], expected: str) -> FileFormatError:
    return FileFormatError(
        f"{file} has {reprlib.repr(' '.join(words))}; expected {expected}", "take the file as its authors publish it"
    )


def _is_query(words: list[str]) -> bool:
    try:
        return len(words) == 5 and all(math.isfinite(float(word)) for word in words[1:])
    except ValueError:
        return False


def _text(file: Path) -> str:
    if not file.is_file() or file.stat().st_size > _LARGEST:
        raise FileFormatError(f"{file} is no file of at most {_LARGEST:,} bytes", "check the folder")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{file} is not UTF-8 text: {error.reason}", "save it as UTF-8") from error


_LISTS = {*CLASSIC, *REVISITED}
_MAT_HINT = "expected a struct array gnd and cell arrays imlist and qimlist of text, as published"


def read_mat_truth(path: Path) -> GroundTruth:
    """Ground truth of a struct array gnd with easy, hard, junk or ok, junk; MATLAB 5 to 7.3."""
    if is_hdf5(path):
        gnd, images, queries = _from_hdf5(open_hdf5(path))
    else:
        found = load_variables(path, ("gnd", "imlist", "qimlist"))
        if "gnd" not in found:
            raise _missing(path)
        gnd, images, queries = found["gnd"], found.get("imlist"), found.get("qimlist")
    return checked(Published(str(path), gnd, images, queries, first=1, are_floats=True))


def _missing(path: Path) -> FileFormatError:
    return FileFormatError(f"{path} has no struct array gnd with lists of images", _MAT_HINT)


def _from_hdf5(file: Hdf5) -> tuple[Any, Any, Any]:
    fields = [name for name in file.names("gnd") if name in _LISTS] if "gnd" in file.names() else []
    if not fields:
        raise _missing(file.path)
    columns = {name: _field(file, f"gnd/{name}") for name in fields}
    if len({len(column) for column in columns.values()}) != 1:
        raise FileFormatError(
            f"gnd in {file.path} has lists for {[len(column) for column in columns.values()]} queries", _MAT_HINT
        )
    lists = [dict(zip(columns, one, strict=True)) for one in zip(*columns.values(), strict=True)]
    return lists, _hdf5_texts(file, "imlist"), _hdf5_texts(file, "qimlist")


def _field(file: Hdf5, name: str) -> list[np.ndarray[Any, Any]]:
    cells = references(file, name)
    if cells is None:  # MATLAB writes the fields of a single struct without references
        return [values(file.dataset(name).id)]
    return [values(target) for target in targets(file, cells, name)]


def _hdf5_texts(file: Hdf5, name: str) -> list[str] | None:
    if name not in file.names():
        return None
    cells = references(file, name)
    if cells is None:
        raise FileFormatError(f"{file.where(name)} is no cell array", _MAT_HINT)
    return [text(target) for target in targets(file, cells, name)]


_LARGEST_FILE = 1 << 30
_DAMAGED = (ValueError, RecursionError, MemoryError)


def read_ground_truth(path: str | os.PathLike[str]) -> GroundTruth:
    """Read which images count for each query, as published with Oxford5k, Paris6k, ROxford and RParis.

    Parameters
    ----------
    path : str or os.PathLike
        A .json, .pkl, .pickle or .mat file, or a folder of the original text files.

    Returns
    -------
    GroundTruth
        A named tuple: `lists`, by name (ok and junk, or easy, hard and junk) one array of rising positions from 0 for
        each query; `images` and `queries`, names as the file has them, or None; `is_whole`, whether `images` is the
        whole database.

    Raises
    ------
    FileFormatError
        The file is missing, damaged, or its lists make no sense.
    MissingExtraError
        The format needs a package that is not installed.
    """
    file = Path(path)
    if file.is_dir():
        return read_text_folder(file)
    with readable(file):
        check_regular_file(file, f"expected ground truth: {', '.join(_READERS)}, or a folder of text files")
        if file.stat().st_size > _LARGEST_FILE:
            raise FileFormatError(
                f"{file} has {file.stat().st_size:,} bytes; expected ground truth of at most {_LARGEST_FILE:,}",
                "check that it is the file of lists, not that of descriptors",
            )
        reader = _READERS.get(file.suffix.lower())
        if reader is None:
            raise FileFormatError(
                f"{file} has the suffix {file.suffix!r}; expected one of {', '.join(_READERS)}, or a folder",
                "rename it if it is one of these",
            )
        return reader(file)


def _from_json(file: Path) -> GroundTruth:
    try:
        content = json.loads(file.read_bytes())
    except _DAMAGED as error:
        raise FileFormatError(
            f"{file} cannot be read as JSON: {str(error)[:200] or type(error).__name__}",
            "copy or save it again: it is cut short or damaged",
        ) from error
    return from_dictionary(str(file), content)


def _from_child(file: Path) -> GroundTruth:
    format_name = "a MATLAB file" if file.suffix.lower() == ".mat" else "a pickle"
    named, arrays = parse_in_child(f"{__name__}:parse", file, format_name)
    lists = {name: np.split(arrays[name], np.cumsum(arrays[f"n {name}"])[:-1]) for name in named["lists"]}
    images, queries = (None if names is None else tuple(names) for names in (named["images"], named["queries"]))
    return GroundTruth(lists, images, queries)


def parse(path: str) -> Reply:
    """In the child: the names, and of each list the positions of all queries in a row and how many each query has."""
    file = Path(path)
    is_mat = file.suffix.lower() == ".mat"
    truth = read_mat_truth(file) if is_mat else from_dictionary(path, read_plain_pickle(file))
    arrays = {name: np.concatenate(lists) for name, lists in truth.lists.items()}
    counts = {f"n {name}": np.array(list(map(len, lists))) for name, lists in truth.lists.items()}
    return Reply({"lists": list(truth.lists), "images": truth.images, "queries": truth.queries}, arrays | counts)


_READERS: dict[str, Callable[[Path], GroundTruth]] = {
    ".json": _from_json,
    ".pkl": _from_child,
    ".pickle": _from_child,
    ".mat": _from_child,
}
