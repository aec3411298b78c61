"""The application: paths, pages, and the guard around all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from gradnet import __version__
from gradnet.errors import GradNetError
from gradnet.web.api import PREFIX, make_router
from gradnet.web.guard import App, Guard, Rules
from gradnet.web.metrics import Metrics
from gradnet.web.problems import RefusedError, of_library, refused
from gradnet.web.service import Service

_STATIC = Path(__file__).parent / "static"


def make_app(service: Service, rules: Rules, can_edit: bool = False) -> App:
    """What a server runs."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    metrics = Metrics()
    metrics.watch("gradnet_items", "Items in the collection.", lambda: float(len(service.collection)))
    app = FastAPI(
        title="gradnet", version=__version__, docs_url=None, redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json", lifespan=life,
    )  # fmt: skip
    _answer_errors(app)
    app.include_router(make_router(service, can_edit))

    @app.get("/healthz", include_in_schema=False)
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics", include_in_schema=False)
    async def numbers() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    for path, file in (("/", "index.html"), ("/api", "api.html")):
        app.add_api_route(path, _page(file), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=_STATIC))
    return Guard(app, rules, metrics)


def _page(name: str) -> Any:
    async def page() -> Response:
        return FileResponse(_STATIC / name, headers={"cache-control": "no-cache"})

    return page


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(RefusedError)
    async def refused_here(_: Request, error: RefusedError) -> Response:
        return refused(error.status, error.error, error.hint)

    @app.exception_handler(GradNetError)
    async def refused_by_library(_: Request, error: GradNetError) -> Response:
        return of_library(error)

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
        return refused(
            error.status_code, str(error.detail), "see /api for what there is", dict(error.headers or {})
        )
