"""The original ground truth of Oxford and Paris: a folder with four text files for each query."""

from __future__ import annotations

import math
import reprlib
from pathlib import Path

from gradnet.errors import FileFormatError
from gradnet.formats.published import Published, checked
from gradnet.formats.regular_file import readable
from gradnet.formats.truth import GroundTruth

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
        lists = {query: {kind: _names(folder, files, query, kind) for kind in _KINDS} for query in queries}
    images = sorted({name for one in lists.values() for names in one.values() for name in names})
    position = {name: number for number, name in enumerate(images)}
    gnd = [
        {
            "ok": [position[name] for name in one["good"] + one["ok"]],
            "junk": [position[name] for name in one["junk"]],
        }
        for one in lists.values()
    ]
    asked = [one["query"][0] for one in lists.values()]
    return checked(Published(str(folder), gnd, images, asked))._replace(is_whole=False)


def _query_of(file: str) -> str | None:
    return next((file.removesuffix(end) for kind in _KINDS if file.endswith(end := f"_{kind}.txt")), None)


def _names(folder: Path, files: set[str], query: str, kind: str) -> list[str]:
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
        f"{file} has {reprlib.repr(' '.join(words))}; expected {expected}",
        "take the file as its authors publish it",
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
