"""Files to descriptors, many at a time: what is done is kept, and a bad file is a line in a list."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradnet.arrays import Floats
from gradnet.checkpoint import Checkpoint
from gradnet.pictures.decoders import Decoders
from gradnet.pictures.decoding import Picture
from gradnet.pictures.describers import Describer
from gradnet.pictures.folder import Found
from gradnet.progress import Listener, Progress, ignore

_AT_ONCE = 32  # pictures that are described together
_STAGE = "described"


@dataclass
class Described:
    """rows: a descriptor by digest. said: size, kind, date and place by digest. refused: the reason by digest.

    problems: path and reason of every file that has such a content.
    """

    rows: dict[str, Floats] = field(default_factory=dict)
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)


def describe_files(
    files: Sequence[Found],
    digests: Sequence[str],
    describer: Describer,
    checkpoint: Checkpoint,
    listener: Listener = ignore,
    n_processes: int | None = None,
) -> Described:
    """The descriptors of files whose contents have these digests; equal contents are described once.

    checkpoint: what an interrupted run has described, and a place to keep what this one does.
    """
    done = Described()
    _restore(done, checkpoint)
    wanted: dict[str, Found] = {}
    for file, digest in zip(files, digests, strict=True):
        if digest not in done.rows:
            wanted.setdefault(digest, file)
    n_done, total = len(files) - len(wanted), len(files)
    listener(Progress("pictures", n_done, total))
    started, before = time.monotonic(), n_done
    with Decoders(n_processes or os.cpu_count() or 1, describer.longest) as decoders:
        decoded = decoders.decode([file.file for file in wanted.values()])
        for batch in _batches(zip(wanted.items(), decoded, strict=True)):
            _describe(batch, describer, done)
            n_done += len(batch)
            if checkpoint.due():
                _keep(done, checkpoint)
            rate = (n_done - before) / max(time.monotonic() - started, 1e-3)
            listener(Progress("pictures", n_done, total, f"{rate:.1f} a second"))
    # Every file with a bad content, not only the one that was looked at.
    done.problems = [
        (file.path, done.refused[digest])
        for file, digest in zip(files, digests, strict=True)
        if digest in done.refused
    ]
    return done


def _batches(pairs: Iterator[Any]) -> Iterator[list[Any]]:
    batch = []
    for pair in pairs:
        batch.append(pair)
        if len(batch) == _AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _describe(
    batch: list[tuple[tuple[str, Found], Picture | str]], describer: Describer, done: Described
) -> None:
    pictures = []
    for (digest, _), found in batch:
        if isinstance(found, str):
            done.refused[digest] = found
        elif found.sha256 != digest:  # else this content would be kept as the descriptor of another
            done.refused[digest] = "was changed while it was being read; index again when it is finished"
        else:
            pictures.append((digest, found))
    if not pictures:
        return
    rows = describer([picture.pixels for _, picture in pictures])
    for (digest, picture), row in zip(pictures, rows, strict=True):
        done.rows[digest] = row
        done.said[digest] = picture.fields


def _keep(done: Described, checkpoint: Checkpoint) -> None:
    said = json.dumps([done.said[digest] for digest in done.rows])
    checkpoint.save(
        _STAGE,
        {
            "digests": np.array(list(done.rows)),
            "rows": np.stack(list(done.rows.values())),
            "said": np.frombuffer(said.encode(), dtype=np.uint8),
        },
    )


def _restore(done: Described, checkpoint: Checkpoint) -> None:
    kept = checkpoint.load(_STAGE)
    if kept is None:
        return
    said = json.loads(kept["said"].tobytes())
    for digest, row, one in zip(kept["digests"].tolist(), kept["rows"], said, strict=True):
        done.rows[digest], done.said[digest] = row, one
