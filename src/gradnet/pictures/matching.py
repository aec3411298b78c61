"""Which files are the items of a collection, by path and by content: moved files keep their ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from gradnet.pictures.folder import Found


@dataclass(frozen=True)
class Known:
    """What a collection says of an item: where its file was, what was in it, how large it was, when it changed."""

    path: str
    sha256: str
    bytes: int
    modified: int


@dataclass
class Matched:
    """new: files that nobody knows. changed: items whose file has another content. moved: whose file is elsewhere.

    gone: items without a file. same: items whose file is where it was, as it was. unread: items whose file may be
    there, but could not be read. digests: of every file, by path.
    """

    new: list[Found] = field(default_factory=list)
    changed: list[tuple[Any, Found]] = field(default_factory=list)
    moved: list[tuple[Any, Found]] = field(default_factory=list)
    gone: list[Any] = field(default_factory=list)
    same: list[Any] = field(default_factory=list)
    unread: list[Any] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)


def match(
    files: Sequence[Found],
    known: Mapping[Any, Known],
    digest: Callable[[Found], str | None],
    unreadable: Collection[str] = (),
) -> Matched:
    """Compare files with items. digest: of a file's content, asked only where size and time say nothing; None where it
    cannot be read. unreadable: paths of further files and of folders that could not be read.

    A file at a known path with the same content is the same item. A file that is new at its path, with the content of
    an item whose file is no longer there, is that item, moved. What is left at a known path has changed.
    """
    matched, by_path = Matched(), {item.path: id_ for id_, item in known.items()}
    hidden = set(unreadable)
    elsewhere: list[Found] = []
    for file in files:
        id_ = by_path.get(file.path)
        item = None if id_ is None else known[id_]
        untouched = item is not None and (item.bytes, item.modified) == (file.bytes, file.modified)
        found = item.sha256 if item is not None and untouched else digest(file)
        if found is None:
            hidden.add(file.path)
            continue
        matched.digests[file.path] = found
        if item is not None and found == item.sha256:
            matched.same.append(id_)
        else:
            elsewhere.append(file)
    matched.unread = [id_ for id_, item in known.items() if _is_below(item.path, hidden)]
    _match_elsewhere(elsewhere, known, by_path, matched)
    return matched


def _is_below(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of some places, or inside one of them."""
    return bool(places) and any(str(place) in places for place in (path, *PurePosixPath(path).parents))


def _match_elsewhere(
    files: list[Found], known: Mapping[Any, Known], by_path: Mapping[str, Any], matched: Matched
) -> None:
    """Files that are not what stood at their path: moved there, changed, or new."""
    settled = {*matched.same, *matched.unread}
    lost: dict[str, list[Any]] = defaultdict(list)
    for id_, item in known.items():
        if id_ not in settled:
            lost[item.sha256].append(id_)
    rest = []
    for file in files:
        if candidates := lost[matched.digests[file.path]]:
            id_ = candidates.pop(0)
            settled.add(id_)
            matched.moved.append((id_, file))
        else:
            rest.append(file)
    for file in rest:
        id_ = by_path.get(file.path)
        if id_ is not None and id_ not in settled:
            settled.add(id_)
            matched.changed.append((id_, file))
        else:
            matched.new.append(file)
    matched.gone = [id_ for id_ in known if id_ not in settled]
