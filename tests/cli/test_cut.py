"""`manifind search --cut`: few results for few relatives, none for a stranger, in tables and as JSON."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from manifind import GradNet, load
from manifind.cli.app import app


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Eight groups of twelve, and a file with a relative of the first item and a stranger."""
    folder, rng = tmp_path_factory.mktemp("cut"), np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(8, 16)), 12, axis=0) + 0.05 * rng.normal(size=(96, 16))
    GradNet(random_state=0, max_steps=30).fit(X).save(folder / "c.manifind")
    np.save(folder / "queries.npy", np.stack([X[0] + 0.01, rng.normal(size=16)]).astype(np.float32))
    return folder


def search(made, *options):
    found = CliRunner().invoke(app, ["search", str(made / "c.manifind"), *options])
    assert found.exit_code == 0, found.output
    return found.stdout


def test_a_cut_leaves_out_what_does_not_belong(made):
    whole = json.loads(search(made, "0", "-k", "40", "--json"))[0]["results"]
    cut = json.loads(search(made, "0", "-k", "40", "--cut", "--json"))[0]["results"]
    assert len(whole) == 40
    assert 10 <= len(cut) <= 14
    assert cut == whole[: len(cut)]
    assert all(one["certainty"] >= 0.5 for one in cut)


def test_each_query_of_a_file_is_cut_by_itself_and_a_stranger_is_told_so(made):
    queries = str(made / "queries.npy")
    relative, stranger = json.loads(search(made, queries, "-k", "40", "--cut", "--json"))
    assert len(relative["results"]) >= 10
    assert stranger["results"] == []
    assert "query 1: nothing is really alike; without --cut the nearest are shown" in search(made, queries, "--cut")
    assert "really alike" not in search(made, queries)


def test_the_command_answers_as_the_library_does(made):
    ranking = load(made / "c.manifind").search(np.load(made / "queries.npy"), k=20, cut=True)
    shown = json.loads(search(made, str(made / "queries.npy"), "-k", "20", "--cut", "--json"))
    assert [len(one["results"]) for one in shown] == ranking.lengths.tolist()


def test_combined_queries_can_be_cut_too(made):
    shown = json.loads(search(made, "0", "13", "--together", "-k", "60", "--cut", "--json"))
    assert 20 <= len(shown[0]["results"]) <= 28
