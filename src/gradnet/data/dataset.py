"""What a published data set is: what it holds, its files, and where each of them comes from."""

from __future__ import annotations

from dataclasses import dataclass

DESCRIPTORS, GROUND_TRUTH, IMAGES = PARTS = ("descriptors", "ground-truth", "images")


@dataclass(frozen=True)
class RemoteFile:
    """One file as its source publishes it.

    url: http, https or ftp. path: its place inside the set's folder, with slashes. part: one of PARTS.
    sha256: of the published file; None where no source states it. size: bytes, about; None where not known.
    unpack_to: for an archive, the folder inside the set's folder that takes what is in it.
    page: where people find the file; None where that is the set's own source.
    obtain: what helps where the link is dead, as a clause; None where the set's own clause does.
    """

    url: str
    path: str
    part: str
    sha256: str | None = None
    size: int | None = None
    unpack_to: str | None = None
    page: str | None = None
    obtain: str | None = None

    @property
    def name(self) -> str:
        """What the file is called, without folders."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class DataSet:
    """One data set of the catalogue.

    items: how many there are; `about` where that is a round number. queries: None where every item is one.
    truth: the ground truth, in words. licence: the terms as the source states them; None where that could not
    be confirmed.
    window: of the bullseye score by which the literature compares; None where it uses another.
    obtain: what helps where a link is dead, as a clause. default_parts: what is fetched unless asked otherwise.
    """

    name: str
    title: str
    items: int
    queries: int | None
    truth: str
    source: str
    licence: str | None
    obtain: str = ""
    files: tuple[RemoteFile, ...] = ()
    default_parts: tuple[str, ...] = (DESCRIPTORS, GROUND_TRUTH)
    about: bool = False
    window: int | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that have files, in the order of PARTS."""
        return tuple(part for part in PARTS if any(file.part == part for file in self.files))

    @property
    def size(self) -> int | None:
        """Bytes of the default parts, about; None where a file's size is not known."""
        sizes = [file.size for file in self.files if file.part in self.default_parts]
        known = [size for size in sizes if size is not None]
        return sum(known) if known and len(known) == len(sizes) else None

    @property
    def needed(self) -> tuple[RemoteFile, ...]:
        """The files without which the set is not here: the default parts, or all where none is a default."""
        return tuple(file for file in self.files if file.part in self.default_parts) or self.files
