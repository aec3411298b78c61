"""Describes picture files: decodes them side by side, and hands them to an extractor in batches."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from manifind.arrays import Floats
from manifind.checkpoint import Checkpoint
from manifind.errors import InputError
from manifind.images.decode import Crop, Decoders, Picture, check_crop
from manifind.images.extractors import Extractor
from manifind.images.files import Found
from manifind.progress import Listener, Progress

_BATCH = 32  # images that are described together
_STAGE = "described"  # of a checkpoint


def describe_query_images(
    files: Sequence[str | Path], extractor: Extractor, crops: Sequence[Crop | None] | None = None
) -> Floats:
    """(m, d) descriptors of picture files, all of which must be pictures. crops: the part of each that is meant."""
    checked = None if crops is None else [None if crop is None else check_crop(crop) for crop in crops]
    with Decoders(1, extractor.longest) as decoders:
        found = list(decoders.decode([Path(file) for file in files], checked))
    for file, picture in zip(files, found, strict=True):
        if isinstance(picture, str):
            raise InputError(f"{file} {picture}", "give a picture: JPEG, PNG, WebP, TIFF, BMP, GIF or HEIC")
    return extractor([picture.pixels for picture in found if isinstance(picture, Picture)])


@dataclass
class Described:
    """By digest of a file's content: rows, its descriptor; fields, its metadata; refused, why there is none."""

    rows: dict[str, Floats] = field(default_factory=dict)
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def describe_files(
    files: Sequence[Found], digests: Mapping[str, str], extractor: Extractor, checkpoint: Checkpoint, listener: Listener
) -> Described:
    """The descriptors of files, of whose contents there are digests by path; equal contents are described once.

    checkpoint: what an interrupted run has described, and where this one saves its own.
    """
    done = _restored(checkpoint)
    wanted: dict[str, Path] = {}
    for file in files:
        if digests[file.path] not in done.rows:
            wanted.setdefault(digests[file.path], file.file)
    n_before = n_done = len(files) - len(wanted)
    listener(Progress("pictures", n_done, len(files)))
    started = time.monotonic()
    with Decoders(os.cpu_count() or 1, extractor.longest) as decoders:
        decoded = zip(wanted, decoders.decode([*wanted.values()]), strict=True)
        while batch := list(islice(decoded, _BATCH)):
            _describe_batch(batch, extractor, done)
            n_done += len(batch)
            if checkpoint.due():
                _save(done, checkpoint)
            rate = (n_done - n_before) / max(time.monotonic() - started, 1e-3)
            listener(Progress("pictures", n_done, len(files), f"{rate:.1f} a second"))
    return done


def _describe_batch(batch: Sequence[tuple[str, Picture | str]], extractor: Extractor, done: Described) -> None:
    pictures = {}
    for digest, found in batch:
        if isinstance(found, str):
            done.refused[digest] = found
        elif found.sha256 != digest:  # else this content would be taken for another
            done.refused[digest] = "was changed while it was being read; index again when it is finished"
        else:
            pictures[digest] = found
    if pictures:
        rows = extractor([picture.pixels for picture in pictures.values()])
        done.rows |= zip(pictures, rows, strict=True)
        done.fields |= {digest: picture.fields for digest, picture in pictures.items()}


def _save(done: Described, checkpoint: Checkpoint) -> None:
    fields = np.frombuffer(json.dumps([done.fields[digest] for digest in done.rows]).encode(), dtype=np.uint8)
    digests, rows = np.array(list(done.rows)), np.stack(list(done.rows.values()))
    checkpoint.save(_STAGE, {"digests": digests, "rows": rows, "said": fields})


def _restored(checkpoint: Checkpoint) -> Described:
    saved = checkpoint.load(_STAGE)
    if saved is None:
        return Described()
    digests = saved["digests"].tolist()
    fields = json.loads(saved["said"].tobytes())
    return Described(dict(zip(digests, saved["rows"], strict=True)), dict(zip(digests, fields, strict=True)))
