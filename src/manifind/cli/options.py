"""How options are declared: a short form for any of them, and those that several verbs share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from manifind.datasets.catalogue import VARIABLE


def option(text: str, *flags: str, **rules: Any) -> Any:
    """An option by its help. flags: as it is written, where not after its parameter. rules: such as min and max."""
    return typer.Option(*flags, help=text, **rules)


def argument(metavar: str | None, text: str) -> Any:
    """An argument by its help, and the name that it has there; None for one with its choices."""
    return typer.Argument(metavar=metavar, help=text)


SEEDS = {"min": 0, "max": 2**32 - 1}
ListProtocol = StrEnum("ListProtocol", "official landmarks")
"""How published lists are asked."""

CollectionPath = Annotated[Path, argument("COLLECTION", "A collection made by `manifind index`.")]
AsJson = Annotated[bool, option("Print everything as JSON.", "--json")]
DoneAsJson = Annotated[bool, option("Print what was done as JSON.", "--json")]
ScoreSeed = Annotated[int, option("The same seed gives the same scores.", **SEEDS)]
DataFolder = Annotated[
    Path | None, option(f"Where data sets live; else {VARIABLE}, else this system's folder for caches.")
]
BenchFolder = Annotated[Path | None, option(f"Where data sets live; else {VARIABLE}, else the folder for caches.")]
ResultsFile = Annotated[Path | None, option("Where finished cells are kept; else this system's folder for caches.")]
Fresh = Annotated[bool, option("Run everything, whatever is kept.", "--fresh")]
Outdated = Annotated[bool, option("Run again results of an earlier version of the code.", "--outdated")]
FormerExtractor = Annotated[str | None, option("Now --extractor.", "--describer", hidden=True)]
"""Accepted for one version."""
