"""What goes over the wire, for the description of the API and for checking what comes in."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

Method = Literal["gradnet", "knn"]
Space = Literal["descriptors", "features"]
Id = Annotated[str, Field(max_length=4096)]
Where = Annotated[str, Field(max_length=2000)]
MOST_RESULTS, FURTHEST = 1000, 100_000


class Item(BaseModel):
    """An item and what is said of it."""

    id: str
    fields: dict[str, Any]


class Result(Item):
    """An item of an answer."""

    rank: int
    score: float


class ComparedResult(Result):
    """other_rank: where the other method puts it; null where that is beyond its first thousand."""

    other_rank: int | None


class Answer(BaseModel):
    """more: whether there are results behind these. upload: what an uploaded picture is called from now on."""

    items: int
    results: list[Result]
    more: bool
    upload: str | None = None


class Compared(BaseModel):
    """The same query by learned features and by plain descriptors."""

    gradnet: list[ComparedResult]
    knn: list[ComparedResult]


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


class JobState(BaseModel):
    """Where a job stands."""

    id: str
    kind: str
    state: Literal["waiting", "working", "done", "failed"]
    stage: str
    done: int
    total: int
    note: str
    error: str
    hint: str
    result: dict[str, Any] | None


class VectorQuery(BaseModel):
    """A descriptor by the model that described the collection."""

    model_config = ConfigDict(extra="forbid")
    vector: list[float] = Field(min_length=1, max_length=65_536)
    k: int = Field(24, ge=1, le=MOST_RESULTS)
    offset: int = Field(0, ge=0, le=FURTHEST)
    method: Method = "gradnet"
    where: Where | None = None


class NewItem(BaseModel):
    """An item to add; without an id it gets the next number, where ids are numbers."""

    model_config = ConfigDict(extra="forbid")
    id: str | StrictInt | None = None
    vector: list[float] = Field(min_length=1, max_length=65_536)
    fields: dict[str, str | int | float | bool | None] = Field(default_factory=dict)


class NewItems(BaseModel):
    """Some items to add, all or none."""

    model_config = ConfigDict(extra="forbid")
    items: list[NewItem] = Field(min_length=1, max_length=10_000)
