"""What requests and answers of the API consist of."""

import json
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import BaseModel, ConfigDict, Field

from manifind.server.jobs import JobState

Method = Literal["gradnet", "knn"]
Space = Literal["descriptors", "features"]
Id = Annotated[str, Field(max_length=4096)]
Where = Annotated[str, Field(max_length=2000)]
MOST_RESULTS, FURTHEST, MOST_LETTERS, MOST_PARTS = 1000, 100_000, 1000, 256


class Item(BaseModel):
    """An item and what is said of it."""

    id: str
    fields: dict[str, Any]


class Result(Item):
    """An item of an answer. certainty: how sure it is that it belongs, 0 to 1; null where that is not known."""

    rank: int
    score: float
    certainty: float | None


class ComparedResult(Result):
    """other_rank: where the other method puts it; null where that is beyond its first thousand."""

    other_rank: int | None


class Answer(BaseModel):
    """more: whether there are results behind these. upload: what an uploaded picture is called from now on.

    cut_off: whether results were left out since they probably do not belong.
    """

    items: int
    results: list[Result]
    more: bool
    cut_off: bool
    upload: str | None = None


class Compared(BaseModel):
    """The same query by learned features and by plain descriptors. more: whether there are results behind these."""

    gradnet: list[ComparedResult]
    knn: list[ComparedResult]
    more: bool


class PathStep(BaseModel):
    """An item on the way, null for an uploaded query, and the weight of the edge that leads to it.

    path: where the file of the item is now, null where it has none.
    """

    id: str | None
    path: str | None
    weight: float


class Path(BaseModel):
    """strength: the product of the weights; an empty path where the graph does not lead there."""

    path: list[PathStep]
    strength: float


class Items(BaseModel):
    """total: how many there are behind all pages."""

    total: int
    items: list[Item]


class FieldValue(BaseModel):
    """A value, and how many items have it."""

    value: str | int | float | bool
    items: int


class FieldShown(BaseModel):
    """A field of the metadata. kind: number, text, truth, date or list. items: how many have it.

    low, high: of numbers and dates. different: how many values there are. values: the most frequent ones.
    """

    name: str
    kind: str
    items: int
    low: str | int | float | None
    high: str | int | float | None
    different: int
    values: list[FieldValue]


class Fields(BaseModel):
    """All of them, by name."""

    fields: list[FieldShown]


Crop = Annotated[
    tuple[float, float, float, float],
    Field(description="Left, top, width, height of a part of a picture: pixels, or shares where none is above 1."),
]


class GivenPart(BaseModel):
    """A part of a query: an item, an upload, words, or a descriptor. crop: of the item's picture."""

    model_config = ConfigDict(extra="forbid")
    id: Id | None = None
    upload: Annotated[str, Field(max_length=64)] | None = None
    text: Annotated[str, Field(max_length=MOST_LETTERS)] | None = None
    vector: Annotated[list[float], Field(min_length=1, max_length=65_536)] | None = None
    crop: Crop | None = None


class WeightedPart(GivenPart):
    """A part of a combined query; a weight below 0 means less like this."""

    weight: float = Field(1.0, ge=-1000, le=1000)


class QueryBody(BaseModel):
    """What every search by a body may say beside its query."""

    model_config = ConfigDict(extra="forbid")
    k: int = Field(24, ge=1, le=MOST_RESULTS)
    offset: int = Field(0, ge=0, le=FURTHEST)
    method: Method = "gradnet"
    where: Where | None = None
    cut: bool = False


class CombinedQuery(QueryBody):
    """Several parts as one query, in any order: the sum of weight times learned features, scaled to length 1."""

    parts: list[WeightedPart] = Field(min_length=1, max_length=MOST_PARTS)


class CombinedComparison(BaseModel):
    """The same for learned features beside plain neighbours."""

    model_config = ConfigDict(extra="forbid")
    parts: list[WeightedPart] = Field(min_length=1, max_length=MOST_PARTS)
    k: int = Field(24, ge=1, le=200)
    offset: int = Field(0, ge=0, le=FURTHEST)
    where: Where | None = None


class VectorQuery(QueryBody):
    """A descriptor by the model that described the collection."""

    vector: list[float] = Field(min_length=1, max_length=65_536)


ItemId = Annotated[Id | None, Query(description="An item, by its id.")]
UploadKey = Annotated[
    str | None, Query(max_length=64, description="A picture that was uploaded, by what the answer called it.")
]
Words = Annotated[str | None, Query(max_length=MOST_LETTERS, description="What to look for, in words.")]
CropText = Annotated[
    str | None,
    Query(max_length=100, pattern=r"^[^,]+(,[^,]+){3}$", description="A part of the picture: left,top,width,height."),
]
Condition = Annotated[Where | None, Query(description="A filter on metadata: year >= 1990 and place = 'Rome'")]
Cut = Annotated[bool, Query(description="Leave out what probably does not belong, where that is known.")]
Count = Annotated[int, Query(ge=1, le=MOST_RESULTS)]
Offset = Annotated[int, Query(ge=0, le=FURTHEST)]


def as_json(value: Any, status: int = 200) -> Response:
    """What the service returns, which consists of plain values."""
    return Response(json.dumps(value, allow_nan=False), status, media_type="application/json")


def as_job(job: JobState) -> Response:
    return as_json(job.model_dump(), 202)


JPEG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}, "description": "JPEG."}}
PICTURE_BODY = {
    "requestBody": {"required": True, "content": {"image/*": {"schema": {"type": "string", "format": "binary"}}}}
}
