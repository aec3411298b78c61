"""Documents are true: their snippets run, their links lead somewhere, their tables come from results files."""

import re
import subprocess
import sys

import pytest

from project import ROOT, load_script

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "results").glob("*.md"))]


def snippets(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.slow
def test_the_snippet_of_the_readme_runs_as_it_stands(tmp_path):
    (code,) = snippets(ROOT / "README.md", "python")
    assert len(code.strip().splitlines()) <= 12
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "digit-" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_the_snippets_of_a_page_run_as_they_stand(page, tmp_path):
    for code in snippets(page, "python"):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_snippet_of_the_readme_is_the_example():
    (code,) = snippets(ROOT / "README.md", "python")
    example = (ROOT / "examples" / "quickstart.py").read_text().split("\n\n", 1)[1]
    assert code.split() == example.split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_project_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "name",
    [
        "results",
        "levers",
        "reproduction",
        "outdated",
        "readings",
        "extractors",
        "whitening",
        "words",
        "cutoff",
        "tuning",
    ],
)
def test_the_results_in_the_documents_are_those_of_the_results_files(name):
    for page, text in load_script(name).rendered_pages().items():
        assert page.read_text() == text, f"{page.name} is out of date: run scripts/{name}.py --render"


def test_the_commands_that_the_readme_shows_exist():
    from typer.testing import CliRunner

    from manifind.cli.app import app

    commands = "".join((ROOT / "README.md").read_text().split("```")[1::2])
    shown = set(re.findall(r"^manifind (\w+)", commands, re.MULTILINE))
    assert {"index", "search", "info"} <= shown
    for verb in shown:
        assert CliRunner().invoke(app, [verb, "--help"]).exit_code == 0
