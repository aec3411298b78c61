"""Writes docs/paper-map.md: every equation of the paper with its symbol and its tests, every table and figure.

The tags "(Eq. 8)" in docstrings under src/ and the marks `@pytest.mark.equation(8)` under tests/ are
the only source. `--check` writes nothing and fails where the page is out of date.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "paper-map.md"
EQUATIONS = {
    1: "queries and database together",
    2: "the transition matrix S",
    3: "the random walk with restart",
    4: "its limit",
    5: "tensor product graph diffusion",
    6: "the graph convolution layer",
    7: "the renormalised form of I + S",
    8: "the mutual k-NN affinity",
    9: "sparse codes on anchors",
    10: "the input features H0",
    11: "the layer function",
    12: "the first-order message",
    13: "the first-order operator",
    14: "the second-order message",
    15: "the second-order operator",
    16: "the graph diffusion layer",
    17: "concatenation of all layers",
    18: "cosine affinity",
    19: "the local loss",
    20: "the global loss",
    21: "the total loss",
    22: "the loss of a batch of sextets",
    23: "query feature expansion",
}
TAG = re.compile(r"\(Eq\. ([\d, ]+)\)")


def homes() -> dict[int, list[str]]:
    """Equation number to the symbols whose docstring carries its tag, as `path::symbol`."""
    found: dict[int, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                continue
            for tag in TAG.finditer(ast.get_docstring(node) or ""):
                name = "" if isinstance(node, ast.Module) else node.name
                for number in tag.group(1).split(","):
                    found[int(number)].append(f"{file.relative_to(ROOT)}::{name}")
    return found


def tests() -> dict[int, list[str]]:
    """Equation number to the tests that are marked with it."""
    found: dict[int, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.equation":
                    for argument in decorator.args:
                        found[ast.literal_eval(argument)].append(f"{file.relative_to(ROOT)}::{node.name}")
    return found


def render() -> str:
    lines = [
        "# From the paper to the code",
        "",
        "Every numbered equation, in the order of the compiled paper. Made by `make docs` from the tags in the",
        "docstrings and the marks on the tests; a test fails when it is out of date.",
        "",
        "| Eq. | what | file | symbol | tests |",
        "|--:|---|---|---|---|",
    ]
    at, by = homes(), tests()
    for number, what in EQUATIONS.items():
        for home in at[number]:
            file, symbol = home.split("::")
            checks = "<br>".join(f"`{Path(t.split('::')[0]).name}` {_words(t.split('::')[1])}" for t in by[number])
            lines.append(f"| {number} | {what} | [`{file}`](../{file}) | `{symbol}` | {checks} |")
    return "\n".join([*lines, "", *_reproduced()]) + "\n"


def _reproduced() -> list[str]:
    """Each table, figure and claim: the command that makes it, and where it is declared or drawn."""
    from manifind.bench.letters import draw_letters
    from manifind.bench.paper import figures, tables

    makers = {
        **{f"table{number}": getattr(tables, f"table{number}") for number in range(1, 6)},
        **figures.FIGURES,
        "figure4": draw_letters,
        "figure8": tables.figure8,
        "claims": tables.claims,
        "beyond": tables.extensions,
    }
    lines = [
        "Every table, figure and claim ([how to run them](reproduction.md)):",
        "",
        "| command | what | file | symbol |",
        "|---|---|---|---|",
    ]
    for item in sorted(makers, key=lambda name: (not name.startswith("table"), not name[-1].isdigit(), name)):
        maker = makers[item]
        file = f"src/{maker.__module__.replace('.', '/')}.py"
        what = str(maker.__doc__).splitlines()[0]
        lines.append(f"| `manifind reproduce {item}` | {what} | [`{file}`](../{file}) | `{maker.__name__}` |")
    return lines


def _words(test: str) -> str:
    return test.removeprefix("test_").replace("_", " ")


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(
            0 if PAGE.is_file() and PAGE.read_text() == render() else "docs/paper-map.md is out of date: make docs"
        )
    PAGE.write_text(render())
    print(PAGE)
