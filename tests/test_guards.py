"""Rules of the project that only a test keeps: direction of imports, homes of equations, the public surface."""

import ast
import re
import subprocess
import sys

import pytest

import manifind
from project import ROOT, load_script

SOURCE = ROOT / "src" / "manifind"

# A module imports only from its own layer or from one to its left.
LAYERS = [
    ("errors", "arrays", "ranking", "settings", "progress", "checkpoint", "files", "text", "user_code", "worker"),
    ("io",),
    ("datasets",),
    ("index",),
    ("graph",),
    ("search",),
    ("evaluation",),
    ("collection",),
    ("stores",),
    ("model",),
    ("baselines",),
    ("images",),
    ("server",),
    ("bench",),
    ("cli",),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def modules():
    return sorted(p for p in SOURCE.rglob("*.py") if p.parent != SOURCE or p.stem in RANK)


def imported(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def layer_of(file):
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_module_imports_only_from_its_left(file):
    own = RANK[layer_of(file)]
    for module in imported(file):
        parts = module.split(".")
        if parts[0] == "gradnet" and len(parts) > 1:
            assert RANK[parts[1]] <= own, f"{file.name} imports {module}"


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(SOURCE)))
def test_few_files_import_torch_or_faiss(file):
    roots = {module.split(".")[0] for module in imported(file)}
    name = file.relative_to(SOURCE).as_posix()
    if "torch" in roots:
        assert layer_of(file) in ("model", "baselines") or name in (
            "index/gpu.py",
            "images/efficientnet.py",
            "bench/paper/procedures.py",
        )
    if "faiss" in roots:
        assert name in ("index/exact.py", "index/ivf.py", "index/vector_index.py", "graph/anchors.py")


def test_a_method_cannot_be_chosen_by_its_score():
    for file in [*(SOURCE / "model").rglob("*.py"), *(SOURCE / "baselines").rglob("*.py")]:
        assert not [module for module in imported(file) if module.startswith("manifind.evaluation")], file


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_file_says_in_its_first_line_what_belongs_there(file):
    first = file.read_text().split("\n", 1)[0]
    assert re.match(r'"""[A-Z`m].{15,}', first), first


def test_no_drawer_is_called_utils():
    drawers = {"utils", "helpers", "common", "base", "misc", "core"}
    assert not [p for p in SOURCE.rglob("*") if p.stem in drawers]


def test_every_equation_has_one_home_and_tests_of_its_own():
    script = load_script("paper_map")
    homes, tests = script.homes(), script.tests()
    for number in script.EQUATIONS:
        assert len(homes[number]) == 1, f"Eq. {number}: {homes[number]}"
        assert len(tests[number]) >= 1, f"Eq. {number} has no test"


def test_the_map_from_paper_to_code_is_up_to_date():
    script = load_script("paper_map")
    assert script.PAGE.read_text() == script.render(), "run `make docs`"


def test_the_page_of_methods_is_up_to_date():
    script = load_script("methods_page")
    assert script.PAGE.read_text() == script.render(), "run `make docs`"


def test_the_public_surface_is_what_it_says():
    assert sorted(manifind._HOMES) == sorted(manifind.__all__)
    assert len(manifind.__all__) <= 25
    for name in manifind.__all__:
        assert getattr(manifind, name).__doc__ is not None
        assert name in dir(manifind)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        manifind.nonsense  # noqa: B018


def test_the_version_is_stated_alike_everywhere():
    stated = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE).group(1)
    assert manifind.__version__ == stated
    assert f"version: {stated}" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{stated}]" in (ROOT / "CHANGELOG.md").read_text()


def test_importing_manifind_and_what_serves_needs_no_torch():
    code = (
        "import sys, manifind, manifind.collection.collection, manifind.search.feature_model, manifind.io;"
        "import manifind.server.app, manifind.cli.app;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_setting_has_a_heading_in_the_readings():
    headings = (ROOT / "docs" / "readings.md").read_text()
    for name in manifind.GradNet().get_params():
        assert f"`{name}`" in headings, f"docs/readings.md does not mention {name}"
