"""What is remembered for this user on this machine, outside of collections: texts by key, in small JSON files.

A collection may come from anywhere, so it does not decide which folder is read or which model is loaded. What this user
has named before is recorded below $XDG_STATE_HOME/manifind (~/.local/state/manifind if that is not set); the files of
the program's former name, gradnet, are still read.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

from manifind.errors import InputError
from manifind.files import write_file

FOLDERS = "indexed-folders"
"""Folders by what names the collections that were indexed from them."""
MODELS = "named-models"
"""Digests by the address of a model that is a file or a folder."""
_MOST = 10_000  # entries, the last ones


def recall(kind: str) -> dict[str, str]:
    """All that is recorded of one kind; nothing where nothing can be read."""
    recorded: dict[str, str] = {}
    for program in ("gradnet", "manifind"):
        with suppress(OSError, ValueError, RuntimeError):  # the last where nobody knows the user's home
            found = json.loads(_file(program, kind).read_bytes())
            if isinstance(found, dict) and all(isinstance(value, str) for value in found.values()):
                recorded |= found
    return recorded


def remember(kind: str, key: str, value: str) -> None:
    """Record a text under a key. Where that fails, it is not recalled later, and nothing else is lost."""
    recorded = recall(kind)
    if recorded.get(key) == value:
        return
    recorded.pop(key, None)
    newest = dict(list(recorded.items())[-(_MOST - 1) :]) | {key: value}
    with suppress(InputError, RuntimeError):
        write_file(_file("manifind", kind), json.dumps(newest, indent=1).encode())


def _file(program: str, kind: str) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / program / f"{kind}.json"
