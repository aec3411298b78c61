"""What an artefact of the paper is, as data: its cells, what each runs and shows, and what the paper prints there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Run:
    """One thing to run, for each of some seeds.

    procedure: of procedures.PROCEDURES. on: of sets.SETS. method: of METHODS. settings: besides the method's defaults.
    options: of the procedure.
    """

    procedure: str
    on: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def key(self, seed: int) -> dict[str, Any]:
        """What it is kept under."""
        return {
            "kind": f"reproduce {self.procedure}",
            "set": self.on,
            "method": self.method,
            "settings": dict(self.settings),
            "options": dict(self.options),
            "seed": seed,
        }


@dataclass(frozen=True)
class Value:
    """Shows one of the values that a run gives, by its name."""

    name: str


@dataclass(frozen=True)
class Drop:
    """Shows how far a value lies below that of another run."""

    name: str
    below: Run


@dataclass(frozen=True)
class EpochsTo:
    """Shows after how many epochs a score is first reached.

    target: the score; None: what k-NN has, and 95 % of what the base gains over it.
    """

    name: str
    target: float | None
    base: Run
    knn: Run

    SHARE = 0.95


Show: TypeAlias = Value | Drop | EpochsTo


@dataclass(frozen=True)
class CellSpec:
    """One cell of an artefact. run: None where the paper has no such cell. paper: what it prints there."""

    row: str
    column: str
    run: Run | None
    show: Show | None = None
    paper: float | str | None = None
    paper_deviation: float | None = None

    @property
    def name(self) -> str:
        return f"{self.row} / {self.column}"

    @property
    def runs(self) -> list[Run]:
        """All that must be run before it can be shown."""
        if self.run is None:
            return []
        if isinstance(self.show, Drop):
            return [self.run, self.show.below]
        if isinstance(self.show, EpochsTo):
            return [self.run, self.show.base, self.show.knn]
        return [self.run]


@dataclass(frozen=True)
class Artefact:
    """A table, a claim or the numbers of a figure. name: as the command takes it. notes: what a reader must know.

    digits: behind the point. on: the set, where the artefact was put on another than the paper's. picture: the name of
    its plot, where it has one.
    """

    name: str
    title: str
    entries: tuple[CellSpec, ...]
    notes: tuple[str, ...] = ()
    digits: int = 2
    on: str | None = None
    picture: str | None = None

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(entry.row for entry in self.entries))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(entry.column for entry in self.entries))

    @property
    def command(self) -> str:
        return f"manifind reproduce {self.name}" + (f' --on "{self.on}"' if self.on else "")
