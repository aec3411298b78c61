"""What the tests of the reproduction share: small tasks and a results file."""

import pytest

from manifind.bench.results import Results
from manifind.bench.sets import SETS, toy_task


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "results.jsonl")


@pytest.fixture(scope="session")
def faces():
    """Labels with a window of 15, every item a query."""
    return toy_task(SETS["ORL"])


@pytest.fixture(scope="session")
def buildings():
    """Classic lists, 12 queries beside the database."""
    return toy_task(SETS["Oxford5k ResNet"])


@pytest.fixture(scope="session")
def revisited():
    """Easy, hard and junk lists, 12 queries beside the database."""
    return toy_task(SETS["ROxford ResNet"])
