"""Pictures: grey, of one size, refused by name where they cannot be read."""

import io
import sys
from contextlib import suppress

import numpy as np
import pytest

from manifind.datasets.labelled import SUFFIXES, is_picture, read_pictures
from manifind.errors import FileFormatError, MissingExtraError

Image = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize("suffix", ["pgm", "png", "bmp", "tif", "gif", "webp"])
def test_every_format_without_loss_gives_its_pixels(draw, tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    if suffix == "webp":
        Image.fromarray(pixels).save(path, lossless=True)
    else:
        draw(path, pixels=pixels)
    np.testing.assert_array_equal(read_pictures([path]), pixels.reshape(1, 12))


def test_a_jpeg_is_read_too(tmp_path):
    Image.new("L", (8, 8), 100).save(tmp_path / "a.jpg")
    assert read_pictures([tmp_path / "a.jpg"]).tolist() == [[100] * 64]


def test_what_a_file_holds_counts_and_not_its_suffix(draw, tmp_path):
    pixels = draw(tmp_path / "a.png")
    (tmp_path / "a.png").rename(tmp_path / "a.jpg")
    np.testing.assert_array_equal(read_pictures([tmp_path / "a.jpg"])[0], pixels.ravel())


@pytest.mark.parametrize("size", [(128, 128), (1, 1), (92, 112)])
def test_pictures_of_one_small_size_keep_their_pixels(draw, tmp_path, size):
    files = [tmp_path / f"{number}.png" for number in range(3)]
    drawn = [draw(file, size) for file in files]
    rows = read_pictures(files)
    assert rows.dtype == np.uint8
    np.testing.assert_array_equal(rows, np.stack(drawn).reshape(3, -1))


@pytest.mark.parametrize("sizes", [[(129, 4)] * 2, [(4, 129)] * 2, [(4, 3), (4, 3), (3, 4)], [(200, 200), (4, 3)]])
def test_others_become_32_by_32(draw, tmp_path, sizes):
    files = [tmp_path / f"{number}.png" for number in range(len(sizes))]
    drawn = [draw(file, size) for file, size in zip(files, sizes, strict=True)]
    rows = read_pictures(files)
    assert rows.shape == (len(sizes), 1024)
    for row, pixels in zip(rows, drawn, strict=True):
        small = Image.fromarray(pixels).resize((32, 32), Image.Resampling.BOX)
        np.testing.assert_array_equal(row, np.asarray(small).ravel())


def test_a_smaller_pixel_is_the_mean_of_those_that_it_covers(draw, tmp_path):
    pixels = draw(tmp_path / "a.png", (320, 160))
    blocks = pixels.reshape(32, 5, 32, 10).mean(axis=(1, 3))
    np.testing.assert_allclose(read_pictures([tmp_path / "a.png"]).reshape(32, 32), blocks, atol=1)


def test_colours_become_grey(tmp_path):
    Image.new("RGB", (2, 1), (255, 0, 0)).save(tmp_path / "a.png")
    assert read_pictures([tmp_path / "a.png"]).tolist() == [[76, 76]]


def test_sixteen_bits_are_scaled_and_not_cut_off(tmp_path):
    deep = np.array([[0, 255, 256, 65535]], dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / "a.png")
    (tmp_path / "a.pgm").write_bytes(b"P5 4 1 65535\n" + deep.astype(">u2").tobytes())
    for name in ("a.png", "a.pgm"):
        assert read_pictures([tmp_path / name]).tolist() == [[0, 0, 1, 255]]


def test_pixels_of_no_known_range_are_refused(tmp_path):
    Image.fromarray(np.array([[0.5]], dtype=np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(FileFormatError, match="real numbers of no known range"):
        read_pictures([tmp_path / "a.tif"])


def test_what_is_transparent_is_white(tmp_path):
    Image.fromarray(np.array([[[0, 0, 0, 0], [0, 0, 0, 255]]], dtype=np.uint8)).save(tmp_path / "a.png")
    assert read_pictures([tmp_path / "a.png"]).tolist() == [[255, 0]]


def test_a_picture_is_turned_as_its_camera_says(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    Image.fromarray(np.array([[10, 20]], dtype=np.uint8)).save(tmp_path / "a.png", exif=exif)
    draw = Image.fromarray(np.array([[10], [20]], dtype=np.uint8))
    draw.save(tmp_path / "b.png")
    assert read_pictures([tmp_path / "a.png", tmp_path / "b.png"]).tolist() == [[10, 20]] * 2


def test_the_first_frame_of_an_animation_is_taken(tmp_path):
    frames = [Image.new("L", (2, 2), grey) for grey in (10, 200)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert read_pictures([tmp_path / "a.gif"]).tolist() == [[10] * 4]


def test_progress_is_told_for_every_picture(draw, tmp_path):
    files = [tmp_path / f"{number}.png" for number in range(3)]
    for file in files:
        draw(file)
    reports = []
    read_pictures(files, reports.append)
    assert [(report.stage, report.done, report.total) for report in reports] == [
        ("reading pictures", done, 3) for done in (1, 2, 3)
    ]


def jpeg(size=(64, 64)):
    stream = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, size=size, dtype=np.uint8)
    Image.fromarray(noise).save(stream, "JPEG")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not a picture of a known kind"),
        (b"plain text", "is not a picture of a known kind"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is not a picture of a known kind"),
        (b"P5 4 3 255\n\0\0", "cannot be read"),
        (jpeg()[:700], "cannot be read"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, ""),
    ],
)
def test_a_file_that_is_no_picture_or_is_cut_short_is_refused_by_name(tmp_path, content, problem):
    path = tmp_path / "a.jpg"
    path.write_bytes(content)
    with pytest.raises(FileFormatError) as caught:
        read_pictures([path])
    assert str(path) in caught.value.problem
    assert problem in caught.value.problem
    assert caught.value.hint


def test_a_missing_picture_is_refused_by_name(tmp_path):
    with pytest.raises(FileFormatError, match=r"nowhere\.png does not exist"):
        read_pictures([tmp_path / "nowhere.png"])


def test_a_picture_far_too_large_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    Image.new("1", (300, 300)).save(tmp_path / "a.png")
    for limit in (80_000, 40_000):  # Pillow warns above the limit and refuses above twice the limit
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(FileFormatError, match=r"a\.png cannot be read: .*decompression bomb"):
            read_pictures([tmp_path / "a.png"])


def test_random_damage_is_refused_or_harmless(tmp_path):
    generator = np.random.default_rng(1)
    for number in range(60):
        content = bytearray(jpeg((16, 16)))
        for place in generator.integers(2, len(content), size=5):
            content[place] = generator.integers(256)
        (tmp_path / f"{number}.jpg").write_bytes(content)
        with suppress(FileFormatError):
            assert read_pictures([tmp_path / f"{number}.jpg"]).ndim == 2


def test_pictures_are_told_by_their_suffix(tmp_path):
    yes = ["a.pgm", "a.PNG", "b.c.jpeg"]
    no = ["README", "Thumbs.db", ".a.png", "._1.pgm", "a.txt", "png"]
    assert [name for name in yes + no if is_picture(tmp_path / name)] == yes


def test_without_pillow_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r'pip install "manifind\[data\]"'):
        read_pictures([tmp_path / "a.png"])


def test_the_suffixes_are_those_of_the_formats():
    assert {suffix.lstrip(".") for suffix in SUFFIXES} >= {"pgm", "png", "jpg", "gif", "bmp", "tif", "webp"}
