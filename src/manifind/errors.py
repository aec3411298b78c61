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
    """An argument or an array cannot be used.

    Raised for settings out of range, matrices of the wrong shape, numbers that are not finite, and unknown names.
    """


class GraphError(InputError):
    """No usable graph can be built from the descriptors.

    Raised when all rows are equal or too few differ from each other.
    """


class UnseenQueriesError(InputError):
    """The method cannot answer queries that were not in its graph.

    Give such queries to ``fit``, or take a method whose ``answers_unseen`` is true.
    """


class FileFormatError(ManifindError, ValueError):
    """A file cannot be read as the format that it claims to be.

    The message names the file and the place in it. No part of a refused file is used.
    """


class DataError(ManifindError):
    """A data set cannot be found, downloaded or unpacked.

    The message says where its files are expected and how to get them.
    """


class CollectionError(ManifindError):
    """A collection on disk is missing, damaged, in use, or newer than this version of manifind.

    The message names the damaged file; ``manifind info --verify`` checks all of them.
    """


class StoreError(ManifindError):
    """A vector database cannot be reached, or does not support what is needed.

    Passwords never appear in the message.
    """


class TrainingError(ManifindError, ArithmeticError):
    """The training loss is not a finite number.

    Raised by ``fit``; a smaller ``learning_rate`` usually helps.
    """


class MissingExtraError(ManifindError, ImportError):
    """An optional dependency is not installed.

    The hint is the ``pip install`` command that brings it.
    """
