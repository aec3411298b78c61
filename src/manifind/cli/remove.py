"""`manifind remove`: items that are to be found no more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manifind.cli.terminal import say, show_json
from manifind.collection.collection import load


def remove(
    collection: Annotated[Path, typer.Argument(metavar="COLLECTION", help="A collection made by `manifind index`.")],
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="The items: by id, or by a name of a file that only one has.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Remove items from a collection: all of them, or none where one is not there.

    They are found no more from now on. What was learned from them stays until the next fit: `manifind index --refit`
    forgets them for good.
    """
    opened = load(collection)
    found = list(dict.fromkeys(opened.find_id(text) for text in ids))
    opened.remove(found)
    if as_json:
        show_json({"collection": str(collection), "removed": len(found), "items": len(opened)})
        return
    say(f"{collection}: {len(found)} removed, {len(opened)} left")
