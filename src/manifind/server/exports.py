"""Exports of selected items as files to download: a table, a list of paths, pictures, a collection of their own."""

import csv
import hashlib
import json
import os
import secrets
import shutil
import tempfile
import time
import weakref
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from fastapi import Path as PathParameter
from starlette.responses import FileResponse, StreamingResponse

from manifind.collection.collection import load
from manifind.errors import InputError
from manifind.images.files import NOT_FOR_PEOPLE, PictureFile
from manifind.progress import Listener, Progress
from manifind.server.answers import Id, as_job
from manifind.server.edits import GivenIds
from manifind.server.errors import RefusedError
from manifind.server.jobs import NICE, JobState, Turns
from manifind.server.service import Service
from manifind.text import count

Kind = Literal["csv", "paths", "pictures", "collection"]

_MOST_FILES, _SECONDS = 8, 600.0  # that wait to be downloaded, and for how long
_MOST_BYTES = 4 << 30  # of an archive of pictures
_ROOM = 1 << 30  # bytes of the disk that are left to others
_PIECE = 1 << 20
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which spreadsheets let a formula begin


class WantedExport(GivenIds):
    """The items, and as what: "csv" with all metadata, "paths" of files, "pictures" in an archive, or "collection"."""

    kind: Kind


@dataclass(frozen=True)
class Exported:
    """A file that waits to be downloaded. name: that it is to have. made: on the monotonic clock."""

    file: Path
    name: str
    made: float


class Exports:
    """The files that were made, below a folder that goes with the server."""

    def __init__(self, service: Service) -> None:
        self._service, self._lock = service, Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="manifind-exports-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._files: dict[str, Exported] = {}

    def start(self, wanted: Kind, ids: Sequence[str]) -> JobState:
        """Make a file of some items, as a job whose result has its key."""
        view = self._service.view()
        names = [view.id_of(id_) for id_ in dict.fromkeys(ids)]
        make: dict[Kind, Callable[[Path, list[Any], Listener], str]] = {
            "csv": self._write_table,
            "paths": self._write_paths,
            "pictures": self._write_pictures,
            "collection": self._write_collection,
        }

        def work(listener: Listener) -> dict[str, Any]:
            key = secrets.token_urlsafe(24)
            file = self._folder / key
            try:
                name = make[wanted](file, names, listener)
            except BaseException:
                file.unlink(missing_ok=True)
                raise
            self._keep(key, Exported(file, name, time.monotonic()))
            return {"key": key, "name": name, "bytes": file.stat().st_size}

        return self._service.jobs.start("export", work)

    def get(self, key: str) -> Exported:
        with self._lock:
            found = self._files.get(key)
        if found is None or not found.file.is_file():
            raise RefusedError(404, "there is no such export any more", "export the items again")
        return found

    def _keep(self, key: str, new: Exported) -> None:
        with self._lock:
            self._files[key] = new
            old = [one for one, made in self._files.items() if time.monotonic() - made.made > _SECONDS]
            for one in {*old, *list(self._files)[:-_MOST_FILES]}:
                self._files.pop(one).file.unlink(missing_ok=True)

    def _write_table(self, file: Path, ids: list[Any], _: Listener) -> str:
        fields = self._service.collection.metadata(ids)
        names = [name for name in dict.fromkeys(name for one in fields for name in one) if name not in NOT_FOR_PEOPLE]
        with file.open("w", newline="", encoding="utf-8") as handle:
            table = csv.writer(handle)
            table.writerow([_cell(name) for name in ("id", *names)])
            for id_, one in zip(ids, fields, strict=True):
                table.writerow([_cell(id_), *(_cell(one.get(name)) for name in names)])
        return "items.csv"

    def _write_paths(self, file: Path, ids: list[Any], _: Listener) -> str:
        paths = [str(found.file) for _, found in self._pictures(ids)]
        if not paths:
            raise InputError("none of these items has a picture that is known here", "export them as csv instead")
        if broken := sum("\n" in path for path in paths):
            raise InputError(f"{count(broken, 'path')} of these would break a line", "export them as csv instead")
        file.write_bytes("".join(f"{path}\n" for path in paths).encode("utf-8", "surrogateescape"))
        return "paths.txt"

    def _write_pictures(self, file: Path, ids: list[Any], listener: Listener) -> str:
        found = list(self._pictures(ids))
        total = sum(picture.file.stat().st_size for _, picture in found)
        if not found:
            raise InputError("none of these items has a picture that is known here", "start serve with --images FOLDER")
        if total > _MOST_BYTES or total > shutil.disk_usage(file.parent).free - _ROOM:
            hint = "select fewer, or export their paths and copy them"
            raise InputError(f"the pictures have {total / 1e9:.1f} GB, more than is packed at once", hint)
        taken: set[str] = set()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:  # pictures are compressed already
            for done, (text, picture) in enumerate(found, 1):
                with archive.open(zipfile.ZipInfo(_name_inside(text, taken)), "w", force_zip64=True) as inside:
                    _copy_checked(picture, inside)
                listener(Progress("packing", done, len(found)))
        return "pictures.zip"

    def _write_collection(self, file: Path, ids: list[Any], listener: Listener) -> str:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            target = Path(folder) / "selection.manifind"
            wanted = {"path": str(self._service.collection.path), "ids": ids, "target": str(target)}
            self._service.jobs.call("manifind.server.exports:write_selection", wanted, listener)
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for part in sorted(one for one in target.rglob("*") if one.is_file()):
                    archive.write(part, part.relative_to(folder))
        return "selection.manifind.zip"

    def _pictures(self, ids: Sequence[Any]) -> Iterator[tuple[str, PictureFile]]:
        """The path below the folder and the file of each item that has one."""
        for fields in self._service.collection.metadata(ids):
            found = self._service.file_of(fields)
            if found is not None:
                yield fields["path"], found


def write_selection(path: str, ids: list[Any], target: str, listener: Listener) -> None:
    """Fit some items of a collection as a collection of their own; called in a child process."""
    os.nice(NICE)
    from manifind.model.refit import fit_apart  # imports torch

    fit_apart(load(path), target, ids=ids, listener=listener)


def add_exports(router: APIRouter, service: Service, quick: Turns) -> None:
    """Add the routes. quick: turns for what takes milliseconds."""
    exports, reading = Exports(service), Turns(4)
    made: Any = {"status_code": 202, "responses": {202: {"model": JobState, "description": "A job that makes a file."}}}

    @router.post("/exports", **made, summary="Make a file of some items, to be downloaded")
    async def export(wanted: WantedExport) -> Response:
        return as_job(await quick(exports.start, wanted.kind, wanted.ids))

    @router.get("/exports/{key}", summary="A file that was made, or a range of it", response_class=FileResponse)
    async def exported(key: Annotated[str, PathParameter(max_length=64)]) -> Response:
        found = await quick(exports.get, key)
        return FileResponse(found.file, headers=_as_attachment(found.name), media_type="application/octet-stream")

    @router.get("/original", summary="The file of a picture as it is", response_class=StreamingResponse)
    async def original(id: Annotated[Id, Query()]) -> Response:
        picture = await quick(service.file, id)
        opened = None if picture is None else await reading(_opened, picture)
        if picture is None or opened is None:
            raise RefusedError(404, "there is no picture of this item", "its file may be gone")
        headers = _as_attachment(picture.file.name) | {"content-length": str(os.fstat(opened.fileno()).st_size)}
        return StreamingResponse(_pieces(opened), headers=headers, media_type="application/octet-stream")


def _opened(picture: PictureFile) -> BinaryIO | None:
    """The file at its beginning, None where it is gone or has not the content that was indexed."""
    try:
        file = os.fdopen(os.open(picture.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
    except OSError:
        return None
    if hashlib.file_digest(file, "sha256").hexdigest() != picture.sha256:
        file.close()
        return None
    file.seek(0)
    return file


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with closing(file):
        yield from iter(partial(file.read, _PIECE), b"")


def _copy_checked(picture: PictureFile, target: Any) -> None:
    source = _opened(picture)
    if source is None:
        hint = "index the folder again, and export then"
        raise InputError(f"the file {picture.file.name[:200]!r} has changed or gone since it was indexed", hint)
    with closing(source):
        shutil.copyfileobj(source, target, _PIECE)


def _name_inside(text: str, taken: set[str]) -> str:
    """A path for an archive: relative, without steps upwards, and that no other file has."""
    parts = [part for part in PurePosixPath(text.replace("\\", "/")).parts if part not in ("/", "..", ".")]
    name = "/".join("".join("_" if ord(sign) < 32 else sign for sign in part) for part in parts) or "picture"
    stem, number = name, 2
    while name.casefold() in taken:  # some systems know no other case
        head, dot, end = stem.rpartition(".")
        name, number = (f"{head} ({number}){dot}{end}" if dot else f"{stem} ({number})"), number + 1
    taken.add(name.casefold())
    return name


def _cell(value: Any) -> Any:
    """A value in a table: lists as JSON, and no text that a spreadsheet would run as a formula."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _as_attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f"attachment; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"}
