"""Room on a device: a CPU has no end of it, and what finds none is computed on the CPU."""

import math

import torch

from gradnet.nn.room import Room, find_room, limited

CPU = torch.device("cpu")


def test_a_cpu_counts_no_bytes():
    assert find_room(CPU, None).bytes == math.inf
    assert find_room(CPU, 0.001).bytes == math.inf


def test_what_finds_no_room_goes_to_the_cpu():
    room = Room(torch.device("meta"), 100)
    assert room.device_for(100).type == "meta"
    assert room.device_for(101) == CPU


def test_a_limit_means_nothing_to_a_cpu():
    with limited(CPU, 1e-9):
        assert torch.ones(1000).sum() == 1000
