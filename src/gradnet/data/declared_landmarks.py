"""Declarations of Oxford, Paris, their large and their revisited forms, and the distractors."""

from __future__ import annotations

from gradnet.data.dataset import DESCRIPTORS, GROUND_TRUTH, IMAGES, DataSet, RemoteFile

_DIFFUSION = "https://github.com/ahmetius/diffusion-retrieval"
_IRISA = "ftp://ftp.irisa.fr/local/texmex/corpus/diffusion"
_REVISITED = "http://cmp.felk.cvut.cz/revisitop"
_OXFORD = "https://www.robots.ox.ac.uk/~vgg/data/oxbuildings/"
_PARIS = "https://www.robots.ox.ac.uk/~vgg/data/parisbuildings/"
_FLICKR = "http://www.robots.ox.ac.uk/~vgg/data/oxbuildings/flickr100k.html"
_FLICKR_PARTS = "http://www.robots.ox.ac.uk/~vgg/data/oxbuildings/ox100k"


def _photographs(page: str, archive: str, folder: str, size: int | None = None) -> RemoteFile:
    """An archive of the Visual Geometry Group, and the folder that it is unpacked to."""
    return RemoteFile(
        page + archive,
        f"images/{archive}",
        IMAGES,
        size=size,
        unpack_to=f"images/{folder}",
        page=page,
        obtain="the Visual Geometry Group may ask you to apply for access",
    )


def _classic(
    name: str, title: str, items: int, photographs: tuple[RemoteFile, ...] = (), terms: str = ""
) -> DataSet:
    """A set with the descriptors and the ground truth that Iscen et al. published. terms: of photographs."""
    descriptors = [f"{name}_{network}.mat" for network in ("siamac", "resnet")]
    return DataSet(
        name=name,
        title=title,
        items=items,
        about=not photographs,
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
    )


def _revisited(name: str, title: str, items: int, truth: dict[str, tuple[str | None, int | None]]) -> DataSet:
    """A set of the revisited evaluation. truth: SHA-256 and size of the file with each suffix."""
    descriptors = f"{name}_resnet_rsfm120k_gem.mat"
    return DataSet(
        name=name,
        title=title,
        items=items,
        queries=70,
        truth="easy, hard and junk images of each query",
        source=_REVISITED,
        licence="none stated",
        obtain="the files are those of Radenovic et al. (CVPR 2018), whose authors may have a copy",
        files=(
            RemoteFile(f"{_REVISITED}/data/features/{descriptors}", descriptors, DESCRIPTORS),
            *(
                RemoteFile(f"{_REVISITED}/data/datasets/{name}/{file}", file, GROUND_TRUTH, sha256, size)
                for suffix, (sha256, size) in truth.items()
                for file in [f"gnd_{name}.{suffix}"]
            ),
        ),
    )


LANDMARKS = (
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
        {
            "pkl": ("d2e729a5293dda7dda8a15c8383424a42e4964a2c4cfea2f32fa85d11d2df499", 276_508),
            "mat": (None, None),
        },
    ),
    DataSet(
        name="distractors100k",
        title="photographs from Flickr; their descriptors are part of oxford105k and paris106k",
        items=100_000,
        about=True,
        queries=0,
        truth="none: nothing here is ever right",
        source=_FLICKR,
        licence=None,
        obtain="the 40 parts are unpacked together with `unrar x oxc1_100k.part01.rar`",
        files=tuple(
            RemoteFile(f"{_FLICKR_PARTS}/{part}", f"images/{part}", IMAGES)
            for part in (f"oxc1_100k.part{number:02}.rar" for number in range(1, 41))
        ),
        default_parts=(),  # needed only by those who compute descriptors of their own
    ),
)
