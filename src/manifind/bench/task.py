"""A retrieval task: what every method is asked, and how its answers are scored."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Ints
from manifind.errors import InputError
from manifind.evaluation.measures import (
    BULLSEYE_RULES,
    Measure,
    Measured,
    Score,
    average_precision,
    bullseye_at,
    trapezoid_average_precision,
)
from manifind.evaluation.protocols import bullseye, evaluate_labels, evaluate_lists
from manifind.evaluation.relevance import Hits, Relevance, classic, landmarks, same_label
from manifind.io.ground_truth import GroundTruth

_IN_GRAPH = "in the graph"  # every method may look at the queries while it is fitted


class LabelTruth(NamedTuple):
    """What shares the query's label is right. labels: (n,). window: of the bullseye score, or None."""

    labels: Ints
    window: int | None

    def scores(
        self, ids: Any, query_items: Ints | None, queries: str = _IN_GRAPH, cutoffs: tuple[int, ...] = ()
    ) -> list[Score]:
        """mAP, precision and recall at cutoffs and, in the window, the bullseye score under its three rules."""
        scores = evaluate_labels(ids, self.labels, query_items=query_items, queries=queries, cutoffs=cutoffs)
        if self.window is not None:
            scores += [
                bullseye(ids, self.labels, self.window, rule, query_items=query_items, queries=queries)
                for rule in BULLSEYE_RULES
            ]
        return scores

    def relevance(self, query_items: Ints | None, measure: str) -> tuple[Relevance, Measure]:
        """Who is right for each query, and how one of the scores above counts that."""
        measures: dict[str, Callable[[Hits], Measured]] = {"mAP": average_precision}
        if self.window is not None:
            measures |= {f"bullseye@{self.window} {rule}": bullseye_at(self.window, rule) for rule in BULLSEYE_RULES}
        return same_label(self.labels, query_items), _chosen(measures, measure)

    def as_dict(self) -> dict[str, Any]:
        return {"labels": self.labels.tolist(), "window": self.window}


class ListTruth(NamedTuple):
    """Published lists say what is right. protocol: of evaluation.lists.PROTOCOLS."""

    lists: GroundTruth
    protocol: str
    distractors: int

    def scores(
        self, ids: Any, query_items: Ints | None, queries: str = _IN_GRAPH, cutoffs: tuple[int, ...] = (10,)
    ) -> list[Score]:
        """The scores of the protocol that the lists were published for."""
        return evaluate_lists(
            ids, self.lists, queries=queries, cutoffs=cutoffs, protocol=self.protocol, distractors=self.distractors
        )

    def relevance(self, query_items: Ints | None, measure: str) -> tuple[Relevance, Measure]:
        """Who is right for each query, and how it is counted: mAP of classic lists alone."""
        relevance = (landmarks if self.protocol == "landmarks" else classic)(self.lists)
        if relevance.n_items is not None:
            relevance = relevance._replace(n_items=relevance.n_items + self.distractors)
        return relevance, _chosen({"mAP": trapezoid_average_precision}, measure)

    def as_dict(self) -> dict[str, Any]:
        lists = {name: [one.tolist() for one in lists] for name, lists in self.lists.lists.items()}
        given = {"protocol": self.protocol, "distractors": self.distractors}
        return {**self.lists._asdict(), "lists": lists, **given}


def _chosen(measures: Mapping[str, Callable[[Hits], Measured]], name: str) -> Measure:
    if name not in measures:
        raise InputError(f"measure = {name!r}; expected one of {', '.join(map(repr, measures))}")
    return Measure(name, "", measures[name])


Truth: TypeAlias = LabelTruth | ListTruth


class RetrievalTask(NamedTuple):
    """A database, what is asked of it, and what is right."""

    name: str  # for people
    descriptors: NDArray[Any]  # (n, d)
    queries: NDArray[Any] | None  # (m, d) not in the database, known to `fit`; None where they are items
    query_items: Ints | None  # positions of these; None: every item
    truth: Truth

    @property
    def n_queries(self) -> int:
        return len(self.query_rows)

    @property
    def query_rows(self) -> NDArray[Any]:
        """(m, d) the descriptors of the queries, wherever they are."""
        if self.queries is not None:
            return self.queries
        return self.descriptors if self.query_items is None else self.descriptors[self.query_items]

    def digest(self) -> str:
        """SHA-256 of all that a score depends on."""
        digest = hashlib.sha256(self._facts())
        for rows in (self.descriptors, self.queries):
            if rows is not None:
                digest.update(f"{rows.dtype.str} {rows.shape}".encode())
                digest.update(np.ascontiguousarray(rows).data)
        return digest.hexdigest()

    def write(self, folder: Path) -> None:
        (folder / "facts.json").write_bytes(self._facts())
        np.save(folder / "descriptors.npy", self.descriptors)
        if self.queries is not None:
            np.save(folder / "queries.npy", self.queries)

    def _facts(self) -> bytes:
        items = None if self.query_items is None else self.query_items.tolist()
        # The digest is of this text, and recorded results are found by it: the key keeps its name.
        return json.dumps({"asked": items, **self.truth.as_dict()}).encode()


def read_task(folder: Path) -> RetrievalTask:
    """The task that `RetrievalTask.write` put there; its name stays behind."""
    facts, queries = json.loads((folder / "facts.json").read_bytes()), folder / "queries.npy"
    query_items = None if facts["asked"] is None else _ints(facts["asked"])
    truth: Truth
    if "labels" in facts:
        truth = LabelTruth(_ints(facts["labels"]), facts["window"])
    else:
        lists = {name: [_ints(one) for one in lists] for name, lists in facts["lists"].items()}
        images, names = (None if facts[name] is None else tuple(facts[name]) for name in ("images", "queries"))
        known = GroundTruth(lists, images, names, facts["is_whole"])
        truth = ListTruth(known, facts["protocol"], facts["distractors"])
    rows = np.load(folder / "descriptors.npy")
    return RetrievalTask("", rows, np.load(queries) if queries.exists() else None, query_items, truth)


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)
