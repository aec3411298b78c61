"""What goes wrong in a request, as JSON: what it is, and the way out."""

import json
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from manifind.errors import CollectionError, ManifindError, MissingExtraError


class Problem(BaseModel):
    """Every answer with a status of 400 or more."""

    error: str
    hint: str = ""


class RefusedError(ManifindError):
    """A request that cannot be answered."""

    def __init__(self, status: int, problem: str, hint: str = "") -> None:
        super().__init__(problem, hint)
        self.status = status


def refused(status: int, error: str, hint: str = "", headers: dict[str, str] | None = None) -> Response:
    body = json.dumps({"error": error, "hint": hint})
    if status == 503:
        headers = {"retry-after": "1", **(headers or {})}
    return Response(body, status, headers, media_type="application/json")


def refusal_of(error: ManifindError) -> Response:
    """What the library refuses is the request's fault, or the collection's state, never a crash."""
    usual = 501 if isinstance(error, MissingExtraError) else 409 if isinstance(error, CollectionError) else 400
    return refused(getattr(error, "status", usual), error.problem, error.hint)


DOCUMENTED: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        400: "The request makes no sense for this collection.",
        401: "A token is needed, and this is none or another.",
        403: "Another site asks, or editing is not allowed.",
        404: "There is no such item, query or job.",
        409: "The collection is in a state that does not allow it.",
        413: "The body is too large.",
        415: "The body is of another kind than it says.",
        422: "A parameter is missing or is nonsense.",
        501: "A part of manifind that this needs is not installed.",
        503: "Too busy, or not ready yet: try again.",
    }.items()
}
"""For the description of the API: the answers that every path may give."""
