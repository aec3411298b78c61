"""What holds for every test: none asserts a time, what takes long is asked for, and what needs no fit is marked."""

import os
import signal
import tempfile
from pathlib import Path, PurePath

from hypothesis import settings

import manifind  # noqa: F401  # before scikit-learn and torch, so that threads sleep while they wait

settings.register_profile("manifind", deadline=None)
settings.load_profile("manifind")


_STATE = tempfile.TemporaryDirectory(prefix="manifind-tests-")
os.environ["XDG_STATE_HOME"] = _STATE.name  # the records that programs keep for their user must not reach the tester

# Clients of Milvus write to the terminal from threads of their own, also while later tests look at what was written.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# A shell lets what it starts in the background ignore Ctrl-C, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

_ASKED_FOR = ("wheel", "endurance", "long")  # `make test-all`; a test with several of these is of the first kind
_QUICK = ("datasets", "evaluation", "graph", "index", "io", "search")  # folders whose tests fit nothing
_NOT_QUICK = (
    "test_shown.py",
    "io/test_parquet.py",
    "io/test_restricted_pickle.py",
)  # fits, or crafted files of seconds


def _is_quick(path):
    inside = PurePath(path).relative_to(PurePath(__file__).parent)
    return (len(inside.parts) == 1 or inside.parts[0] in _QUICK) and inside.as_posix() not in _NOT_QUICK


def pytest_ignore_collect(collection_path, config):
    """Leave out files without quick tests where only those are wanted: importing them takes longer than the tests."""
    only_quick = config.option.markexpr.startswith("quick")
    return True if only_quick and collection_path.suffix == ".py" and not _is_quick(collection_path) else None


def pytest_collection_modifyitems(config, items):
    """Mark the quick tests, and leave out what takes long unless somebody asks for it, as `make test-all` does.

    Long tests are also asked for by the name of their file.
    """
    named = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    kept, left_out = [], []
    for item in items:
        if _is_quick(item.path):
            item.add_marker("quick")
        marks = {mark.name for mark in item.iter_markers()}
        kind = next((name for name in _ASKED_FOR if name in marks), None)
        asked = kind is None or kind in config.option.markexpr or (kind == "long" and item.path in named)
        (kept if asked else left_out).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)
