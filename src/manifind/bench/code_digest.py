"""Which code a result was made by: a digest of the definitions that its task reaches; it finds outdated results."""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = __name__.partition(".")[0]
_ROOT = Path(__file__).parent.parent
_WORDS_AND_FILES = (
    "errors progress text worker user_code threads checkpoint files io datasets collection stores images server cli"
)
_CHECKS = "settings.check_settings settings.check_value settings.documented bench.cell.how_it_ran baselines.METHODS"
_LEFT_OUT = {f"{PACKAGE}.{name}" for name in f"{_WORDS_AND_FILES} {_CHECKS}".split()}
"""What changes no number: words, checks, processes, files (data has a digest of its own), the table of all methods."""


class Definition(NamedTuple):
    """A name at the top of a module; name "" stands for what a module does besides defining names."""

    module: str
    name: str


class _Module(NamedTuple):
    """statements: those that bind each name. imports: what each imported name is, a definition or a module."""

    statements: dict[str, list[ast.stmt]]
    imports: dict[str, Definition]


def code_digest(starts: Iterable[str], root: Path | None = None) -> str:
    """SHA-256 of the syntax trees, without docstrings and comments, of all that is reached from some definitions.

    starts: "module:name" each. root: the folder of the package, where another version's is meant. From a definition
    those are reached that it names; from an import the one that is imported. A class is reached as a whole.
    """
    root = root or _ROOT
    digest = hashlib.sha256()
    for one in sorted(reached(starts, root)):
        trees = "".join(_dump(statement) for statement in _read(one.module, root).statements.get(one.name, ()))
        digest.update(f"{one.module}:{one.name}\n{trees}\n".encode())
    return digest.hexdigest()


def reached(starts: Iterable[str], root: Path | None = None) -> set[Definition]:
    """These definitions and, hop by hop, those of the package that they name."""
    root, found = root or _ROOT, set[Definition]()
    waiting = [Definition(*start.split(":")) for start in starts]
    while waiting:
        one = waiting.pop()
        parts = one.module.split(".")
        parents = {".".join(parts[: depth + 1]) for depth in range(len(parts))} | {f"{one.module}.{one.name}"}
        if one not in found and not parents & _LEFT_OUT:
            found.add(one)
            waiting += [*_named(one, root), Definition(one.module, "")]
    return found


def _named(one: Definition, root: Path) -> Iterator[Definition]:
    """What the statements of a definition name."""
    module = _read(one.module, root)
    if one.name in module.imports:  # imported from elsewhere, and asked for here
        yield module.imports[one.name]
    for statement in module.statements.get(one.name, ()):
        within = {name: found for node in ast.walk(statement) for name, found in _imported(node, root)}
        known = module.imports | within
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                target = known.get(node.value.id)
                if target is not None and not target.name:  # an attribute of a module
                    yield Definition(target.module, node.attr)
            elif isinstance(node, ast.Name) and node.id in known and known[node.id].name:
                yield known[node.id]
            elif isinstance(node, ast.Name) and node.id in module.statements:
                yield Definition(one.module, node.id)


@cache
def _read(name: str, root: Path) -> _Module:
    module = _Module({}, {})
    for statement in ast.parse(_file(name, root).read_text("utf-8")).body:
        if _is_text(statement):
            continue
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            module.imports.update(found for node in ast.walk(statement) for found in _imported(node, root))
        for bound in _bound(statement):
            module.statements.setdefault(bound, []).append(statement)
    return module


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top of a module gives a meaning; "" where it only does something."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return set()
    nodes = list(ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} or {""}


def _imported(node: ast.AST, root: Path) -> Iterator[tuple[str, Definition]]:
    """The names that an import of the package's own binds."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname and alias.name.split(".")[0] == PACKAGE:
                yield alias.asname, Definition(alias.name, "")
    elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            is_module = _path(inner, root).is_dir() or _path(inner, root).with_suffix(".py").is_file()
            found = Definition(inner, "") if is_module else Definition(node.module, alias.name)
            yield alias.asname or alias.name, found


def _path(name: str, root: Path) -> Path:
    return root.joinpath(*name.split(".")[1:])


def _file(name: str, root: Path) -> Path:
    """The file of a module of the package, or of a script that can be imported."""
    if name.split(".")[0] == PACKAGE:
        path = _path(name, root)
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module called {name}")
    return Path(spec.origin)


def _dump(node: Any) -> str:
    """A tree as text, the same in every version of Python, whose own `ast.dump` shows empty fields or does not.

    Comments and layout are in no tree; docstrings are left out.
    """
    if isinstance(node, list):
        return f"[{' '.join(_dump(one) for one in node if not _is_text(one))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [f"{name}={_dump(value)}" for name, value in ast.iter_fields(node) if value not in (None, [])]
    return f"{type(node).__name__}({' '.join(fields)})"


def _is_text(node: Any) -> bool:
    """A docstring, of a definition or below a constant: a string that nothing is done with."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
