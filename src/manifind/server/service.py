"""What the API does, without HTTP: the collection, its answers, its pictures, its changes."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from manifind.collection.collection import Collection, load
from manifind.collection.database import work_folder
from manifind.collection.ids import parse_id
from manifind.errors import InputError
from manifind.files import atomic_write
from manifind.graph.neighbour_agreement import NeighbourAgreement
from manifind.images.files import PictureFile, picture_fields, picture_file, shown_folders
from manifind.progress import Listener
from manifind.ranking import Ranking
from manifind.server.errors import RefusedError
from manifind.server.images import Thumbnails, Upload, Uploads
from manifind.server.jobs import BackgroundJob, Jobs
from manifind.server.maps import Maps
from manifind.server.views import Query, View
from manifind.text import did_you_mean
from manifind.worker import call

_LOOK_AGAIN = 0.5  # seconds after which somebody else's commit is noticed
_MOST_SUGGESTED = 100_000  # items among which a misspelt one is looked for: anybody may ask for nonsense
_LARGE = 1280  # pixels of a picture that is looked at alone
_SUFFIXES = {
    "JPEG": ".jpg",
    "PNG": ".png",
    "WEBP": ".webp",
    "TIFF": ".tif",
    "BMP": ".bmp",
    "GIF": ".gif",
    "HEIF": ".heic",
}


class Service:
    """A collection that is served. extractor: of pictures, as the user names it; None for the collection's own.

    images: the folders whose pictures may be shown; none for the one that this user has indexed.
    """

    def __init__(
        self, path: Path, extractor: str | None = None, cache: Path | None = None, images: Sequence[Path] = ()
    ) -> None:
        self.collection: Collection = load(path)
        self.folders = shown_folders(self.collection.manifest, images)
        self._view, self._looked, self._lock = View(self.collection.version), time.monotonic(), Lock()
        self.jobs = Jobs()
        self.maps = Maps(cache or work_folder(path) / "maps", self.jobs)
        self.thumbnails, self.large = Thumbnails(), Thumbnails(1, _LARGE)
        self._wanted = extractor
        self.uploads = Uploads(self._extractor)

    def close(self) -> None:
        """End what was begun."""
        self.jobs.close()
        for part in (self.thumbnails, self.large, self.uploads):
            part.close()

    def view(self) -> View:
        """The newest version."""
        with self._lock:
            if time.monotonic() - self._looked > _LOOK_AGAIN:
                self.collection.refresh()
                self._looked = time.monotonic()
            if self._view.version is not self.collection.version:
                self._view = View(self.collection.version)
            return self._view

    def id_of(self, view: View, text: str) -> Any:
        """The id of an item by its id, or by the current path of its file, as it stands in an address."""
        ids = view.exact_ids(text)
        if len(ids) == 1:
            return ids[0]
        items, few = view.version.items, len(view.collection) <= _MOST_SUGGESTED
        try:
            parse_id(text, items.has_texts, view.collection.path.name)
        except InputError as error:
            raise RefusedError(404, error.problem, error.hint) from None
        meant = items.suggested_ids(text) if few else []
        hint = did_you_mean(meant) if meant else "it may have been removed"
        raise RefusedError(404, f"there is no item {text[:200]!r}", hint)

    def query(self, view: View, id_: str | None, upload: str | None) -> Query:
        """The query of a request: an item, or an upload."""
        if (id_ is None) == (upload is None):
            raise RefusedError(422, "give either id or upload", "id of an item, or what an upload was called")
        if id_ is not None:
            return Query(id=self.id_of(view, id_))
        known = self.uploads.get(upload or "")
        if known is None:
            raise RefusedError(404, "this upload is no longer remembered", "upload the picture again")
        return Query(descriptor=known.row)

    def search(self, view: View, query: Query, k: int, offset: int, method: str, where: str | None) -> dict[str, Any]:
        """Results offset + 1 to offset + k."""
        found = view.search(query, offset + k, method, where)
        return {
            "items": len(view.collection),
            "results": self._results(view, found, offset, offset + k),
            "more": found.ids.shape[1] == offset + k and offset + k < len(view.collection),
        }

    def compare(self, view: View, query: Query, k: int, where: str | None, depth: int = 1000) -> dict[str, Any]:
        """The same query by features and by descriptors; each result with its rank in the other list."""
        found = {method: view.search(query, max(depth, k), method, where) for method in ("gradnet", "knn")}
        ranks = {name: {id_: rank for rank, id_ in enumerate(one.ids[0].tolist(), 1)} for name, one in found.items()}
        answer = {}
        for method, other in (("gradnet", "knn"), ("knn", "gradnet")):
            results = self._results(view, found[method], 0, k)
            for one, id_ in zip(results, found[method].ids[0].tolist(), strict=False):
                one["other_rank"] = ranks[other].get(id_)
            answer[method] = results
        return answer

    def why(self, view: View, query: Query, result: str) -> dict[str, Any]:
        """The strongest path from the query to a result, item by item."""
        steps = view.path(query, self.id_of(view, result))
        path = [{**view.step_of(step.row), "weight": round(step.weight, 4)} for step in steps]
        return {"path": path, "strength": round(math.prod(step.weight for step in steps), 6) if steps else 0.0}

    def items(self, view: View, offset: int, limit: int, where: str | None, name: str | None) -> dict[str, Any]:
        """Items in their order; of those that satisfy a condition and have this text in their id or current path."""
        rows = view.listed(where, name)
        page = view.version.items.ids_of(rows[offset : offset + limit]).tolist()
        return {"total": len(rows), "items": [{"id": str(id_), "fields": view.shown(id_)} for id_ in page]}

    def item(self, view: View, text: str) -> dict[str, Any]:
        """All metadata of one item."""
        id_, items = self.id_of(view, text), view.version.items
        added = items.numbers.added_place(items.row_of(id_)) is not None
        return {"id": str(id_), "fields": view.fields(id_), "added_since_fit": added}

    def file(self, view: View, text: str) -> PictureFile | None:
        """The picture of an item, if it may be shown."""
        return picture_file(self.folders, view.fields(self.id_of(view, text)))

    def _results(self, view: View, found: Ranking, first: int, last: int) -> list[dict[str, Any]]:
        """Some items of the answer to one query."""
        ids, scores = found.ids[0, first:last].tolist(), found.scores[0, first:last].tolist()
        return [
            {"id": str(id_), "rank": rank, "score": round(min(score, 1.0), 4), "fields": view.shown(id_)}
            for rank, (id_, score) in enumerate(zip(ids, scores, strict=True), first + 1)
        ]

    def facts(self, can_edit: bool) -> dict[str, Any]:
        """What the collection page shows."""
        view, collection = self.view(), self.collection
        info, manifest = collection.info, view.version.manifest
        return {
            "name": collection.path.name,
            "items": len(collection),
            "pictures": self.collection.is_of_pictures,
            "can_edit": can_edit and manifest.is_full,
            "can_upload": self.collection.is_of_pictures,
            "dimension": manifest.sizes.dimension,
            "feature_dimension": manifest.sizes.feature_dimension,
            "created": manifest.created,
            "changed_since_fit": collection.changed,
            "added_since_fit": manifest.n_added,
            "removed_since_fit": manifest.n_removed,
            "verdict": verdict(info),
            "drift": drift_in_words(collection.changed),
            "info": {name: value for name, value in info.items() if isinstance(value, str | int | float | None)},
            "settings": {name: str(value) for name, value in collection.settings.items()},
            "loss": [round(float(value), 5) for value in collection.loss_curve[:, 0]],
            "edge_weights": view.edge_weights,
        }

    def add_vectors(self, items: Sequence[dict[str, Any]]) -> BackgroundJob:
        """Add items that come as vectors."""
        lengths = {len(item["vector"]) for item in items}
        if len(lengths) != 1:
            raise RefusedError(400, "the vectors have different lengths", "send those of one model")
        vectors = np.array([item["vector"] for item in items])
        ids = [item["id"] for item in items]
        names = None if all(id_ is None for id_ in ids) else ids
        fields = [item["fields"] for item in items]

        def work(_: Listener) -> dict[str, Any]:
            return {"ids": [str(id_) for id_ in self.collection.add(vectors, names, fields)]}

        return self.jobs.start("add", work, vectors.nbytes)

    def add_picture(self, data: Upload) -> BackgroundJob:
        """Put a picture into the folder of the collection, under a name of our own, and add it."""
        if not self.collection.is_of_pictures:
            raise RefusedError(409, "this collection was made of vectors", "send a vector to /api/v1/items")
        if not self.folders:
            raise RefusedError(
                409, "the folder of the pictures is not known here", "start the server with --images FOLDER"
            )
        taken = self.uploads.take(data)
        folder = self.folders[0]
        name = f"added-{hashlib.sha256(data).hexdigest()[:20]}{_SUFFIXES.get(taken.picture.format, '.jpg')}"

        def work(_: Listener) -> dict[str, Any]:
            if name in self.collection:
                return {"ids": [name]}
            with atomic_write(folder / name) as partial:
                partial.write_bytes(data)
            status = (folder / name).stat()
            fields = {"path": name, "bytes": len(data), "modified": status.st_mtime_ns}
            fields |= {"sha256": taken.picture.sha256, **picture_fields(taken.picture.fields, {}, {})}
            return {"ids": self.collection.change(taken.row[None], [name], [fields], own_fields=True)}

        return self.jobs.start("add", work, len(data))

    def remove(self, ids: Sequence[str]) -> BackgroundJob:
        """Take items out of the collection; files stay where they are."""
        view = self.view()
        names = [self.id_of(view, id_) for id_ in ids]

        def work(_: Listener) -> dict[str, Any]:
            self.collection.remove(names)
            return {"ids": [str(name) for name in names]}

        return self.jobs.start("remove", work)

    def refit(self) -> BackgroundJob:
        """Learn from what has changed, in a process of its own; the job that waits where there is one already."""

        def work(listener: Listener) -> None:
            arguments = {"path": str(self.collection.path)}
            call("manifind.server.jobs:refit_collection", arguments, listener=listener)
            self.collection.refresh()

        return self.jobs.start("refit", work)

    def _extractor(self) -> Any:
        from manifind.images.extractors import extractor_of  # imports torch for the network

        return extractor_of(self.collection.manifest, str(self.collection.path), self._wanted)


def verdict(info: dict[str, Any]) -> str:
    """What the guard found, in plain words."""
    agreement, trust = info.get("neighbour_agreement"), info.get("trust")
    if not isinstance(agreement, int | float) or not isinstance(trust, int | float):
        return "Whether neighbours mean anything here was not measured."
    if sentence := NeighbourAgreement(float(agreement), float(trust)).warning():
        return f"{sentence[0].upper()}{sentence[1:]}."
    return (
        f"Two halves of the descriptors agree on {agreement:.0%} of an item's nearest neighbours: there is something "
        "to learn, and the learned features are used in full."
    )


def drift_in_words(changed: float) -> str:
    """How far the collection has moved from its fit."""
    if not changed:
        return "Nothing has come or gone since the fit."
    advice = " A refit would learn from it." if changed >= 0.1 else ""
    return f"{changed:.1%} of what was fitted has come or gone since.{advice}"
