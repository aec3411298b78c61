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

from collections.abc import Iterator
from contextlib import contextmanager


class ManifindError(Exception):
    """Anything that manifind refuses to do: base class of all its errors.

    Parameters
    ----------
    problem : str
        What is wrong, with the value, and what was expected.
    hint : str, default=""
        What to do about it; empty where there is nothing to do.
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(f"{problem}; {hint}" if hint else problem)
        self.problem = problem
        self.hint = hint


class InputError(ManifindError, ValueError):
    """An argument or an array cannot be used: out of range, of a wrong shape, not finite, or an unknown name."""


class GraphError(InputError):
    """No usable graph can be built from the descriptors: all rows are equal, or too few differ from each other."""


class UnseenQueriesError(InputError):
    """The method ranks only what was given to ``fit``; for other queries take one whose ``answers_unseen`` is true."""


class FileFormatError(ManifindError, ValueError):
    """A file cannot be read as the format that it claims to be; no part of a refused file is used."""


class DataError(ManifindError):
    """A data set cannot be found, downloaded or unpacked; the message says where its files are expected."""


class CollectionError(ManifindError):
    """A collection on disk is missing, damaged, in use, or newer; ``manifind info --verify`` checks its files."""


class StoreError(ManifindError):
    """A vector database cannot be reached, or does not support what is needed; passwords are never shown."""


class TrainingError(ManifindError, ArithmeticError):
    """The training loss is not a finite number; a smaller ``learning_rate`` usually helps."""


class MissingExtraError(ManifindError, ImportError):
    """An optional dependency is not installed; the hint is the ``pip install`` command that brings it."""


@contextmanager
def needing(extra: str, problem: str) -> Iterator[None]:
    """What is imported in the block comes with an extra of manifind."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(problem, f'pip install "manifind[{extra}]"') from error


@contextmanager
def system_errors_as(kind: type[ManifindError], problem: str, hint: str) -> Iterator[None]:
    """What the system says about a file or a folder in the block, as an error of ours with a way out."""
    try:
        yield
    except OSError as error:
        raise kind(f"{problem}: {error.strerror or error}", hint) from error
