"""`manifind search`: ranked answers from a collection."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from manifind.cli.options import CollectionPath, FormerExtractor, argument, option
from manifind.cli.terminal import ResultLine, note, say, show_json, show_paths, show_ranking
from manifind.collection.collection import Collection, load
from manifind.collection.searchable import QueryPart
from manifind.errors import InputError
from manifind.images.files import NOT_FOR_PEOPLE, PictureFile, picture_file, shown_folders
from manifind.images.files import SUFFIXES as PICTURES
from manifind.io.vectors import SUFFIXES, read_vectors
from manifind.ranking import Ranking
from manifind.search.cutoff import RatedRanking
from manifind.text import count

if TYPE_CHECKING:
    from manifind.images.decode import Crop

_TEXT = "What to look for, in words; several are several queries."
_TOGETHER = "Take all queries and words together as one query."
_CROP = "The part of each picture that is meant, X,Y,W,H: pixels, or shares of it where none is above 1."
_WHERE = "Only items whose metadata satisfies this, as in: year >= 1990 and place = 'Rome'"
_IMAGES = "A folder whose pictures may be shown; else the one that you have indexed."
_CUT = "Leave out what probably does not belong: few results for a query with few relatives, none for a stranger."
_PATHS = "Print nothing but the path of each result's file, one a line."
_EXTRACTOR = (
    "For pictures and words, once, where the collection was described by a model that is a file or a folder of yours."
)


class QueryResult(NamedTuple):
    """A query by name, and the picture it is, if it is one; of each item found: id, score and metadata.

    certainty: how sure it is that each belongs; None where that is not known.
    """

    name: str
    file: PictureFile | Path | None
    items: list[tuple[Any, float, dict[str, Any]]]
    certainty: list[float] | None = None


@dataclass(frozen=True)
class _Options:
    """What holds for all queries of a call."""

    k: int
    where: str | None
    extractor: str | None
    cut: bool
    crop: Crop | None
    folders: Sequence[Path]


def search(
    collection: CollectionPath,
    queries: Annotated[
        list[str] | None, argument("QUERY...", "Pictures, a file of query vectors, or items by id or name of file.")
    ] = None,
    text: Annotated[list[str] | None, option(_TEXT)] = None,
    k: Annotated[int, option("How many results for each query.", "-k")] = 10,
    where: Annotated[str | None, option(_WHERE)] = None,
    cut: Annotated[bool, option(_CUT, "--cut")] = False,
    together: Annotated[bool, option(_TOGETHER, "--together")] = False,
    minus: Annotated[list[str] | None, option("Less like this QUERY; all are then one query.")] = None,
    minus_text: Annotated[list[str] | None, option("Less like these words; all are then one query.")] = None,
    crop: Annotated[str | None, option(_CROP)] = None,
    extractor: Annotated[str | None, option(_EXTRACTOR)] = None,
    describer: FormerExtractor = None,
    open_: Annotated[bool, option("Show the answers as a page with thumbnails, in the browser.", "--open")] = False,
    page: Annotated[Path | None, option("Where to write that page, without opening it.")] = None,
    images: Annotated[list[Path] | None, option(_IMAGES)] = None,
    paths: Annotated[bool, option(_PATHS, "--paths")] = False,
    null: Annotated[bool, option("With --paths: end each with NUL, as `xargs -0` reads them.", "--null", "-0")] = False,
    as_json: Annotated[bool, option("Print the ranking as JSON.", "--json")] = False,
) -> None:
    """Find the items most like each QUERY, or what each --text describes.

    A picture is described as the collection's own were. Query vectors must come from the model that described the
    collection; they need not have been in it. An id asks for the relatives of an item, which finds itself first.
    Words are understood where the collection was described by a model with pictures and words in one space.

    With --together, or with --minus, everything is one query: more like these, less like those, in any order. A weight
    stands in front, as in 0.5*boat.jpg.
    """
    if not (queries or text or minus or minus_text):
        raise typer.BadParameter("there is nothing to search with: give a QUERY, or words with --text")
    if paths and as_json:
        raise InputError("--paths and --json both say what is printed", "leave one of them out")
    if null and not paths:
        raise InputError("--null is for paths, and --paths is not given", "add it, or leave --null out")
    opened = load(collection)
    folders = shown_folders(opened.manifest, images or ())
    if paths:
        _check_folders(opened, folders)
    if crop is not None and not queries and not minus:
        raise InputError("--crop is for pictures and items, and no query is one", "leave it out")
    options = _Options(k, where, extractor or describer, cut, None if crop is None else _parse_crop(crop), folders)
    if together or minus or minus_text:
        plus = [(one, False) for one in queries or ()] + [(one, True) for one in text or ()]
        less = [(one, False) for one in minus or ()] + [(one, True) for one in minus_text or ()]
        answers = [_search_together(opened, plus, less, options)]
    else:
        answers = _search_all(opened, queries or [], text or [], options)
    if open_ or page is not None:
        (note if as_json or paths else say)(str(written := _write_page(opened, answers, page, folders)))
        if open_ and page is None:
            typer.launch(written.absolute().as_uri())
    if paths:
        show_paths(_files(opened, answers, folders, null), null)
    elif as_json:
        show_json([{"query": one.name, "results": _as_dicts(one)} for one in answers])
    elif not (open_ or page):
        for one in answers:
            _show(one, cut)


def _search_all(
    collection: Collection, queries: Sequence[str], texts: Sequence[str], options: _Options
) -> list[QueryResult]:
    """The answers in the order of the queries, those to words behind; pictures are described together."""
    k, where, extractor = options.k, options.where, options.extractor
    is_picture = [_is_picture(collection, query) for query in queries]
    pictures = [Path(query) for query, is_one in zip(queries, is_picture, strict=True) if is_one]
    if extractor is not None and not pictures and not texts and options.crop is None:
        raise InputError("--extractor is for pictures and words, and no query is one", "leave it out")
    answers: Iterator[QueryResult] = iter(())
    if pictures:
        ranking = collection.search_pictures(
            pictures, k, where, cut=options.cut, crop=options.crop, extractor=extractor
        )
        answers = iter(_results(collection, [(str(file), file) for file in pictures], ranking))
    found: list[QueryResult] = []
    for query, is_one in zip(queries, is_picture, strict=True):
        found += [next(answers)] if is_one else _search_one(collection, query, options)
    if texts:
        ranking = collection.search_text(texts, k, where, cut=options.cut, extractor=extractor)
        found += _results(collection, [(one, None) for one in texts], ranking)
    return found


_WEIGHTED = re.compile(r"([0-9]+(?:\.[0-9]+)?)\*(.+)", re.DOTALL)


def _search_together(
    collection: Collection, plus: Sequence[tuple[str, bool]], less: Sequence[tuple[str, bool]], options: _Options
) -> QueryResult:
    """One answer to all of them. plus, less: each with whether it is words."""
    parts, names = [], []
    for sign, given in ((1, plus), (-1, less)):
        for text, is_words in given:
            match = None if collection.version.items.exact_rows(text) else _WEIGHTED.fullmatch(text)
            weight, query = (float(match[1]), match[2]) if match else (1.0, text)
            if not weight:
                raise InputError(f"the weight of {text!r} is 0", "leave it out, or give it another weight")
            parts += _parts(collection, query, is_words, sign * weight, options)
            names.append(("+ " if sign > 0 else "- ") + (f"{weight:g}*" if match else "") + query)
    ranking = collection.search_combined(parts, options.k, options.where, cut=options.cut, extractor=options.extractor)
    (answer,) = _results(collection, [(" ".join(names).removeprefix("+ "), None)], ranking)
    return answer


def _parts(collection: Collection, query: str, is_words: bool, weight: float, options: _Options) -> list[QueryPart]:
    """A query as a part of one; a file of vectors is one for each."""
    if is_words:
        return [QueryPart(text=query, weight=weight)]
    if _is_picture(collection, query):
        return [QueryPart(picture=query, crop=options.crop, weight=weight)]
    if Path(query).suffix.lower() in SUFFIXES:
        return [QueryPart(vector=row, weight=weight) for row in read_vectors(Path(query)).rows]
    return [QueryPart(id=_query_id(collection, query), crop=options.crop, weight=weight)]


def _parse_crop(text: str) -> Crop:
    from manifind.images.decode import check_crop  # Pillow

    return check_crop(text.split(","))


def _is_picture(collection: Collection, query: str) -> bool:
    """Whether a query is a picture file, and not the id or the path of an item, which may look the same."""
    is_file = Path(query).suffix.lower() in PICTURES and Path(query).exists()
    return is_file and not collection.version.items.exact_rows(query)


def _search_one(collection: Collection, query: str, options: _Options) -> list[QueryResult]:
    k, where = options.k, options.where
    if Path(query).suffix.lower() in SUFFIXES:
        vectors = read_vectors(Path(query))
        names = vectors.ids if vectors.ids is not None else range(len(vectors.rows))
        ranking = collection.search(vectors.rows, k, where, cut=options.cut)
        return _results(collection, [(str(name), None) for name in names], ranking)
    id_ = _query_id(collection, query)
    part = QueryPart(id=id_, crop=options.crop)
    ranking = collection.search_combined([part], k, where, cut=options.cut, extractor=options.extractor)
    file = picture_file(options.folders, collection.metadata([id_])[0])
    return _results(collection, [(query, file)], ranking)


def _results(
    collection: Collection, queries: Sequence[tuple[str, PictureFile | Path | None]], ranking: Ranking
) -> list[QueryResult]:
    found = []
    for row, query in enumerate(queries):
        length, certainty = ranking.ids.shape[1], None
        if isinstance(ranking, RatedRanking):
            length = length if ranking.lengths is None else int(ranking.lengths[row])
            certainty = ranking.certainty[row, :length].tolist()
        ids, scores = ranking.ids[row, :length].tolist(), ranking.scores[row, :length].tolist()
        items = list(zip(ids, scores, collection.metadata(ids), strict=True))
        found.append(QueryResult(*query, items, certainty))
    return found


def _query_id(collection: Collection, text: str) -> Any:
    try:
        return collection.find_id(text)
    except InputError as error:
        if not Path(text).suffix:
            raise
        files = f"a file of vectors ends in {', '.join(SUFFIXES)}"
        raise InputError(f"{error.problem}, nor a file of that name", f"{error.hint}; {files}") from None


def _show(answer: QueryResult, cut: bool) -> None:
    if not answer.items:
        say(
            f"query {answer.name}: nothing is {'really alike; without --cut the nearest are shown' if cut else 'found'}"
        )
        return
    shown = [
        ResultLine(str(id_), _moved_to(id_, fields) or "", f"{score:.4f}", _in_words(fields))
        for id_, score, fields in answer.items
    ]
    show_ranking(f"query {answer.name}", shown)


def _in_words(fields: dict[str, Any]) -> str:
    hidden = ("path", *NOT_FOR_PEOPLE)  # people need not see what only serves to know a file again
    lists = {key: f"[{', '.join(map(str, value))}]" for key, value in fields.items() if isinstance(value, list)}
    return ", ".join(f"{key} {value}" for key, value in {**fields, **lists}.items() if key not in hidden)


def _check_folders(collection: Collection, folders: Sequence[Path]) -> None:
    if not collection.is_of_pictures:
        raise InputError(
            f"{collection.path} was made of vectors, so its items have no files", "--json prints their ids"
        )
    if not folders:
        raise InputError(
            f"the folder of the pictures of {collection.path} is not known, since you have not indexed it here",
            "name it with --images FOLDER",
        )
    for folder in folders:
        if not folder.is_dir():
            problem = f"{folder} is gone, from which {collection.path} was indexed"
            raise InputError(problem, "bring it back, or name the folder with --images FOLDER")


def _files(collection: Collection, answers: Sequence[QueryResult], folders: Sequence[Path], null: bool) -> list[Path]:
    """The files of all results, in their order; those that are no longer there are noted and left out."""
    items = [(id_, picture_file(folders, fields)) for one in answers for id_, _, fields in one.items]
    files, gone = [found.file for _, found in items if found], [id_ for id_, found in items if found is None]
    if gone:
        problem = f"{count(len(gone), 'result')} without a file in {', '.join(map(str, folders))}, such as {gone[0]!r}"
        hint = f"if files were renamed, `manifind index FOLDER {collection.path}` finds them again"
        if not files:
            raise InputError(problem, hint)
        note(f"note: {problem}; {hint}")
    if not null and (broken := next((file for file in files if "\n" in str(file)), None)):
        problem = f"there is a line break in the path {str(broken)!r}"
        raise InputError(problem, "end each path with NUL: --paths --null")
    return files


def _as_dicts(answer: QueryResult) -> list[dict[str, Any]]:
    """The results as JSON has them."""
    rated: Sequence[float | None] = answer.certainty or [None] * len(answer.items)
    return [
        {"id": id_, "score": score}
        | ({} if certainty is None else {"certainty": certainty})
        | ({"metadata": fields} if fields else {})
        for (id_, score, fields), certainty in zip(answer.items, rated, strict=True)
    ]


def _moved_to(id_: Any, fields: dict[str, Any]) -> str | None:
    """Where the file of an item is now, by its metadata; None where that is what its id says already."""
    path = fields.get("path")
    return path if isinstance(path, str) and path != str(id_) else None


def _write_page(collection: Collection, found: list[QueryResult], page: Path | None, folders: Sequence[Path]) -> Path:
    from manifind.cli.answers_page import write_page  # imports Pillow

    def shown(id_: Any, score: float, fields: dict[str, Any]) -> tuple[str, float, PictureFile | None]:
        place = _moved_to(id_, fields)
        return str(id_) if place is None else f"{place} (id {id_})", score, picture_file(folders, fields)

    target = page or Path(tempfile.mkdtemp(prefix="manifind-")) / "answers.html"
    answers = [(one.name, one.file, [shown(*item) for item in one.items]) for one in found]
    write_page(target, collection.path.name, answers)
    return target
