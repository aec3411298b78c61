"""`manifind serve`: the search page of a collection."""

from pathlib import Path
from typing import Annotated

import typer

from manifind.cli.options import CollectionPath, FormerExtractor, option
from manifind.cli.terminal import say
from manifind.errors import MissingExtraError
from manifind.text import count

_EXTRACTOR = (
    "For uploads and words, once, where the collection was described by a model that is a file or a folder of yours."
)
_IMAGES = "A folder whose pictures may be shown; else the one that you have indexed."


def serve(
    collection: CollectionPath,
    host: Annotated[str, option("Address to listen on; any but this machine's own needs a token.")] = "127.0.0.1",
    port: Annotated[int, option("0 takes a free one.", min=0, max=65535)] = 8765,
    name: Annotated[list[str] | None, option("A name under which browsers reach it, beside the address.")] = None,
    token_file: Annotated[Path | None, option("A file with the token; else MANIFIND_TOKEN in the environment.")] = None,
    allow_edit: Annotated[bool, option("Let the page add and remove items, and fit anew.", "--allow-edit")] = False,
    extractor: Annotated[str | None, option(_EXTRACTOR)] = None,
    describer: FormerExtractor = None,
    images: Annotated[list[Path] | None, option(_IMAGES)] = None,
    open_: Annotated[bool, option("Open the page in the browser.", "--open")] = False,
) -> None:
    """Serve a collection as a page to search in, and as an API under /api/v1.

    It listens on this machine only, unless told otherwise. Ctrl-C ends it.
    """
    try:
        from manifind.server.app import acceptors, is_loopback, make_app, make_server, open_socket, read_token
        from manifind.server.connections import usual_limits
    except ImportError as error:
        raise MissingExtraError(
            f"the search page needs {error.name}, which is not installed", 'pip install "manifind[web]"'
        ) from error
    from manifind.server.middleware import LOOPBACK, AccessRules
    from manifind.server.service import Service

    token = read_token(host, token_file)
    service = Service(collection, extractor or describer, images=images or ())
    listening = open_socket(host, port)
    own = LOOPBACK if is_loopback(host) else (host,)
    rules = AccessRules(hosts=(*own, *(one.lower() for one in name or ())), token=token)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    say(f"{collection}: {count(len(service.collection), 'item')} at {address}" + (" with #token=..." if token else ""))
    if service.collection.is_of_pictures and not service.folders:
        say("its pictures are not shown, since you have not indexed them here: give --images FOLDER to show them")
    server = make_server(make_app(service, rules, allow_edit), usual_limits(rules.seconds))
    if open_:
        typer.launch(address)
    server.run(sockets=acceptors(listening))
