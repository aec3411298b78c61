"""Public names have numpydoc docstrings that agree with their signatures, so that a reference can be made from them."""

import ast
import importlib
import inspect
import itertools
import re
from pathlib import Path

import pytest

import manifind

# Names whose docstrings are still to be written. The list may only become shorter.
UNDOCUMENTED: set[str] = set()

# Classes that users get from functions and never construct.
NOT_CONSTRUCTED = {"Collection"}

SECTIONS = (
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "See Also",
    "Notes",
    "References",
    "Examples",
)
NAMES = [name for name in manifind.__all__ if callable(getattr(manifind, name))]
VALUES = [name for name in manifind.__all__ if name not in NAMES]


def documented():
    """Every public function, class, method and property of ours by its dotted name."""
    for name in NAMES:
        thing = getattr(manifind, name)
        yield name, thing
        if inspect.isclass(thing):
            for attribute, member in inspect.getmembers(thing):
                home = getattr(getattr(member, "fget", member), "__module__", None)
                ours = (isinstance(member, property) or inspect.isroutine(member)) and str(home).startswith("manifind")
                if ours and not attribute.startswith("_"):
                    yield f"{name}.{attribute}", member


DOCUMENTED = dict(documented())


def sections(docstring):
    """The text of each section of a numpydoc docstring by its title; what stands before the first is the summary."""
    title, found = "Summary", {"Summary": []}
    lines = inspect.cleandoc(docstring).splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line in SECTIONS and following == "-" * len(line):
            title = line
            assert title not in found, f"two sections {title}"
            found[title] = []
        elif not (found[title] == [] and re.fullmatch("-+", line)):
            found[title].append(line)
    return found


def entries(lines):
    """(name, type and default) of each parameter; lines without indentation begin an entry."""
    for number, line in enumerate(lines):
        if not line or line.startswith(" "):
            continue
        names, separator, kind = line.partition(" : ")
        assert separator, f"expected `name : type`, and there is {line!r}"
        assert number + 1 < len(lines), f"{names} is not explained"
        assert lines[number + 1].startswith("    "), f"{names} is not explained"
        for name in names.split(", "):
            yield name.lstrip("*"), kind


def parameters(thing):
    """The parameters that callers give."""
    if inspect.isclass(thing):
        of_the_base_class = issubclass(thing, Exception) and "__init__" not in vars(thing)
        if of_the_base_class or thing.__name__ in NOT_CONSTRUCTED:
            return {}
    found = inspect.signature(thing).parameters
    return {name: parameter for name, parameter in found.items() if name not in ("self", "cls")}


def stated_default(kind):
    match = re.search(r"default=(.+)$", kind)
    return match and match[1]


def agrees(stated, default):
    """Whether the default of a docstring is that of the signature: its literal, or the name of a function."""
    try:
        return ast.literal_eval(stated) == default
    except (SyntaxError, ValueError):
        return stated in (repr(default), getattr(default, "__name__", None))


def check(thing):
    """Refuse the docstring of a function, method or class that does not agree with its signature."""
    assert thing.__doc__, "there is no docstring"
    parts = sections(thing.__doc__)
    summary = parts["Summary"]
    assert summary[0].endswith("."), "the summary is one sentence"
    assert len(summary) == 1 or summary[1] == "", "the summary is one line"
    if isinstance(thing, property):
        return
    given, explained = parameters(thing), dict(entries(parts.get("Parameters", [])))
    assert list(explained) == list(given), "the entries are those of the signature, in their order"
    for name, kind in explained.items():
        default, stated = given[name].default, stated_default(kind)
        if default is inspect.Parameter.empty:
            assert stated is None, f"{name} has no default, and the docstring says {stated}"
        else:
            assert stated is not None, f"the entry of {name} must end with default={default!r}"
            assert agrees(stated, default), f"{name} is {default!r} by default, not {stated}"
    if not inspect.isclass(thing) and inspect.signature(thing).return_annotation not in ("None", None):
        assert "Returns" in parts or "Yields" in parts, "what it returns is not said"


@pytest.mark.parametrize("name", sorted(set(DOCUMENTED) - UNDOCUMENTED))
def test_a_docstring_explains_every_parameter_and_no_other(name):
    check(DOCUMENTED[name])


@pytest.mark.parametrize("name", sorted(UNDOCUMENTED))
def test_a_name_leaves_the_list_of_undocumented_ones_when_it_is_documented(name):
    assert name in DOCUMENTED, "the name is gone"
    with pytest.raises(AssertionError):
        check(DOCUMENTED[name])


@pytest.mark.parametrize("name", VALUES)
def test_a_public_value_is_explained_below_its_definition(name):
    module = importlib.import_module(manifind._HOMES[name])
    body = ast.parse(Path(module.__file__).read_text()).body
    for statement, following in itertools.pairwise(body):
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(following, ast.Expr)
            assert isinstance(following.value.value, str)
            return
    raise AssertionError(f"{module.__name__} does not define {name}")


def good(k: int = 10, *, where: str | None = None, **settings: int) -> int:
    """Return something.

    Parameters
    ----------
    k : int, default=10
        How many.
    where : str, default=None
        A filter.
    **settings : int
        Others.

    Returns
    -------
    int
        A number.
    """


def test_the_check_accepts_a_docstring_that_agrees():
    check(good)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("default=10", "default=11"),
        (", default=10", ""),
        ("k : int, default=10\n        How many.\n", ""),
        ("where : str", "were : str"),
        ("    **settings : int\n", "    **settings : int\n        Others.\n    gone : int\n"),
        ("Returns\n    -------", "Notes\n    -----"),
        ("        How many.\n", ""),
        ("k : int", "k: int"),
        ("**settings : int", "**settings : int, default=3"),
        ("something.", "something"),
    ],
)
def test_the_check_notices_a_docstring_that_does_not_agree(old, new):
    def bad(k: int = 10, *, where: str | None = None, **settings: int) -> int: ...

    assert old in good.__doc__
    bad.__doc__ = good.__doc__.replace(old, new)
    with pytest.raises(AssertionError):
        check(bad)
