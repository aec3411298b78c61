"""Several collections in one server: which there are, what each holds, opened when somebody asks for it."""

import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread

from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from manifind.collection.collection import load
from manifind.collection.database import reading
from manifind.collection.format import DATABASE
from manifind.collection.metadata import read_metadata
from manifind.collection.version import read_manifest
from manifind.errors import CollectionError, InputError, ManifindError
from manifind.images.files import PictureFile, picture_file, shown_folders
from manifind.server.errors import RefusedError
from manifind.server.images import Thumbnails
from manifind.server.indexing import IndexingState, is_watched
from manifind.server.jobs import Jobs
from manifind.server.service import Service

_MOST_OPEN = 4  # that nobody uses just now; then the one used longest ago is closed
_TRY_AGAIN = 5.0  # seconds after which one that could not be opened is tried again
_FRESH = 1.0  # seconds for which what was read of a collection or a folder is not read again
_PATIENCE = 1.0  # seconds that the start page waits until all have been opened once
_EXAMPLES = 4  # items of each that the start page shows
_LONGEST_NAME = 60

MakeApp = Callable[[Service], ASGIApp]


@dataclass(frozen=True)
class Summary:
    """What a collection holds. changed: the share that came or went since the fit. examples: some files by id."""

    commit: str
    items: int
    pictures: bool
    changed: float
    examples: dict[str, PictureFile] = field(default_factory=dict)


class ServedCollection:
    """One collection among others. users: requests that it answers just now. used: when the last one came."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        self.service: Service | None = None
        self.app: ASGIApp | None = None
        self.users, self.used = 0, 0.0
        self._opening = Lock()
        self._summary: Summary | None = None
        self._read = self._tried = -_TRY_AGAIN  # when that was, and when it was last opened
        self._sound = ""  # the commit that could be opened
        self._problem: ManifindError | None = None

    def summary(self, images: Sequence[Path]) -> Summary:
        """From what is on disk, without opening it; a CollectionError where that, or the last opening, failed."""
        if self._summary is None or time.monotonic() - self._read >= _FRESH:
            manifest = read_manifest(self.path)
            if self._summary is None or manifest.commit != self._summary.commit:
                self._summary = _summary(self.path, images)
            self._read = time.monotonic()
        if self._problem is not None:
            raise self._problem
        return self._summary

    def open(self, make_service: Callable[["ServedCollection"], Service], make_app: MakeApp) -> ASGIApp:
        """What answers for it; one that cannot be opened is not tried again at once."""
        with self._opening:
            if self.app is None:
                if self._problem is not None and not self._is_due:
                    raise self._problem
                with self._trying():
                    self.service = make_service(self)
                self.app = make_app(self.service)
            return self.app

    def check(self) -> None:
        """Find out whether it can be opened, and close it again."""
        with self._opening, suppress(ManifindError):
            commit = read_manifest(self.path).commit
            if self.service is None and (self._sound != commit if self._problem is None else self._is_due):
                with self._trying():
                    load(self.path)
                self._sound = commit

    @contextmanager
    def _trying(self) -> Iterator[None]:
        self._tried, self._problem = time.monotonic(), None
        try:
            yield
        except ManifindError as error:
            self._problem = error
            raise

    @property
    def _is_due(self) -> bool:
        return time.monotonic() - self._tried >= _TRY_AGAIN

    def take(self) -> Service | None:
        """What was opened, to be closed: the next request opens it anew."""
        service, self.service, self.app = self.service, None, None
        return service


class ServedCollections:
    """The collections of a server.

    paths: of collections. homes: folders of collections, in which others may appear. extractor, images, index_below: as
    of every Service.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        homes: Sequence[Path] = (),
        extractor: str | None = None,
        images: Sequence[Path] = (),
        index_below: Sequence[Path] = (),
    ) -> None:
        self.jobs, self.thumbnails = Jobs(), Thumbnails()
        self.homes, self.index_below, self.extractor = tuple(homes), tuple(index_below), extractor
        self._paths, self._images = tuple(paths), shown_folders({}, images) if images else ()
        self._entries: dict[str, ServedCollection] = {}
        self._looked, self._lock, self._counting = -_FRESH, Lock(), Lock()
        self._checking: Thread | None = None

    def entries(self) -> list[ServedCollection]:
        """All of them, by the names of their directories; those that are gone from a folder are forgotten."""
        with self._lock:
            if time.monotonic() - self._looked >= _FRESH:
                self._look()
                self._looked = time.monotonic()
            return sorted(self._entries.values(), key=lambda entry: (entry.path.name.casefold(), str(entry.path)))

    def summary(self, entry: ServedCollection) -> Summary:
        return entry.summary(self._images)

    def entry(self, name: str) -> ServedCollection:
        found = self._entries.get(name) or {entry.name: entry for entry in self.entries()}.get(name)
        if found is None:
            raise RefusedError(
                404, f"there is no collection {name[:200]!r} here", "the start page has all that there are"
            )
        return found

    def check(self) -> None:
        """Find out which collections cannot be opened: at once where there are few, else in a moment."""
        with self._lock:
            if self._checking is None or not self._checking.is_alive():
                self._checking = Thread(target=_check_all, args=(list(self._entries.values()),), daemon=True)
                self._checking.start()
            checking = self._checking
        checking.join(_PATIENCE)

    def enter(self, name: str, make_app: MakeApp) -> ServedCollection:
        """A collection that is open, and stays so until whoever asked for it leaves."""
        entry = self.entry(name)
        with self._counting:
            entry.users, entry.used = entry.users + 1, time.monotonic()
        try:
            entry.open(self._make_service, make_app)
        except BaseException:
            self.leave(entry)
            raise
        self._close_idle()
        return entry

    def enter_open(self, name: str) -> ServedCollection | None:
        """The same at once, where it is open already."""
        with self._counting:
            entry = self._entries.get(name)
            if entry is None or entry.app is None:
                return None
            entry.users, entry.used = entry.users + 1, time.monotonic()
            return entry

    def leave(self, entry: ServedCollection) -> None:
        with self._counting:
            entry.users -= 1

    def _close_idle(self) -> None:
        with self._counting:
            idle = sorted(filter(_can_be_closed, list(self._entries.values())), key=lambda entry: entry.used)
            services = [entry.take() for entry in idle[: max(len(idle) - _MOST_OPEN, 0)]]
        _close(services)

    def open_unfinished(self, make_app: MakeApp) -> None:
        """Open those whose folder is watched, or was being indexed when the server ended: they go on by themselves."""
        for entry in self.entries():
            saved = IndexingState.read(entry.path)
            if saved.watch or saved.unfinished is not None:
                with suppress(ManifindError):  # the start page says why
                    self.leave(self.enter(entry.name, make_app))

    def show(self) -> None:
        """Look at once for collections that are new."""
        with self._lock:
            self._looked = -_FRESH

    @property
    def n_items(self) -> int:
        n = 0
        for entry in self.entries():
            with suppress(ManifindError):
                n += self.summary(entry).items
        return n

    def close(self) -> None:
        self.jobs.close()
        _close(entry.take() for entry in self._entries.values())
        self.thumbnails.close()

    def _make_service(self, entry: ServedCollection) -> Service:
        jobs = self.jobs.of(entry.name)
        return Service(entry.path, self.extractor, images=self._images, index_below=self.index_below, jobs=jobs)

    def _look(self) -> None:
        inside = [path for home in self.homes for path in collections_in(home)]
        known = {entry.path: entry for entry in self._entries.values()}
        paths = dict.fromkeys([*self._paths, *inside])
        _close(self._entries.pop(known[path].name).take() for path in known.keys() - paths)
        for path in paths:
            if path not in known:
                name = free_name(path.name, self._entries)
                self._entries[name] = ServedCollection(name, path)


def _close(services: Iterable[Service | None]) -> None:
    for service in services:
        if service is not None:
            service.close()


def _check_all(entries: Sequence[ServedCollection]) -> None:
    for entry in entries:
        entry.check()


def _can_be_closed(entry: ServedCollection) -> bool:
    service = entry.service
    return service is not None and not entry.users and service.jobs.are_over and not is_watched(service)


class CollectionRouter:
    """An ASGI application that passes requests on to the collection whose name is in the address."""

    def __init__(self, collections: ServedCollections, make_app: MakeApp) -> None:
        self._collections, self._make_app = collections, make_app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["name"]
        entry = self._collections.enter_open(name)
        if entry is None:
            entry = await to_thread.run_sync(self._collections.enter, name, self._make_app)
        try:
            if entry.app is not None:  # which it is as long as it is used
                await entry.app(scope, receive, send)
        finally:
            self._collections.leave(entry)


def collections_in(folder: Path) -> list[Path]:
    """The collections among the direct children of a folder, whole or damaged."""
    with suppress(OSError):
        return sorted(
            path for path in folder.iterdir() if not path.name.startswith(".") and (path / DATABASE).is_file()
        )
    return []


def find_collections(paths: Sequence[Path], may_be_empty: bool) -> tuple[list[Path], list[Path]]:
    """What is served: collections, and folders of collections; what is neither is refused.

    may_be_empty: whether a folder may hold none yet.
    """
    own, homes = list[Path](), list[Path]()
    for path in dict.fromkeys(paths):
        if (path / DATABASE).is_file():
            own.append(path)
        elif collections_in(path) or (may_be_empty and path.is_dir()):
            homes.append(path)
        elif path.is_dir():
            hint = "make one with `manifind index FILE COLLECTION`, or give a folder with collections in it"
            raise CollectionError(f"{path} holds no collection", hint)
        else:
            raise CollectionError(f"{path} does not exist", "check the spelling, or make it with `manifind index`")
    return own, homes


def free_name(directory: str, taken: "dict[str, ServedCollection]") -> str:
    """The name of a directory as part of an address: letters, digits and -._, and a number where that is taken."""
    plain = unicodedata.normalize("NFC", directory).removesuffix(".manifind").casefold()
    wanted = re.sub(r"[^\w.]+", "-", plain)[:_LONGEST_NAME].strip("-.") or "collection"
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def _summary(path: Path, images: Sequence[Path]) -> Summary:
    """Of the newest version; the examples are spread over all items."""
    manifest = read_manifest(path)
    n = manifest.sizes.items + manifest.n_added - manifest.n_removed
    is_of_pictures = isinstance(manifest.source.get("folder"), str)
    changed = (manifest.n_added + manifest.n_removed) / manifest.sizes.items
    examples: dict[str, PictureFile] = {}
    if is_of_pictures:
        with suppress(InputError):  # a folder that was named is gone
            folders = shown_folders(manifest.entries, images)
            for id_, text in _spread(path, manifest.sizes.items):
                if (file := picture_file(folders, read_metadata(text, str(path)))) is not None:
                    examples[str(id_)] = file
    return Summary(manifest.commit, n, is_of_pictures, changed, examples)


def _spread(path: Path, n_fitted: int) -> list[tuple[object, str | None]]:
    """Id and metadata of a few items, far from each other."""
    with reading(path) as database:
        select = "SELECT id, metadata FROM items WHERE position >= ? ORDER BY position LIMIT 1"
        rows = [database.execute(select, (n_fitted * at // _EXAMPLES,)).fetchone() for at in range(_EXAMPLES)]
    return [(row[0], row[1] if isinstance(row[1], str) else None) for row in dict.fromkeys(rows) if row is not None]
