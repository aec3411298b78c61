"""`manifind publish`: a collection into a vector database, to be served from there."""

import os
from pathlib import Path
from typing import Annotated

from manifind.cli.options import CollectionPath, DoneAsJson, argument, option
from manifind.cli.terminal import say, show_json
from manifind.collection.collection import load
from manifind.errors import InputError
from manifind.progress import progress_bars
from manifind.text import count

_ADDRESS = (
    "postgresql://host/database, http://host:19530 for Milvus, or FILE.db; without a password, which belongs into "
    "MANIFIND_STORE or an --address-file."
)
_FILE = "A file with the address; else MANIFIND_STORE in the environment."


def publish(
    collection: CollectionPath,
    address: Annotated[str | None, argument("[ADDRESS]", _ADDRESS)] = None,
    address_file: Annotated[Path | None, option(_FILE)] = None,
    name: Annotated[str | None, option("Of the tables, before _features; else that of the collection.")] = None,
    as_json: DoneAsJson = False,
) -> None:
    """Put a collection into PostgreSQL with pgvector, or into Milvus, and keep it there up to date.

    Run again, it makes what is there like the collection; whatever failed in between, the same command goes on. From
    Python, `manifind.stores.open_published` answers from there as the collection does.
    """
    from manifind.stores.address import looks_like_address, read_address
    from manifind.stores.publish import publish as put

    if looks_like_address(str(collection)) and not os.path.exists(collection):
        raise InputError(
            "the first argument is no collection, but the address of a database", "manifind publish COLLECTION ADDRESS"
        )
    place = read_address(address, address_file)
    opened = load(collection)
    with progress_bars() as listener:
        done = put(opened, place, collection.stem if name is None else name, listener=listener)
    if as_json:
        show_json(done._asdict())
        return
    say(f"{count(done.items, 'item')} in {done.name}_features of {done.address}, searched: {done.indexes['features']}")
