"""The routes of the API, and the schemas of what they take and give."""

import json
import mmap
import tempfile
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from manifind.collection.searchable import QueryPart
from manifind.images.decode import check_crop
from manifind.server import views
from manifind.server.errors import DOCUMENTED, RefusedError
from manifind.server.images import Thumbnails, Upload
from manifind.server.jobs import JobState, Turns
from manifind.server.middleware import content_type, is_picture
from manifind.server.service import Service

Method = Literal["gradnet", "knn"]
Space = Literal["descriptors", "features"]
Id = Annotated[str, Field(max_length=4096)]
Where = Annotated[str, Field(max_length=2000)]
MOST_RESULTS, FURTHEST, MOST_LETTERS = 1000, 100_000, 1000


class Item(BaseModel):
    """An item and what is said of it."""

    id: str
    fields: dict[str, Any]


class Result(Item):
    """An item of an answer."""

    rank: int
    score: float


class ComparedResult(Result):
    """other_rank: where the other method puts it; null where that is beyond its first thousand."""

    other_rank: int | None


class Answer(BaseModel):
    """more: whether there are results behind these. upload: what an uploaded picture is called from now on."""

    items: int
    results: list[Result]
    more: bool
    upload: str | None = None


class Compared(BaseModel):
    """The same query by learned features and by plain descriptors."""

    gradnet: list[ComparedResult]
    knn: list[ComparedResult]


class PathStep(BaseModel):
    """An item on the way, null for an uploaded query, and the weight of the edge that leads to it.

    path: where the file of the item is now, null where it has none.
    """

    id: str | None
    path: str | None
    weight: float


class Path(BaseModel):
    """strength: the product of the weights; an empty path where the graph does not lead there."""

    path: list[PathStep]
    strength: float


class Items(BaseModel):
    """total: how many there are behind all pages."""

    total: int
    items: list[Item]


Crop = Annotated[
    tuple[float, float, float, float],
    Field(description="Left, top, width, height of a part of a picture: pixels, or shares where none is above 1."),
]


class GivenPart(BaseModel):
    """A part of a query: an item, an upload, words, or a descriptor. crop: of the item's picture."""

    model_config = ConfigDict(extra="forbid")
    id: Id | None = None
    upload: Annotated[str, Field(max_length=64)] | None = None
    text: Annotated[str, Field(max_length=MOST_LETTERS)] | None = None
    vector: Annotated[list[float], Field(min_length=1, max_length=65_536)] | None = None
    crop: Crop | None = None


class WeightedPart(GivenPart):
    """A part of a combined query; a weight below 0 means less like this."""

    weight: float = Field(1.0, ge=-1000, le=1000)


class QueryBody(BaseModel):
    """What every search by a body may say beside its query."""

    model_config = ConfigDict(extra="forbid")
    k: int = Field(24, ge=1, le=MOST_RESULTS)
    offset: int = Field(0, ge=0, le=FURTHEST)
    method: Method = "gradnet"
    where: Where | None = None


class CombinedQuery(QueryBody):
    """Several parts as one query, in any order: the sum of weight times learned features, scaled to length 1."""

    parts: list[WeightedPart] = Field(min_length=1, max_length=64)


class VectorQuery(QueryBody):
    """A descriptor by the model that described the collection."""

    vector: list[float] = Field(min_length=1, max_length=65_536)


class NewItem(BaseModel):
    """An item to add; without an id it gets the next number, where ids are numbers."""

    model_config = ConfigDict(extra="forbid")
    id: str | StrictInt | None = None
    vector: list[float] = Field(min_length=1, max_length=65_536)
    fields: dict[str, str | int | float | bool | None] = Field(default_factory=dict)


class NewItems(BaseModel):
    """Some items to add, all or none."""

    model_config = ConfigDict(extra="forbid")
    items: list[NewItem] = Field(min_length=1, max_length=10_000)


PREFIX = "/api/v1"
_AT_ONCE = 4
_UPLOADS_WAITING = 8  # each with a body in memory; one is described at a time, since that takes all cores

ItemId = Annotated[Id | None, Query(description="An item, by its id.")]
UploadKey = Annotated[
    str | None, Query(max_length=64, description="A picture that was uploaded, by what the answer called it.")
]
Words = Annotated[str | None, Query(max_length=MOST_LETTERS, description="What to look for, in words.")]
CropText = Annotated[
    str | None,
    Query(max_length=100, pattern=r"^[^,]+(,[^,]+){3}$", description="A part of the picture: left,top,width,height."),
]
Condition = Annotated[Where | None, Query(description="A filter on metadata: year >= 1990 and place = 'Rome'")]
Count = Annotated[int, Query(ge=1, le=MOST_RESULTS)]
Offset = Annotated[int, Query(ge=0, le=FURTHEST)]


def as_json(value: Any, status: int = 200) -> Response:
    """What the service returns, which consists of plain values."""
    return Response(json.dumps(value, allow_nan=False), status, media_type="application/json")


def _as_job(job: JobState) -> Response:
    return as_json(job.model_dump(), 202)


def make_router(service: Service, can_edit: bool) -> APIRouter:
    """All paths, with turns of their own for what takes milliseconds, for files to decode, for uploads to describe."""
    router = APIRouter(prefix=PREFIX, responses=DOCUMENTED)
    quick, describing = Turns(_AT_ONCE), Turns(1, _UPLOADS_WAITING, may_outlive=False)
    _add_searches(router, service, quick, describing)
    _add_items(router, service, quick, Turns(_AT_ONCE), can_edit)
    _add_changes(router, service, quick, describing, can_edit)
    return router


def _given(id: str | None, upload: str | None, text: str | None, crop: str | None = None) -> GivenPart:
    return GivenPart(id=id, upload=upload, text=text, crop=None if crop is None else check_crop(crop.split(",")))


def _add_searches(router: APIRouter, service: Service, quick: Turns, describing: Turns) -> None:
    async def answer(parts: Sequence[GivenPart], give: Callable[[views.View, views.Query], Any]) -> Response:
        def described() -> list[QueryPart]:
            view = service.view()
            return [service.part(view, part, getattr(part, "weight", 1.0)) for part in parts]

        needs_model = any(part.text is not None or part.crop is not None for part in parts)
        query = await describing(described) if needs_model else None

        def work() -> Any:
            return give(service.view(), query or described())

        return as_json(await quick(work))

    @router.get("/search", response_model=Answer, summary="Items like an item, like an upload, or as words say")
    async def search(
        id: ItemId = None, upload: UploadKey = None, text: Words = None, crop: CropText = None, k: Count = 24,
        offset: Offset = 0, method: Method = "gradnet", where: Condition = None,
    ) -> Response:  # fmt: skip
        parts = [_given(id, upload, text, crop)]
        return await answer(parts, lambda view, query: view.search(query, k, offset, method, where))

    @router.post("/search/combined", response_model=Answer, summary="Items like several things together")
    async def search_combined(body: CombinedQuery) -> Response:
        rest = body.k, body.offset, body.method, body.where
        return await answer(body.parts, lambda view, query: view.search(query, *rest))

    @router.post("/search/vector", response_model=Answer, summary="Items like a vector")
    async def search_vector(body: VectorQuery) -> Response:
        rest = body.k, body.offset, body.method, body.where
        return await answer([GivenPart(vector=body.vector)], lambda view, query: view.search(query, *rest))

    @router.post("/search/picture", response_model=Answer, summary="Items like a picture", openapi_extra=_PICTURE_BODY)
    async def search_picture(
        request: Request, k: Count = 24, method: Method = "gradnet", where: Condition = None, crop: CropText = None
    ) -> Response:
        part = None if crop is None else check_crop(crop.split(","))
        taken = await describing(service.uploads.take, await _picture(request), part)
        query = [QueryPart(vector=taken.row)]
        found = await quick(lambda: service.view().search(query, k, 0, method, where))
        return as_json({**found, "upload": taken.key})

    @router.get("/compare", response_model=Compared, summary="Learned features beside plain neighbours")
    async def compare(
        id: ItemId = None, upload: UploadKey = None, text: Words = None, crop: CropText = None,
        k: Annotated[int, Query(ge=1, le=200)] = 24, where: Condition = None,
    ) -> Response:  # fmt: skip
        parts = [_given(id, upload, text, crop)]
        return await answer(parts, lambda view, query: view.compare(query, k, where))

    @router.get("/why", response_model=Path, summary="The strongest path from a query to a result")
    async def why(
        result: Annotated[Id, Query(description="The result, by its id.")], id: ItemId = None,
        upload: UploadKey = None, text: Words = None, crop: CropText = None,
    ) -> Response:  # fmt: skip
        return await answer([_given(id, upload, text, crop)], lambda view, query: view.why(query, result))


def _add_items(router: APIRouter, service: Service, quick: Turns, decoding: Turns, can_edit: bool) -> None:
    @router.get("/collection", summary="What the collection is")
    async def collection() -> Response:
        return as_json(await quick(service.facts, can_edit))

    @router.get("/items", response_model=Items, summary="Items, a page at a time")
    async def items(
        offset: Annotated[int, Query(ge=0, le=1 << 40)] = 0, limit: Annotated[int, Query(ge=1, le=500)] = 60,
        where: Condition = None, name: Annotated[str | None, Query(max_length=500)] = None,
    ) -> Response:  # fmt: skip
        return as_json(await quick(lambda: service.view().listed(offset, limit, where, name)))

    @router.get("/item", summary="Everything that is said of an item")
    async def item(id: Annotated[Id, Query()]) -> Response:
        return as_json(await quick(lambda: service.view().item(id)))

    async def jpeg(images: Thumbnails, id: str | None, upload: str | None = None) -> Response:
        def find() -> bytes | None:
            if id is None and upload is not None:
                known = service.uploads.get(upload)
                return None if known is None else known.thumbnail
            if id is None:
                raise RefusedError(422, "give either id or upload")
            file = service.file(id)
            return None if file is None else images.get(file)

        data = await decoding(find)
        if data is None:
            raise RefusedError(404, "there is no picture of this item", "its file may be gone")
        return Response(data, 200, {"cache-control": "private, max-age=3600"}, media_type="image/jpeg")

    @router.get("/thumbnail", summary="A small picture", responses=_JPEG)
    async def thumbnail(id: ItemId = None, upload: UploadKey = None) -> Response:
        return await jpeg(service.thumbnails, id, upload)

    @router.get("/picture", summary="A picture, to look at", responses=_JPEG)
    async def picture(id: Annotated[Id, Query()]) -> Response:
        return await jpeg(service.large, id)

    @router.get(
        "/map", summary="A place for each item, in the order of /items, or the job that makes them",
        responses={200: {"content": {"application/octet-stream": {}}, "description": "float32 pairs, x and y."},
                   202: {"model": JobState, "description": "It is being made."}},
    )  # fmt: skip
    async def map_(space: Space = "features") -> Response:
        found = await quick(lambda: service.maps.get(service.view().version, space))
        if isinstance(found, JobState):
            if found.state == "failed":
                raise RefusedError(503, f"the map could not be made: {found.error}", found.hint)
            return _as_job(found)
        return Response(found.astype("<f4").tobytes(), media_type="application/octet-stream")

    @router.get("/jobs/{job}", response_model=JobState, summary="Where a job stands")
    async def job_state(job: str) -> Response:
        return as_json(service.jobs.get(job).model_dump())


def _add_changes(router: APIRouter, service: Service, quick: Turns, describing: Turns, can_edit: bool) -> None:
    def allowed() -> None:
        if not can_edit:
            raise RefusedError(403, "this server does not allow changes", "start it with --allow-edit")

    made: Any = {"status_code": 202, "responses": {202: {"model": JobState, "description": "A job that does it."}}}

    @router.post("/items", **made, summary="Add items that come as vectors")
    async def add(new: NewItems) -> Response:
        allowed()
        return _as_job(await quick(service.add_vectors, [item.model_dump() for item in new.items]))

    @router.post("/pictures", **made, openapi_extra=_PICTURE_BODY, summary="Put a picture into the folder, and add it")
    async def add_picture(request: Request) -> Response:
        allowed()
        return _as_job(await describing(service.add_picture, await _picture(request)))

    @router.delete("/items", **made, summary="Remove items; files stay where they are")
    async def remove(id: Annotated[list[Id], Query(min_length=1, max_length=1000)]) -> Response:
        allowed()
        return _as_job(await quick(service.remove, list(dict.fromkeys(id))))

    @router.post("/refit", **made, summary="Learn from what has changed")
    async def refit(nothing: Annotated[dict[str, Any] | None, Body()] = None) -> Response:
        del nothing
        allowed()
        return _as_job(service.refit())


async def _picture(request: Request) -> Upload:
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


_JPEG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}, "description": "JPEG."}}
_PICTURE_BODY = {
    "requestBody": {"required": True, "content": {"image/*": {"schema": {"type": "string", "format": "binary"}}}}
}
