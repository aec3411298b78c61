"""How a test gets at the modules of benchmarks/, which is no package."""

import sys
from importlib import import_module

import pytest

from project import ROOT


@pytest.fixture
def module(monkeypatch):
    """Imports a module of benchmarks/ by name; all are forgotten afterwards, so that no name stays taken."""
    folder = ROOT / "benchmarks"
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield import_module
    for name in set(sys.modules) - before:
        if (folder / f"{name}.py").is_file():
            del sys.modules[name]
