"""What the tests of the formats share: fresh files, and the refusal of a file looked at closely."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from manifind.errors import FileFormatError
from manifind.io.vectors import read_vectors

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
