"""What is in a data set's folder: which of its files are there, and whether their bytes are the right ones."""

from pathlib import Path
from typing import NamedTuple

from manifind.datasets.catalogue import DataSet, RemoteFile
from manifind.datasets.download import by_hand
from manifind.datasets.labelled import labelled_forms
from manifind.datasets.landmarks import landmark_files
from manifind.errors import DataError, system_errors_as
from manifind.files import SUMS, read_sums, sha256_of
from manifind.progress import Listener, ignore

PUBLISHED = "matches what was published"
RECORDED = "matches its first download"
UNRECORDED = "not recorded"
UNPACKED = "unpacked, archive not kept"
DIFFERS = "differs"
MISSING = "missing"


class FileState(NamedTuple):
    """One declared file and how it is."""

    file: RemoteFile
    required: bool  # whether the set is not here without it
    state: str  # one of the words above
    detail: str  # the two digests where it differs, what to get where it is missing; empty where all is well


class SetState(NamedTuple):
    """The declared files and, where these are missing, the arrays or pictures that are there instead."""

    files: list[FileState]
    other_form: list[Path]

    @property
    def is_usable(self) -> bool:
        """Whether nothing differs and what is needed by default is there, in one form or the other."""
        missing = any(state.required and state.state == MISSING for state in self.files)
        differs = any(state.state == DIFFERS for state in self.files)
        return not differs and (not missing or bool(self.other_form))


def check_files(dataset: DataSet, root: Path, listener: Listener = ignore) -> SetState:
    """The state of every declared file. Writes nothing."""
    folder = root / dataset.name
    sums = read_sums(folder)
    files = [_state(dataset, file, folder, sums, listener) for file in dataset.files]
    is_bare = all(state.state == MISSING for state in files if state.required)
    return SetState(files, _other_forms(dataset, root) if is_bare else [])


def is_available(dataset: DataSet, root: Path) -> bool:
    """Whether what is needed by default is there; no byte of it is read."""
    folder = root / dataset.name
    whole = all((folder / file.path).is_file() or _is_unpacked(folder, file) for file in dataset.needed)
    return whole or bool(_other_forms(dataset, root))


def _other_forms(dataset: DataSet, root: Path) -> list[Path]:
    """What `manifind data check` can read in place of the declared files."""
    pairs = landmark_files(root / dataset.name)
    return labelled_forms(dataset.name, root) or sorted({path for pair in pairs for path in pair})


def _is_unpacked(folder: Path, file: RemoteFile) -> bool:
    return file.unpack_to is not None and (folder / file.unpack_to).is_dir()


def _state(dataset: DataSet, file: RemoteFile, folder: Path, sums: dict[str, str], listener: Listener) -> FileState:
    path = folder / file.path
    state, detail = MISSING, by_hand(dataset, file, path)
    if path.is_file():
        state, detail = _compared(file, path, sums.get(file.path), listener)
    elif _is_unpacked(folder, file):
        state, detail = UNPACKED, ""
    return FileState(file, file in dataset.needed, state, detail)


def _compared(file: RemoteFile, path: Path, recorded: str | None, listener: Listener) -> tuple[str, str]:
    with system_errors_as(DataError, f"{path} cannot be read", "check that it is yours to read"):
        digest = sha256_of(path, listener)
    known = file.sha256 or recorded
    if known is None:
        return UNRECORDED, f"`manifind data fetch` records {digest} in {SUMS}"
    if digest != known:
        return DIFFERS, f"has the SHA-256 {digest}, expected {known}"
    return (PUBLISHED if file.sha256 else RECORDED), ""
