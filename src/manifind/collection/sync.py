"""What has to happen so that a collection holds exactly what a source holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifind.arrays import Floats, Ints, row_blocks
from manifind.collection.collection import Collection
from manifind.collection.ids import check_ids
from manifind.collection.metadata import checked_fields, merged_metadata
from manifind.collection.version import Version, read_array
from manifind.errors import InputError
from manifind.text import are, count

_ROWS_PER_BLOCK = 8192
_FEW = 20  # items, of which any share but all may go
_LARGEST_SHARE = 3  # of many, at most one in so many is removed without permission
_NAMED = 5


@dataclass(frozen=True)
class Plan:
    """new, changed, described: rows of the source that are not there, have other descriptors, or only other metadata.

    gone: ids that the source has no more. n_same: items that stay as they are.
    """

    new: Sequence[int] = ()
    changed: Sequence[int] = ()
    described: Sequence[int] = ()
    gone: Sequence[Any] = ()
    n_same: int = 0

    def counts(self) -> dict[str, int]:
        """How many of each."""
        return {
            "added": len(self.new),
            "removed": len(self.gone),
            "changed": len(self.changed),
            "described": len(self.described),
            "unchanged": self.n_same,
        }


@dataclass
class IndexOutcome:
    """What indexing a source has done, or would do.

    Attributes
    ----------
    counts : dict
        How many items were "added", "removed", "changed", "described" (only their metadata changed) and "unchanged".
    collection : Collection or None
        The collection; None where a dry run found none, and in all processes but the first where several fit together.
    is_new : bool
        Whether there was no collection before.
    refitted : bool
        Whether an existing collection was fitted anew.
    needs_permission : bool
        Whether so many items would be removed that `allow_removals` is needed.
    """

    counts: dict[str, int] = field(default_factory=dict)
    collection: Collection | None = None
    is_new: bool = False
    refitted: bool = False
    needs_permission: bool = False


def plan_sync(
    version: Version, X: Floats, ids: Sequence[Any], metadata: Sequence[Mapping[str, Any] | None] | None
) -> Plan:
    """Compare a source, rows X with their ids, to a collection. metadata: fields to set; None leaves what there is."""
    names = check_ids(ids, len(X))
    fields = None if metadata is None else checked_fields(metadata, len(X))
    place = {id_: number for number, id_ in enumerate(version.items.ids.tolist())}
    if names and len(place) and type(names[0]) is not type(next(iter(place))):
        problem = f"the id {names[0]!r} is of another kind than {next(iter(place))!r} in {version.directory}"
        raise InputError(problem, "index with the ids that it was made with, or into another collection")
    known = np.array([row for row, name in enumerate(names) if name in place], dtype=np.int64)
    places = np.array([place[names[row]] for row in known], dtype=np.int64)
    old = version.items.metadata
    differs = _differs(version, X, known, version.items.rows[places] if len(known) else known)
    described = [
        int(row)
        for row, where, other in zip(known, places, differs, strict=True)
        if not other and fields is not None and merged_metadata(old[where], fields[row], (), "an item") != old[where]
    ]
    wanted = set(names)
    return Plan(
        [row for row, name in enumerate(names) if name not in place],
        known[differs].tolist(),
        described,
        [id_ for id_ in place if id_ not in wanted],
        int((~differs).sum()) - len(described),
    )


def needs_permission(n_gone: int, n_items: int) -> bool:
    """Whether so many items would go that it is rather the source that is missing, empty or another one."""
    return n_gone > 0 and (n_gone == n_items or (n_items >= _FEW and n_gone * _LARGEST_SHARE > n_items))


def check_removals(collection: Collection, gone: Sequence[Any], source: str, n_items: int, allowed: bool) -> bool:
    """Whether removing these needs permission; refused without. n_items: how many items come from such a source."""
    is_needed = needs_permission(len(gone), n_items)
    if allowed or not is_needed:
        return is_needed
    there = f"{len(gone)} of the {count(n_items, 'item')} of {collection.path} {are(len(gone))} not in {source}"
    named = ", ".join(repr(id_) for id_ in gone[:_NAMED])
    more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
    hint = "see that the source is complete and mounted; to remove them, give allow_removals=True"
    raise InputError(f"{there}, and would be removed: {named}{more}; nothing was changed", hint)


def carry_out(
    collection: Collection,
    plan: Plan,
    X: Floats,
    ids: Sequence[Any],
    metadata: Sequence[Mapping[str, Any] | None] | None,
) -> None:
    """Do what was planned, in one commit."""
    rows = sorted([*plan.new, *plan.changed])
    gone = [*plan.gone, *(ids[row] for row in plan.changed)]
    fields = None if metadata is None else [metadata[row] for row in rows]
    described = {} if metadata is None else {ids[row]: metadata[row] for row in plan.described}
    collection.change(X[rows], [ids[row] for row in rows], fields, gone, described)


def _differs(version: Version, X: Floats, rows: Ints, there: Ints) -> Any:
    """(len(rows),) whether a row of the source is not bit for bit what stands in the collection."""
    differs = np.empty(len(rows), dtype=np.bool_)
    index = version.index
    lengths = read_array(version.snapshot, "lengths", (index.n_fitted, 1))
    for part in row_blocks(len(rows), _ROWS_PER_BLOCK):
        prepared, divided = version.learned.preprocessor.with_lengths(np.asarray(X[rows[part]], dtype=np.float32))
        old = index.gather(there[part], lengths, version.added.lengths)
        differs[part] = (prepared != index.descriptors(there[part])).any(axis=1) | (divided != old)[:, 0]
    return differs
