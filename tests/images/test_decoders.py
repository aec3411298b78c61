"""A picture that makes its decoder hang, crash or eat memory costs that picture and no other."""

import os
import sys

import numpy as np
import pytest
from PIL import Image

from manifind.images import decode as decoders
from manifind.images.decode import Decoders


@pytest.fixture
def files(tmp_path):
    made = []
    for number in range(12):
        made.append(tmp_path / f"{number:02} ü 猫.png")
        Image.new("RGB", (10 + number, 9), (number, 0, 0)).save(made[-1])
    return made


def test_pictures_come_in_the_order_of_their_files(files):
    with Decoders(2, 64) as pool:
        found = list(pool.decode(files))
    assert [picture.pixels.shape for picture in found] == [(9, 10 + number, 3) for number in range(12)]
    assert [int(picture.pixels[0, 0, 0]) for picture in found] == list(range(12))


def test_a_bad_file_leaves_a_reason_in_its_place(files, tmp_path):
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.png").write_text("hello")
    with Decoders(2, 64) as pool:
        found = list(
            pool.decode([files[0], tmp_path / "empty.png", tmp_path / "text.png", tmp_path / "none", files[1]])
        )
    assert found[1:4] == ["is empty (0 bytes)", "is no picture of a known kind", "No such file or directory"]
    assert found[0].pixels.shape == (9, 10, 3)
    assert found[4].pixels.shape == (9, 11, 3)


ODD = """
import os, time
from manifind.images.decode import decode_in_child
def odd(file, longest):
    name = os.path.basename(file)
    if "03" in name: os.kill(os.getpid(), 11)
    if "05" in name: time.sleep(1000)
    if "07" in name: bytearray(1 << 40)
    if "08" in name: print("noise on standard output", flush=True)
    return decode_in_child(file, longest)
"""


def test_a_decoder_that_dies_hangs_or_swells_costs_one_picture(files, monkeypatch, tmp_path):
    (tmp_path / "odd_decoder.py").write_text(ODD)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    monkeypatch.setattr(decoders, "_FUNCTION", "odd_decoder:odd")
    with Decoders(2, 64, seconds=5) as pool:
        found = list(pool.decode(files))
    assert found[3] == "makes the decoder crash"
    assert found[5] == "takes longer than 5 s to decode"
    assert found[7] == "needs more memory than a picture may"
    good = [number for number in range(12) if number not in (3, 5, 7)]
    assert all(np.all(found[number].pixels[0, 0, 0] == number) for number in good)


def test_whoever_stops_early_leaves_no_process(files):
    with Decoders(2, 64) as pool:
        next(pool.decode(files))
        started = [worker._process for worker in pool._idle if worker._process]
    assert all(process.poll() is not None for process in started)
