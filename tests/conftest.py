"""What holds for every test: none asserts a time, not even by hypothesis's default deadline; endurance is asked for."""

import os
import tempfile

from hypothesis import settings

settings.register_profile("manifind", deadline=None)
settings.load_profile("manifind")


_STATE = tempfile.TemporaryDirectory(prefix="manifind-tests-")
os.environ["XDG_STATE_HOME"] = _STATE.name  # what programs record for their user is not to reach the one who tests


def pytest_collection_modifyitems(config, items):
    """Leave the full counts out unless somebody asks for them, such as `make endurance`."""
    if "endurance" in config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("endurance")]
    items[:] = [item for item in items if not item.get_closest_marker("endurance")]
    config.hook.pytest_deselected(items=long)
