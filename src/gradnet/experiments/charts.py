"""The report's drawings, as SVG that takes its colours from the page: curves, maps and bars."""

from __future__ import annotations

import numpy as np

from gradnet.arrays import Doubles, Floats, Ints, Mask
from gradnet.experiments.markup import Html, join, tag
from gradnet.wording import count

_LEFT, _TOP, _WIDE, _HIGH = 52, 12, 240, 132  # the plotting area of a curve, inside 300 x 180
_MAP = 400  # side of a map
_MARGIN = 14


def smooth(values: Floats, window: int) -> Doubles:
    """Centred moving mean of so many values; at the ends, of as many as there are."""
    ones = np.ones(min(window, len(values)))
    return np.asarray(np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same"))


def curve(name: str, values: Floats) -> Html:
    """A loss over the steps: every step faint, the smoothed line over it."""
    smoothed = smooth(values, max(1, len(values) // 10))
    low, high = float(values.min()), float(values.max())
    x = _LEFT + _WIDE * np.linspace(0, 1, len(values))

    def line(y: Floats | Doubles, kind: str) -> Html:
        height = _TOP + _HIGH * (high - y) / ((high - low) or 1.0)
        return tag(
            "polyline",
            points=" ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, height, strict=True)),
            class_=kind,
        )

    return tag(
        "svg",
        tag("path", d=f"M{_LEFT} {_TOP}v{_HIGH}h{_WIDE}", class_="axis"),
        line(values, "raw"),
        line(smoothed, "smooth"),
        _label(_LEFT - 6, _TOP + 8, f"{high:.3g}", "end"),
        _label(_LEFT - 6, _TOP + _HIGH, f"{low:.3g}", "end"),
        _label(_LEFT, _TOP + _HIGH + 18, "1", "start"),
        _label(_LEFT + _WIDE, _TOP + _HIGH + 18, count(len(values), "step"), "end"),
        viewBox="0 0 300 180",
        role="img",
        aria_label=f"{name} over {count(len(values), 'step')}: smoothed, from {smoothed[0]:.3g} to {smoothed[-1]:.3g}",
    )


def labelled_map(name: str, places: Floats, labels: Ints) -> Html:
    """Points in the plane, each label in its colour and written where the middle of its points lies."""
    low, high = places.min(axis=0), places.max(axis=0)
    scale = (_MAP - 2 * _MARGIN) / float((high - low).max())
    at = _MAP / 2 + (places - (low + high) / 2) * scale * (1, -1)
    values = np.unique(labels)
    return tag(
        "svg",
        *(tag("path", d=_dots(at[labels == v]), class_=f"dots c{v}") for v in values),
        *(_middle(at[labels == v], str(v)) for v in values),
        viewBox=f"0 0 {_MAP} {_MAP}",
        role="img",
        aria_label=name,
    )


def bars(right: Mask) -> Html:
    """One bar for each result, best first: tall where it is right, short where it is wrong."""
    ranks = np.arange(len(right))
    tall = "".join(f"M{i}.1 0v8h.8v-8z" for i in ranks[right])
    short = "".join(f"M{i}.1 5v3h.8v-3z" for i in ranks[~right])
    return tag(
        "svg",
        join(tag("path", d=tall, class_="right"), tag("path", d=short, class_="wrong")),
        viewBox=f"0 0 {len(right)} 8",
        preserveAspectRatio="none",
        class_="bars",
        role="img",
        aria_label=f"{np.count_nonzero(right)} of the first {len(right)} results are right",
    )


def _dots(at: Doubles) -> str:
    return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in at)  # strokes without length, drawn as round dots


def _middle(at: Doubles, text: str) -> Html:
    """The text on the point nearest to the median: a median may lie where none of the points is."""
    x, y = at[np.linalg.norm(at - np.median(at, axis=0), axis=1).argmin()]
    return tag("text", text, x=f"{x:.1f}", y=f"{y:.1f}", dy="0.35em", class_="middle")


def _label(x: float, y: float, text: str, anchor: str) -> Html:
    return tag("text", text, x=x, y=y, text_anchor=anchor)
