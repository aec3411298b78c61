"""Ctrl-C at any moment of a command: status 130, and not a word."""

import os
import signal
import subprocess
import sys
import time

import pytest

from manifind.cli import INTERRUPTED, quiet_interrupts

INTERRUPTED_AT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["manifind", *{arguments!r}]
from manifind.cli import main
main()
"""
STARTED = 0.1  # seconds; before, Python itself may not be ready to be interrupted
QUIET = {INTERRUPTED, -signal.SIGINT}  # either way a shell sees 130


def arguments_of(verb, files, numbered, target):
    given = {"--version": [], "search": [numbered, "7"], "index": [files / "vectors.npy", target]}
    return [verb, *map(str, given[verb])]


@pytest.mark.parametrize(
    ("verb", "module"),
    [
        ("--version", "typer"),
        ("--version", "rich.console"),
        ("--version", "numpy"),
        ("--version", "numpy._core._multiarray_umath"),
        ("search", "scipy.sparse"),
        ("search", "faiss"),
        ("index", "faiss"),
        ("index", "torch"),
        ("index", "torch._C"),
        ("index", "sklearn.base"),
    ],
)
def test_an_interrupt_while_a_library_is_imported_is_quiet(files, numbered, tmp_path, verb, module):
    code = INTERRUPTED_AT.format(module=module, arguments=arguments_of(verb, files, numbered, tmp_path / "c"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (INTERRUPTED, "")
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("moments", [4, pytest.param(30, marks=pytest.mark.endurance)])
@pytest.mark.parametrize(("verb", "seconds"), [("--version", 0.8), ("search", 1.2), ("index", 4.0)])
def test_an_interrupt_at_any_moment_is_quiet(files, numbered, tmp_path, verb, seconds, moments):
    for number in range(moments):
        arguments = arguments_of(verb, files, numbered, tmp_path / f"c{number}")
        process = subprocess.Popen(
            [sys.executable, "-m", "manifind", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        time.sleep(STARTED + seconds * number / moments)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to everything that it has started
        _, printed = process.communicate(timeout=60)
        assert process.returncode in {0, *QUIET}, printed
        assert "Traceback" not in printed, number / moments


def test_outside_of_an_import_an_interrupt_is_raised_as_ever():
    with pytest.raises(KeyboardInterrupt), quiet_interrupts():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_command_that_is_to_ignore_interrupts_goes_on_ignoring_them(numbered):
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        f"sys.argv = ['manifind', 'search', {str(numbered)!r}, '7', '--json']\n"
        "import atexit; atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "from manifind.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
