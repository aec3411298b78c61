"""The routes of the API that read: searches, items, pictures. `edits`, `exports` and others add theirs."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from manifind.collection.searchable import QueryPart
from manifind.images.decode import check_crop
from manifind.server import views
from manifind.server.answers import (
    JPEG,
    PICTURE_BODY,
    Answer,
    CombinedComparison,
    CombinedQuery,
    Compared,
    Condition,
    Count,
    CropText,
    Cut,
    Fields,
    GivenPart,
    Id,
    ItemId,
    Items,
    Method,
    Offset,
    Path,
    Space,
    UploadKey,
    VectorQuery,
    Words,
    as_job,
    as_json,
)
from manifind.server.edits import add_edits, read_picture
from manifind.server.errors import DOCUMENTED, RefusedError
from manifind.server.exports import add_exports
from manifind.server.images import Thumbnails
from manifind.server.indexing import add_indexing
from manifind.server.jobs import JobState, Turns
from manifind.server.review import add_review, cluster_rows
from manifind.server.service import Service

PREFIX = "/api/v1"
_AT_ONCE = 4
_UPLOADS_WAITING = 8  # each with a body in memory; one is described at a time, since that takes all cores


def make_router(service: Service, can_edit: bool) -> APIRouter:
    """All paths, with turns of their own for what takes milliseconds, for files to decode, for uploads to describe."""
    router = APIRouter(prefix=PREFIX, responses=DOCUMENTED)
    quick, describing = Turns(_AT_ONCE), Turns(1, _UPLOADS_WAITING, may_outlive=False)
    _add_searches(router, service, quick, describing)
    _add_items(router, service, quick, Turns(_AT_ONCE), can_edit)
    add_edits(router, service, quick, describing, can_edit)
    add_exports(router, service, quick)
    add_review(router, service, quick)
    add_indexing(router, service, quick, can_edit)
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
        offset: Offset = 0, method: Method = "gradnet", where: Condition = None, cut: Cut = False,
    ) -> Response:  # fmt: skip
        parts = [_given(id, upload, text, crop)]
        return await answer(parts, lambda view, query: view.search(query, k, offset, method, where, cut))

    @router.post("/search/combined", response_model=Answer, summary="Items like several things together")
    async def search_combined(body: CombinedQuery) -> Response:
        rest = body.k, body.offset, body.method, body.where, body.cut
        return await answer(body.parts, lambda view, query: view.search(query, *rest))

    @router.post("/search/vector", response_model=Answer, summary="Items like a vector")
    async def search_vector(body: VectorQuery) -> Response:
        rest = body.k, body.offset, body.method, body.where, body.cut
        return await answer([GivenPart(vector=body.vector)], lambda view, query: view.search(query, *rest))

    @router.post("/search/picture", response_model=Answer, summary="Items like a picture", openapi_extra=PICTURE_BODY)
    async def search_picture(
        request: Request, k: Count = 24, method: Method = "gradnet", where: Condition = None, crop: CropText = None,
        cut: Cut = False,
    ) -> Response:  # fmt: skip
        part = None if crop is None else check_crop(crop.split(","))
        taken = await describing(service.uploads.take, await read_picture(request), part)
        query = [QueryPart(vector=taken.row)]
        found = await quick(lambda: service.view().search(query, k, 0, method, where, cut))
        return as_json({**found, "upload": taken.key})

    @router.get("/compare", response_model=Compared, summary="Learned features beside plain neighbours")
    async def compare(
        id: ItemId = None, upload: UploadKey = None, text: Words = None, crop: CropText = None,
        k: Annotated[int, Query(ge=1, le=200)] = 24, offset: Offset = 0, where: Condition = None,
    ) -> Response:  # fmt: skip
        parts = [_given(id, upload, text, crop)]
        return await answer(parts, lambda view, query: view.compare(query, k, offset, where))

    @router.post("/compare/combined", response_model=Compared, summary="The same of several things together")
    async def compare_combined(body: CombinedComparison) -> Response:
        return await answer(body.parts, lambda view, query: view.compare(query, body.k, body.offset, body.where))

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
        cluster: Annotated[int | None, Query(ge=0, description="A group, as /clusters names it.")] = None,
    ) -> Response:  # fmt: skip
        def listed() -> dict[str, Any]:
            view = service.view()
            among = None if cluster is None else cluster_rows(service.maps, view.version, cluster)
            return view.listed(offset, limit, where, name, among)

        return as_json(await quick(listed))

    @router.get("/fields", response_model=Fields, summary="What the metadata hold: kinds, ranges, frequent values")
    async def fields(where: Condition = None) -> Response:
        return as_json({"fields": await quick(lambda: service.view().described_fields(where))})

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

    @router.get("/thumbnail", summary="A small picture", responses=JPEG)
    async def thumbnail(id: ItemId = None, upload: UploadKey = None) -> Response:
        return await jpeg(service.thumbnails, id, upload)

    @router.get("/picture", summary="A picture, to look at", responses=JPEG)
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
            return as_job(found)
        return Response(found.astype("<f4").tobytes(), media_type="application/octet-stream")

    @router.get("/jobs/{job}", response_model=JobState, summary="Where a job stands")
    async def job_state(job: str) -> Response:
        return as_json(service.jobs.get(job).model_dump())
