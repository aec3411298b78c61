"""The memory budget: none is counted on a CPU, and what does not fit on a GPU is computed there."""

import math
from types import SimpleNamespace

import pytest
import torch

from manifind.errors import TrainingError
from manifind.index.fit_context import MemoryBudget
from manifind.index.gpu import cap_gpu_memory, find_memory_budget

CPU, GPU = "cpu", "cuda"


@pytest.fixture
def gpu(monkeypatch):
    """A GPU of 10 GB, 6 of them free: torch holds 3 GB for this process, of which it has freed 1 and kept it."""
    limits = []
    answers = {
        "current_device": lambda: 0,
        "mem_get_info": lambda device: (6e9, 10e9),
        "memory_reserved": lambda device: 3e9,
        "memory_allocated": lambda device: 2e9,
        "get_device_properties": lambda number: SimpleNamespace(total_memory=10e9),
        "empty_cache": lambda: None,
        "set_per_process_memory_fraction": lambda share, number: limits.append(share),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    return limits


def test_a_cpu_counts_no_bytes():
    assert find_memory_budget(CPU, None).bytes == math.inf
    assert find_memory_budget(CPU, 0.001).bytes == math.inf


def test_what_does_not_fit_goes_to_the_cpu():
    budget = MemoryBudget(GPU, 100)
    assert budget.device_for(100) == GPU
    assert budget.device_for(101) == CPU


def test_a_limit_means_nothing_to_a_cpu():
    with cap_gpu_memory(CPU, 1e-9):
        assert torch.ones(1000).sum() == 1000


def test_what_torch_has_freed_counts_as_free(gpu):
    assert find_memory_budget(GPU, None) == MemoryBudget(GPU, 0.7 * 7e9)


def test_half_of_what_a_fit_may_take_is_planned_with_but_no_more_than_is_free(gpu):
    assert find_memory_budget(GPU, 4.0) == MemoryBudget(GPU, 2e9)
    assert find_memory_budget(GPU, 100.0) == MemoryBudget(GPU, 7e9)


def test_with_next_to_nothing_all_is_left_to_the_cpu(gpu):
    assert find_memory_budget(GPU, 0.5) == MemoryBudget(CPU)


def test_a_limit_comes_on_top_of_what_the_process_holds_and_ends_with_the_fit(gpu):
    with cap_gpu_memory(GPU, 4.0):
        assert gpu == [pytest.approx(0.7)]
    assert gpu[1:] == [1.0]


def test_a_limit_beyond_the_gpu_is_the_gpu(gpu):
    with cap_gpu_memory(GPU, 50.0):
        assert gpu == [1.0]


def test_without_a_limit_none_is_set(gpu):
    with cap_gpu_memory(GPU, None):
        pass
    assert gpu == []


def test_memory_that_is_short_after_all_ends_with_one_sentence_and_no_limit(gpu):
    with pytest.raises(TrainingError, match=r"at most 4 GB.*raise device_memory"), cap_gpu_memory(GPU, 4.0):
        raise torch.OutOfMemoryError("CUDA out of memory.\nAnd what torch says of it")
    assert gpu[-1] == 1.0
