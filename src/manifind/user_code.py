"""Classes and functions in Python files of the user's own, which run only because the user has named them."""

import ast
import hashlib
import importlib.util
import sys
from pathlib import Path
from typing import Any, NamedTuple

from manifind.errors import InputError


class UserCode(NamedTuple):
    """A file and a name in it."""

    path: Path
    name: str
    digest: str  # of the file, so that what was made with other code is not taken for the same

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.path.name}:{self.name}"


def find_user_code(address: str, kind: str) -> UserCode:
    """What FILE.py:NAME stands for; the file is read, not run. kind: "class" or "function", for messages."""
    path_text, _, name = address.rpartition(":")
    path = Path(path_text).expanduser()
    way_out = f"name a {kind} of your own as FILE.py:NAME"
    try:
        source = path.read_bytes()
        top = ast.parse(source).body
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a Python file: {error}", way_out) from error
    defined = [node.name for node in top if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    if name not in defined:
        problem = f"{path} defines no {kind} called {name!r}; it has {', '.join(defined) or 'none at all'}"
        raise InputError(problem, way_out)
    return UserCode(path.resolve(), name, hashlib.sha256(source).hexdigest())


def load_user_code(path: Path, name: str) -> Any:
    """Run the file, and give what has that name in it."""
    sys.path.append(str(path.parent))  # the user's file may import its neighbours
    spec = importlib.util.spec_from_file_location(f"own_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is no Python file", "give it the suffix .py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)
