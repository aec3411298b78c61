"""`manifind export`: learned features for other programs, and collections small enough to serve anywhere."""

from pathlib import Path
from typing import Annotated

from manifind.cli.options import CollectionPath, argument, option
from manifind.cli.terminal import say, show_json
from manifind.collection.collection import load
from manifind.images.files import remember_folder, shown_folders
from manifind.text import count

_OVERWRITE = "Replace a collection that is at TARGET, with --to compressed."


def export(
    collection: CollectionPath,
    target: Annotated[Path, argument("TARGET", "The file, or the directory, to write.")],
    to: Annotated[str, option("npy, parquet, faiss, or compressed.", "--to")],
    codes: Annotated[str, option("For compressed: sq8 (a byte for each dimension) or pq (one for eight).")] = "sq8",
    overwrite: Annotated[bool, option(_OVERWRITE, "--overwrite")] = False,
    as_json: Annotated[bool, option("Print what was written as JSON.", "--json")] = False,
) -> None:
    """Write the learned features of a collection for other programs.

    npy: an array, with the ids in a .json file beside it. parquet: a table of id, vector and metadata. faiss: an exact
    index by inner product, under the ids where they are numbers. compressed: a collection that only answers, from codes
    of descriptors and features; it needs neither of the two themselves, nor torch.
    """
    opened = load(collection)
    files = [str(file) for file in opened.export(target, to, codes, overwrite=overwrite)]
    summary = {"items": len(opened), "files": files}
    lines = [f"{count(len(opened), 'item')} in {', '.join(files)}"]
    if to == "compressed":
        small = load(target)
        for folder in shown_folders(opened.manifest):
            remember_folder(small.manifest, folder)
        per_item, indexes = round(sum(small.segment_bytes.values()) / len(small), 1), small.version.manifest.indexes
        summary |= {"bytes_per_item": per_item, "indexes": indexes}
        recall = min(index["recall"] for index in indexes.values())
        lines.append(f"{per_item} bytes per item; of the nearest by codes, {recall:.1%} are the true ones")
    if as_json:
        show_json(summary)
        return
    for line in lines:
        say(line)
