"""HTML and SVG elements whose text and attributes are always escaped."""

from __future__ import annotations

from html import escape


class Html(str):
    """Text that is markup already; any other string is escaped where it meets an element."""


def tag(name: str, /, *content: str, **attributes: object) -> Html:
    """An element around its content. class_ stands for class, and other underscores for hyphens."""
    return Html(f"<{name}{_attributes(attributes)}>{join(*content)}</{name}>")


def void(name: str, /, **attributes: object) -> Html:
    """An element that has no content, such as an image."""
    return Html(f"<{name}{_attributes(attributes)}>")


def join(*content: str) -> Html:
    """Pieces one after the other, those that are not markup escaped."""
    return Html("".join(piece if isinstance(piece, Html) else escape(piece) for piece in content))


def _attributes(attributes: dict[str, object]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for name, value in attributes.items()
    )
