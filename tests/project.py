"""Where the project's own files are, for tests that read or run them."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def load_script(name, folder="scripts"):
    """A module from scripts/ or benchmarks/, which are no packages."""
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
