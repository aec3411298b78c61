"""Running the application: the address, the token, and what is printed when it starts."""

from __future__ import annotations

import ipaddress
import os
import socket
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
import uvloop  # noqa: F401 - uvicorn takes it by its name

from gradnet.errors import InputError
from gradnet.web.connections import Connection, Connections, Limits
from gradnet.web.guard import App
from gradnet.wording import count

VARIABLE = "GRADNET_TOKEN"
_SHORTEST = 16
_BACKLOG = 1024  # clients that the system keeps waiting
_ACCEPTED_AT_ONCE = 16


def read_token(host: str, file: Path | None) -> str | None:
    """The token from a file or from the environment; needed wherever others can reach the address.

    Never from the command line, where every user of the machine could read it.
    """
    token = _from_file(file) if file is not None else os.environ.get(VARIABLE)
    if token is None:
        if is_loopback(host):
            return None
        raise InputError(
            f"others can reach {host}, so a token is needed",
            f"put one of at least {_SHORTEST} characters into {VARIABLE} in the environment, or into a --token-file",
        )
    token = token.strip()
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            f"the token has {count(len(token), 'character')}, or some that are no letters and digits",
            f"take at least {_SHORTEST}: python -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    return token


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_server(app: App, limits: Limits) -> uvicorn.Server:
    """What runs the application, with one event loop and one parser of HTTP whatever else is installed."""
    protocol: Any = partial(Connection, connections=Connections(limits))
    config = uvicorn.Config(
        app,
        http=protocol,
        loop="uvloop",
        ws="none",
        log_level="error",  # what strangers send is no reason to fill a log
        access_log=False,  # addresses name what people look for
        server_header=False,
        backlog=_BACKLOG,
    )
    return uvicorn.Server(config)


def acceptors(listening: socket.socket) -> list[socket.socket]:
    """The socket several times: in each turn of the loop, which may take long, one client is let in for each."""
    return [listening, *(listening.dup() for _ in range(_ACCEPTED_AT_ONCE - 1))]


def open_socket(host: str, port: int) -> socket.socket:
    """Listening there; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        words = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot listen on {host}, port {port}: {words}", "give another --port, or 0 for any"
        ) from error
    listening.listen(_BACKLOG)
    return listening


def _from_file(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the token in {file} cannot be read: {error}", "give a file of text") from error
