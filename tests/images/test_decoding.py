"""Every kind of picture becomes upright RGB, and every kind of nonsense a reason."""

import os
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from manifind.images import decode as decoding
from manifind.images.decode import UnreadablePictureError, decode

RED, BLUE = (250, 10, 20), (10, 20, 250)


def halves(size=(64, 48)):
    """Red on the left, blue on the right."""
    pixels = np.zeros((size[1], size[0], 3), dtype=np.uint8)
    pixels[:, : size[0] // 2], pixels[:, size[0] // 2 :] = RED, BLUE
    return Image.fromarray(pixels)


def is_halves(pixels, tolerance=40):
    left, right = (
        pixels[:, : pixels.shape[1] // 3].mean(axis=(0, 1)),
        pixels[:, -pixels.shape[1] // 3 :].mean(axis=(0, 1)),
    )
    return np.abs(left - RED).max() < tolerance and np.abs(right - BLUE).max() < tolerance


def reason(file):
    with pytest.raises(UnreadablePictureError) as refusal:
        decode(file, 512)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.jpg", {"quality": 95}),
        ("a.jpg", {"quality": 95, "progressive": True}),
        ("a.png", {}),
        ("a.webp", {"quality": 95}),
        ("a.webp", {"lossless": True}),
        ("a.tif", {}),
        ("a.tiff", {"compression": "tiff_lzw"}),
        ("a.bmp", {}),
        ("a.gif", {}),
    ],
)
def test_every_format_is_read(tmp_path, name, options):
    halves().save(tmp_path / name, **options)
    picture = decode(tmp_path / name, 512)
    assert picture.pixels.shape == (48, 64, 3)
    assert picture.pixels.dtype == np.uint8
    assert is_halves(picture.pixels)
    assert (picture.width, picture.height) == (64, 48)


def test_heic_is_read_where_its_decoder_is_installed(tmp_path):
    heif = pytest.importorskip("pillow_heif")
    heif.from_pillow(halves((128, 96))).save(tmp_path / "a.heic", quality=95)
    assert is_halves(decode(tmp_path / "a.heic", 512).pixels)


def test_heic_without_its_decoder_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(100))
    monkeypatch.setattr(decoding, "_openable", lambda: ("JPEG",))
    assert 'pip install "manifind[pictures]"' in reason(tmp_path / "a.heic")


@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "RGBA", "CMYK", "YCbCr", "I;16", "I", "F"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    name = "a.jpg" if mode in ("CMYK", "YCbCr") else "a.tif" if mode in ("I", "F") else "a.png"
    if mode in ("I;16", "I", "F"):
        values = np.linspace(0, 65535, 64 * 48).reshape(48, 64)
        kind = {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]
        Image.fromarray(values.astype(kind)).save(tmp_path / name)
    else:
        halves().convert(mode).save(tmp_path / name)
    pixels = decode(tmp_path / name, 512).pixels
    assert pixels.shape == (48, 64, 3)
    assert pixels.std() > 15  # neither black nor cut off
    if mode in ("RGBA", "CMYK", "YCbCr", "P"):
        assert is_halves(pixels, 60)


def test_what_is_transparent_is_white(tmp_path):
    image = halves().convert("RGBA")
    image.putalpha(0)
    image.save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png", 512).pixels.min() == 255


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_stands_upright_whatever_its_camera_held(tmp_path, orientation):
    turned = {
        1: None, 2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE, 8: Image.Transpose.ROTATE_270,
    }[orientation]  # fmt: skip
    image = halves() if turned is None else halves().transpose(turned)
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(tmp_path / "a.jpg", exif=exif, quality=95)
    picture = decode(tmp_path / "a.jpg", 512)
    assert (picture.width, picture.height) == (64, 48)
    assert is_halves(picture.pixels)


def test_of_an_animation_the_first_picture_counts(tmp_path):
    halves().save(tmp_path / "a.gif", save_all=True, append_images=[Image.new("RGB", (64, 48))] * 3)
    assert is_halves(decode(tmp_path / "a.gif", 512).pixels)


def test_a_large_picture_is_made_smaller_and_a_small_one_is_left(tmp_path):
    halves((3000, 1500)).save(tmp_path / "a.jpg")
    picture = decode(tmp_path / "a.jpg", 300)
    assert picture.pixels.shape == (150, 300, 3)
    assert (picture.width, picture.height) == (3000, 1500)
    assert is_halves(picture.pixels)


def test_date_and_place_are_read(tmp_path):
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = "2019:07:31 12:30:00"
    exif.get_ifd(0x8825).update({1: "S", 2: (33.0, 51.0, 30.0), 3: "E", 4: (151.0, 12.0, 0.0)})
    halves().save(tmp_path / "a.jpg", exif=exif)
    metadata = decode(tmp_path / "a.jpg", 512).metadata
    assert metadata.pop("fingerprint")
    assert metadata == {"taken": "2019-07-31 12:30:00", "latitude": -33.858333, "longitude": 151.2}


@pytest.mark.parametrize(
    "gps", [{1: "N"}, {1: "N", 2: (95.0, 0.0, 0.0), 3: "E", 4: (1.0, 0.0, 0.0)}, {1: 7, 2: "x", 3: 1, 4: 2}, {2: (1,)}]
)
def test_a_place_that_is_none_is_left_out(tmp_path, gps):
    exif = Image.Exif()
    exif[0x0132] = "0000:00:00 00:00:00"
    exif.get_ifd(0x8825).update(gps)
    try:
        halves().save(tmp_path / "a.jpg", exif=exif)
    except Exception:  # Pillow itself does not write all of these
        pytest.skip("cannot be written")
    assert set(decode(tmp_path / "a.jpg", 512).metadata) == {"fingerprint"}


def differing_bits(a, b):
    return (int(a, 16) ^ int(b, 16)).bit_count()


def painted(seed, size=(160, 120)):
    pixels = np.random.default_rng(seed).integers(0, 255, size=(12, 16, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)


def test_a_copy_has_nearly_the_fingerprint_of_the_picture_and_others_have_not(tmp_path):
    painted(0).save(tmp_path / "bad.jpg", quality=30)
    copies = [
        Image.open(tmp_path / "bad.jpg"),
        painted(0).resize((80, 60)),
        painted(0).resize((320, 240)),
        painted(0).point(lambda value: value * 1.1),
    ]
    prints = [decoding.fingerprint(copy) for copy in copies]
    assert max(differing_bits(decoding.fingerprint(painted(0)), one) for one in prints) <= 25
    others = [decoding.fingerprint(painted(seed)) for seed in range(1, 20)]
    assert min(differing_bits(prints[0], one) for one in others) > 60


def test_a_fingerprint_tells_where_it_grows_brighter():
    ramp = np.tile(np.arange(0, 256, 2, dtype=np.uint8), (128, 1))
    right, down = (decoding.fingerprint(Image.fromarray(np.ascontiguousarray(x))) for x in (ramp, ramp.T))
    assert right == "f" * 32 + "0" * 32
    assert down == "0" * 32 + "f" * 32
    assert decoding.fingerprint(Image.new("RGB", (30, 20), (9, 9, 9))) is None


def png(width, height, data=b""):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(30_000, 30_000), (2**31 - 1, 2**31 - 1), (200_000_001, 1)])
def test_more_pixels_than_a_photograph_has_are_refused_before_they_are_decoded(tmp_path, size):
    (tmp_path / "bomb.png").write_bytes(png(*size))
    assert "has more than 200,000,000 pixels" in reason(tmp_path / "bomb.png")


def test_what_is_no_picture_says_so(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"")
    assert reason(tmp_path / "a.jpg") == "is empty (0 bytes)"
    for content in (b"hello", b"%PDF-1.4", b"%!PS-Adobe-3.0 EPSF-3.0\n", os.urandom(3000), png(5, 5)[:20]):
        (tmp_path / "a.jpg").write_bytes(content)
        assert reason(tmp_path / "a.jpg").startswith("is ")


def test_a_name_that_lies_about_the_format_does_no_harm(tmp_path):
    halves().save(tmp_path / "a.png")
    os.rename(tmp_path / "a.png", tmp_path / "a.jpg")
    assert decode(tmp_path / "a.jpg", 512).format == "PNG"


@settings(max_examples=60)
@given(st.data())
def test_any_damage_gives_a_picture_or_a_reason_and_nothing_else(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("any") / "a"
    kind = data.draw(st.sampled_from(["JPEG", "PNG", "GIF", "TIFF", "BMP", "WEBP"]))
    halves((40, 30)).save(file, kind)
    content = bytearray(file.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    for _ in range(data.draw(st.integers(0, 8))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    with suppress(UnreadablePictureError):
        picture = decode(file, 64)
        assert picture.pixels.ndim == 3
        assert max(picture.pixels.shape[:2]) <= 64
