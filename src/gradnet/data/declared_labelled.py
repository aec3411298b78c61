"""Declarations of the sets whose ground truth is one label per item."""

from __future__ import annotations

from gradnet.data.dataset import IMAGES, DataSet, RemoteFile

_ORL = "https://www.cl.cam.ac.uk/research/dtg/attarchive/pub/data/att_faces.zip"
_MPEG7 = "https://dabi.temple.edu/external/shape/MPEG7/MPEG7dataset.zip"
_COIL = "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip"


def _pictures(url: str, size: int) -> tuple[RemoteFile, ...]:
    return (RemoteFile(url, url.rsplit("/", 1)[-1], IMAGES, size=size, unpack_to="pictures"),)


LABELLED = (
    DataSet(
        name="orl",
        title="faces, 92 x 112 pixels",
        items=400,
        queries=None,
        truth="40 people, 10 pictures each",
        source="https://cam-orl.co.uk/facedatabase.html",
        licence="credit to Olivetti Research Laboratory (AT&T Laboratories Cambridge) is asked for",
        obtain="any copy will do that has the folders s1 to s40 with 1.pgm to 10.pgm in each",
        # scikit-learn's source states a SHA-256 for Olivetti faces; those are another form, 64 x 64 pixels.
        files=_pictures(_ORL, 4_500_000),
        default_parts=(IMAGES,),
        window=15,
    ),
    DataSet(
        name="mpeg7",
        title="silhouettes of MPEG-7 CE-Shape-1 part B",
        items=1400,
        queries=None,
        truth="70 shapes, 20 pictures each",
        source="http://www.dabi.temple.edu/~shape/MPEG7/dataset.html",
        licence="none stated",
        obtain="any copy will do that has apple-1.gif to watch-20.gif in one folder",
        files=_pictures(_MPEG7, 3_400_000),
        default_parts=(IMAGES,),
        window=40,
    ),
    DataSet(
        name="coil20",
        title="objects on a turntable, 128 x 128 pixels",
        items=1440,
        queries=None,
        truth="20 objects, 72 views each",
        source="https://www.cs.columbia.edu/CAVE/software/softlib/coil-20.php",
        licence="for research purposes",
        obtain="any copy will do that has obj1__0.png to obj20__71.png in one folder",
        files=_pictures(_COIL, 12_100_000),
        default_parts=(IMAGES,),
    ),
    DataSet(
        name="digits",
        title="handwritten digits, 8 x 8 pixels",
        items=1797,
        queries=None,
        truth="10 digits",
        source="https://scikit-learn.org/stable/modules/generated/sklearn.datasets.load_digits.html",
        licence="comes with scikit-learn (BSD-3-Clause)",
    ),
    DataSet(
        name="letters",
        title="points in the plane that spell P A M I",
        items=1500,
        queries=4,
        truth="4 letters",
        source="drawn by gradnet.data.letters",
        licence="part of this library (MIT)",
    ),
)
