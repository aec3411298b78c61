"""`manifind serve`: the search page of a collection, or of several."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manifind.cli.options import FormerExtractor, argument, option
from manifind.cli.terminal import say
from manifind.errors import InputError, ManifindError, MissingExtraError
from manifind.text import count

if TYPE_CHECKING:
    from manifind.server.several import ServedCollections

_COLLECTIONS = "Collections made by `manifind index`, or folders of collections; several get a start page."
_EXTRACTOR = (
    "For uploads and words, once, where the collection was described by a model that is a file or a folder of yours."
)
_IMAGES = "A folder whose pictures may be shown; else the one that you have indexed."
_EDIT = "Let the page add, mark and remove items, and fit anew."
_BELOW = "With --allow-edit: a folder that the page may index and watch, with all below it."
_ROOT = "The path under which a proxy shows this server, such as /archive."


def serve(
    collections: Annotated[list[Path], argument("COLLECTION...", _COLLECTIONS)],
    host: Annotated[str, option("Address to listen on; any but this machine's own needs a token.")] = "127.0.0.1",
    port: Annotated[int, option("0 takes a free one.", min=0, max=65535)] = 8765,
    name: Annotated[list[str] | None, option("A name under which browsers reach it, beside the address.")] = None,
    root_path: Annotated[str, option(_ROOT)] = "",
    token_file: Annotated[Path | None, option("A file with the token; else MANIFIND_TOKEN in the environment.")] = None,
    allow_edit: Annotated[bool, option(_EDIT, "--allow-edit")] = False,
    index_below: Annotated[list[Path] | None, option(_BELOW)] = None,
    extractor: Annotated[str | None, option(_EXTRACTOR)] = None,
    describer: FormerExtractor = None,
    images: Annotated[list[Path] | None, option(_IMAGES)] = None,
    open_: Annotated[bool, option("Open the page in the browser.", "--open")] = False,
) -> None:
    """Serve a collection as a page to search and work in, and as an API under /api/v1.

    Several collections, or a folder of them, get a start page, and each has its own page and API below /c/NAME/.
    It listens on this machine only, unless told otherwise. Ctrl-C ends it.
    """
    try:
        from manifind.server.app import (
            acceptors,
            check_root_path,
            is_loopback,
            make_app,
            make_server,
            open_socket,
            read_token,
        )
        from manifind.server.connections import usual_limits
    except ImportError as error:
        raise MissingExtraError(
            f"the search page needs {error.name}, which is not installed", 'pip install "manifind[web]"'
        ) from error
    from manifind.server.middleware import LOOPBACK, AccessRules
    from manifind.server.service import Service
    from manifind.server.several import ServedCollections, find_collections

    token, root_path = read_token(host, token_file), check_root_path(root_path)
    below = _checked(index_below or [], allow_edit)
    own, homes = find_collections(collections, bool(below))
    given = extractor or describer
    if homes or len(own) > 1:
        served: Service | ServedCollections = ServedCollections(own, homes, given, images or (), below)
    else:
        served = Service(own[0], given, images=images or (), index_below=below)
    listening = open_socket(host, port)
    hosts = LOOPBACK if is_loopback(host) else (host,)
    rules = AccessRules(hosts=(*hosts, *(one.lower() for one in name or ())), token=token, root_path=root_path)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}{root_path}/"
    where = f"at {address}" + (" with #token=..." if token else "")
    if isinstance(served, ServedCollections):
        _say_several(served, where)
    else:
        say(f"{own[0]}: {count(len(served.collection), 'item')} {where}")
        if served.collection.is_of_pictures and not served.folders:
            say("its pictures are not shown, since you have not indexed them here: give --images FOLDER to show them")
    server = make_server(make_app(served, rules, allow_edit), usual_limits(rules.seconds))
    if open_:
        typer.launch(address)
    server.run(sockets=acceptors(listening))


def _checked(below: list[Path], allow_edit: bool) -> list[Path]:
    """Folders that may be indexed from the page."""
    if below and not allow_edit:
        raise InputError("--index-below lets the page change collections", "give --allow-edit, too")
    for folder in below:
        if not folder.is_dir():
            raise InputError(
                f"--index-below {folder} is not a folder", "give the folder of your pictures, or one above it"
            )
    return [folder.absolute() for folder in below]


def _say_several(served: "ServedCollections", where: str) -> None:
    """What is served, and what is wrong with any of it: the others work."""
    entries, n = served.entries(), 0
    for entry in entries:
        try:
            n += served.summary(entry).items
        except ManifindError as error:
            say(f"{entry.path} cannot be opened: {error}")
    say(f"{count(len(entries), 'collection')}, {count(n, 'item')} {where}")
