"""The data sets that are known by name: what each holds, its files, their sources, and where they are on disk."""

import os
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

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


_COLUMBIA = "https://www.cs.columbia.edu/CAVE"
_DIFFUSION = "https://github.com/ahmetius/diffusion-retrieval"
_IRISA = "ftp://ftp.irisa.fr/local/texmex/corpus/diffusion"
_REVISITED = "http://cmp.felk.cvut.cz/revisitop"
_OXFORD = "https://www.robots.ox.ac.uk/~vgg/data/oxbuildings/"
_PARIS = "https://www.robots.ox.ac.uk/~vgg/data/parisbuildings/"
_FLICKR = "http://www.robots.ox.ac.uk/~vgg/data/oxbuildings"


def _pictures(archive: str, size: int, copy: str, **facts: Any) -> DataSet:
    """A set of pictures of classes. archive: its address. copy: what any other copy of the set must have."""
    file = RemoteFile(archive, archive.rsplit("/", 1)[-1], IMAGES, size=size, unpack_to="pictures")
    obtain = f"any copy will do that has {copy}"
    return DataSet(**facts, queries=None, obtain=obtain, files=(file,), default_parts=(IMAGES,))


def _photographs(page: str, archive: str, folder: str, size: int | None = None) -> RemoteFile:
    """An archive of the Visual Geometry Group, and the folder that it is unpacked to."""
    obtain = "the Visual Geometry Group may ask you to apply for access"
    return RemoteFile(page + archive, f"images/{archive}", IMAGES, None, size, f"images/{folder}", page, obtain)


def _classic(name: str, title: str, items: int, photographs: tuple[RemoteFile, ...] = (), terms: str = "") -> DataSet:
    """A set with the descriptors and the ground truth that Iscen et al. published. terms: of photographs."""
    descriptors = [f"{name}_{network}.mat" for network in ("siamac", "resnet")]
    return DataSet(
        name,
        title,
        items,
        queries=55,
        truth="ok and junk images of each query",
        source=_DIFFUSION,
        licence=f"none stated; photographs: {terms}" if terms else "none stated",
        obtain="the files are those of Iscen et al. (CVPR 2017), whose authors may have a copy",
        files=(
            *(RemoteFile(f"{_IRISA}/data/{file}", file, DESCRIPTORS) for file in descriptors),
            RemoteFile(f"{_IRISA}/gnd/gnd_{name}.mat", f"gnd_{name}.mat", GROUND_TRUTH),
            *photographs,
        ),
        about=not photographs,
    )


def _revisited(name: str, title: str, items: int, truth: dict[str, tuple[str | None, int | None]]) -> DataSet:
    """A set of the revisited evaluation. truth: SHA-256 and size of the file with each suffix."""
    descriptors = f"{name}_resnet_rsfm120k_gem.mat"
    files = [RemoteFile(f"{_REVISITED}/data/features/{descriptors}", descriptors, DESCRIPTORS)]
    for suffix, (sha256, size) in truth.items():
        file = f"gnd_{name}.{suffix}"
        files.append(RemoteFile(f"{_REVISITED}/data/datasets/{name}/{file}", file, GROUND_TRUTH, sha256, size))
    obtain = "the files are those of Radenovic et al. (CVPR 2018), whose authors may have a copy"
    lists = "easy, hard and junk images of each query"
    return DataSet(name, title, items, 70, lists, _REVISITED, "none stated", obtain, tuple(files))


_SETS = (
    _pictures(
        # scikit-learn's source states a SHA-256 for Olivetti faces; those are another form, 64 x 64 pixels.
        "https://www.cl.cam.ac.uk/research/dtg/attarchive/pub/data/att_faces.zip",
        4_500_000,
        "the folders s1 to s40 with 1.pgm to 10.pgm in each",
        name="orl",
        title="faces, 92 x 112 pixels",
        items=400,
        truth="40 people, 10 pictures each",
        source="https://cam-orl.co.uk/facedatabase.html",
        licence="credit to Olivetti Research Laboratory (AT&T Laboratories Cambridge) is asked for",
        window=15,
    ),
    _pictures(
        "https://dabi.temple.edu/external/shape/MPEG7/MPEG7dataset.zip",
        3_400_000,
        "apple-1.gif to watch-20.gif in one folder",
        name="mpeg7",
        title="silhouettes of MPEG-7 CE-Shape-1 part B",
        items=1400,
        truth="70 shapes, 20 pictures each",
        source="http://www.dabi.temple.edu/~shape/MPEG7/dataset.html",
        licence="none stated",
        window=40,
    ),
    _pictures(
        f"{_COLUMBIA}/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip",
        12_100_000,
        "obj1__0.png to obj20__71.png in one folder",
        name="coil20",
        title="objects on a turntable, 128 x 128 pixels",
        items=1440,
        truth="20 objects, 72 views each",
        source=f"{_COLUMBIA}/software/softlib/coil-20.php",
        licence="for research purposes",
    ),
    DataSet(
        "digits",
        "handwritten digits, 8 x 8 pixels",
        items=1797,
        queries=None,
        truth="10 digits",
        source="https://scikit-learn.org/stable/modules/generated/sklearn.datasets.load_digits.html",
        licence="comes with scikit-learn (BSD-3-Clause)",
    ),
    DataSet(
        "letters",
        "points in the plane that spell P A M I",
        items=1500,
        queries=4,
        truth="4 letters",
        source="drawn by manifind.datasets.synthetic",
        licence="part of this library (MIT)",
    ),
    _classic(
        "oxford5k",
        "Oxford buildings",
        5063,
        (
            _photographs(_OXFORD, "oxbuild_images-v1.tgz", "oxbuild_images", 1_938_238_004),
            _photographs(_OXFORD, "gt_files_170407.tgz", "gt_files"),
        ),
        "Flickr's terms of use and the terms of access of the Visual Geometry Group",
    ),
    _classic("oxford105k", "Oxford buildings among 100,000 distractors", 105_000),
    _classic(
        "paris6k",
        "Paris landmarks",
        6392,
        (
            _photographs(_PARIS, "paris_1-v1.tgz", "paris_1"),
            _photographs(_PARIS, "paris_2-v1.tgz", "paris_2"),
            _photographs(_PARIS, "paris_120310.tgz", "gt_files"),
        ),
        f"see {_PARIS}",
    ),
    _classic("paris106k", "Paris landmarks among 100,000 distractors", 106_000),
    _revisited(
        "roxford5k",
        "Oxford buildings, revisited; the photographs are those of oxford5k",
        4993,
        {
            "pkl": ("ba7967754bd2d7d2210a5799f9c45ad5835e269a80ef9d3eba44caa35816c471", 149_871),
            "mat": ("7954f7c9d8036840531fb1d82b28e169c7619312fb7816cd74152137b53ee7bc", 54_713),
        },
    ),
    _revisited(
        "rparis6k",
        "Paris landmarks, revisited; the photographs are those of paris6k",
        6322,
        {"pkl": ("d2e729a5293dda7dda8a15c8383424a42e4964a2c4cfea2f32fa85d11d2df499", 276_508), "mat": (None, None)},
    ),
    DataSet(
        "distractors100k",
        "photographs from Flickr; their descriptors are part of oxford105k and paris106k",
        items=100_000,
        queries=0,
        truth="none: nothing here is ever right",
        source=f"{_FLICKR}/flickr100k.html",
        licence=None,
        obtain="the 40 parts are unpacked together with `unrar x oxc1_100k.part01.rar`",
        files=tuple(
            RemoteFile(f"{_FLICKR}/ox100k/{part}", f"images/{part}", IMAGES)
            for part in (f"oxc1_100k.part{number:02}.rar" for number in range(1, 41))
        ),
        default_parts=(),  # needed only by those who compute descriptors of their own
        about=True,
    ),
)

CATALOGUE: dict[str, DataSet] = {dataset.name: dataset for dataset in _SETS}


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
