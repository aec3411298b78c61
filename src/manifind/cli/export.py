"""`manifind export`: learned features for other programs, and collections small enough to serve anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manifind.cli.terminal import say, show_json
from manifind.collection.collection import load
from manifind.images.files import remember_folder, shown_folders
from manifind.text import count


def export(
    collection: Annotated[Path, typer.Argument(metavar="COLLECTION", help="A collection made by `manifind index`.")],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The file, or the directory, to write.")],
    to: Annotated[str, typer.Option("--to", help="npy, parquet, faiss, or compressed.")],
    codes: Annotated[
        str, typer.Option(help="For compressed: sq8 (a byte for each dimension) or pq (one for eight).")
    ] = "sq8",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a collection that is at TARGET, with --to compressed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write the learned features of a collection for other programs.

    npy: an array, with the ids in a .json file beside it. parquet: a table of id, vector and metadata. faiss: an exact
    index by inner product, under the ids where they are numbers. compressed: a collection that only answers, from codes
    of descriptors and features; it needs neither of the two themselves, nor torch.
    """
    opened = load(collection)
    files = opened.export(target, to, codes, overwrite=overwrite)
    summary = {"items": len(opened), "files": [str(file) for file in files]}
    if to == "compressed":
        small = load(target)
        for folder in shown_folders(opened.manifest):
            remember_folder(small.manifest, folder)
        total = sum(small.segment_bytes.values())
        summary |= {"bytes_per_item": round(total / len(small), 1), "indexes": small.version.manifest.indexes}
    if as_json:
        show_json(summary)
        return
    say(f"{count(len(opened), 'item')} in {', '.join(map(str, files))}")
    if to == "compressed":
        recall = min(index["recall"] for index in small.version.manifest.indexes.values())
        say(f"{summary['bytes_per_item']} bytes per item; of the nearest by codes, {recall:.1%} are the true ones")
