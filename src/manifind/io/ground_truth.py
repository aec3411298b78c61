"""Reads published ground truth in every form in which its authors write it: .json, .pkl, .mat, text files."""

import json
import math
import os
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Ints
from manifind.errors import FileFormatError
from manifind.files import check_regular_file, readable
from manifind.io.checks import check_suffix, parse_in_child, utf8
from manifind.io.hdf5 import Hdf5, is_hdf5, open_hdf5
from manifind.io.mat import cells, load_variables, text, values
from manifind.io.pickles import read_plain_pickle
from manifind.text import count

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


_LARGEST_FILE = 1 << 30
_AS_PUBLISHED = "take the file as its authors publish it"


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
    with readable(file):
        if file.is_dir():
            return _read_text_folder(file)
        check_regular_file(file, f"expected ground truth: {', '.join(_READERS)}, or a folder of text files")
        if file.stat().st_size > _LARGEST_FILE:
            problem = f"{file} has {file.stat().st_size:,} bytes; expected ground truth of at most {_LARGEST_FILE:,}"
            raise FileFormatError(problem, "check that it is the file of lists, not that of descriptors")
        check_suffix(file, _READERS, "rename it if it is one of these", ", or a folder")
        return _READERS[file.suffix.lower()](file)


def _from_json(file: Path) -> GroundTruth:
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError, MemoryError) as error:
        problem = f"{file} cannot be read as JSON: {str(error)[:200] or type(error).__name__}"
        raise FileFormatError(problem, "copy or save it again: it is cut short or damaged") from error
    return _from_dictionary(file, content)


def _from_child(file: Path) -> GroundTruth:
    format_name = "a MATLAB file" if file.suffix.lower() == ".mat" else "a pickle"
    parsed = parse_in_child(f"{__name__}:parse", file, format_name).value
    lists = {name: [np.array(one, np.int64) for one in found] for name, found in parsed["lists"].items()}
    images, queries = (None if parsed[key] is None else tuple(parsed[key]) for key in ("images", "queries"))
    return GroundTruth(lists, images, queries)


_READERS = {".json": _from_json, ".pkl": _from_child, ".pickle": _from_child, ".mat": _from_child}


def parse(path: str) -> dict[str, Any]:
    """In the child: the ground truth as JSON can hold it."""
    file = Path(path)
    truth = _from_mat(file) if file.suffix.lower() == ".mat" else _from_dictionary(file, read_plain_pickle(file))
    return truth._asdict() | {"lists": {name: [one.tolist() for one in found] for name, found in truth.lists.items()}}


def _from_dictionary(path: Path, content: Any) -> GroundTruth:
    """Ground truth of the published .json and .pkl files: a dict of gnd, imlist and qimlist, counted from 0."""
    if not isinstance(content, dict) or "gnd" not in content:
        held = reprlib.repr(list(content)) if isinstance(content, dict) else f"a {type(content).__name__}"
        problem = f"{path} holds {held}; expected a dictionary with gnd, imlist and qimlist"
        raise FileFormatError(problem, _AS_PUBLISHED)
    return _checked(path, content["gnd"], content.get("imlist"), content.get("qimlist"))


def _checked(path: Path, gnd: Any, imlist: Any, qimlist: Any, is_matlab: bool = False) -> GroundTruth:
    """The lists as sorted positions from 0; refused unless every one is in range and stands once in a query."""
    names = _list_names(path, gnd)
    images, queries = _image_names(imlist, f"imlist in {path}"), _image_names(qimlist, f"qimlist in {path}")
    if images is not None and len(set(images)) < len(images):
        (twice, _), *_ = Counter(images).most_common(1)
        raise FileFormatError(f"imlist in {path} has {reprlib.repr(twice)} twice", "name every image once")
    if queries is not None and len(queries) != len(gnd):
        problem = f"{path} has lists for {len(gnd)} queries but {len(queries)} names in qimlist"
        raise FileFormatError(problem, "give every query its lists and its name")
    lists: dict[str, list[Ints]] = {name: [] for name in names}
    for query, entries in enumerate(gnd):
        owner: dict[int, str] = {}
        for name in names:
            where = f"the list {name!r} of query {query} (counted from 0) in {path}"
            found = _positions(entries[name], where, images, is_matlab)
            shared = next((position for position in found.tolist() if position in owner), None)
            if shared is not None:
                problem = f"{where} has the image {_image(shared, images, is_matlab)}"
                hint = "put every image into one list of a query"
                raise FileFormatError(f"{problem}, which stands in {owner[shared]!r} too", hint)
            owner |= dict.fromkeys(found.tolist(), name)
            lists[name].append(found)
    return GroundTruth(lists, images, queries)


def _list_names(path: Path, gnd: Any) -> tuple[str, ...]:
    """CLASSIC or REVISITED, the same for every query."""
    if not isinstance(gnd, list | tuple) or not gnd or not all(isinstance(one, Mapping) for one in gnd):
        problem = f"gnd in {path} is {reprlib.repr(gnd)}; expected lists for each of one or more queries"
        raise FileFormatError(problem, _AS_PUBLISHED)
    kinds = [{name for name in {*CLASSIC, *REVISITED} if name in one} for one in gnd]
    for query, names in enumerate(kinds):
        if names != kinds[0] or names not in (set(CLASSIC), set(REVISITED)):
            problem = f"gnd in {path} has for query {query} (counted from 0) the lists {sorted(names)}, for query 0"
            expected = f"expected for all queries {' and '.join(CLASSIC)}, or for all {', '.join(REVISITED)}"
            hint = "keep the classic and the revisited ground truth apart"
            raise FileFormatError(f"{problem} {sorted(kinds[0])}; {expected}", hint)
    return CLASSIC if kinds[0] == set(CLASSIC) else REVISITED


def _image_names(names: Any, where: str) -> tuple[str, ...] | None:
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


def _image(position: int, images: Sequence[str] | None, is_matlab: bool) -> str:
    return f"position {position + is_matlab}" if images is None else repr(images[position])


_LAST = 2**63 - 1
_EXACT = 2.0**53  # up to here every float that is a whole number is the number that was written
_HINT = "published .json and .pkl files count images from 0, .mat files from 1"


def _positions(entries: Any, where: str, images: Sequence[str] | None, is_matlab: bool) -> Ints:
    """The positions counted from 0, rising; refused unless they are distinct whole numbers in range."""
    numbers = _numbers(entries, where)
    if not len(numbers):
        return np.empty(0, np.int64)
    if is_matlab and numbers.dtype.kind == "f":
        wrong = ~(np.isfinite(numbers) & (np.abs(numbers) <= _EXACT) & (numbers == np.trunc(numbers)))
        numbers = numbers[wrong] if wrong.any() else numbers.astype(np.int64)
    if numbers.dtype.kind not in "iu":
        raise _not_whole(numbers[0], where)
    first = int(is_matlab)
    last = _LAST if images is None else first + len(images) - 1
    for number in (int(numbers.min()), int(numbers.max())):
        if not first <= number <= last:
            end = "up" if images is None else f"to {last}, as imlist has {count(len(images), 'name')}"
            raise FileFormatError(f"{where} has the position {number}; expected {first} {end}", _HINT)
    ordered = np.sort(numbers.astype(np.int64)) - first
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        image = _image(repeated[0], images, is_matlab)
        raise FileFormatError(f"{where} has the image {image} twice", "list every image once")
    return ordered


def _numbers(entries: Any, where: str) -> np.ndarray[Any, Any]:
    if isinstance(entries, np.ndarray):
        if entries.size and max(entries.shape, default=1) != entries.size:
            raise FileFormatError(f"{where} has shape {entries.shape}; expected one row", "list the positions")
        return entries.ravel()
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


def _not_whole(entry: Any, where: str) -> FileFormatError:
    return FileFormatError(f"{where} has {reprlib.repr(entry)}; expected whole numbers, the positions of images", _HINT)


_KINDS = ("query", "good", "ok", "junk")
_PREFIX = "oxc1_"  # the name of the data set, in front of the queries of Oxford
_LARGEST_TEXT = 1 << 26


def _read_text_folder(folder: Path) -> GroundTruth:
    """Ground truth of `<query>_query.txt`, `_good.txt`, `_ok.txt` and `_junk.txt`, queries sorted by `<query>`.

    `ok` joins good and ok. The images are those that some file mentions, sorted by name: not the whole set.
    """
    files = {file.name for file in folder.iterdir()}
    ends = [f"_{kind}.txt" for kind in _KINDS]
    queries = sorted({file.removesuffix(end) for file in files for end in ends if file.endswith(end)})
    if not queries:
        raise FileFormatError(
            f"{folder} has no file such as all_souls_1_query.txt; "
            "expected four text files for each query, as Oxford and Paris were published",
            "name the folder that holds these files, or a .json, .pkl or .mat file",
        )
    lists = [{kind: _names_in_text(folder, files, query, kind) for kind in _KINDS} for query in queries]
    images = sorted({name for one in lists for names in one.values() for name in names})
    position = {name: number for number, name in enumerate(images)}
    gnd = [
        {"ok": [position[name] for name in one["good"] + one["ok"]], "junk": [position[name] for name in one["junk"]]}
        for one in lists
    ]
    return _checked(folder, gnd, images, [one["query"][0] for one in lists])._replace(is_whole=False)


def _names_in_text(folder: Path, files: set[str], query: str, kind: str) -> list[str]:
    """The names in one file, one a line; for a query only its image, without the name of the data set."""
    file = folder / f"{query}_{kind}.txt"
    if file.name not in files:
        problem = f"{file} does not exist, though others of {query!r} do; expected {', '.join(_KINDS)}"
        raise FileFormatError(problem, "copy it from the published archive; without names in it, it would be empty")
    if not file.is_file() or file.stat().st_size > _LARGEST_TEXT:
        raise FileFormatError(f"{file} is no file of at most {_LARGEST_TEXT:,} bytes", "check the folder")
    with utf8(file, "save it as UTF-8"):
        lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    words: Iterable[str]
    if kind == "query":
        expected, is_sound, words = "one line with a name and four coordinates", _is_query(lines), chain(*lines)
    else:
        words = next((line for line in lines if len(line) != 1), [])
        expected, is_sound = "one name a line", not words
    if not is_sound:
        raise FileFormatError(f"{file} has {reprlib.repr(' '.join(words))}; expected {expected}", _AS_PUBLISHED)
    return [line[0].removeprefix(_PREFIX) if kind == "query" else line[0] for line in lines]


def _is_query(lines: list[list[str]]) -> bool:
    try:
        return len(lines) == 1 and len(lines[0]) == 5 and all(math.isfinite(float(word)) for word in lines[0][1:])
    except ValueError:
        return False


_MAT_HINT = "expected a struct array gnd and cell arrays imlist and qimlist of text, as published"


def _from_mat(path: Path) -> GroundTruth:
    """Ground truth of a struct array gnd with easy, hard, junk or ok, junk; MATLAB 5 to 7.3."""
    found = _from_hdf5(open_hdf5(path)) if is_hdf5(path) else load_variables(path, ("gnd", "imlist", "qimlist"))
    if "gnd" not in found:
        raise FileFormatError(f"{path} has no struct array gnd with lists of images", _MAT_HINT)
    return _checked(path, found["gnd"], found.get("imlist"), found.get("qimlist"), is_matlab=True)


def _from_hdf5(file: Hdf5) -> dict[str, Any]:
    """The lists by query and the names, as far as the file has them."""
    present, found = file.names(), dict[str, Any]()
    fields = [name for name in file.names("gnd") if name in {*CLASSIC, *REVISITED}] if "gnd" in present else []
    if fields:
        # MATLAB writes the fields of a single struct without references.
        lists = {name: cells(file, f"gnd/{name}", values) or [values(file.dataset(f"gnd/{name}"))] for name in fields}
        if len(set(map(len, lists.values()))) != 1:
            problem = f"gnd in {file.path} has lists for {list(map(len, lists.values()))} queries"
            raise FileFormatError(problem, _MAT_HINT)
        found["gnd"] = [dict(zip(lists, one, strict=True)) for one in zip(*lists.values(), strict=True)]
    for name in ("imlist", "qimlist"):
        if name in present:
            found[name] = cells(file, name, text)
            if found[name] is None:
                raise FileFormatError(f"{file.where(name)} is no cell array", _MAT_HINT)
    return found
