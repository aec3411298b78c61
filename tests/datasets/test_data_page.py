"""docs/data.md: its table is the catalogue's, its example runs, its words are those of the program."""

import re
import subprocess
import sys

from manifind.datasets import check
from project import ROOT, load_script

PAGE = ROOT / "docs" / "data.md"


def test_the_table_of_data_sets_is_up_to_date():
    script = load_script("data_table")
    assert script.PAGE == PAGE
    assert PAGE.read_text() == script.render(PAGE.read_text()), "run scripts/data_table.py"


def test_the_page_explains_every_state_of_a_file():
    words = [check.PUBLISHED, check.RECORDED, check.UNRECORDED, check.UNPACKED, check.DIFFERS, check.MISSING]
    assert re.findall(r"^\| ([a-z ,]+) \| [a-z]", PAGE.read_text(), re.MULTILINE)[-len(words) :] == words


def test_the_example_prints_what_the_page_shows(tmp_path):
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE.read_text(), re.DOTALL).groups()
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown
