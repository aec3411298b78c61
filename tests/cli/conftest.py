"""What the tests of the command line share: a way to call it, files of vectors, and one collection."""

from __future__ import annotations

import io
import sys
from typing import NamedTuple

import numpy as np
import pytest

import manifind
from manifind.cli import main
from stores.conftest import milvus, postgres, server  # noqa: F401  databases to publish into

N, D = 40, 6
NAMES = [f"cat {i:02}" for i in range(N)]


class Result(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def items():
    return np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)


@pytest.fixture(scope="session")
def queries():
    return np.random.default_rng(1).normal(size=(3, D)).astype(np.float32)


@pytest.fixture(scope="session")
def command():
    """Calls `manifind ...` as the shell would, within this process and with a small network for a default."""

    def run(*arguments, columns=200):
        with pytest.MonkeyPatch.context() as patch:
            small = {"layers": (8, 4), "n_anchors": 4, "batch_size": 8, "max_steps": 2, "n_neighbors": 3}
            for name, value in small.items():
                patch.setitem(manifind.GradNet.__init__.__kwdefaults__, name, value)
            patch.setattr(sys, "argv", ["manifind", *map(str, arguments)])
            patch.setenv("COLUMNS", str(columns))
            streams = io.BytesIO(), io.BytesIO()
            for name, stream in zip(("stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, io.TextIOWrapper(stream, encoding="utf-8", write_through=True))
            with pytest.raises(SystemExit) as ended:
                main()
            out, err = (stream.getvalue().decode() for stream in streams)
        return Result(ended.value.code or 0, out, err)

    return run


@pytest.fixture(scope="session")
def refused(command):
    """The problem and the hint of a command that fails as a user's mistake should."""

    def run(*arguments):
        result = command(*arguments)
        assert result.code == 1
        assert result.out == ""
        assert "Traceback" not in result.err
        lines = result.err.splitlines()
        problem = next(line for line in lines if line.startswith("error: "))
        hint = next((line for line in lines if line.startswith(" hint: ")), None)
        assert hint is not None, problem
        assert lines.index(problem) == len(lines) - 2
        return problem.removeprefix("error: "), hint.removeprefix(" hint: ")

    return run


@pytest.fixture(scope="session")
def files(items, queries, tmp_path_factory):
    """A folder of vectors in several formats."""
    folder = tmp_path_factory.mktemp("vectors")
    np.save(folder / "vectors.npy", items)
    np.savez(folder / "named.npz", vectors=items, names=np.array(NAMES))
    columns = ",".join(f"x{i}" for i in range(D))
    lines = [f"{name},{','.join(map(str, row.tolist()))}" for name, row in zip(NAMES, items, strict=True)]
    (folder / "named.csv").write_text("\n".join([f"id,{columns}", *lines]))
    np.save(folder / "queries.npy", queries)
    np.savez(folder / "queries.npz", vectors=queries, ids=np.array(["red", "green", "blue"]))
    np.save(folder / "narrow.npy", queries[:, :4])
    (folder / "cut.npy").write_bytes((folder / "vectors.npy").read_bytes()[:200])
    (folder / "empty.npy").write_bytes(b"")
    (folder / "vectors.txt").write_text("1 2 3")
    np.save(folder / "nan.npy", np.where(items[7, 2] == items, np.nan, items))
    return folder


@pytest.fixture(scope="session")
def named(command, files, tmp_path_factory):
    """A collection with names, made by the command line."""
    path = tmp_path_factory.mktemp("collections") / "named.manifind"
    assert command("index", files / "named.csv", path).code == 0
    return path


@pytest.fixture(scope="session")
def numbered(command, files, tmp_path_factory):
    """A collection with positions for ids, made by the command line."""
    path = tmp_path_factory.mktemp("collections") / "numbered.manifind"
    assert command("index", files / "vectors.npy", path).code == 0
    return path
