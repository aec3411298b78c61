"""The bars of a comparison, as SVG in the colours of the page: scores from 0 to 100, costs by powers of ten."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from gradnet.experiments.markup import Html, tag

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
    return _drawing(f"{name}: {value:.2f}, {low:.2f} to {high:.2f}", value, [25, 50, 75], whisker)


def cost_bar(name: str, value: float, unit: str, scale: Scale) -> Html:
    """A bar that grows with the logarithm of a cost; a cost at the lower end of the scale has a sliver."""
    return _drawing(f"{name} {cost_text(value)} {unit}", max(scale.share(value), 1.0), scale.lines())


def _drawing(name: str, length: float, lines: Iterable[float], over: Html | None = None) -> Html:
    grid = "".join(f"M{at:.2f} 0v10" for at in lines)
    return tag(
        "svg",
        tag("path", d=f"M0 0v10h100v-10z{grid}", class_="grid"),
        tag("path", d=f"M0 1.5h{length:.2f}v7h-{length:.2f}z", class_="length"),
        *([] if over is None else [over]),
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        class_="bar",
        role="img",
        aria_label=name,
    )
