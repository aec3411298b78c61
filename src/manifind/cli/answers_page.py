"""`manifind search --open`: the answers as a page with thumbnails, whole in one file."""

import base64
import io
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TypeAlias

from PIL import Image

from manifind.bench.html import Html, join, tag, void
from manifind.files import write_file
from manifind.images.decode import Decoders, Picture
from manifind.images.files import PictureFile
from manifind.text import visible

_SIDE = 200  # of a thumbnail

File: TypeAlias = PictureFile | Path | None
PageResult: TypeAlias = tuple[str, float, File]
PageAnswer: TypeAlias = tuple[str, File, Sequence[PageResult]]
"""A query by name, its own file where it has one, and for each result its name, score and file."""


def write_page(target: Path, title: str, answers: Sequence[PageAnswer]) -> None:
    """The page at `target`; a picture whose file is gone is a box that says so."""
    files = {file for _, query, results in answers for file in (query, *(row[2] for row in results)) if file}
    shown = _thumbnails(list(files))
    style = Html(resources.files("manifind.cli").joinpath("answers_page.css").read_text("utf-8"))
    title = visible(title)
    body = join(tag("h1", title), *(_section(*answer, shown) for answer in answers))
    narrow = void("meta", name="viewport", content="width=device-width, initial-scale=1")
    head = join(void("meta", charset="utf-8"), narrow, tag("title", title), tag("style", style))
    page = f"<!doctype html>{tag('html', tag('head', head), tag('body', tag('main', body)), lang='en')}"
    write_file(target, page.encode())


def _section(query: str, file: File, results: Sequence[PageResult], shown: dict[File, str]) -> Html:
    query, results = visible(query), [(visible(name), score, file) for name, score, file in results]
    box = tag("div", _picture(file, query, shown), tag("strong", query), class_="query")
    items = [
        tag("li", _picture(file, name, shown), tag("div", name), tag("small", f"{rank}. {score:.4f}"))
        for rank, (name, score, file) in enumerate(results, 1)
    ]
    return tag("section", tag("h2", f"Like {query}"), box, tag("ol", *items))


def _picture(file: File, name: str, shown: dict[File, str]) -> Html:
    if file not in shown:
        return tag("div", "no picture", class_="none")
    return void("img", src=shown[file], alt=name, loading="lazy")


def _thumbnails(files: Sequence[PictureFile | Path]) -> dict[File, str]:
    """Addresses that hold the pictures themselves; of items, only those that are as they were indexed."""
    with Decoders(2, _SIDE) as decoders:
        found = list(decoders.decode([file if isinstance(file, Path) else file.file for file in files]))
    return {
        file: _address(picture)
        for file, picture in zip(files, found, strict=True)
        if isinstance(picture, Picture) and (isinstance(file, Path) or file.sha256 == picture.sha256)
    }


def _address(picture: Picture) -> str:
    stream = io.BytesIO()
    Image.fromarray(picture.pixels).save(stream, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
