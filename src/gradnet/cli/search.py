"""`gradnet search`: ranked answers from a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gradnet.cli.terminal import show_json, show_table
from gradnet.collection.collection import Collection, load
from gradnet.collection.texts import as_id
from gradnet.errors import InputError
from gradnet.formats import SUFFIXES, read_vectors
from gradnet.ranking import Ranking


def search(
    collection: Annotated[
        Path, typer.Argument(metavar="COLLECTION", help="A collection made by `gradnet index`.")
    ],
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A file of query vectors, or the id of an item.")
    ],
    k: Annotated[int, typer.Option("-k", help="How many results for each query.")] = 10,
    where: Annotated[
        str | None,
        typer.Option(help="Only items whose metadata satisfies this, as in: year >= 1990 and place = 'Rome'"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ranking as JSON.")] = False,
) -> None:
    """Find the items most like QUERY.

    Query vectors must come from the model that described the collection; they need not have been in
    it. An id asks for the relatives of an item, which finds itself first.
    """
    opened = load(collection)
    names, ranking = _ask(opened, query, min(k, max(len(opened), 1)), where)
    if as_json:
        show_json([_as_dict(opened, *row) for row in zip(names, *ranking, strict=True)])
        return
    for name, ids, scores in zip(names, *ranking, strict=True):
        _show(opened, name, ids, scores)


def _show(collection: Collection, name: str, ids: Any, scores: Any) -> None:
    said = collection.metadata(ids.tolist())
    columns = ("rank", "id", "score", *(["metadata"] if any(said) else []))
    rows = [
        (str(rank), str(id_), f"{score:.4f}", ", ".join(f"{key} {value}" for key, value in fields.items()))
        for rank, (id_, score, fields) in enumerate(zip(ids, scores, said, strict=True), 1)
    ]
    shown = [row[: len(columns)] for row in rows]
    show_table(f"query {name}", columns, shown, numeric=("rank", "score"))


def _ask(collection: Collection, query: str, k: int, where: str | None) -> tuple[list[str], Ranking]:
    file = Path(query)
    if file.suffix.lower() in SUFFIXES:
        vectors = read_vectors(file)
        names = vectors.ids if vectors.ids is not None else range(len(vectors.rows))
        return [str(name) for name in names], collection.search(vectors.rows, k, where)
    return [query], collection.search_ids([_query_id(collection, query)], k, where)


def _query_id(collection: Collection, text: str) -> Any:
    try:
        return as_id(collection, text)
    except InputError as error:
        raise InputError(
            error.problem.replace("is no id", "is neither a file of vectors nor an id"),
            f"give a number, or a file that ends in {', '.join(SUFFIXES)}",
        ) from None


def _as_dict(collection: Collection, name: str, ids: Any, scores: Any) -> dict[str, Any]:
    results = [
        {"id": id_, "score": score, **({"metadata": fields} if fields else {})}
        for id_, score, fields in zip(
            ids.tolist(), scores.tolist(), collection.metadata(ids.tolist()), strict=True
        )
    ]
    return {"query": name, "results": results}
