"""The tree of errors is the one that is drawn, and every message carries its way out."""

import inspect
import pickle
import re

import pytest

from manifind import errors
from manifind.errors import ManifindError

CLASSES = {name: cls for name, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__}


def drawn():
    """(name, parent, the builtin it also is or None) for each line of the tree in the docstring."""
    path = []
    for line in errors.__doc__.splitlines():
        match = re.match(r"^ {4}([│├└─ ]*)(\w+Error)(?: \((\w+)\))? +\w", line)
        if match:
            depth = len(match[1]) // 4
            path[depth:] = [match[2]]
            yield match[2], path[depth - 1] if depth else "Exception", match[3]


def test_every_error_is_drawn_once():
    assert sorted(name for name, _, _ in drawn()) == sorted(CLASSES)


@pytest.mark.parametrize(("name", "parent", "builtin"), list(drawn()))
def test_an_error_stands_where_the_docstring_draws_it(name, parent, builtin):
    bases = [base.__name__ for base in CLASSES[name].__bases__]
    assert bases == [parent, *([builtin] if builtin else [])]


@pytest.mark.parametrize("cls", CLASSES.values(), ids=list(CLASSES))
def test_an_error_can_be_caught_as_a_gradnet_error_and_documents_itself(cls):
    assert issubclass(cls, ManifindError)
    assert cls.__doc__
    assert cls.__doc__ != ManifindError.__doc__ or cls is ManifindError


@pytest.mark.parametrize("cls", CLASSES.values(), ids=list(CLASSES))
def test_problem_and_hint_both_stand_in_the_message(cls):
    error = cls("k = 0; expected at least 1", "give another k")
    assert (error.problem, error.hint) == ("k = 0; expected at least 1", "give another k")
    assert str(error) == "k = 0; expected at least 1; give another k"


@pytest.mark.parametrize("cls", CLASSES.values(), ids=list(CLASSES))
def test_without_a_hint_the_message_is_the_problem_alone(cls):
    error = cls("k = 0")
    assert error.hint == ""
    assert str(error) == "k = 0"


@pytest.mark.parametrize("name", ["InputError", "GraphError", "UnseenQueriesError", "FileFormatError"])
def test_errors_about_arguments_and_files_are_value_errors_too(name):
    assert issubclass(CLASSES[name], ValueError)


def test_every_error_is_public():
    import manifind

    assert set(CLASSES) <= set(manifind.__all__)
    for name, cls in CLASSES.items():
        assert getattr(manifind, name) is cls


@pytest.mark.parametrize("cls", CLASSES.values(), ids=list(CLASSES))
def test_the_message_survives_the_way_between_processes(cls):
    again = pickle.loads(pickle.dumps(cls("what is wrong", "what to do")))
    assert str(again).startswith("what is wrong; what to do")
    assert type(again) is cls
