"""What holds for every test: none asserts a time, not even by hypothesis's default deadline; endurance is asked for."""

from hypothesis import settings

settings.register_profile("gradnet", deadline=None)
settings.load_profile("gradnet")


def pytest_collection_modifyitems(config, items):
    """Leave the full counts out unless somebody asks for them, such as `make endurance`."""
    if "endurance" in config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("endurance")]
    items[:] = [item for item in items if not item.get_closest_marker("endurance")]
    config.hook.pytest_deselected(items=long)
