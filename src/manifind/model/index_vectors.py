"""Vectors as a collection: made, or brought up to date with a file, an array or a table.

It belongs to `model`, the first package that can both fit a model and change a collection; `images` uses its rules for
settings and refits. torch is imported only where something is fitted.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from manifind.arrays import Floats, check_descriptors
from manifind.collection.collection import Collection, load
from manifind.collection.database import is_collection, work_folder
from manifind.collection.ids import check_ids
from manifind.collection.metadata import Fields, checked_fields
from manifind.collection.sync import IndexOutcome, Plan, carry_out, check_removals, plan_sync
from manifind.collection.version import read_manifest
from manifind.collection.writer import check_target
from manifind.errors import InputError
from manifind.io.tables import read_fields
from manifind.io.vectors import read_vectors
from manifind.progress import Listener, ignore, in_one_piece

RefitPolicy: TypeAlias = float | str | Callable[[Collection], bool]
"""When to fit anew, as `manifind.refit_when` takes it."""


class _VectorSource(NamedTuple):
    """What a source holds. name: for messages. fields: None where it says nothing but vectors."""

    name: str
    rows: Any
    ids: list[str] | list[int]
    fields: list[Fields | None] | None


def index_vectors(
    source: Any,
    collection: str | Path,
    ids: Sequence[Any] | None = None,
    *,
    vectors: Any = None,
    metadata: Any = None,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    refit: bool = False,
    refit_when: RefitPolicy | None = None,
    allow_removals: bool = False,
    dry_run: bool = False,
    listener: Listener = ignore,
) -> IndexOutcome:
    """Make a collection of vectors, or bring one up to date.

    A new collection is fitted. One that exists gets what is new in the source, loses what is gone from it, and keeps
    the rest: items that are added get features from their neighbours, at once and without training. An interrupted fit
    goes on where it stopped when it is called again.

    Parameters
    ----------
    source : path, array-like or pandas.DataFrame
        A file that `read_vectors` reads; numbers of shape (n, d), a tensor too; or a table, whose index names the
        items.
    collection : path
        The collection directory.
    ids : sequence of str or of int, default=None
        A name for each item. None takes those of the file or the table, else positions.
    vectors : list of column names, or one column name, default=None
        For a table: the columns of numbers, or the one column that holds a list of numbers in each row. The other
        columns are metadata; a missing value there is a field that the item does not have. None takes every column as
        numbers.
    metadata : path, mapping or sequence of mappings, default=None
        Fields to filter by, merged into those that items have: a .csv or .jsonl file with a column `id`, a mapping
        from ids to fields, or the fields of each item in order. A field set to None is taken away.
    settings : mapping, default=None
        Settings of `GradNet`. They cannot differ from those of an existing collection unless it is fitted anew.
    seed : int, default=None
        The same seed gives the same collection. None takes 0 for a new one, and the last seed for a refit.
    refit : bool, default=False
        Whether an existing collection is fitted anew, starting from the old network.
    refit_when : float, str or callable, default=None
        Refit once this share of the fitted items has come or gone, or as another policy of `refit_when` says.
    allow_removals : bool, default=False
        Whether all items may be removed, or more than a third of 20 or more. If not, that is an error and nothing
        changes.
    dry_run : bool, default=False
        Only count what would be done.
    listener : callable, default=ignore
        Called with a `Progress` now and then.

    Returns
    -------
    IndexOutcome
        How many items were added, removed, changed and left alone, and the collection.

    Raises
    ------
    InputError
        If vectors, ids, metadata or settings are not valid, or too much would be removed.
    FileFormatError
        If the file cannot be read.

    Examples
    --------
    >>> import manifind, numpy as np, tempfile
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> path = tempfile.mkdtemp() + "/shapes.manifind"
    >>> settings = {"n_neighbors": 5, "max_steps": 3}
    >>> manifind.index_vectors(X, path, settings=settings).counts["added"]
    60
    >>> outcome = manifind.index_vectors(X[:50], path)
    >>> outcome.counts["removed"], outcome.counts["unchanged"], len(outcome.collection)
    (10, 50, 50)
    """
    target, settings = Path(collection), settings or {}
    check_target(target)  # now, since fitting may take long
    is_new = not is_collection(target)
    if not is_new:
        refuse_several_processes(f"{target} exists")
    check_same_settings(target, settings, seed, refit)
    found = _read_source(source, ids, vectors, metadata, is_new)
    if is_new:
        made = None if dry_run else _make(target, found, settings, seed or 0, listener)
        return IndexOutcome({**Plan().counts(), "added": len(found.ids)}, made, is_new=True)
    outcome = _update(target, found, allow_removals, dry_run)
    if dry_run:
        outcome.refitted = refit
    else:
        refit_from(0.0 if refit else refit_when, outcome, settings, seed, listener)
    return outcome


def refuse_several_processes(reason: str) -> None:
    """Several processes make a new collection of vectors, and nothing else."""
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise InputError(
            f"several processes make a new collection from a file of vectors, and {reason}",
            "run it without torchrun, or export the vectors first",
        )


def check_same_settings(target: Path, settings: Mapping[str, Any], seed: int | None, refit: bool) -> None:
    """A call may be repeated as it is; what its collection was made with can only change in a fit."""
    if refit or not is_collection(target) or not (settings or seed is not None):
        return
    manifest = read_manifest(target)
    made = manifest.settings
    other = {
        name: f"{name} = {made.get(name)!r}"
        for name, value in sorted(settings.items())
        if name not in made or (list(value) if isinstance(value, tuple) else value) != made[name]  # JSON has no tuples
    }
    if seed is not None:
        from manifind.model.estimator import draw_seed  # imports torch

        if manifest.info.get("seed") != draw_seed(seed):
            other["seed"] = "another seed"
    if other:
        raise InputError(
            f"{target} exists, and {', '.join(other)} can only change when it is fitted anew: "
            f"it was made with {', '.join(other.values())}",
            "give refit=True too, or leave these settings out",
        )


def refit_from(
    policy: RefitPolicy | None, outcome: IndexOutcome, settings: Mapping[str, Any], seed: int | None, listener: Listener
) -> None:
    """Fit a collection that was brought up to date anew, if the policy says so; None for never."""
    collection = outcome.collection
    if collection is None or policy is None:
        return
    if isinstance(policy, str):
        from manifind.model.refit import policy_of  # imports torch

        policy = policy_of(policy)
    if policy(collection) if callable(policy) else collection.changed >= policy:
        from manifind.model.refit import refit

        refit(collection, listener=listener, checkpoint=work_folder(collection.path), seed=seed, **settings)
        outcome.refitted = True


def _make(
    target: Path, source: _VectorSource, settings: Mapping[str, Any], seed: int, listener: Listener
) -> Collection | None:
    """The new collection; None in all but the first of several processes that fit together."""
    fields = None if source.fields is None else checked_fields(source.fields, len(source.ids))
    from manifind.model.estimator import GradNet  # imports torch: not before the source is known to be good

    model = GradNet(**settings, random_state=seed)
    model.fit(source.rows, listener=listener, checkpoint=work_folder(target))
    if os.environ.get("RANK", "0") != "0":
        return None
    with in_one_piece("saving", listener):
        return model.save(target, source.ids, fields)


def _update(target: Path, source: _VectorSource, allow_removals: bool, dry_run: bool) -> IndexOutcome:
    collection = load(target)
    X = check_descriptors(source.rows, "X", collection.manifest["shape"]["dimension"])
    plan = plan_sync(collection.version, X, source.ids, source.fields)
    needs = check_removals(collection, plan.gone, source.name, len(collection), dry_run or allow_removals)
    if not dry_run:
        carry_out(collection, plan, X, source.ids, source.fields)
    return IndexOutcome(plan.counts(), collection=collection, needs_permission=needs)


def _read_source(source: Any, ids: Sequence[Any] | None, vectors: Any, metadata: Any, is_new: bool) -> _VectorSource:
    pandas = sys.modules.get("pandas")  # without it there can be no table
    is_table = pandas is not None and isinstance(source, pandas.DataFrame)
    if vectors is not None and not is_table:
        raise InputError(
            f"vectors = {vectors!r}, but the source is a {type(source).__name__}, which has no named columns",
            "leave vectors out, or give a pandas.DataFrame",
        )
    fields: list[Fields | None] | None = None
    if is_table:
        name, own = "the table", source.index
        rows, fields = _read_table(source, vectors, is_new)
    elif isinstance(source, str | os.PathLike):
        read = read_vectors(source)
        name, rows, own = str(source), read.rows, read.ids
    else:
        name, rows, own = "the array", check_descriptors(source, "source"), None
    names = check_ids(own if ids is None else ids, len(rows))
    if metadata is not None:
        given = _given_fields(metadata, names)
        fields = given if fields is None else [{**(a or {}), **(b or {})} for a, b in zip(fields, given, strict=True)]
    return _VectorSource(name, rows, names, fields)


def _read_table(table: Any, vectors: Any, is_new: bool) -> tuple[Floats, list[Fields | None] | None]:
    """The numbers of a table, (n, d), and its other columns as metadata."""
    is_one = isinstance(vectors, str) or (vectors is not None and not isinstance(vectors, Iterable))
    columns = list(table.columns) if vectors is None else [vectors] if is_one else list(vectors)
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise InputError(
            f"the table has no column {missing[0]!r}; it has {', '.join(map(str, table.columns))[:200]}",
            "name the columns of vectors as the table does",
        )
    rows = _stacked(table[vectors], vectors) if is_one else check_descriptors(table[columns], "the table")
    others = table.drop(columns=columns)
    return rows, _table_fields(others, is_new) if len(others.columns) else None


def _stacked(column: Iterable[Any], name: Any) -> Floats:
    """A column of lists as a matrix."""
    try:
        matrix = np.stack([np.asarray(row) for row in column])
    except ValueError as error:
        raise InputError(
            f"the column {name!r} does not hold lists of numbers of one length: {error}",
            "give every row a list of the same length, or name the columns of numbers in a list",
        ) from error
    return check_descriptors(matrix, f"the column {name!r}")


def _table_fields(table: Any, is_new: bool) -> list[Fields | None]:
    """Metadata from columns. A missing value takes the field away where there is an item that may have it."""
    pairs = zip(table.itertuples(index=False, name=None), table.isna().to_numpy(), strict=True)
    return [
        {
            name: None if is_missing else _plain(value)
            for name, value, is_missing in zip(table.columns, row, missing, strict=True)
            if not (is_missing and is_new)
        }
        for row, missing in pairs
    ]


def _plain(value: Any) -> Any:
    """A date as text, and an array as a list, since metadata are plain values."""
    if isinstance(value, date):
        return value.isoformat()
    return value.tolist() if isinstance(value, np.ndarray) else value


def _given_fields(metadata: Any, ids: Sequence[Any]) -> list[Fields | None]:
    """The user's metadata in the order of the items."""
    if isinstance(metadata, str | os.PathLike):
        name, by_id = str(metadata), read_fields(Path(metadata))
    elif isinstance(metadata, Mapping):
        name, by_id = "metadata", {str(id_): fields for id_, fields in metadata.items()}
    else:
        return checked_fields(metadata, len(ids))
    known = set(map(str, ids))
    unknown = next((id_ for id_ in by_id if id_ not in known), None)
    if unknown is not None:
        raise InputError(f"{name} has the id {unknown!r}, which no vector has", "leave it out")
    return [by_id.get(str(id_)) for id_ in ids]
