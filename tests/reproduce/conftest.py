"""What the tests of the reproduction share: small questions and a results file."""

import pytest

from gradnet.experiments.compare_store import Results
from gradnet.reproduce.sets import SETS
from gradnet.reproduce.toy import toy_question


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "results.jsonl")


@pytest.fixture(scope="session")
def faces():
    """Labels with a window of 15, every item a query."""
    return toy_question(SETS["ORL"])


@pytest.fixture(scope="session")
def buildings():
    """Classic lists, 12 queries beside the database."""
    return toy_question(SETS["Oxford5k ResNet"])


@pytest.fixture(scope="session")
def revisited():
    """Easy, hard and junk lists, 12 queries beside the database."""
    return toy_question(SETS["ROxford ResNet"])
