"""The digest of the code behind a result: what changes it, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifind.bench.code_digest import Definition, code_digest, reached

FILES = {
    "near.py": '"""Near."""\nSCALE = 2\n"""What a scale is."""\n\n'
    'def near(x):\n    """Words."""\n    return x * SCALE\n',
    "far.py": "from manifind.near import near\nfrom manifind import other\n\n"
    "def far(x):\n    return other.shift(near(x))\n\ndef unused():\n    return 1\n",
    "other.py": "def shift(x):\n    return x + 1\n\ndef not_asked_for(x):\n    return x\n",
    "errors.py": "def complain():\n    return 1\n",
    "lazy.py": "def later():\n    from manifind.near import near\n    from manifind.errors import complain\n"
    "    return near, complain\n",
    "table.py": "TABLE = {}\nTABLE |= {'a': 1}\nprint(TABLE)\n",
}


@pytest.fixture
def package(tmp_path):
    return write(tmp_path / "first", {})


def write(folder, changes):
    folder.mkdir()
    for name, text in (FILES | changes).items():
        (folder / name).write_text(text)
    return folder


def names(found):
    return {f"{one.module.removeprefix('manifind.')}:{one.name}" for one in found if one.name}


def test_what_a_definition_names_is_reached_hop_by_hop_and_nothing_else(package):
    assert names(reached(["manifind.far:far"], package)) == {"far:far", "near:near", "near:SCALE", "other:shift"}


def test_an_import_inside_a_function_counts_and_modules_of_words_do_not(package):
    assert names(reached(["manifind.lazy:later"], package)) == {"lazy:later", "near:near", "near:SCALE"}


def test_every_statement_that_gives_a_name_its_meaning_counts(package, tmp_path):
    start = ["manifind.table:TABLE"]
    changed = write(tmp_path / "second", {"table.py": FILES["table.py"].replace("'a': 1", "'a': 2")})
    assert code_digest(start, package) != code_digest(start, changed)
    assert Definition("manifind.table", "") in reached(start, package)


@pytest.mark.parametrize(
    ("file", "before", "after", "differs"),
    [
        ("near.py", "x * SCALE", "x * SCALE * 1", True),
        ("near.py", "SCALE = 2", "SCALE = 3", True),
        ("other.py", "x + 1", "x - 1", True),
        ("other.py", "    return x\n", "    return -x\n", False),
        ("far.py", "return 1", "return 2", False),
        ("near.py", "Words.", "Other words.", False),
        ("near.py", "What a scale is.", "What it is.", False),
        ("near.py", "    return x * SCALE", "    # a reason\n    return x * SCALE", False),
        ("errors.py", "return 1", "return 2", False),
    ],
)
def test_code_that_runs_changes_the_digest_and_words_do_not(package, tmp_path, file, before, after, differs):
    changed = write(tmp_path / "second", {file: FILES[file].replace(before, after, 1)})
    start = ["manifind.far:far"]
    assert (code_digest(start, package) != code_digest(start, changed)) is differs


@given(st.permutations(["manifind.far:far", "manifind.lazy:later", "manifind.table:TABLE"]))
def test_the_order_of_the_starts_does_not_matter(tmp_path_factory, starts):
    folder = write(tmp_path_factory.mktemp("package") / "one", {})
    assert code_digest(starts, folder) == code_digest(sorted(starts), folder)


def test_a_method_reaches_its_own_code_and_not_that_of_the_others():
    trial = "manifind.bench.cell:trial"
    knn = names(reached([trial, "manifind.baselines.query_expansion:KNN"]))
    ours = names(reached([trial, "manifind.model.estimator:GradNet"]))
    assert {"settings:GradNetSettings", "model.estimator:GradNet", "model.losses:local_loss"} & knn == set()
    assert {"settings:GradNetSettings", "model.estimator:GradNet", "model.trainer:Trainer"} <= ours
    assert "graph.preprocess:unit_rows" in knn & ours


def test_the_digest_of_a_package_is_the_same_wherever_it_is_made(package):
    """A fixed value, so that a version of Python that writes trees in another way would be noticed."""
    made = code_digest(["manifind.far:far", "manifind.lazy:later"], package)
    assert made == "9f532cd631690e8cef8f5c0cb66c873c9426b602015751693efec86735395b16"


def test_a_module_that_is_nowhere_is_an_error():
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        code_digest(["nowhere_at_all:run"])
