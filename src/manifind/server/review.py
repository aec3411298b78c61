"""Routes for looking through a whole collection: duplicates, times, places, clusters, colours of the map."""

import os
import re
import zlib
from threading import Lock
from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Query
from starlette.responses import Response

from manifind.arrays import Ints
from manifind.collection.clusters import ClusterName, Clusters, name_clusters
from manifind.collection.collection import load
from manifind.collection.items import ItemTable
from manifind.collection.near_duplicates import (
    DuplicateGroup,
    NearDuplicates,
    duplicate_groups,
    find_near_duplicates,
    remaining_duplicates,
)  # fmt: skip
from manifind.collection.version import Version
from manifind.images.files import NOT_FOR_PEOPLE
from manifind.progress import Listener, Progress
from manifind.server.answers import Condition, as_job, as_json
from manifind.server.errors import RefusedError
from manifind.server.jobs import NICE, JobState, Turns
from manifind.server.maps import Maps
from manifind.server.overviews import Box, colours, described, ids_where, places, timeline
from manifind.server.service import Service
from manifind.server.views import View
from manifind.worker import Reply, call

Latitude = Annotated[float, Query(ge=-90, le=90)]
Longitude = Annotated[float, Query(ge=-180, le=180)]
_EXAMPLES = 6  # of a group, that are shown
_MOST_BYTES = 1 << 30  # of what the child process answers
_FINGERPRINT = re.compile(r'"fingerprint": "([0-9a-f]*)"')  # a quote inside a text has a backslash, so this is a name


def add_review(router: APIRouter, service: Service, quick: Turns) -> None:
    """Add the routes; quick: turns for what takes milliseconds."""
    duplicates, groups = Duplicates(service), ClusterPage(service)
    working: Any = {"responses": {202: {"model": JobState, "description": "It is being made."}}}

    @router.get("/duplicates", **working, summary="What is there more than once, and which copy to keep")
    async def duplicates_(
        offset: Annotated[int, Query(ge=0, le=1 << 40)] = 0, limit: Annotated[int, Query(ge=1, le=500)] = 50
    ) -> Response:
        return _answer(await quick(lambda: duplicates.page(service.view(), offset, limit)))

    @router.get("/timeline", summary="How many items were taken in each month")
    async def timeline_(where: Condition = None) -> Response:
        return _answer(await quick(lambda: timeline(service.view().version.items, where)))

    @router.get("/places", summary="How many items there are in each cell of the earth, or of a part of it")
    async def places_(
        where: Condition = None, degrees: Annotated[float, Query(ge=0.001, le=90)] = 5.0, south: Latitude = -90,
        west: Longitude = -180, north: Latitude = 90, east: Longitude = 180,
    ) -> Response:  # fmt: skip
        within = Box(south, west, north, east)
        return _answer(await quick(lambda: places(service.view().version.items, where, degrees, within)))

    @router.get("/clusters", **working, summary="Groups of the learned space, and what their members have in common")
    async def clusters_() -> Response:
        return _answer(await quick(lambda: groups.page(service.view())))

    @router.get("/map/ids", summary="The ids of all items in the order of /items, or of those that satisfy a filter")
    async def ids_(where: Condition = None) -> Response:
        return _answer(await quick(lambda: {"ids": ids_where(service.view().version.items, where)}))

    @router.get("/map/colours", summary="A value of each item to colour it by, in the order of /items")
    async def colours_(field: Annotated[str, Query(min_length=1, max_length=2000)]) -> Response:
        return _answer(await quick(lambda: colours(service.view().version.items, field)))


def _answer(found: Any) -> Response:
    return as_job(found) if isinstance(found, JobState) else as_json(found)


def _shown(view: View, id_: Any) -> dict[str, Any]:
    fields = {name: value for name, value in view.fields(id_).items() if name not in NOT_FOR_PEOPLE}
    return {"id": str(id_), "fields": fields}


class _Found(NamedTuple):
    """fit, traces: of what was compared, (n,)."""

    fit: str
    traces: Ints
    alike: NearDuplicates


class Duplicates:
    """What is there more than once: found in a child process, and kept in memory while nothing is added."""

    def __init__(self, service: Service) -> None:
        self._service, self._lock = service, Lock()
        self._found: _Found | None = None
        self._groups: tuple[Version, list[DuplicateGroup]] | None = None
        self._job: JobState | None = None

    def page(self, view: View, offset: int, limit: int) -> dict[str, Any] | JobState:
        """Some groups with their items, or the job that finds them."""
        groups = self.groups(view)
        if isinstance(groups, JobState):
            return groups
        return {
            "total": len(groups),
            "items": sum(len(group.ids) for group in groups),
            "groups": [_group_shown(view, group) for group in groups[offset : offset + limit]],
        }

    def groups(self, view: View) -> list[DuplicateGroup] | JobState:
        with self._lock:  # what comes after a change is computed by one, and the others wait for it
            if self._groups is None or self._groups[0] is not view.version:
                remaining = self._remaining(view)
                if remaining is None:
                    return self._started(view)
                self._groups = view.version, duplicate_groups(view.collection, remaining)
            return self._groups[1]

    def _remaining(self, view: View) -> NearDuplicates | None:
        """What is alike of what was found before; None where items have come since."""
        before, version = self._found, view.version
        if before is None or before.fit != version.manifest.fit:
            return None
        is_less = np.isin(_traces(version.items), before.traces).all()
        return remaining_duplicates(view.collection, before.alike) if is_less else None

    def _started(self, view: View) -> JobState:
        if not view.version.manifest.is_full:
            hint = "ask the collection that it was exported from"
            raise RefusedError(409, "this collection is compressed: it has no descriptors to compare", hint)
        if self._job is None or self._job.is_over:
            self._job = self._service.jobs.start("duplicates", self._find)
        return self._job

    def _find(self, listener: Listener) -> None:
        listener(Progress("looking for duplicates", 0, 1))
        path = str(self._service.collection.path)
        reply = call("manifind.server.review:find_alike", {"path": path}, listener=listener, max_bytes=_MOST_BYTES)
        fit, *alike = reply.value
        self._found = _Found(fit, np.asarray(reply.arrays["traces"]), NearDuplicates(*alike))


def _group_shown(view: View, group: DuplicateGroup) -> dict[str, Any]:
    items = [
        {**_shown(view, id_), "best": id_ == group.best, "reason": group.reason if id_ == group.best else ""}
        for id_ in group.ids
    ]
    return {"kind": group.kind, "items": items}


def find_alike(path: str) -> Reply:
    """The fit of a collection and its duplicates, and which items were compared; called in a child process."""
    os.nice(NICE)
    collection = load(path)
    version = collection.version
    return Reply([version.manifest.fit, *find_near_duplicates(collection)], {"traces": _traces(version.items)})


def _traces(items: ItemTable) -> Ints:
    """(n,) a number for each item that tells its position, which no other ever has, and its fingerprint."""
    found = (None if text is None else _FINGERPRINT.search(text) for text in items.metadata)
    digests = np.array([0 if one is None else zlib.crc32(one[1].encode()) for one in found], dtype=np.int64)
    return (items.positions << 32) + digests


class ClusterPage:
    """The groups of the learned space with names and examples, made once for each version."""

    def __init__(self, service: Service) -> None:
        self._maps, self._lock = service.maps, Lock()
        self._made: tuple[Version, dict[str, Any]] | None = None

    def page(self, view: View) -> dict[str, Any] | JobState:
        found = self._maps.clusters(view.version)
        if isinstance(found, JobState):
            return found
        with self._lock:
            if self._made is None or self._made[0] is not view.version:
                names = name_clusters(found.numbers, [fields for _, fields in described(view.version.items)])
                shown = [_cluster_shown(view, found, number, name) for number, name in enumerate(names, 1)]
                self._made = view.version, {"clusters": [one for one in shown if one["items"]]}
            return self._made[1]


def _cluster_shown(view: View, found: Clusters, number: int, name: ClusterName) -> dict[str, Any]:
    members = np.flatnonzero(found.numbers == number)
    nearest = members[np.argsort(found.distances[members], kind="stable")[:_EXAMPLES]]
    ids = view.version.items.ids[nearest].tolist()
    examples = [_shown(view, id_) for id_ in ids]
    return {"number": number, "items": len(members), **name._asdict(), "examples": examples}


def cluster_rows(maps: Maps, version: Version, number: int) -> Ints:
    """The rows of the items in a group of the learned space, rising."""
    found = maps.clusters(version)
    if isinstance(found, JobState):
        raise RefusedError(409, "the groups are not found yet", "ask for clusters first, and wait for the job")
    rows: Ints = version.items.rows[found.numbers == number]
    if not len(rows):
        raise RefusedError(404, f"there is no group {number}", "ask for clusters to see which there are")
    return rows
