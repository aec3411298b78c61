"""The manifest of a collection: parsed and checked once, and typed from then on."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from manifind.checkpoint import installed_versions
from manifind.collection.format import COMPRESSED, DAMAGED, FULL, READABLE, parse_json
from manifind.errors import CollectionError
from manifind.index.ivf import InvertedFile
from manifind.search.feature_model import FeatureModel

_ROLES = {"full": FULL, "compressed": COMPRESSED}
_MOST = 1 << 40  # of anything


class Sizes(NamedTuple):
    """items: that were fitted. dimension: of descriptors. feature_dimension: of features. neighbors: of an item."""

    items: int
    dimension: int
    feature_dimension: int
    neighbors: int


@dataclass(frozen=True)
class Manifest:
    """What a collection says of itself.

    kind: "full", or "compressed" for one that only answers. fit, commit: what names the fit and the version.
    collection: what names it through all its fits; None in format 1. settings, info: of the model.
    source: where the descriptors come from. entries: everything, as JSON has it.
    """

    kind: str
    fit: str
    commit: str
    created: str
    collection: str | None
    sizes: Sizes
    preprocess: dict[str, Any]
    queries: dict[str, Any]
    indexes: dict[str, Any]
    settings: dict[str, Any]
    info: dict[str, Any]
    versions: dict[str, Any]
    source: dict[str, Any]
    entries: dict[str, Any] = field(repr=False)

    @property
    def is_full(self) -> bool:
        """Whether descriptors and features are there, and not only what answers for them."""
        return self.kind == "full"

    @property
    def roles(self) -> set[str]:
        """The roles of segments without which it cannot be opened."""
        return _ROLES[self.kind]

    @property
    def n_added(self) -> int:
        """Items that were added since the fit, and are still there."""
        return int(self.entries["changes"]["added"])

    @property
    def n_removed(self) -> int:
        """Fitted items that were removed since."""
        return int(self.entries["changes"]["removed"])

    def updated(self, entries: Mapping[str, Any]) -> Self:
        """With other entries in place of some."""
        return self._parse({**self.entries, **entries})

    @classmethod
    def read(cls, rows: Iterable[tuple[Any, Any]], file: Path) -> Self:
        """From (key, JSON) as the table has them. file: of the database, named in errors."""
        try:
            return cls._parse({key: parse_json(value) for key, value in rows})
        except _NewerFormatError as error:
            raise CollectionError(f"{file.parent} {error}", "update manifind") from error
        except (ValueError, KeyError, TypeError) as error:
            problem = error if type(error) is ValueError else repr(error)
            raise CollectionError(f"the manifest in {file} is damaged: {str(problem)[:200]}", DAMAGED) from error

    @classmethod
    def _parse(cls, entries: dict[str, Any]) -> Self:
        """A ValueError, KeyError or TypeError where something is not as it should be."""
        format_ = entries["format"]
        if type(format_) is not int or format_ not in READABLE:
            known = " and ".join(map(str, READABLE))
            raise _NewerFormatError(
                f"has format {repr(format_)[:60]}, and this version of manifind reads format {known}"
            )
        if format_ >= 2:
            name, sequence = entries["collection"], entries["sequence"]
            if not isinstance(name, str) or type(sequence) is not int or not 0 < sequence < _MOST:
                raise ValueError(f"its collection is {repr(name)[:60]}, its sequence {repr(sequence)[:60]}")
        if entries["kind"] not in _ROLES:
            raise ValueError(f"its kind is {repr(entries['kind'])[:60]}")
        sizes = Sizes(*(entries["shape"][name] for name in Sizes._fields))
        if not all(type(size) is int and 0 < size < _MOST for size in sizes):
            raise ValueError(f"its shape is {str(entries['shape'])[:120]}")
        tables = {name: entries[name] for name in _TABLES}
        tables["source"] = entries.get("source") or {}  # the first collections had none
        for name, table in tables.items():
            if not isinstance(table, dict):
                raise ValueError(f"its {name} is {repr(table)[:60]}; expected a table of names")
        texts = {name: entries[name] for name in _TEXTS}
        for name, text in texts.items():
            if not isinstance(text, str):
                raise ValueError(f"its {name} is {repr(text)[:60]}; expected a text")
        return cls(
            kind=entries["kind"],
            collection=entries.get("collection") if format_ >= 2 else None,
            sizes=sizes,
            entries=entries,
            **texts,
            **tables,
        )


_TABLES = ("preprocess", "queries", "indexes", "settings", "info", "versions")
_TEXTS = ("fit", "commit", "created")


class _NewerFormatError(ValueError):
    """A collection of a format that this version does not read."""


def new_entries(
    kind: str,
    learned: FeatureModel,
    n_neighbors: int,
    indexes: Mapping[str, InvertedFile | None],
    settings: dict[str, Any],
    info: dict[str, Any],
) -> dict[str, Any]:
    """The entries of the manifest that a new fit, or a compressed copy, sets."""
    preprocessor = learned.preprocessor
    sizes = Sizes(
        len(learned.features),
        learned.descriptors.shape[1],
        learned.features.shape[1],
        min(n_neighbors, len(learned.nodes)),
    )
    return {
        "kind": kind,
        "fit": secrets.token_hex(8),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": installed_versions(),
        "shape": sizes._asdict(),
        "preprocess": {"kind": preprocessor.kind, "scale": preprocessor.scale},
        "queries": asdict(learned.queries),
        "indexes": {name: index.quality._asdict() for name, index in indexes.items() if index is not None},
        "settings": settings,
        "info": info,
    }
