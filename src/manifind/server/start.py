"""The start page where a server has several collections: what each holds, and how a new one is made of a folder."""

import re
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Body, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from manifind.collection.database import is_collection
from manifind.errors import ManifindError
from manifind.images.files import path_text
from manifind.progress import Listener
from manifind.server.answers import JPEG
from manifind.server.api import PREFIX
from manifind.server.errors import DOCUMENTED, RefusedError
from manifind.server.folders import allowed_folder
from manifind.server.indexing import (
    AS_JOB,
    FolderText,
    IndexingState,
    add_folders,
    add_job_list,
    check_may_edit,
    index_resumably,
)
from manifind.server.jobs import JobState, Turns
from manifind.server.several import ServedCollection, ServedCollections
from manifind.text import UNSEEN, visible

_LONGEST = 200  # bytes of the name of a directory
_WORK = ".work"  # how folders end that hold unfinished work


class Shown(BaseModel):
    """A collection on the start page. key: in its address, and in what a job is about. changed: share since the fit.

    thumbnails: ids. problem, hint: why it cannot be opened, empty where it can.
    """

    name: str
    key: str
    address: str
    items: int
    pictures: bool
    changed: float
    thumbnails: list[str]
    problem: str
    hint: str


class AllShown(BaseModel):
    """can_make: whether a new one can be made of a folder."""

    collections: list[Shown]
    can_make: bool


class NewCollection(BaseModel):
    """A collection to make. name: of its directory. folder: one that may be indexed."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=1000)]
    folder: FolderText


def make_start(served: ServedCollections, can_edit: bool) -> APIRouter:
    """The paths of the start page; those of a collection stand below its own address."""
    router, quick, decoding = APIRouter(prefix=PREFIX, responses=DOCUMENTED), Turns(2), Turns(4)
    can_make = can_edit and bool(served.homes) and bool(served.index_below)
    add_job_list(router, served.jobs)
    add_folders(router, served.index_below, can_edit)

    def listed() -> AllShown:
        entries = served.entries()
        served.check()
        return AllShown(collections=[_shown(served, entry) for entry in entries], can_make=can_make)

    @router.get("/collections", response_model=AllShown, summary="The collections of this server")
    async def collections() -> AllShown:
        return await quick(listed)

    @router.post("/collections", **AS_JOB, summary="Make a collection of a folder of pictures")
    async def make(new: Annotated[NewCollection, Body()]) -> JobState:
        check_may_edit(can_edit)
        if not can_make:
            problem = "this server makes no collections"
            raise RefusedError(409, problem, "start it with a folder of collections, and with --index-below FOLDER")
        return await quick(lambda: make_collection(served, new.name, allowed_folder(new.folder, served.index_below)))

    @router.get("/jobs/{job}", response_model=JobState, summary="Where a job stands")
    async def job_state(job: str) -> JobState:
        return served.jobs.get(job)

    @router.get("/thumbnail", summary="A small picture of one of those that /collections names", responses=JPEG)
    async def thumbnail(
        collection: Annotated[str, Query(max_length=200)], id: Annotated[str, Query(max_length=4096)]
    ) -> Response:
        def find() -> bytes | None:
            file = served.summary(served.entry(collection)).examples.get(id)
            return None if file is None else served.thumbnails.get(file)

        data = await decoding(find)
        if data is None:
            raise RefusedError(404, "there is no picture of this item", "its file may be gone")
        return Response(data, 200, {"cache-control": "private, max-age=3600"}, media_type="image/jpeg")

    if can_make:
        _go_on(served)
    return router


def _shown(served: ServedCollections, entry: ServedCollection) -> Shown:
    facts: dict[str, Any] = {"items": 0, "pictures": False, "changed": 0.0, "thumbnails": [], "problem": "", "hint": ""}
    try:
        summary = served.summary(entry)
        facts |= {"items": summary.items, "pictures": summary.pictures, "changed": round(summary.changed, 6)}
        facts["thumbnails"] = list(summary.examples)
    except ManifindError as error:
        facts |= {"problem": error.problem, "hint": error.hint}
    name = visible(entry.path.name)
    return Shown(name=name, key=entry.name, address=_address(entry), **facts)


def make_collection(served: ServedCollections, name: str, folder: Path) -> JobState:
    """Index a folder into a new collection, as a job; it appears on the start page when it is done."""
    target = served.homes[0] / checked_name(name)
    others = {_compared(entry.path.name) for entry in served.entries() if entry.path.parent == target.parent}
    if _compared(target.name) in others or target.exists() or target.is_symlink():
        raise RefusedError(409, f"there is something called {target.name!r} already", "choose another name")
    if any((job.kind, job.about, job.is_over) == ("make", target.name, False) for job in served.jobs.listed()):
        raise RefusedError(409, f"{target.name!r} is being made already", "wait until it is done")
    return _start(served, target, folder)


def checked_name(text: str) -> str:
    """What a new directory may be called; whatever would lead elsewhere, or look like something else, is refused."""
    name = unicodedata.normalize("NFC", text).strip()
    problem, size = "", len(name.encode(errors="replace"))
    if not name or name.startswith("."):
        problem = "is empty, or begins with a dot"
    elif _UNWANTED.search(name):
        problem = "has a slash, or a character that cannot be seen"
    elif size > _LONGEST:
        problem = f"has {size} bytes, and the most are {_LONGEST}"
    if problem:
        raise RefusedError(400, f"the name {visible(text)[:100]!r} {problem}", "take letters and digits")
    return name


_UNWANTED = re.compile(f"[/\\\\\ud800-\udfff\u200b-\u200f\u061c\ufeff]|{UNSEEN.pattern}")


def _compared(name: str) -> str:
    """As file systems compare that do not mind the case."""
    return unicodedata.normalize("NFC", name).casefold()


def _start(served: ServedCollections, target: Path, folder: Path) -> JobState:
    def work(listener: Listener) -> dict[str, Any]:
        try:
            result = index_resumably(served.jobs, target, folder, served.extractor, listener)
        finally:
            if not served.jobs.have_ended:
                IndexingState.change(target, problem="", hint="")  # of what is not there nobody could read it
        served.show()
        address = next((_address(entry) for entry in served.entries() if entry.path == target), "")
        return {**result, "address": address}

    IndexingState.change(target, unfinished=path_text(str(folder)))  # before it waits for its turn
    try:
        return served.jobs.of(target.name).start("make", work)
    except RefusedError:
        IndexingState.change(target, unfinished=None)
        raise


def _go_on(served: ServedCollections) -> None:
    """Make the collections that were being made when the server ended."""
    for work in sorted(served.homes[0].glob(f".*{_WORK}")):
        target = work.with_name(work.name[1:].removesuffix(_WORK))
        with suppress(ManifindError, OSError):  # what is saved there may be damaged, or from somebody else
            unfinished = IndexingState.read(target).unfinished
            if unfinished is not None and not is_collection(target):
                _start(served, target, allowed_folder(unfinished, served.index_below))


def _address(entry: ServedCollection) -> str:
    return f"c/{quote(entry.name)}/"
