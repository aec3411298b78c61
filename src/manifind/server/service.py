"""What the API does, without HTTP: the collection, its answers, its pictures, its changes."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np

from manifind.arrays import Floats
from manifind.collection.collection import Collection, load
from manifind.collection.database import work_folder
from manifind.collection.judgements import JudgedQuery
from manifind.collection.metadata import with_labels
from manifind.collection.searchable import QueryPart
from manifind.graph.neighbour_agreement import trust_in_words
from manifind.images.decode import Crop, check_crop
from manifind.images.files import PictureFile, picture_fields, picture_file, shown_folders
from manifind.progress import Listener
from manifind.server.errors import RefusedError
from manifind.server.images import FORMAT_SUFFIXES, Cache, Thumbnails, Upload, Uploads, file_name, write_beside
from manifind.server.indexing import FolderWatch, can_index, folder_warning, is_watched
from manifind.server.jobs import Jobs, JobState
from manifind.server.maps import Maps
from manifind.server.views import View

_LOOK_AGAIN = 0.5  # seconds after which somebody else's commit is noticed
_MOST_TEXTS = 1000  # of which the descriptors are remembered
_MOST_COMMITS = 4  # of which the history and the judgements are remembered
_LARGE = 1280  # pixels of a picture that is looked at alone


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

    cache: the folder for maps and the like; whatever is there can be deleted. images: the folders whose pictures may be
    shown; none for the one that this user has indexed. index_below: folders that may be indexed, they and what is below
    them. jobs: shared by all collections of a server; None where this is the only one.
    """

    def __init__(
        self,
        path: Path,
        extractor: str | None = None,
        cache: Path | None = None,
        images: Sequence[Path] = (),
        *,
        index_below: Sequence[Path] = (),
        jobs: Jobs | None = None,
    ) -> None:
        self.collection: Collection = load(path)
        self.folders = shown_folders(self.collection.manifest, images)
        self._view, self._looked, self._lock = View(self.collection.version), time.monotonic(), Lock()
        self.jobs, self.is_one_of_several = jobs or Jobs(), jobs is not None
        self.cache, self.index_below = cache or work_folder(path) / "maps", tuple(index_below)
        self.maps = Maps(self.cache, self.jobs)
        self.thumbnails, self.large = Thumbnails(), Thumbnails(1, _LARGE)
        self.given_extractor, self._texts = extractor, Cache[Floats](_MOST_TEXTS)
        self._changes, self._judged = Cache[list[dict[str, Any]]](_MOST_COMMITS), Cache[dict[str, Any]](_MOST_COMMITS)
        self.uploads = Uploads(lambda: self.collection.extractor(extractor))
        self.folder_watch = FolderWatch(self)

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
        row: Floats = self.collection.extractor(self.given_extractor).describe_texts([text])[0]
        return self._texts.put(text, row)

    def file(self, text: str) -> PictureFile | None:
        """The picture of an item, if it may be shown."""
        view = self.view()
        return self.file_of(view.fields(view.id_of(text)))

    def file_of(self, fields: Mapping[str, Any]) -> PictureFile | None:
        """The picture of an item with these metadata, if it may be shown."""
        return picture_file(self.folders, fields)

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
            "warnings": [one for one in (folder_warning(self),) if one is not None],
            "can_index": can_index(self, can_edit),
            "watched": is_watched(self),
            "several": self.is_one_of_several,
            "undo": next(iter(self.changes()), None),
            "judged": self.judgements()["counts"],
            "changed_since_fit": collection.changed,
            "added_since_fit": manifest.n_added,
            "removed_since_fit": manifest.n_removed,
            "verdict": _sentence(trust_in_words(info)),
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

    def add_picture(self, data: Upload, name: str = "") -> JobState:
        """Put a picture into the folder of the collection, under its own name if it has one, and add it.

        One whose content is there already is not added again; the job's result says so by "known".
        """
        if not self.collection.is_of_pictures:
            raise RefusedError(409, "this collection was made of vectors", "send a vector to /api/v1/items")
        if not self.folders:
            raise RefusedError(
                409, "the folder of the pictures is not known here", "start the server with --images FOLDER"
            )
        taken, folder = self.uploads.take(data), self.folders[0]
        suffix = FORMAT_SUFFIXES.get(taken.picture.format, ".jpg")
        wanted = file_name(name, suffix) or f"added-{taken.key[:20]}{suffix}"

        def work(_: Listener) -> dict[str, Any]:
            known = self.view().ids_by_content.get(taken.picture.sha256)
            if known is not None:
                return {"ids": [str(known)], "name": wanted, "known": True}
            text = write_beside(folder, wanted, data)
            fields = {"path": text, "bytes": len(data), "modified": (folder / text).stat().st_mtime_ns}
            fields |= {"sha256": taken.picture.sha256, **picture_fields(taken.picture.fields, {}, {})}
            label = f"added {text!r}"
            ids = self.collection.change(taken.row[None], [text], [fields], own_fields=True, label=label)
            return {"ids": ids, "name": text, "known": False, **self._last_step()}

        return self.jobs.start("add", work, len(data))

    def remove(self, ids: Sequence[str]) -> JobState:
        """Take items out of the collection; files stay where they are."""
        names = self._ids_of(ids)

        def work(_: Listener) -> dict[str, Any]:
            self.collection.remove(names)
            return {"ids": [str(name) for name in names], **self._last_step()}

        return self.jobs.start("remove", work)

    def set_labels(self, ids: Sequence[str], add: Sequence[str], remove: Sequence[str], field: str) -> JobState:
        """Add tags or albums to items, and take others away."""
        names = self._ids_of(ids)
        with_labels(field, add, remove)  # what is no label is refused at once

        def work(_: Listener) -> dict[str, Any]:
            self.collection.set_labels(names, add, remove, field=field)
            return self._last_step()

        return self.jobs.start("labels", work)

    def changes(self) -> list[dict[str, Any]]:
        """What can be undone, the newest first."""
        commit = self.view().version.manifest.commit
        if (known := self._changes.get(commit)) is None:
            shown = [step._asdict() for step in self.collection.history()]
            known = self._changes.put(commit, [{"step": one.pop("number"), **one} for one in shown])
        return known

    def undo(self, step: int) -> JobState:
        """Undo the last change, if it is still this one."""
        last = next(iter(self.changes()), None)
        if last is None or last["step"] != step:
            now = "there is nothing to undo" if last is None else f"the last change is now: {last['label']}"
            raise RefusedError(409, f"this change can no longer be undone; {now}", "look at the changes")

        def work(_: Listener) -> dict[str, Any]:
            return {"undone": self.collection.undo(step), **self._last_step()}

        return self.jobs.start("undo", work)

    def judged(self, parts: Sequence[PartGiven]) -> JudgedQuery:
        """What has been judged of a query."""
        return self.collection.judgements.of(self._query(parts))

    def judge(
        self, parts: Sequence[PartGiven], right: Sequence[str], wrong: Sequence[str], neither: Sequence[str]
    ) -> JudgedQuery:
        """Record which items are right and wrong as results of a query."""
        sides = (self._ids_of(ids) for ids in (right, wrong, neither))
        labels = [part.text or ("an uploaded picture" if part.upload else None) for part in parts]
        return self.collection.judgements.add(self._query(parts), *sides, labels=labels)

    def judgements(self) -> dict[str, Any]:
        """All judged queries, and what they say of the learned features and of plain neighbours."""
        commit = self.view().version.manifest.commit
        return self._judged.get(commit) or self._judged.put(commit, judgements_shown(self.collection))

    def _query(self, parts: Sequence[PartGiven]) -> list[QueryPart]:
        view = self.view()
        return [self.part(view, part, getattr(part, "weight", 1.0)) for part in parts]

    def _ids_of(self, texts: Sequence[str]) -> list[Any]:
        view = self.view()
        return [view.id_of(text) for text in dict.fromkeys(texts)]

    def _last_step(self) -> dict[str, Any]:
        """The last change, by which it can be undone; nothing where it was too large to remember."""
        last = next(iter(self.collection.history()), None)
        return {} if last is None else {"step": last.number, "label": last.label}

    def refit(self) -> JobState:
        """Learn from what has changed, in a process of its own; the job that waits where there is one already."""

        def work(listener: Listener) -> None:
            self.jobs.call("manifind.server.jobs:refit_collection", {"path": str(self.collection.path)}, listener)
            self.collection.refresh()

        return self.jobs.start("refit", work)


def judgements_shown(collection: Collection) -> dict[str, Any]:
    """The judged queries of a collection as the API has them."""
    judgements, found = collection.judgements, collection.judgements.all()
    queries = [
        {
            "name": query.name,
            "label": query.label,
            "parts": [
                {"id": None if part.id is None else str(part.id), "text": words, "weight": part.weight}
                for part, words in zip(query.parts, query.words, strict=True)
            ],
            "right": [str(id_) for id_ in query.right],
            "wrong": [str(id_) for id_ in query.wrong],
        }
        for query in found
    ]
    counts = {"queries": len(found), **{side: sum(len(one[side]) for one in queries) for side in ("right", "wrong")}}
    scores = judgements.scores() if found else None
    shown = scores and {
        "queries": scores.n_queries,
        **{
            name: {"value": round(one.mean, 2), "low": round(one.low, 2), "high": round(one.high, 2)}
            for name, one in (("gradnet", scores.gradnet), ("knn", scores.knn), ("gain", scores.gain))
        },
    }
    return {"counts": counts, "queries": queries, "scores": shown}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def drift_in_words(changed: float) -> str:
    if not changed:
        return "Nothing has come or gone since the fit."
    advice = " A refit would learn from it." if changed >= 0.1 else ""
    return f"{changed:.1%} of what was fitted has come or gone since.{advice}"
