"""What answering needs besides vectors, as rows of a table: preprocessing, settings of queries, what was published.

Row 0 is written last and taken away first: where it is missing, nothing has been published to its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gradnet.collection.opening import check_settings
from gradnet.collection.version import Version
from gradnet.descriptors.preprocess import Preprocessor
from gradnet.errors import StoreError
from gradnet.search.qfe import QuerySettings
from gradnet.stores.store import Store

_FORMAT = 1
_KINDS = ("text", "number", "truth", "list")
_MOST_LETTERS = (
    10_000  # of the fields: Milvus keeps a row of 65,536 bytes, and the manifest in it twice and escaped
)


@dataclass(frozen=True)
class Model:
    """Of one published version. fit, commit: what names it. n_items: that can be found. n_nodes: that place queries.

    kinds: the metadata fields that items have, each with the kinds of its values, "text", "number", "truth" or "list";
    None where that is not known, since an earlier version published it or there are too many fields to be kept.
    """

    preprocessor: Preprocessor
    queries: QuerySettings
    fit: str
    commit: str
    n_items: int
    n_nodes: int
    kinds: Mapping[str, frozenset[str]] | None = None


def table_name(name: str, role: str) -> str:
    """Of one of the tables of a published collection."""
    return f"{name}_{role}"


def model_of(version: Version) -> Model:
    """What the version of a collection would be answered with."""
    learned, manifest = version.learned, version.manifest
    return Model(
        learned.preprocessor,
        learned.queries,
        str(manifest["fit"]),
        str(manifest["commit"]),
        len(version),
        len(learned.nodes),
        {name: frozenset(found) for name, found in version.holdings.kinds.items()},
    )


def write_model(store: Store, model: Model) -> None:
    """Say that all is there; the whitening first, so that a row 0 has all that it speaks of."""
    mean, whitening = model.preprocessor.mean, model.preprocessor.whitening
    n_rows = 0 if whitening is None else len(whitening)
    gone = [id_ for id_ in store.ids() if id_ > n_rows]
    if gone:
        store.delete(gone)
    if whitening is not None:
        store.upsert(range(1, n_rows + 1), whitening)
    told = {
        "format": _FORMAT,
        "preprocess": {
            "kind": model.preprocessor.kind,
            "scale": model.preprocessor.scale,
            "mean": mean is not None,
        },
        "queries": asdict(model.queries),
        "fit": model.fit,
        "commit": model.commit,
        "items": model.n_items,
        "nodes": model.n_nodes,
    } | _told_kinds(model.kinds)
    row = np.zeros((1, store.shape.width)) if mean is None else mean[None]
    store.upsert([0], row, [{"manifest": json.dumps(told)}])


def _told_kinds(kinds: Mapping[str, frozenset[str]] | None) -> dict[str, Any]:
    told = {"fields": {name: sorted(found) for name, found in sorted((kinds or {}).items())}}
    return told if kinds is not None and len(json.dumps(told)) <= _MOST_LETTERS else {}


def _read_kinds(told: Any) -> Mapping[str, frozenset[str]] | None:
    if told is None:
        return None
    if not isinstance(told, dict) or not all(isinstance(found, list) for found in told.values()):
        raise ValueError("the fields of the metadata are no table of lists")
    kinds = {name: frozenset(found) for name, found in told.items()}
    if not all(found <= set(_KINDS) for found in kinds.values()):
        raise ValueError("a field of the metadata has an unknown kind")
    return kinds


def forget_model(store: Store) -> None:
    """Say that what is there is not to be answered from."""
    store.delete([0])


def read_model(store: Store, where: str) -> Model | None:
    """What was published; None where nothing was, to its end. where: named in errors."""
    ids = store.ids()
    if 0 not in ids:
        return None
    rows = store.rows([0])
    try:
        told = json.loads(rows.metadata[0]["manifest"])
        if told["format"] != _FORMAT:
            raise StoreError(
                f"{where} was published in format {told['format']}, and this version of gradnet reads {_FORMAT}",
                "publish it again with this version, or update gradnet",
            )
        return _model(told, rows.vectors[0], store, sorted(ids)[1:])
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{where} is damaged: {repr(error)[:200]}", "publish it again") from error


def _model(told: dict[str, Any], first: Any, store: Store, further: list[Any]) -> Model:
    preprocess = told["preprocess"]
    kind, d = preprocess["kind"], store.shape.width
    if kind == "whiten" and further != list(range(1, d + 1)):
        raise ValueError("the whitening is not whole")
    whitening = store.rows(further).vectors if kind == "whiten" else None
    preprocessor = Preprocessor(kind, first if preprocess["mean"] else None, preprocess["scale"], whitening)
    queries = QuerySettings(**told["queries"])
    check_settings(preprocessor, queries)
    if (preprocessor.mean is None) == (kind in ("center", "whiten")):
        raise ValueError("the mean does not fit the preprocessing")
    return Model(
        preprocessor,
        queries,
        str(told["fit"]),
        str(told["commit"]),
        int(told["items"]),
        int(told["nodes"]),
        _read_kinds(told.get("fields")),
    )
