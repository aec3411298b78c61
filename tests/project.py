"""Where the project's own files are, for tests that read or run them."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def load_script(name, folder="scripts"):
    """A module from scripts/ or benchmarks/, which are no packages."""
    if str(ROOT / folder) not in sys.path:
        sys.path.append(str(ROOT / folder))  # as for who runs it: scripts import each other
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
