"""What reports are made of: escaped HTML, charts in SVG, thumbnails, figures of matplotlib, tables in markdown."""

from __future__ import annotations

import base64
import io
import math
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import TSNE

from manifind.arrays import Doubles, Floats, Ints, Mask
from manifind.errors import needing
from manifind.files import write_file
from manifind.progress import Listener, Progress
from manifind.text import count

INK = "#1f2328"
"""The colour of text in figures."""


class Html(str):
    """Text that is markup already; any other string is escaped where it meets markup."""


class _Escaping(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return value if isinstance(value, Html) else escape(format(value, format_spec))


def fill(name: str, /, *values: object, **named: object) -> Html:
    """The markup of a template with values in its braces, escaped unless they are markup themselves.

    name: "demo/hit" is what stands below the comment `hit` in templates/demo.html.
    """
    return Html(_Escaping().vformat(_template(name), values, named))


@cache
def _template(name: str) -> str:
    """A line break beside an element is nothing, any other is a space."""
    file, _, wanted = name.partition("/")
    _, *parts = re.split(r"<!-- (\w+) -->\n", _text_of(f"templates/{file}.html"))
    template = parts[parts.index(wanted) + 1].strip()
    return re.sub(r"(?<=>)\n\s*|\n\s*(?=<)", "", template).replace("\n", " ")


def _text_of(file: str) -> str:
    return files("manifind.bench").joinpath(file).read_text("utf-8")


def tag(name: str, /, *content: str, **attributes: object) -> Html:
    """An element around its content. class_ stands for class, and other underscores for hyphens."""
    return Html(f"{void(name, **attributes)}{join(*content)}</{name}>")


def void(name: str, /, **attributes: object) -> Html:
    """An element that has no content, such as an image."""
    given = (f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for name, value in attributes.items())
    return Html(f"<{name}{''.join(given)}>")


def join(*content: str) -> Html:
    """Pieces one after the other, those that are not markup escaped."""
    return Html("".join(piece if isinstance(piece, Html) else escape(piece) for piece in content))


def document(title: str, styles: Iterable[str], main: Html, images: str = "") -> str:
    """A whole page that loads nothing and runs nothing. styles: files of this package. images: where they come from."""
    policy = f"default-src 'none'; {images}style-src 'unsafe-inline'"  # no request, whatever happens
    style = Html("".join(map(_text_of, styles)))
    page = fill("charts/document", policy=policy, title=title, style=style, main=main)
    return f"<!doctype html>\n{page}\n"


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib Figure, in inches; nothing of pyplot, so no state and no window."""
    with needing("plot", "drawing a figure needs matplotlib, which is not installed"):
        from matplotlib.figure import Figure
    return Figure(figsize=(width, height))


def write_figure(figure: Any, path: Path) -> None:
    write_file(path, as_png(figure, 150))


def as_png(figure: Any, dots_per_inch: int) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dots_per_inch)
    return buffer.getvalue()


_GREY_8_BIT = (8, 0, 0, 0, 0)  # bit depth, colour type, compression, filter, interlace
_DARKEST = 16  # the darkest value of a scan


def data_address(scan: NDArray[np.uint8]) -> str:
    """The scan, 0 paper to 16 ink, as an address that holds the whole image, dark on white."""
    grey = (255 - scan.astype(np.int64) * 255 // _DARKEST).astype(np.uint8)
    return "data:image/png;base64," + base64.b64encode(png(grey)).decode("ascii")


def png(grey: NDArray[np.uint8]) -> bytes:
    """The bytes of a PNG file. grey: (height, width), 0 black to 255 white."""
    height, width = grey.shape
    lines = b"".join(b"\0" + line.tobytes() for line in grey)  # 0: each line as it is, without prediction
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">II5B", width, height, *_GREY_8_BIT)),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


_LEFT, _TOP, _WIDE, _HIGH = 52, 12, 240, 132  # the plotting area of a curve, inside 300 x 180
_MAP, _MARGIN = 400, 14  # side of a map


def smooth(values: Floats, window: int) -> Doubles:
    """Centred moving mean of so many values; at the ends, of as many as there are."""
    ones = np.ones(min(window, len(values)))
    return np.asarray(np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same"))


def curve(name: str, values: Floats) -> Html:
    """A loss over the steps: every step faint, the smoothed line over it."""
    smoothed, steps = smooth(values, max(1, len(values) // 10)), count(len(values), "step")
    low, high = float(values.min()), float(values.max())
    x = _LEFT + _WIDE * np.linspace(0, 1, len(values))

    def line(y: Floats | Doubles) -> str:
        height = _TOP + _HIGH * (high - y) / ((high - low) or 1.0)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, height, strict=True))

    name = f"{name} over {steps}: smoothed, from {smoothed[0]:.3g} to {smoothed[-1]:.3g}"
    return fill("charts/curve", name=name, raw=line(values), smooth=line(smoothed), high=high, low=low, steps=steps)


def labelled_map(name: str, places: Floats, labels: Ints) -> Html:
    """Points in the plane, each label in its colour and written where the middle of its points lies."""
    low, high = places.min(axis=0), places.max(axis=0)
    scale = (_MAP - 2 * _MARGIN) / float((high - low).max())
    at = _MAP / 2 + (places - (low + high) / 2) * scale * (1, -1)
    points = {value: at[labels == value] for value in np.unique(labels)}
    dots = (tag("path", d=_dots(own), class_=f"dots c{value}") for value, own in points.items())
    names = (_middle(own, str(value)) for value, own in points.items())
    return tag("svg", *dots, *names, viewBox=f"0 0 {_MAP} {_MAP}", role="img", aria_label=name)


def bars(right: Mask) -> Html:
    """One bar for each result, best first: tall where it is right, short where it is wrong."""
    ranks = np.arange(len(right))
    tall = "".join(f"M{i}.1 0v8h.8v-8z" for i in ranks[right])
    short = "".join(f"M{i}.1 5v3h.8v-3z" for i in ranks[~right])
    return fill("charts/bars", n=len(right), n_right=np.count_nonzero(right), tall=tall, short=short)


def _dots(at: Doubles) -> str:
    return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in at)  # strokes without length, drawn as round dots


def _middle(at: Doubles, text: str) -> Html:
    """The text on the point nearest to the median: a median may lie where none of the points is."""
    x, y = at[np.linalg.norm(at - np.median(at, axis=0), axis=1).argmin()]
    return tag("text", text, x=f"{x:.1f}", y=f"{y:.1f}", dy="0.35em", class_="middle")


_PERPLEXITY = 30.0  # neighbours that count; needs to be below a third of the items


def before_and_after(original: Floats, learned: Floats, seed: int, listener: Listener) -> tuple[Floats, Floats]:
    """t-SNE of the same items, (n, 2) each, by what they were and by what was learned; the same seed, the same maps."""
    maps: list[Floats] = []
    listener(Progress("maps", 0, 2))
    for vectors in (original, learned):
        tsne = TSNE(init="pca", perplexity=min(_PERPLEXITY, (len(vectors) - 1) / 3), random_state=seed)
        maps.append(np.asarray(tsne.fit_transform(vectors), dtype=np.float32))
        listener(Progress("maps", len(maps), 2))
    return maps[0], maps[1]


_LEAST = 1e-4  # no clock and no memory is known more finely


class Scale(NamedTuple):
    """A logarithmic scale from 10 ** first to 10 ** last."""

    first: int
    last: int

    @classmethod
    def around(cls, values: Iterable[float]) -> Scale:
        """The powers of ten that hold all values between them."""
        logarithms = [math.log10(max(value, _LEAST)) for value in values] or [0.0]
        first, last = math.floor(min(logarithms)), math.ceil(max(logarithms))
        return cls(first, max(last, first + 1))

    def share(self, value: float) -> float:
        """Where the value lies, from 0 to 100."""
        return 100 * (math.log10(max(value, _LEAST)) - self.first) / (self.last - self.first)

    def lines(self) -> list[float]:
        """Where the powers of ten between the ends lie."""
        return [100 * step / (self.last - self.first) for step in range(1, self.last - self.first)]

    def __str__(self) -> str:
        return f"{10.0**self.first:,g} to {10.0**self.last:,g}"


def cost_text(value: float) -> str:
    """Three digits, and no more of what is small than can be measured."""
    if value < 0.001:
        return "< 0.001"
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def score_bar(name: str, value: float, low: float, high: float) -> Html:
    """A bar from 0 to 100 with its interval across the end."""
    whisker = tag("path", d=f"M{low:.2f} 5H{high:.2f}M{low:.2f} 0v10M{high:.2f} 0v10", class_="whisker")
    return _bar(f"{name}: {value:.2f}, {low:.2f} to {high:.2f}", value, [25, 50, 75], whisker)


def cost_bar(name: str, value: float, unit: str, scale: Scale) -> Html:
    """A bar that grows with the logarithm of a cost; a cost at the lower end of the scale has a sliver."""
    return _bar(f"{name} {cost_text(value)} {unit}", max(scale.share(value), 1.0), scale.lines())


def _bar(name: str, length: float, lines: Iterable[float], over: str = "") -> Html:
    return fill("charts/bar", name=name, grid="".join(f"M{at:.2f} 0v10" for at in lines), length=length, over=over)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], n_texts: int = 1) -> str:
    """A table whose first columns are texts and whose others are numbers, aligned on the right.

    head: the name of each column. rows: as many cells each. n_texts: how many columns are texts.
    """
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    rule = "|" + "---|" * n_texts + "--:|" * (len(head) - n_texts)
    return "\n".join([lines[0], rule, *lines[1:]])


def put_between(page: str, name: str, text: str) -> str:
    """The page with the text between the marks of that name, which must be there once.

    page: its whole text. What was between the marks before is gone; ValueError where they are missing.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    head, rest = page.split(begin)
    _, tail = rest.split(end)
    return f"{head}{begin}\n{text}\n{end}{tail}"
