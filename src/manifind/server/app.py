"""The application and its server: routes, pages, address, token."""

import ipaddress
import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
import uvloop  # noqa: F401 - uvicorn takes it by its name
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from manifind import __version__
from manifind.errors import InputError, ManifindError
from manifind.server.api import PREFIX, make_router
from manifind.server.connections import Connection, Connections, Limits
from manifind.server.errors import refusal_of, refused
from manifind.server.middleware import AccessMiddleware, AccessRules, Metrics
from manifind.server.service import Service
from manifind.server.several import CollectionRouter, ServedCollections
from manifind.server.start import make_start
from manifind.text import count, visible

_STATIC = Path(__file__).parent / "static"


def make_app(served: Service | ServedCollections, rules: AccessRules, can_edit: bool = False) -> ASGIApp:
    """One collection with its page at /, or several below /c/, each as it would be alone, with a start page."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        served.close()

    app = _make_api(lifespan=life)
    if isinstance(served, ServedCollections):
        metrics = Metrics(lambda: float(served.n_items))
        app.include_router(make_start(served, can_edit))
        _add_pages(app, "", "start.html")
        _add_pages(app, "/c/{name}", "index.html")

        @app.get("/c/{name}", include_in_schema=False)
        async def page_of(name: str) -> Response:
            return RedirectResponse(f"{quote(name)}/")

        make = partial(_api_of, can_edit=can_edit)
        app.mount("/c/{name}", CollectionRouter(served, make))
        if can_edit:
            served.open_unfinished(make)
    else:
        metrics = Metrics(lambda: float(len(served.collection)))
        app.include_router(make_router(served, can_edit))
        _add_pages(app, "", "index.html")

    @app.get("/healthz", include_in_schema=False)
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics", include_in_schema=False)
    def numbers() -> Response:  # in a thread: several collections are read
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    return AccessMiddleware(app, rules, metrics)


def _make_api(**options: Any) -> FastAPI:
    app = FastAPI(
        title="manifind", version=__version__, docs_url=None, redoc_url=None, openapi_url=f"{PREFIX}/openapi.json",
        redirect_slashes=False,  # to an address that would lack what a proxy has taken away
        **options,
    )  # fmt: skip
    _answer_errors(app)
    return app


def _api_of(service: Service, can_edit: bool) -> ASGIApp:
    app = _make_api()
    app.include_router(make_router(service, can_edit))
    return app


def _add_pages(app: FastAPI, base: str, name: str) -> None:
    """A page at a path, the description of its API, and the files of both: all of their addresses are relative."""

    def add(path: str, file: str) -> None:
        @app.get(path, include_in_schema=False)
        async def page() -> Response:
            return FileResponse(_STATIC / file, headers={"cache-control": "no-cache"})

    add(f"{base}/", name)
    add(f"{base}/api", "api.html")
    app.mount(f"{base}/static", StaticFiles(directory=_STATIC))


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(ManifindError)
    async def refusal(_: Request, error: ManifindError) -> Response:
        return refusal_of(error)

    @app.exception_handler(Exception)
    async def fault(_: Request, error: Exception) -> Response:
        return refused(500, f"a fault of this program: {type(error).__name__}", "please report it")

    @app.exception_handler(RequestValidationError)
    async def nonsense(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])[:200]
        return refused(422, f"{where}: {first['msg']}", "see /api for what is expected")

    @app.exception_handler(HTTPException)
    async def no_such_path(_: Request, error: HTTPException) -> Response:
        return refused(error.status_code, str(error.detail), "see /api for what there is", dict(error.headers or {}))


VARIABLE = "MANIFIND_TOKEN"
_SHORTEST = 16
_BACKLOG = 1024  # clients that the system keeps waiting
_ACCEPTED_AT_ONCE = 16


def read_token(host: str, file: Path | None) -> str | None:
    """The token from a file or from the environment; needed wherever others can reach the address.

    Never from the command line, where every user of the machine could read it.
    """
    try:
        token = os.environ.get(VARIABLE) if file is None else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the token in {file} cannot be read: {error}", "give a file of text") from error
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


_OUR_OWN = ("", "api", "c", "healthz", "metrics", "static")


def check_root_path(text: str) -> str:
    """The path under which a proxy shows this server: empty, or /archive, without a slash at its end."""
    path = text.rstrip("/")
    parts = path.split("/")[1:]
    if path and not re.fullmatch("(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", path):
        problem = f"--root-path {visible(text)[:200]!r}; expected a path of letters, digits and -._~"
        raise InputError(problem, "give it as browsers see it: /archive")
    if parts and parts[0] in _OUR_OWN:
        raise InputError(
            f"--root-path {path} begins as paths of this server itself do", "choose another one for the proxy"
        )
    return path


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_server(app: ASGIApp, limits: Limits) -> uvicorn.Server:
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
