"""What the tests of the collection share: one small fitted model, its answers, and the refusal of a path."""

from __future__ import annotations

import pickle
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

import manifind
from collection.small_collection import NAMES, N, fit, random_rows, tidy
from manifind.errors import CollectionError


@pytest.fixture(scope="session")
def model():
    return fit()


@pytest.fixture(scope="session")
def other_model():
    return fit(seed=1)


@pytest.fixture(scope="session")
def models(model, other_model, tmp_path_factory):
    """Both of them in a file, for other processes."""
    file = tmp_path_factory.mktemp("models") / "models.pickle"
    file.write_bytes(pickle.dumps([model, other_model]))
    return file


@pytest.fixture(scope="session")
def queries():
    """Seven rows, two of which are items of the collection."""
    return np.concatenate([random_rows(5, 9), random_rows(N, 0)[[3, 50]]])


@pytest.fixture(scope="session")
def answers(queries):
    """Everything that a collection answers, so that two can be compared bit for bit."""

    def ask(collection):
        asked = [collection.search(queries, k=k) for k in (1, 5, len(collection))]
        asked.append(collection.search_ids(collection.ids[[0, 7]], k=9))
        rankings = [(ranking.ids.tolist(), ranking.scores.tobytes()) for ranking in asked]
        return rankings, collection.features.tobytes(), collection.settings, collection.loss_curve.tobytes()

    return ask


@pytest.fixture(scope="session")
def pristine(model, tmp_path_factory):
    """A collection with names for ids that no test changes."""
    path = tmp_path_factory.mktemp("pristine") / "museum.manifind"
    model.save(path, NAMES)
    tidy(path)
    return path


@pytest.fixture
def saved(pristine, tmp_path):
    """A copy of it that a test may damage."""
    return shutil.copytree(pristine, tmp_path / "museum.manifind")


@pytest.fixture(scope="session")
def lived_in(pristine, tmp_path_factory):
    """The same after a while, with metadata, items that came and items that went; no test changes it."""
    path = shutil.copytree(pristine, tmp_path_factory.mktemp("lived_in") / "museum.manifind")
    collection = manifind.load(path)
    collection.update(NAMES, metadata=[{"year": 1900 + number} for number in range(N)])
    collection.add(random_rows(5, 3), [f"late/{number}.jpg" for number in range(5)], [{"year": 2000}] * 5)
    collection.remove([NAMES[3], NAMES[70], "late/1.jpg"])
    tidy(path)
    return path


@pytest.fixture
def living(lived_in, tmp_path):
    """A copy of it that a test may damage."""
    return shutil.copytree(lived_in, tmp_path / "museum.manifind")


@pytest.fixture
def everybodys():
    """A folder that another user can look into."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def refusal():
    """The problem for which a collection is refused; it names the path, is short, and has a hint."""

    def read(path, verify=False):
        with pytest.raises(CollectionError) as caught:
            manifind.load(path, verify=verify)
        assert str(path) in caught.value.problem
        assert caught.value.hint
        assert len(str(caught.value)) < 1500
        return caught.value.problem

    return read
