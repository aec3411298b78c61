"""`manifind remove`: items that are to be found no more."""

from typing import Annotated

from manifind.cli.options import CollectionPath, DoneAsJson, argument
from manifind.cli.terminal import say, show_json
from manifind.collection.collection import load


def remove(
    collection: CollectionPath,
    ids: Annotated[list[str], argument("ID...", "The items: by id, or by a name of a file that only one has.")],
    as_json: DoneAsJson = False,
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
    else:
        say(f"{collection}: {len(found)} removed, {len(opened)} left")
