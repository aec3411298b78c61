"""The door for published ground truth: the suffix chooses the reader, a folder holds the original text files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from gradnet.errors import FileFormatError
from gradnet.formats.matlab_truth import read_mat_truth
from gradnet.formats.oxford_text import read_text_folder
from gradnet.formats.published import from_dictionary
from gradnet.formats.regular_file import check_regular_file, readable
from gradnet.formats.restricted_pickle import read_plain_pickle
from gradnet.formats.truth import GroundTruth

__all__ = ["GroundTruth", "read_ground_truth"]

_LARGEST = 1 << 30
_DAMAGED = (ValueError, RecursionError, MemoryError)


def read_ground_truth(path: str | os.PathLike[str]) -> GroundTruth:
    """Lists of every query from a published .json, .pkl, .pickle or .mat file, or from a folder of text files.

    Names stay as the file has them, with or without a suffix such as .jpg.
    """
    file = Path(path)
    if file.is_dir():
        return read_text_folder(file)
    with readable(file):
        check_regular_file(file, f"expected ground truth: {', '.join(_READERS)}, or a folder of text files")
        if file.stat().st_size > _LARGEST:
            raise FileFormatError(
                f"{file} has {file.stat().st_size:,} bytes; expected ground truth of at most {_LARGEST:,}",
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


def _from_pickle(file: Path) -> GroundTruth:
    return from_dictionary(str(file), read_plain_pickle(file))


_READERS: dict[str, Callable[[Path], GroundTruth]] = {
    ".json": _from_json,
    ".pkl": _from_pickle,
    ".pickle": _from_pickle,
    ".mat": read_mat_truth,
}
