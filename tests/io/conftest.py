"""What the tests of the formats share: fresh files, and the refusal of a file looked at closely."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from manifind.errors import FileFormatError, ManifindError
from manifind.io import checks
from manifind.io.vectors import read_vectors
from manifind.worker import Reply, Worker, WorkerError

Fresh = Callable[..., Path]
Refusal = Callable[[Path], str]


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    """A path that no earlier test or example has used, since rows may still be mapped from theirs."""
    folder, numbers = tmp_path_factory.mktemp("formats"), itertools.count()

    def make(suffix: str, content: bytes | str | None = None) -> Path:
        path = folder / f"{next(numbers)}{suffix}"
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


@pytest.fixture(scope="session")
def refusal() -> Refusal:
    """The problem that a file is refused for; the file is named, the message short, and a hint given."""

    def read(path: Path) -> str:
        with pytest.raises(FileFormatError) as caught:
            read_vectors(path)
        assert str(path) in caught.value.problem
        assert caught.value.hint
        assert len(str(caught.value)) < 1500
        return caught.value.problem

    return read


@pytest.fixture(scope="session", autouse=True)
def one_child() -> Iterator[None]:
    """One child for all files, started again where a file has ended it: thousands of starts would take an hour."""
    worker = Worker(seconds=15, memory=3 << 30)

    class OneChild:
        def __init__(self, **_: object) -> None:
            pass

        def __enter__(self) -> Worker:
            return worker

        def __exit__(self, *_: object) -> None:
            pass

    with pytest.MonkeyPatch.context() as patch, worker:
        patch.setattr(checks, "Worker", OneChild)
        yield


@pytest.fixture
def no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the child would do is done here, where limits and modules can be replaced."""

    class Here:
        def __init__(self, **_: object) -> None:
            pass

        def __enter__(self) -> Here:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def call(self, function: str, arguments: dict[str, str], max_bytes: int) -> Reply:
            module, _, name = function.partition(":")
            try:
                value, arrays = getattr(importlib.import_module(module), name)(**arguments)
                return Reply(value, {name: np.array(array[0 : array.shape[0]]) for name, array in arrays.items()})
            except ManifindError:
                raise
            except Exception as error:
                raise WorkerError(f"{type(error).__name__}: {error}", kind="exception") from error

    monkeypatch.setattr(checks, "Worker", Here)
