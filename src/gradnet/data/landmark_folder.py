"""A folder that holds a landmark set: files of vectors, and ground truth in any published form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gradnet.data.landmarks import Landmarks, join
from gradnet.formats import SUFFIXES, read_ground_truth, read_vectors

_TRUTH_SUFFIXES = (".json", ".pkl", ".mat")  # of one ground truth in several forms, the first is read
_QUERY_FILES = "*_query.txt"


class LandmarkFiles(NamedTuple):
    """vectors: a file that `read_vectors` takes. truth: what `read_ground_truth` takes."""

    vectors: Path
    truth: Path


def landmark_files(folder: Path) -> list[LandmarkFiles]:
    """Every pair of vectors and ground truth in the folder; empty where one of the two is missing.

    Ground truth is a file called `gnd_*`, or a folder with Oxford's text files.
    """
    truths = truth_files(folder)
    vectors = [file for file in _files(folder) if file.suffix.lower() in SUFFIXES and not _is_truth(file)]
    return [LandmarkFiles(file, truth) for file in vectors for truth in truths]


def read_landmark_folder(folder: Path) -> Iterator[tuple[LandmarkFiles, Landmarks]]:
    """Each pair, read and brought together."""
    for files in landmark_files(folder):
        yield files, read_pair(files)


def read_pair(files: LandmarkFiles) -> Landmarks:
    """Vectors and ground truth, read and brought together."""
    return join(read_vectors(files.vectors), read_ground_truth(files.truth))


def truth_files(folder: Path) -> list[Path]:
    """Every ground truth in the folder, each in one form."""
    forms: dict[str, Path] = {}
    for suffix in _TRUTH_SUFFIXES:
        for file in _files(folder):
            if _is_truth(file) and file.suffix.lower() == suffix:
                forms.setdefault(file.stem, file)
    texts = sorted({file.parent for file in folder.glob(f"*/{_QUERY_FILES}")})
    if any(folder.glob(_QUERY_FILES)):
        texts.append(folder)
    return [*forms.values(), *texts]


def _is_truth(file: Path) -> bool:
    return file.name.startswith("gnd_")


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*") if file.is_file() and not file.name.startswith("."))
