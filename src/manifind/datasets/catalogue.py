"""The data sets that are known by name: what each holds, its files, their sources, and where they are on disk."""

import os
import tempfile
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from pathlib import Path

from manifind.errors import DataError, InputError, MissingExtraError, system_errors_as
from manifind.text import count

VARIABLE = "MANIFIND_DATA"
_OLD_VARIABLE = "GRADNET_DATA"


def data_root(folder: str | os.PathLike[str] | None = None) -> Path:
    """The given folder, else the one that MANIFIND_DATA names, else the platform's folder for caches."""
    if folder is not None:
        return Path(folder).expanduser()
    named = os.environ.get(VARIABLE)
    if not named and (named := os.environ.get(_OLD_VARIABLE)):
        warnings.warn(
            f"{_OLD_VARIABLE} is deprecated and will be ignored by the next version: set {VARIABLE} instead",
            FutureWarning,
            stacklevel=2,
        )
    if named:
        return Path(named).expanduser()
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError(
            "the folder for data sets is not named, and finding this system's own needs pooch, which is not installed",
            f'pip install "manifind[data]", or name a folder with --folder or {VARIABLE}',
        ) from error
    return Path(pooch.os_cache("manifind"))


def make_writable(folder: Path) -> None:
    """Make the folder where it is missing; refuse one in which no file can be made."""
    hint = f"name another folder with --folder or {VARIABLE}, or make this one yours to write"
    with system_errors_as(DataError, f"{folder} cannot be written to", hint):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


DESCRIPTORS, GROUND_TRUTH, IMAGES = PARTS = ("descriptors", "ground-truth", "images")


@dataclass(frozen=True)
class RemoteFile:
    """One file as its source publishes it."""

    url: str  # http, https or ftp
    path: str  # its place inside the set's folder, with slashes
    part: str  # one of PARTS
    sha256: str | None = None  # of the published file; None where no source states it
    size: int | None = None  # bytes, about; None where not known
    unpack_to: str | None = None  # for an archive, the folder inside the set's folder that takes what is in it
    page: str | None = None  # where people find the file; None where that is the set's own source
    obtain: str | None = None  # what helps where the link is dead, as a clause; None where the set's own clause does

    @property
    def name(self) -> str:
        """What the file is called, without folders."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class DataSet:
    """One data set of the catalogue."""

    name: str
    title: str
    items: int
    queries: int | None  # None where every item is one
    truth: str  # the ground truth, in words
    source: str
    licence: str | None  # the terms as the source states them; None where that could not be confirmed
    obtain: str = ""  # what helps where a link is dead, as a clause
    files: tuple[RemoteFile, ...] = ()
    default_parts: tuple[str, ...] = (DESCRIPTORS, GROUND_TRUTH)  # what is fetched unless asked otherwise
    about: bool = False  # whether `items` is a round number
    window: int | None = None  # of the bullseye score by which the literature compares; None where it uses another

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that have files, in the order of PARTS."""
        return tuple(part for part in PARTS if any(file.part == part for file in self.files))

    @property
    def size(self) -> int | None:
        """Bytes of the default parts, about; None where a file's size is not known."""
        sizes = [file.size for file in self.files if file.part in self.default_parts]
        return None if None in sizes or not sizes else sum(size or 0 for size in sizes)

    @property
    def needed(self) -> tuple[RemoteFile, ...]:
        """The files without which the set is not here: the default parts, or all where none is a default."""
        return tuple(file for file in self.files if file.part in self.default_parts) or self.files


def _read_catalogue() -> Iterator[DataSet]:
    """The sets of catalogue.toml; what it cannot say, since TOML has no null, is None."""
    content = resources.files("manifind.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    for facts in tomllib.loads(content)["sets"]:
        files = tuple(RemoteFile(**file) for file in facts.pop("files", ()))
        parts = tuple(facts.pop("default_parts", DataSet.default_parts))
        yield DataSet(**{"queries": None, "licence": None, **facts}, files=files, default_parts=parts)


CATALOGUE = {dataset.name: dataset for dataset in _read_catalogue()}


def find_set(name: str) -> DataSet:
    """The data set of that name; an unknown name is refused with the nearest ones."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    near = get_close_matches(name.lower(), CATALOGUE)
    raise InputError(
        f"there is no data set called {name!r}; expected one of {', '.join(CATALOGUE)}",
        f"did you mean {' or '.join(near)}?" if near else "`manifind data list` tells what they hold",
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
    return bytes_text(dataset.size) if dataset.files else "nothing to fetch"
