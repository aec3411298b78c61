"""`manifind search`: ranked answers from a collection."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from manifind.cli.terminal import FormerExtractor, say, show_json, show_table
from manifind.collection.collection import Collection, load
from manifind.errors import InputError
from manifind.images.files import NOT_FOR_PEOPLE, PictureFile, picture_file, shown_folders
from manifind.images.files import SUFFIXES as PICTURES
from manifind.io.vectors import SUFFIXES, read_vectors
from manifind.ranking import Ranking


class QueryResult(NamedTuple):
    """A query by name, and the picture it is, if it is one; ids and scores of the answer."""

    name: str
    file: PictureFile | Path | None
    ids: Any
    scores: Any


def search(
    collection: Annotated[Path, typer.Argument(metavar="COLLECTION", help="A collection made by `manifind index`.")],
    queries: Annotated[
        list[str],
        typer.Argument(metavar="QUERY...", help="Pictures, a file of query vectors, or items by id or name of file."),
    ],
    k: Annotated[int, typer.Option("-k", help="How many results for each query.")] = 10,
    where: Annotated[
        str | None,
        typer.Option(help="Only items whose metadata satisfies this, as in: year >= 1990 and place = 'Rome'"),
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option(help="For pictures in a collection described by a model of yours: FILE.onnx or FILE.py:NAME."),
    ] = None,
    describer: FormerExtractor = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Show the answers as a page with thumbnails, in the browser.")
    ] = False,
    page: Annotated[Path | None, typer.Option(help="Where to write that page, without opening it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ranking as JSON.")] = False,
) -> None:
    """Find the items most like each QUERY.

    A picture is described as the collection's own were. Query vectors must come from the model that described the
    collection; they need not have been in it. An id asks for the relatives of an item, which finds itself first.
    """
    opened = load(collection)
    answers = _search_all(opened, queries, k, where, extractor or describer)
    if open_ or page is not None:
        _write_page(opened, answers, page, open_)
    if as_json:
        show_json([_as_dict(opened, one) for one in answers])
    elif not (open_ or page):
        for one in answers:
            _show(opened, one)


def _search_all(
    collection: Collection, queries: list[str], k: int, where: str | None, extractor: str | None
) -> list[QueryResult]:
    """The answers in the order of the queries; pictures are described together."""
    is_picture = [_is_picture(collection, query) for query in queries]
    pictures = [Path(query) for query, is_one in zip(queries, is_picture, strict=True) if is_one]
    if extractor is not None and not pictures:
        raise InputError("--extractor is for pictures, and no query is one", "leave it out")
    answers = iter(_search_pictures(collection, pictures, k, where, extractor) if pictures else [])
    found: list[QueryResult] = []
    for query, is_one in zip(queries, is_picture, strict=True):
        found += [next(answers)] if is_one else _search_one(collection, query, k, where)
    return found


def _is_picture(collection: Collection, query: str) -> bool:
    """Whether a query is a picture file, and not the id or the path of an item, which may look the same."""
    is_file = Path(query).suffix.lower() in PICTURES and Path(query).exists()
    return is_file and not collection.version.items.exact_rows(query)


def _search_pictures(
    collection: Collection, files: list[Path], k: int, where: str | None, extractor: str | None
) -> list[QueryResult]:
    from manifind.images.extractors import (
        describe_query_images,
        extractor_of,  # imports Pillow, and torch for the network
    )

    rows = describe_query_images(files, extractor_of(collection.manifest, str(collection.path), extractor))
    ranking = collection.search(rows, k, where)
    return [QueryResult(str(file), file, *row) for file, *row in zip(files, *ranking, strict=True)]


def _search_one(collection: Collection, query: str, k: int, where: str | None) -> list[QueryResult]:
    ranking: Ranking
    if Path(query).suffix.lower() in SUFFIXES:
        vectors = read_vectors(Path(query))
        names = vectors.ids if vectors.ids is not None else range(len(vectors.rows))
        ranking = collection.search(vectors.rows, k, where)
        return [QueryResult(str(name), None, *row) for name, *row in zip(names, *ranking, strict=True)]
    id_ = _query_id(collection, query)
    ranking = collection.search_ids([id_], k, where)
    return [
        QueryResult(
            query,
            picture_file(shown_folders(collection.manifest), collection.metadata([id_])[0]),
            ranking.ids[0],
            ranking.scores[0],
        )
    ]


def _query_id(collection: Collection, text: str) -> Any:
    try:
        return collection.find_id(text)
    except InputError as error:
        if not Path(text).suffix:
            raise
        files = f"a file of vectors ends in {', '.join(SUFFIXES)}"
        raise InputError(f"{error.problem}, nor a file of that name", f"{error.hint}; {files}") from None


def _show(collection: Collection, answer: QueryResult) -> None:
    metadata = collection.metadata(answer.ids.tolist())
    places = [_moved_to(id_, fields) for id_, fields in zip(answer.ids, metadata, strict=True)]
    shown = [_shown(fields) for fields in metadata]
    columns = {
        "rank": [str(rank) for rank in range(1, len(metadata) + 1)],
        "id": [str(id_) for id_ in answer.ids],
        "path": [place or "" for place in places],
        "score": [f"{score:.4f}" for score in answer.scores],
        "metadata": [", ".join(f"{key} {value}" for key, value in fields.items()) for fields in shown],
    }
    filled = {name: texts for name, texts in columns.items() if name in ("rank", "id", "score") or any(texts)}
    rows = list(zip(*filled.values(), strict=True))
    show_table(f"query {answer.name}", list(filled), rows, numeric=("rank", "score"))


def _shown(fields: dict[str, Any]) -> dict[str, Any]:
    """What people want to see of metadata: not the path, nor what only serves to know a file again."""
    return {name: value for name, value in fields.items() if name not in ("path", *NOT_FOR_PEOPLE)}


def _as_dict(collection: Collection, answer: QueryResult) -> dict[str, Any]:
    metadata = collection.metadata(answer.ids.tolist())
    results = [
        {"id": id_, "score": score, **({"metadata": fields} if fields else {})}
        for id_, score, fields in zip(answer.ids.tolist(), answer.scores.tolist(), metadata, strict=True)
    ]
    return {"query": answer.name, "results": results}


def _moved_to(id_: Any, fields: dict[str, Any]) -> str | None:
    """Where the file of an item is now, by its metadata; None where that is what its id says already."""
    path = fields.get("path")
    return path if isinstance(path, str) and path != str(id_) else None


def _named(id_: Any, fields: dict[str, Any]) -> str:
    place = _moved_to(id_, fields)
    return str(id_) if place is None else f"{place} (id {id_})"


def _write_page(collection: Collection, found: list[QueryResult], page: Path | None, open_: bool) -> None:
    from manifind.cli.answers_page import (
        QueryAnswers,
        write_page,  # imports Pillow
    )

    answers, folders = [], shown_folders(collection.manifest)
    for one in found:
        metadata = collection.metadata(one.ids.tolist())
        files = [picture_file(folders, fields) for fields in metadata]
        names = [_named(id_, fields) for id_, fields in zip(one.ids.tolist(), metadata, strict=True)]
        rows = zip(names, one.scores.tolist(), files, strict=True)
        answers.append(QueryAnswers(one.name, one.file, list(rows)))
    target = page or Path(tempfile.mkdtemp(prefix="manifind-")) / "answers.html"
    write_page(target, f"{collection.path.name}", answers)
    say(str(target))
    if open_ and page is None:
        typer.launch(target.absolute().as_uri())
