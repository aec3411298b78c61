"""The one door to matplotlib: an empty figure, and a figure as a PNG."""

from __future__ import annotations

import io
from typing import Any

from gradnet.errors import MissingExtraError


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib Figure, in inches; nothing of pyplot, so no state and no window."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "drawing a figure needs matplotlib, which is not installed", 'pip install "gradnet[plot]"'
        ) from error
    return Figure(figsize=(width, height))


def as_png(figure: Any, dots_per_inch: int) -> bytes:
    """The figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dots_per_inch)
    return buffer.getvalue()
