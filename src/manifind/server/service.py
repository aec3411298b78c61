"""What the API does, without HTTP: the collection, its answers, its pictures, its changes."""

import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np

from manifind.arrays import Floats
from manifind.collection.collection import Collection, load
from manifind.collection.database import work_folder
from manifind.collection.searchable import QueryPart
from manifind.files import atomic_write
from manifind.graph.neighbour_agreement import NeighbourAgreement
from manifind.images.decode import Crop, check_crop
from manifind.images.files import PictureFile, picture_fields, picture_file, shown_folders
from manifind.progress import Listener
from manifind.server.errors import RefusedError
from manifind.server.images import Cache, Thumbnails, Upload, Uploads
from manifind.server.jobs import Jobs, JobState
from manifind.server.maps import Maps
from manifind.server.views import View
from manifind.worker import call

_LOOK_AGAIN = 0.5  # seconds after which somebody else's commit is noticed
_MOST_TEXTS = 1000  # of which the descriptors are remembered
_LARGE = 1280  # pixels of a picture that is looked at alone
_SUFFIXES = {"PNG": ".png", "WEBP": ".webp", "TIFF": ".tif", "BMP": ".bmp", "GIF": ".gif", "HEIF": ".heic"}  # else .jpg


class PartGiven(Protocol):
    """A part of a query, as a request gives it."""

    @property
    def id(self) -> str | None: ...
    @property
    def upload(self) -> str | None: ...
    @property
    def text(self) -> str | None: ...
    @property
    def vector(self) -> list[float] | None: ...
    @property
    def crop(self) -> Crop | None: ...


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
        self._given, self._texts = extractor, Cache[Floats](_MOST_TEXTS)
        self.uploads = Uploads(lambda: self.collection.extractor(extractor))

    def close(self) -> None:
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

    def part(self, view: View, given: PartGiven, weight: float = 1.0) -> QueryPart:
        """A part of a query as a request gives it; words and crops are described."""
        named = [name for name in ("id", "upload", "text", "vector") if getattr(given, name) is not None]
        if len(named) != 1:
            hint = "id of an item, what an upload was called, words to look for, or a vector"
            raise RefusedError(422, "give either id, upload, text or vector", hint)
        if given.crop is not None and given.id is None:
            raise RefusedError(422, "crop is for the picture of an item", "an upload is cropped when it is sent")
        if given.text is not None:
            return QueryPart(text=self._text_row(given.text), weight=weight)
        if given.vector is not None:
            return QueryPart(vector=given.vector, weight=weight)
        if given.id is None:
            known = self.uploads.get(given.upload or "")
            if known is None:
                raise RefusedError(404, "this upload is no longer remembered", "upload the picture again")
            return QueryPart(vector=known.row, weight=weight)
        if given.crop is None:
            return QueryPart(id=view.id_of(given.id), weight=weight)
        file = self.file(given.id)
        if file is None:
            raise RefusedError(404, "there is no picture of this item", "its file may be gone")
        return QueryPart(vector=self.uploads.crop(file, check_crop(given.crop)).row, weight=weight)

    def _text_row(self, text: str) -> Floats:
        if (known := self._texts.get(text)) is not None:
            return known
        row: Floats = self.collection.extractor(self._given).describe_texts([text])[0]
        return self._texts.put(text, row)

    def file(self, text: str) -> PictureFile | None:
        """The picture of an item, if it may be shown."""
        view = self.view()
        return picture_file(self.folders, view.fields(view.id_of(text)))

    def facts(self, can_edit: bool) -> dict[str, Any]:
        view, collection = self.view(), self.collection
        info, manifest = collection.info, view.version.manifest
        return {
            "name": collection.path.name,
            "items": len(collection),
            "pictures": collection.is_of_pictures,
            "can_edit": can_edit and manifest.is_full,
            "can_upload": collection.is_of_pictures,
            "understands_words": manifest.source.get("words") is True,
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

    def add_vectors(self, items: Sequence[dict[str, Any]]) -> JobState:
        rows, ids, fields = ([item[name] for item in items] for name in ("vector", "id", "fields"))
        if len(set(map(len, rows))) != 1:
            raise RefusedError(400, "the vectors have different lengths", "send those of one model")
        vectors, names = np.array(rows), None if all(id_ is None for id_ in ids) else ids

        def work(_: Listener) -> dict[str, Any]:
            return {"ids": [str(id_) for id_ in self.collection.add(vectors, names, fields)]}

        return self.jobs.start("add", work, vectors.nbytes)

    def add_picture(self, data: Upload) -> JobState:
        """Put a picture into the folder of the collection, under a name of our own, and add it."""
        if not self.collection.is_of_pictures:
            raise RefusedError(409, "this collection was made of vectors", "send a vector to /api/v1/items")
        if not self.folders:
            raise RefusedError(
                409, "the folder of the pictures is not known here", "start the server with --images FOLDER"
            )
        taken, folder = self.uploads.take(data), self.folders[0]
        name = f"added-{taken.key[:20]}{_SUFFIXES.get(taken.picture.format, '.jpg')}"

        def work(_: Listener) -> dict[str, Any]:
            if name in self.collection:
                return {"ids": [name]}
            with atomic_write(folder / name) as partial:
                partial.write_bytes(data)
            fields = {"path": name, "bytes": len(data), "modified": (folder / name).stat().st_mtime_ns}
            fields |= {"sha256": taken.picture.sha256, **picture_fields(taken.picture.fields, {}, {})}
            return {"ids": self.collection.change(taken.row[None], [name], [fields], own_fields=True)}

        return self.jobs.start("add", work, len(data))

    def remove(self, ids: Sequence[str]) -> JobState:
        """Take items out of the collection; files stay where they are."""
        view = self.view()
        names = [view.id_of(id_) for id_ in ids]

        def work(_: Listener) -> dict[str, Any]:
            self.collection.remove(names)
            return {"ids": [str(name) for name in names]}

        return self.jobs.start("remove", work)

    def refit(self) -> JobState:
        """Learn from what has changed, in a process of its own; the job that waits where there is one already."""

        def work(listener: Listener) -> None:
            call("manifind.server.jobs:refit_collection", {"path": str(self.collection.path)}, listener=listener)
            self.collection.refresh()

        return self.jobs.start("refit", work)


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
    if not changed:
        return "Nothing has come or gone since the fit."
    advice = " A refit would learn from it." if changed >= 0.1 else ""
    return f"{changed:.1%} of what was fitted has come or gone since.{advice}"
