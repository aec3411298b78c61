"""Every error that manifind raises on purpose.

    ManifindError                      anything this library refuses, with a way out in `hint`
    ├── InputError (ValueError)       an argument or an array that cannot be used
    │   ├── GraphError                descriptors from which no usable graph can be built
    │   └── UnseenQueriesError        a method that ranks only what was in its graph was asked for more
    ├── FileFormatError (ValueError)  a file that cannot be read as what it claims to be
    ├── DataError                     a data set that cannot be fetched, unpacked or found
    ├── CollectionError               a collection on disk that is missing, damaged, newer, or busy
    ├── StoreError                    a vector database that cannot be reached, or does not do what is asked
    ├── TrainingError (ArithmeticError) the loss is no longer a number
    └── MissingExtraError (ImportError) an optional dependency that is not installed

A message answers three questions: what is wrong, with the value; what was expected; what to do.
The last is the hint. Both stand in `str(error)`; a front end may show them apart.
"""

from __future__ import annotations


class ManifindError(Exception):
    """Something manifind refuses to do: what is wrong in `problem`, the way out in `hint`."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(f"{problem}; {hint}" if hint else problem)
        self.problem = problem
        self.hint = hint


class InputError(ManifindError, ValueError):
    """An argument or an array that cannot be used."""


class GraphError(InputError):
    """Descriptors from which no usable graph can be built."""


class UnseenQueriesError(InputError):
    """Queries that the method cannot answer because they were not in its graph."""


class FileFormatError(ManifindError, ValueError):
    """A file that cannot be read as what it claims to be."""


class DataError(ManifindError):
    """A data set that cannot be fetched, unpacked or found."""


class CollectionError(ManifindError):
    """A collection on disk that is missing, damaged, newer than this version, or busy."""


class StoreError(ManifindError):
    """A vector database that cannot be reached, went away, or does not do what is asked."""


class TrainingError(ManifindError, ArithmeticError):
    """The training loss is no longer a number."""


class MissingExtraError(ManifindError, ImportError):
    """An optional dependency that is not installed."""
