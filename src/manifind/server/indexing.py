"""The folder of a collection, indexed and watched from the page: which folders may be, what goes on after a restart."""

from __future__ import annotations

import math
import os
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict, Field

from manifind.collection.database import work_folder
from manifind.errors import CollectionError, ManifindError, system_errors_as
from manifind.files import atomic_write
from manifind.images.files import path_from_text, path_text
from manifind.progress import Listener
from manifind.server.errors import RefusedError
from manifind.server.folders import allowed_folder, list_folders, looks_of
from manifind.server.jobs import NICE, Jobs, JobState, Turns

if TYPE_CHECKING:
    from manifind.server.service import Service

EVERY = 5.0  # seconds between two looks at a watched folder
_SHARE = 20  # a look takes at most one part in so many of the time
_FRESH = 1.0  # seconds for which what was found about a folder is not looked at again
_FILE = "indexing.json"  # in the work folder of a collection
_MOST_PROBLEMS = 100  # files that are named in the result of a job
_FUNCTION = "manifind.server.indexing:index_in_child"


def check_may_edit(can_edit: bool) -> None:
    if not can_edit:
        raise RefusedError(403, "this server does not allow changes", "start it with --allow-edit")


class IndexingState(BaseModel):
    """What is saved beside a collection, so that a server that was killed goes on.

    watch: whether its folder is watched. unfinished: the folder that is being indexed. seen: how the folder looked when
    it was last indexed. problem, hint: why that did not work.
    """

    model_config = ConfigDict(extra="ignore")
    watch: bool = False
    unfinished: Annotated[str, Field(max_length=10_000)] | None = None
    seen: str = ""
    problem: str = ""
    hint: str = ""

    @classmethod
    def read(cls, collection: Path) -> IndexingState:
        with suppress(OSError, ValueError):  # what cannot be read is as if nothing had been saved
            return cls.model_validate_json((work_folder(collection) / _FILE).read_bytes())
        return cls()

    @classmethod
    def change(cls, collection: Path, **update: Any) -> IndexingState:
        """Keep something else; nothing stays where there is nothing to keep."""
        with _SAVING:
            saved, folder = cls.read(collection).model_copy(update=update), work_folder(collection)
            if saved == cls(seen=saved.seen):
                with suppress(OSError):
                    (folder / _FILE).unlink()
                    folder.rmdir()
                return saved
            hint = "make the folder of the collection yours to write, and see that there is room"
            with system_errors_as(CollectionError, f"{folder / _FILE} cannot be written", hint):
                folder.mkdir(exist_ok=True)
                with atomic_write(folder / _FILE) as partial:
                    partial.write_text(saved.model_dump_json(), encoding="utf-8")
            return saved


_SAVING = Lock()


def index_in_child(path: str, folder: str, extractor: str | None, listener: Listener) -> dict[str, Any]:
    """Make a collection of a folder of pictures, or bring one up to date; called in a child process."""
    os.nice(NICE)
    from manifind.model.index_folder import index_folder  # imports torch

    outcome = index_folder(path_from_text(folder), path_from_text(path), extractor, listener=listener)
    problems = [{"path": path, "reason": reason} for path, reason in outcome.problems]
    return {**outcome.counts, "problems": problems[:_MOST_PROBLEMS], "n_problems": len(problems)}


def index_resumably(
    jobs: Jobs, collection: Path, folder: Path, extractor: str | None, listener: Listener
) -> dict[str, Any]:
    """Index in a child process; that it was begun is saved until it is done, or refused for good."""
    named, looks = path_text(str(folder)), looks_of(folder) or ""
    IndexingState.change(collection, unfinished=named)
    update: dict[str, Any] = {"unfinished": None, "seen": looks, "problem": "", "hint": ""}
    try:
        arguments = {"path": path_text(str(collection)), "folder": named, "extractor": extractor}
        result: dict[str, Any] = jobs.call(_FUNCTION, arguments, listener).value
    except ManifindError as error:
        hint = error.hint.replace("give allow_removals=True", "run `manifind index` with --allow-removals")
        update |= {"problem": error.problem, "hint": hint}
        raise RefusedError(409, error.problem, hint) from error
    finally:
        if not jobs.have_ended:
            IndexingState.change(collection, **update)
    return result


class FolderWatch:
    """The folder of one collection that is served: indexed when that is asked for, and whenever it has changed.

    It does not keep the service alive: its thread ends when that is closed or gone.
    """

    def __init__(self, service: Service) -> None:
        self._service, self._jobs, self._path = weakref.ref(service), service.jobs, service.collection.path
        self.saved, self._lock = IndexingState.read(self._path), Lock()
        self._thread: Thread | None = None
        self._warning: tuple[float, dict[str, str] | None] = -math.inf, None

    def go_on(self) -> None:
        """Index what was not finished when the server ended, and watch what was watched."""
        service, unfinished = self._service(), self.saved.unfinished
        if service is not None and unfinished is not None:
            with suppress(ManifindError):  # what is saved there may be from somebody else, or the folder gone
                self.index(service, self.folder(service, unfinished))
        if self.saved.watch:
            self._start_watching()

    def folder(self, service: Service, wanted: str | None = None) -> Path:
        """The folder to index: the collection's own; another one only where that is not known, or is gone."""
        own = service.folders[0].absolute() if service.folders else None
        if wanted is None and own is None:
            hint = "name one of those that /folders lists"
            raise RefusedError(409, "the folder of the pictures is not known here", hint)
        folder = allowed_folder(path_text(str(own)) if wanted is None else wanted, service.index_below)
        if own is not None and own.is_dir() and own.resolve() != folder:
            problem = f"{self._path.name} was made of {own}; the pictures of {folder} would take the place of those"
            raise RefusedError(409, problem, "make another collection of it")
        return folder

    def index(self, service: Service, folder: Path) -> JobState:
        """Bring the collection up to date, as a job."""
        before, named = self.saved.unfinished, path_text(str(folder))

        def work(listener: Listener) -> dict[str, Any]:
            try:
                result = index_resumably(self._jobs, self._path, folder, service.given_extractor, listener)
            finally:
                self._know(IndexingState.read(self._path))
            if any((job.kind, job.state) == ("index", "waiting") for job in self._jobs.listed()):
                self._save(unfinished=named)
            service.collection.refresh()
            service.folders = service.folders or (folder,)
            return result

        self._save(unfinished=named)  # before it waits for its turn: a server may be killed at any time
        try:
            return self._jobs.start("index", work)
        except RefusedError:
            self._save(unfinished=before)
            raise

    def watch(self, wanted: bool) -> None:
        self._save(watch=wanted)
        if wanted:
            self._start_watching()

    def warning(self, service: Service) -> dict[str, str] | None:
        """What is wrong with the folder, and the way out; looked at once a second at most."""
        looked, found = self._warning
        if time.monotonic() - looked >= _FRESH:
            found = _warning(service, self.saved)
            self._warning = time.monotonic(), found
        return found

    def _save(self, **update: Any) -> None:
        self._know(IndexingState.change(self._path, **update))

    def _know(self, saved: IndexingState) -> None:
        self.saved, self._warning = saved, (-math.inf, None)

    def _start_watching(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._look_again_and_again, daemon=True)
                self._thread.start()

    def _look_again_and_again(self) -> None:
        """A folder is indexed when it looks as at the last look, and other than when it was indexed."""
        looks: str | None = None
        pause = EVERY
        while not self._jobs.closed.wait(pause) and (service := self._service()) is not None:
            began, before, looks = time.monotonic(), looks, None
            with suppress(ManifindError, OSError):  # of which `warning` tells
                if self.saved.watch and service.folders:
                    folder = self.folder(service)
                    looks = looks_of(folder)
                    if looks is not None and looks == before != self.saved.seen and self._jobs.are_over:
                        self.index(service, folder)
            del service
            pause = max(EVERY, _SHARE * (time.monotonic() - began))


def _warning(service: Service, saved: IndexingState) -> dict[str, str] | None:
    if not service.collection.is_of_pictures:
        return None
    if not service.folders:
        problem = "the folder of the pictures is not known here, so none of them is shown"
        return {"problem": problem, "hint": "start the server with --images FOLDER"}
    folder = service.folders[0]
    try:
        with os.scandir(folder) as entries:
            state = "" if next(entries, None) is not None else "is empty"
    except FileNotFoundError:
        state = "is not there"
    except OSError as error:
        state = f"cannot be read: {error.strerror or error}"
    if state:
        hint = "connect its disk, or start the server with --images and the place where it is now"
        return {"problem": f"the folder of the pictures, {folder}, {state}", "hint": hint}
    if saved.problem:
        return {"problem": f"{folder} could not be indexed: {saved.problem}", "hint": saved.hint}
    return None


def can_index(service: Service, can_edit: bool) -> bool:
    """Whether the folder of a collection may be indexed from the page."""
    collection = service.collection
    if not (can_edit and service.index_below and collection.is_of_pictures and collection.version.manifest.is_full):
        return False
    try:
        service.folder_watch.folder(service)
    except RefusedError as error:
        return error.status != 403  # one that is not known, or gone, can be named
    return True


def is_watched(service: Service) -> bool:
    return service.folder_watch.saved.watch


def folder_warning(service: Service) -> dict[str, str] | None:
    """What is wrong with the folder of the pictures, {"problem", "hint"}; cheap."""
    return service.folder_watch.warning(service)


class JobList(BaseModel):
    """Those that wait or work, and the last ones that are over, the newest first."""

    jobs: list[JobState]


class FolderToIndex(BaseModel):
    """path: by which it is named. pictures: in it and below."""

    path: str
    name: str
    pictures: int


class FolderList(BaseModel):
    """is_whole: whether these are all; where there are very many, the first ones."""

    folders: list[FolderToIndex]
    is_whole: bool


class IndexState(BaseModel):
    """folder: of the collection, null where it is not known here. is_there: whether it can be read now."""

    folder: str | None
    is_there: bool
    watched: bool


FolderText = Annotated[str, Field(max_length=4096)]


class IndexWanted(BaseModel):
    """folder: the collection's own where it is left out. watch: index it whenever it changes, from now on; or not."""

    model_config = ConfigDict(extra="forbid")
    folder: FolderText | None = None
    watch: bool | None = None


AS_JOB: Any = {"status_code": 202, "response_model": JobState}
"""How a path is declared that answers with a job."""


def add_job_list(router: APIRouter, jobs: Jobs) -> None:
    @router.get("/jobs", response_model=JobList, summary="What is being done, and what was done last")
    async def listed() -> JobList:
        return JobList(jobs=jobs.listed())


def add_folders(router: APIRouter, below: Sequence[Path], can_edit: bool) -> None:
    slow = Turns(1, 4, may_outlive=False)

    @router.get("/folders", response_model=FolderList, summary="Folders that may be indexed from the page")
    async def folders() -> FolderList:
        check_may_edit(can_edit)
        found, is_whole = await slow(list_folders, below)
        return FolderList(folders=[FolderToIndex(**one) for one in found], is_whole=is_whole)


def add_indexing(router: APIRouter, service: Service, quick: Turns, can_edit: bool) -> None:
    """Add the routes, and go on with what was begun; quick: turns for what takes milliseconds."""
    watch = service.folder_watch
    add_job_list(router, service.jobs)
    add_folders(router, service.index_below, can_edit)

    def state() -> IndexState:
        folder = service.folders[0] if service.folders else None
        text = None if folder is None else path_text(str(folder.absolute()))
        return IndexState(folder=text, is_there=folder is not None and folder.is_dir(), watched=watch.saved.watch)

    def index(wanted: IndexWanted) -> JobState:
        collection = service.collection
        if not collection.is_of_pictures or not collection.version.manifest.is_full:
            problem = (
                "this collection was made of vectors" if collection.version.manifest.is_full else "this is an export"
            )
            raise RefusedError(
                409, f"{problem}, so there is no folder to index", "index into the collection that it comes from"
            )
        if wanted.watch is False:
            watch.watch(False)
            return service.jobs.start("watch", lambda _: {"watched": False})
        folder = watch.folder(service, wanted.folder)
        job = watch.index(service, folder)
        if wanted.watch:
            watch.watch(True)
        return job

    @router.get("/index", response_model=IndexState, summary="The folder of the pictures, as the server knows it")
    async def index_state() -> IndexState:
        check_may_edit(can_edit)
        return await quick(state)

    @router.post("/index", **AS_JOB, summary="Bring the collection up to date from its folder, and watch that or not")
    async def start_index(wanted: Annotated[IndexWanted, Body()]) -> JobState:
        check_may_edit(can_edit)
        return await quick(index, wanted)

    if can_edit:
        watch.go_on()
