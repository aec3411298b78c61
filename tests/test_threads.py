"""Cores that others use too: how threads wait, how many cores are idle, and how many threads a fit takes."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

from manifind import GradNet, threads
from manifind.threads import BusyMachineWarning, cores_shared, idle_cores, usable_cores

POLICY = "OMP_WAIT_POLICY"


def policy_after(code, **variables):
    """What a process has for the policy after some code."""
    inherited = {name: value for name, value in os.environ.items() if name != POLICY}
    code = f"import os; {code}; print(os.environ.get({POLICY!r}))"
    run = subprocess.run([sys.executable, "-c", code], env=inherited | variables, capture_output=True, check=True)
    return run.stdout.decode().strip()


def test_threads_of_a_script_that_imports_the_library_first_sleep_while_they_wait():
    assert policy_after("import manifind") == "passive"


def test_what_the_user_says_stays():
    assert policy_after("import manifind", **{POLICY: "active"}) == "active"


def test_nothing_is_said_where_it_comes_too_late():
    assert policy_after("import sklearn; import manifind") == "None"


def counted(monkeypatch, *moments):
    """Make the statistics of two cores say these times, one table after the other."""
    monkeypatch.setattr(threads, "_times", iter(moments).__next__)


@pytest.mark.parametrize(
    ("later", "idle"),
    [
        ({"cpu0": (110, 60), "cpu1": (110, 60)}, 2.0),
        ({"cpu0": (110, 50), "cpu1": (110, 50)}, 0.0),
        ({"cpu0": (110, 50), "cpu1": (110, 60)}, 1.0),
        ({"cpu0": (110, 55), "cpu1": (110, 55)}, 1.0),
        ({"cpu0": (100, 50), "cpu1": (110, 50)}, 1.0),  # no time has passed on the first
    ],
)
def test_idle_cores_by_hand(monkeypatch, later, idle):
    counted(monkeypatch, {"cpu0": (100, 50), "cpu1": (100, 50)}, later)
    assert idle_cores() == pytest.approx(idle)


def test_where_nobody_says_all_cores_count_as_idle(monkeypatch):
    counted(monkeypatch, {}, {})
    assert idle_cores() == usable_cores()


def test_the_statistics_of_this_machine_have_every_usable_core():
    times = threads._times()
    if not os.path.isfile("/proc/stat"):
        pytest.skip("this system keeps no statistics of its cores")
    assert len(times) == usable_cores()
    assert all(total >= unused >= 0 for total, unused in times.values())


@pytest.fixture
def unsaid(monkeypatch):
    """Nothing says how threads wait, and there are as many of them as usable cores."""
    monkeypatch.delenv(POLICY, raising=False)
    monkeypatch.setattr(threads, "usable_cores", lambda: 4)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("idle", "expected"), [(0.0, 1), (0.4, 1), (2.1, 2), (3.4, 3)])
def test_as_many_threads_compute_as_cores_are_idle_and_the_number_before_comes_back(
    unsaid, monkeypatch, idle, expected
):
    monkeypatch.setattr(threads, "idle_cores", lambda: idle)
    with pytest.warns(BusyMachineWarning, match=f"{4 - round(idle)} of 4 cores busy"), cores_shared():
        assert torch.get_num_threads() == expected
    assert torch.get_num_threads() == 4


def test_on_a_quiet_machine_or_where_threads_sleep_nothing_changes(unsaid, monkeypatch):
    monkeypatch.setattr(threads, "idle_cores", lambda: 3.8)
    with cores_shared():
        assert torch.get_num_threads() == 4
    monkeypatch.setattr(threads, "idle_cores", lambda: 0.0)
    monkeypatch.setenv(POLICY, "passive")
    with cores_shared():
        assert torch.get_num_threads() == 4


def test_who_has_one_thread_is_not_warned(unsaid, monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.setattr(threads, "idle_cores", lambda: 0.0)
    monkeypatch.setattr("threadpoolctl.ThreadpoolController.info", lambda _: [{"num_threads": 1}])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with cores_shared():
            assert torch.get_num_threads() == 1


def test_a_fit_on_a_busy_machine_says_so_and_learns_the_same(unsaid, monkeypatch):
    monkeypatch.setattr(threads, "idle_cores", lambda: 1.0)
    X = np.random.default_rng(0).normal(size=(60, 8))
    settings = {"n_neighbors": 5, "max_steps": 3, "random_state": 0}
    with pytest.warns(BusyMachineWarning, match="1 in place of 4 threads"):
        busy = GradNet(**settings).fit(X)
    monkeypatch.setattr(threads, "idle_cores", lambda: 4.0)
    np.testing.assert_allclose(busy.features_, GradNet(**settings).fit(X).features_, atol=1e-4)
