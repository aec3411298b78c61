"""Judged queries of a collection: which results people called right or wrong, and how well they are answered.

A judgement is of a query and an item, by its id. It stays when the item is renamed, and when the collection is fitted
anew. A query is stored with the descriptors of its words and pictures, so that it can be asked again without a model.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from manifind.arrays import Floats, check_descriptors
from manifind.collection.database import reading
from manifind.collection.format import DATABASE, RowSum, damaged, parse_json
from manifind.collection.history import check_notes, has_notes
from manifind.collection.searchable import QueryPart
from manifind.collection.writer import commit_notes
from manifind.errors import InputError
from manifind.evaluation.measures import Score, average_precision
from manifind.evaluation.protocols import Difference, compare
from manifind.evaluation.relevance import Hits

if TYPE_CHECKING:
    from manifind.collection.collection import Collection

_Row: TypeAlias = tuple[str, str, bytes]
"""Of the table of queries: name, parts as JSON, descriptors."""

_MOST_PARTS = 256
_LONGEST = 1000  # characters of a label
_KEYS = {"id", "text", "label", "weight"}


@dataclass(frozen=True)
class JudgedQuery:
    """A query, and what was called right and wrong among its results.

    Attributes
    ----------
    name : str
        What names it: a digest of its parts.
    label : str
        What it is, for people.
    parts : tuple of QueryPart
        What to search with; words and pictures as descriptors.
    words : tuple of str or None
        For each part the words that it stands for, None where it is none.
    right, wrong : tuple of str or int
        Ids of items.
    """

    name: str
    label: str
    parts: tuple[QueryPart, ...]
    words: tuple[str | None, ...]
    right: tuple[Any, ...]
    wrong: tuple[Any, ...]


class JudgedScores(NamedTuple):
    """How well judged queries are answered: mAP over the judged items of each, in percent.

    Attributes
    ----------
    n_queries : int
        Queries of which at least one item was called right, and one wrong.
    gradnet, knn, gain : Difference
        The mean by the learned features and by the descriptors, and how far the one is above the other; each with the
        ends of its 95 % interval over the queries.
    """

    n_queries: int
    gradnet: Difference
    knn: Difference
    gain: Difference


class Judgements:
    """The judgements of a collection, as `Collection.judgements` has them."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def add(
        self,
        query: QueryPart | Sequence[QueryPart],
        right: Sequence[Any] = (),
        wrong: Sequence[Any] = (),
        neither: Sequence[Any] = (),
        *,
        labels: Sequence[str | None] | None = None,
        extractor: str | None = None,
    ) -> JudgedQuery:
        """Record which items are right or wrong as results of a query.

        Parameters
        ----------
        query : QueryPart or sequence of QueryPart
            What was searched for, as in `Collection.search_combined`.
        right, wrong : sequence of str or int, default=()
            Items that belong to the query, and items that do not.
        neither : sequence of str or int, default=()
            Items of which a judgement is taken back.
        labels : sequence of str, default=None
            What each part is called, such as the words whose descriptor it is; None for what is known of it.
        extractor : str, default=None
            The model, where it is a file or a folder that was never named on this machine.

        Returns
        -------
        JudgedQuery
            The query with all that has been judged of it.
        """
        judged, row = self._row(query, extractor, labels)
        collection, sides = self._collection, ((neither, None), (wrong, False), (right, True))
        verdicts = {id_: verdict for ids, verdict in sides for id_ in collection.known_ids(ids)}
        if verdicts:
            commit_notes(
                collection.path,
                collection.version.manifest,
                lambda database, notes: _write(database, notes, row, verdicts),
            )
            collection.refresh()
        return self._find(judged)

    def all(self) -> list[JudgedQuery]:
        """Return the queries of which results were judged.

        Returns
        -------
        list of JudgedQuery
            In the order in which they were first judged.
        """
        return _read(self._collection.path)

    def of(self, query: QueryPart | Sequence[QueryPart], *, extractor: str | None = None) -> JudgedQuery:
        """Return what has been judged of a query.

        Parameters
        ----------
        query : QueryPart or sequence of QueryPart
            As in `add`.
        extractor : str, default=None
            As in `add`.

        Returns
        -------
        JudgedQuery
            Without judgements where nobody has judged any.
        """
        return self._find(self._row(query, extractor, None)[0])

    def scores(self) -> JudgedScores | None:
        """Score the answers to the judged queries, by the learned features and by the descriptors.

        For each query its judged items alone are ranked, and each ranking is scored as any other: AP = 1/R sum_j
        (j + 1) / (r_j + 1). A query counts where at least one item was called right and one wrong, and its own items
        are there.

        Returns
        -------
        JudgedScores or None
            None where no query counts.
        """
        usable = self.usable()
        if not usable:
            return None
        learned, plain = (score_judged(self._collection, usable, by) for by in ("features", "descriptors"))
        nothing = learned._replace(per_query=np.zeros(len(usable)))
        return JudgedScores(len(usable), compare(learned, nothing), compare(plain, nothing), compare(learned, plain))

    def add_file(self, path: str | Path) -> int:
        """Record judgements from a table: a .csv or .tsv file with the columns query, item and right.

        Parameters
        ----------
        path : str or Path
            The file. Queries and items are ids of the collection, or current paths or names of their files; `right`
            is 1 or 0, true or false, right or wrong, yes or no.

        Returns
        -------
        int
            How many judgements it had.
        """
        verdicts: dict[Any, dict[Any, bool]] = {}
        for query, item, is_right in read_verdicts(Path(path)):
            find = self._collection.find_id
            verdicts.setdefault(find(query), {})[find(item)] = is_right
        for query, judged in verdicts.items():
            right, wrong = ([item for item, is_right in judged.items() if is_right is side] for side in (True, False))
            self.add(QueryPart(id=query), right, wrong)
        return sum(map(len, verdicts.values()))

    def usable(self) -> list[tuple[JudgedQuery, dict[Any, bool]]]:
        """Return the queries that can be scored, each with its judged items.

        Returns
        -------
        list of tuple
            A query and, by id, whether an item is right; at least one item is, and one is not.
        """
        found = [(query, self._usable(query)) for query in self.all()]
        return [(query, verdicts) for query, verdicts in found if 0 < sum(verdicts.values()) < len(verdicts)]

    def _usable(self, query: JudgedQuery) -> dict[Any, bool]:
        """The judged items that are there, but those of the query itself; none where one of those is gone."""
        own = {part.id for part in query.parts if part.id is not None}
        verdicts = dict.fromkeys(query.wrong, False) | dict.fromkeys(query.right, True)
        if not all(id_ in self._collection for id_ in own):
            return {}
        return {item: right for item, right in verdicts.items() if item in self._collection and item not in own}

    def _find(self, judged: JudgedQuery) -> JudgedQuery:
        return next((one for one in self.all() if one.name == judged.name), judged)

    def _row(
        self, query: QueryPart | Sequence[QueryPart], extractor: str | None, labels: Sequence[str | None] | None
    ) -> tuple[JudgedQuery, _Row]:
        """A query without judgements, and its row in the table."""
        parts = [query] if isinstance(query, QueryPart) else list(query)
        if not 1 <= len(parts) <= _MOST_PARTS:
            raise InputError(f"a query of {len(parts)} parts; expected 1 to {_MOST_PARTS}")
        entries, rows, width = [], [], self._collection.version.manifest.sizes.dimension
        described, names = self._collection.describe_parts(parts, extractor), labels or [None] * len(parts)
        for part, row, name in zip(parts, described, names, strict=True):
            kept: dict[str, Any] = {"weight": float(part.weight)}
            if row is None:
                (kept["id"],) = self._collection.known_ids([part.id])
            else:
                words = part.text if isinstance(part.text, str) else name
                kept["label"] = (name or _label(part))[:_LONGEST]
                kept |= {} if part.text is None else {"text": words and words[:_LONGEST]}
                rows.append(check_descriptors(row, "the query", width)[0].astype("<f4"))
            entries.append(kept)
        text, blob = json.dumps(entries, ensure_ascii=False), b"".join(row.tobytes() for row in rows)
        stored = _name(entries, rows), text, blob
        return _parse(*stored, [], str(self._collection.path)), stored


def _write(database: sqlite3.Connection, notes: RowSum, query: _Row, verdicts: Mapping[Any, bool | None]) -> None:
    """Record judgements of a query; None takes one back, and a query without any goes. notes: the sum that follows."""
    name = query[0]
    known = database.execute("SELECT * FROM queries WHERE name = ?", (name,)).fetchall()
    before = database.execute("SELECT * FROM judgements WHERE query = ?", (name,)).fetchall()
    items = {item: is_right for _, item, is_right in before} | {
        item: None if verdict is None else int(verdict) for item, verdict in verdicts.items()
    }
    now = [(name, item, is_right) for item, is_right in items.items() if is_right is not None]
    notes.add_notes("judgements", before, -1)
    notes.add_notes("judgements", now)
    database.execute("DELETE FROM judgements WHERE query = ?", (name,))
    database.executemany("INSERT INTO judgements VALUES (?, ?, ?)", now)
    if now and not known:
        row = (*query, datetime.now(UTC).isoformat(timespec="seconds"))
        database.execute("INSERT INTO queries VALUES (?, ?, ?, ?)", row)
        notes.add_notes("queries", [row])
    elif known and not now:
        database.execute("DELETE FROM queries WHERE name = ?", (name,))
        notes.add_notes("queries", known, -1)


def _read(directory: Path) -> list[JudgedQuery]:
    """All judged queries, in the order in which they were first judged."""
    with reading(directory) as database:
        if not has_notes(database, directory):
            return []
        check_notes(database, directory / DATABASE)
        judged: dict[str, list[tuple[Any, Any]]] = {}
        for name, item, is_right in database.execute("SELECT query, item, is_right FROM judgements ORDER BY query"):
            judged.setdefault(name, []).append((item, is_right))
        rows = database.execute("SELECT name, parts, vectors FROM queries ORDER BY made, name").fetchall()
    where = str(directory / DATABASE)
    return [_parse(name, text, blob, judged.get(name, []), where) for name, text, blob in rows]


def score_judged(
    answering: Collection, usable: Sequence[tuple[JudgedQuery, dict[Any, bool]]], by: str = "features"
) -> Score:
    """How well a collection with the same items answers judged queries, over the judged items of each."""
    ranks = []
    for query, verdicts in usable:
        order = answering.rank_among(query.parts, list(verdicts), by=by)
        ranks.append(np.flatnonzero([verdicts[item] for item in order]))
    n_right = np.array([sum(verdicts.values()) for _, verdicts in usable])
    values, weights = average_precision(Hits(ranks, n_right, n_right))
    return Score("mAP", "over the judged items of each query", "not stated", 100 * values, weights)


_YES, _NO = ("1", "true", "right", "yes"), ("0", "false", "wrong", "no")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_MOST_BYTES = 64 << 20


def read_verdicts(path: Path) -> Iterator[tuple[str, str, bool]]:
    """The rows of a table of judgements: query, item, and whether it is right."""
    if path.suffix.lower() not in _SEPARATORS:
        raise InputError(f"{path} is no table of judgements", "give a .csv or .tsv file: query, item, right")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path} is larger than {_MOST_BYTES >> 20} MB", "give judgements in several files")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        hint = "give a .csv or .tsv file: query, item, right"
        raise InputError(f"{path} cannot be read: {error.strerror or error}", hint) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: it is not UTF-8", "save it as text in UTF-8") from error
    try:
        rows = list(csv.DictReader(text.splitlines(), delimiter=_SEPARATORS[path.suffix.lower()], strict=True))
    except csv.Error as error:
        raise InputError(f"{path} is no table: {error}", "give the columns query, item, right") from error
    for number, row in enumerate(rows, 2):
        if not {"query", "item", "right"} <= row.keys() or None in row.values():
            raise InputError(f"line {number} of {path} lacks a column", "give the columns query, item, right")
        said = str(row["right"]).strip().lower()
        if said not in (*_YES, *_NO):
            raise InputError(f"line {number} of {path}: right = {said[:60]!r}", f"expected {', '.join((*_YES, *_NO))}")
        yield str(row["query"]), str(row["item"]), said in _YES


def _label(part: QueryPart) -> str:
    if part.text is not None:
        return part.text if isinstance(part.text, str) else "words"
    if part.picture is not None:
        return Path(part.picture).name
    return "a part of a picture" if part.crop is not None else "a descriptor"


def _name(entries: Sequence[Mapping[str, Any]], rows: Sequence[Floats]) -> str:
    """A digest of what is searched for, whatever the order of the parts and their labels."""
    left = list(rows)
    contents = sorted(
        f"{entry['weight']!r} {type(entry['id']).__name__} {entry['id']}"
        if "id" in entry
        else f"{entry['weight']!r} {'text' in entry} {hashlib.sha256(left.pop(0).tobytes()).hexdigest()}"
        for entry in entries
    )
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()[:32]


def _parse(name: Any, text: Any, blob: Any, judged: Sequence[tuple[Any, Any]], where: str) -> JudgedQuery:
    """From rows of the tables, which are not believed."""
    wrong = damaged(f"{where} is damaged: a judged query cannot be read")
    try:
        entries = parse_json(text)
        fits = isinstance(entries, list) and 1 <= len(entries) <= _MOST_PARTS
        if not fits or not all(isinstance(one, dict) and one.keys() <= _KEYS for one in entries):
            raise wrong
        n_rows = sum("id" not in one for one in entries)
        if not blob and n_rows:
            raise wrong
        rows = list(np.frombuffer(blob, dtype="<f4").reshape(n_rows, -1)) if n_rows else []
        parts, labels = [], []
        for one in entries:
            given: dict[str, Any] = {"weight": one["weight"]}
            if "id" in one:
                given["id"] = one["id"]
            else:
                given["text" if "text" in one else "vector"] = rows.pop(0).astype(np.float32)
            parts.append(QueryPart(**given))
            sign = "" if one["weight"] > 0 else "not "
            labels.append(f"{sign}{one.get('id', one.get('label'))}")
        if any(type(item) not in (str, int) or is_right not in (0, 1) for item, is_right in judged):
            raise wrong
    except (ValueError, TypeError, KeyError, InputError) as error:
        raise wrong from error
    words = tuple(one.get("text") if isinstance(one.get("text"), str) else None for one in entries)
    sides = [tuple(item for item, is_right in judged if is_right == side) for side in (1, 0)]
    return JudgedQuery(str(name), " and ".join(labels), tuple(parts), words, sides[0], sides[1])
