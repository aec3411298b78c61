"""What an artefact of the paper is, as data: its cells, what each runs and shows, and what the paper prints there."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any


def read_table(file: str) -> dict[str, Any]:
    """What a file of this package declares."""
    return tomllib.loads(files("manifind.bench.paper").joinpath(file).read_text("utf-8"))


@dataclass(frozen=True)
class Run:
    """One thing to run, for each of some seeds."""

    procedure: str  # of procedures.PROCEDURES
    on: str  # of sets.SETS
    method: str  # of METHODS
    settings: Mapping[str, Any] = field(default_factory=dict)  # besides the method's defaults
    options: Mapping[str, Any] = field(default_factory=dict)  # of the procedure

    def key(self, seed: int) -> dict[str, Any]:
        what = {"kind": f"reproduce {self.procedure}", "set": self.on, "method": self.method}
        return {**what, "settings": dict(self.settings), "options": dict(self.options), "seed": seed}


@dataclass(frozen=True)
class Value:
    """Shows one of the values that a run gives, by its name."""

    name: str


@dataclass(frozen=True)
class Drop(Value):
    """Shows how far a value lies below that of another run."""

    below: Run


@dataclass(frozen=True)
class Gain(Value):
    """Shows how far a value lies above that of another run."""

    over: Run


@dataclass(frozen=True)
class EpochsTo(Value):
    """Shows after how many epochs a score is first reached."""

    target: float | None  # None: what k-NN has, and 95 % of what the base gains over it
    base: Run
    knn: Run

    SHARE = 0.95


@dataclass(frozen=True)
class CellSpec:
    """One cell of an artefact. run, show: None where the paper has no such cell. paper: what it prints there."""

    row: str
    column: str
    run: Run | None
    show: Value | None = None
    paper: float | str | None = None
    paper_deviation: float | None = None

    @property
    def name(self) -> str:
        return f"{self.row} / {self.column}"

    @property
    def runs(self) -> list[Run]:
        """All that must be run before it can be shown: its own run, then those that it is compared with."""
        compared = () if self.show is None else vars(self.show).values()
        return [run for run in (self.run, *compared) if isinstance(run, Run)]


def without_paper(entries: Iterable[CellSpec]) -> tuple[CellSpec, ...]:
    """The same cells with none of the paper's numbers beside them."""
    return tuple(replace(entry, paper=None, paper_deviation=None) for entry in entries)


@dataclass(frozen=True)
class Artefact:
    """A table, a claim or the numbers of a figure."""

    name: str  # as the command takes it
    title: str
    entries: tuple[CellSpec, ...]
    notes: tuple[str, ...] = ()  # what a reader must know
    digits: int = 2  # behind the point
    on: str | None = None  # the set, where the artefact was put on another than the paper's
    picture: str | None = None  # the name of its plot, where it has one

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(entry.row for entry in self.entries))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(entry.column for entry in self.entries))

    @property
    def command(self) -> str:
        return f"manifind reproduce {self.name}" + (f' --on "{self.on}"' if self.on else "")
