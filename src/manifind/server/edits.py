"""Routes that change a collection: items, labels, judgements, undo, refits. What takes time is a job."""

import mmap
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from manifind.collection.judgements import JudgedQuery
from manifind.server.answers import MOST_PARTS, PICTURE_BODY, Id, WeightedPart, as_job, as_json
from manifind.server.errors import RefusedError
from manifind.server.images import Upload
from manifind.server.indexing import check_may_edit
from manifind.server.jobs import JobState, Turns
from manifind.server.middleware import content_type, is_picture
from manifind.server.service import Service

_MOST_IDS = 10_000  # of one request
Ids = Annotated[list[Id], Field(max_length=_MOST_IDS)]
Label = Annotated[str, Field(min_length=1, max_length=200)]


class NewItem(BaseModel):
    """An item to add; without an id it gets the next number, where ids are numbers."""

    model_config = ConfigDict(extra="forbid")
    id: str | StrictInt | None = None
    vector: list[float] = Field(min_length=1, max_length=65_536)
    fields: dict[str, str | int | float | bool | None] = Field(default_factory=dict)


class NewItems(BaseModel):
    """Some items to add, all or none."""

    model_config = ConfigDict(extra="forbid")
    items: list[NewItem] = Field(min_length=1, max_length=_MOST_IDS)


class GivenIds(BaseModel):
    """Some items, all or none."""

    model_config = ConfigDict(extra="forbid")
    ids: Ids = Field(min_length=1)


class GivenLabels(GivenIds):
    """Labels to add to items, and to take away. field: "tags" or "albums"."""

    field: Annotated[str, Field(pattern="^(tags|albums)$")] = "tags"
    add: Annotated[list[Label], Field(max_length=100)] = Field(default_factory=list)
    remove: Annotated[list[Label], Field(max_length=100)] = Field(default_factory=list)


class UndoneStep(BaseModel):
    """step: the last change, as /changes names it."""

    model_config = ConfigDict(extra="forbid")
    step: StrictInt


class JudgedParts(BaseModel):
    """A query, whose parts are as those of a combined search."""

    model_config = ConfigDict(extra="forbid")
    parts: list[WeightedPart] = Field(min_length=1, max_length=MOST_PARTS)


class GivenJudgements(JudgedParts):
    """Which items are right and wrong as its results; neither takes a judgement back."""

    right: Ids = Field(default_factory=list)
    wrong: Ids = Field(default_factory=list)
    neither: Ids = Field(default_factory=list)


class Verdicts(BaseModel):
    """What has been judged of a query."""

    right: list[str]
    wrong: list[str]


_MADE: Any = {"status_code": 202, "responses": {202: {"model": JobState, "description": "A job that does it."}}}


def add_edits(router: APIRouter, service: Service, quick: Turns, describing: Turns, can_edit: bool) -> None:
    """Add the routes. quick: turns for what takes milliseconds. describing: for uploads and words."""
    allowed = partial(check_may_edit, can_edit)
    _add_items(router, service, quick, describing, allowed)
    _add_history(router, service, quick, allowed)
    _add_judgements(router, service, quick, describing, allowed)


def _add_items(
    router: APIRouter, service: Service, quick: Turns, describing: Turns, allowed: Callable[[], None]
) -> None:
    @router.post("/items", **_MADE, summary="Add items that come as vectors")
    async def add(new: NewItems) -> Response:
        allowed()
        return as_job(await quick(service.add_vectors, [item.model_dump() for item in new.items]))

    @router.post("/pictures", **_MADE, openapi_extra=PICTURE_BODY, summary="Put a picture into the folder, and add it")
    async def add_picture(
        request: Request,
        name: Annotated[str, Query(max_length=1000, description="What the file is to be called.")] = "",
    ) -> Response:
        allowed()
        return as_job(await describing(service.add_picture, await read_picture(request), name))

    @router.post("/items/remove", **_MADE, summary="Remove items; files stay where they are")
    async def remove(given: GivenIds) -> Response:
        allowed()
        return as_job(await quick(service.remove, given.ids))

    @router.post("/labels", **_MADE, summary="Add tags or albums to items, or take them away")
    async def labels(given: GivenLabels) -> Response:
        allowed()
        return as_job(await quick(service.set_labels, given.ids, given.add, given.remove, given.field))

    @router.post("/refit", **_MADE, summary="Learn from what has changed")
    async def refit(nothing: Annotated[dict[str, Any] | None, Body()] = None) -> Response:
        del nothing
        allowed()
        return as_job(service.refit())


def _add_history(router: APIRouter, service: Service, quick: Turns, allowed: Callable[[], None]) -> None:
    @router.get("/changes", summary="The last changes that can be undone, the newest first")
    async def changes() -> Response:
        return as_json({"changes": await quick(service.changes)})

    @router.post("/undo", **_MADE, summary="Undo the last change")
    async def undo(given: UndoneStep) -> Response:
        allowed()
        return as_job(await quick(service.undo, given.step))


def _add_judgements(
    router: APIRouter, service: Service, quick: Turns, describing: Turns, allowed: Callable[[], None]
) -> None:
    async def asked(given: JudgedParts, work: Callable[..., JudgedQuery], *arguments: Any) -> Response:
        needs_model = any(part.text is not None or part.crop is not None for part in given.parts)
        judged = await (describing if needs_model else quick)(work, given.parts, *arguments)
        return as_json({"right": [str(id_) for id_ in judged.right], "wrong": [str(id_) for id_ in judged.wrong]})

    @router.get("/judgements", summary="All judged queries, and how well they are answered")
    async def judgements() -> Response:
        return as_json(await quick(service.judgements))

    @router.post("/judgements/of", response_model=Verdicts, summary="What has been judged of a query")
    async def judgements_of(given: JudgedParts) -> Response:
        return await asked(given, service.judged)

    @router.post("/judgements", response_model=Verdicts, summary="Call results of a query right or wrong")
    async def judge(given: GivenJudgements) -> Response:
        allowed()
        return await asked(given, service.judge, given.right, given.wrong, given.neither)


async def read_picture(request: Request) -> Upload:
    """The body, on disk as long as it comes: many at once would fill the memory."""
    if not is_picture(request.headers):
        kind = content_type(request.headers)[:60]
        raise RefusedError(415, f"the body is {kind or 'of no kind'!r}", "send the picture itself, as image/...")
    with tempfile.TemporaryFile(prefix="manifind-", suffix=".upload") as file:
        async for part in request.stream():
            file.write(part)
        if not file.tell():
            raise RefusedError(400, "the body is empty", "send a picture")
        file.flush()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
