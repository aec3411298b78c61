"""Table 3 from end to end, from files as Iscen et al. and the revisited evaluation publish them."""

import pickle
import re

import numpy as np
import pytest

from bench.paper.in_process import InProcess
from manifind.bench.paper.render import as_plain
from manifind.bench.paper.runner import PaperRunOptions, run_missing, wanted_runs
from manifind.bench.paper.tables import COLUMNS_3, table1, table3
from manifind.bench.sets import SETS, toy_task
from manifind.progress import ignore
from reference.files import mat5, published_by_iscen, struct_array
from reference.scores import oxford_ap_by_walking

pytest.importorskip("h5py")


def one_based(lists):
    return [{name: np.array([one + 1.0]) for name, one in query.items()} for query in lists]


def write_set(root, dataset):
    """The files of one column, holding the toy task; of the large sets with distractors behind the images."""
    task = toy_task(dataset)
    vectors, truth_file, name = re.match(r"(\w+) \(.*\) and (\w+) \(.*\) in the folder (\w+) ", dataset.obtain).groups()
    folder = root / name
    folder.mkdir(exist_ok=True)
    X, Q = task.descriptors, task.queries
    if ("5k" not in dataset.name and "6k" not in dataset.name) or dataset.name.startswith(("ROx", "RPar")):
        mat5(folder / f"{vectors}.mat", X=X.T, Q=Q.T)
    elif "VGG" in dataset.name:
        published_by_iscen(folder / f"{vectors}.mat", X[:, None], Q[:, None])
    else:
        np.savez(folder / f"{vectors}.npz", X=X, Q=Q)
    lists = task.truth.lists.lists
    queries = [{name: of[query] for name, of in lists.items()} for query in range(len(Q))]
    if dataset.form == "revisited":
        truth = task.truth.lists
        content = {"gnd": queries, "imlist": list(truth.images), "qimlist": list(truth.queries)}
        (folder / f"{truth_file}.pkl").write_bytes(pickle.dumps(content))
    else:
        mat5(folder / f"{truth_file}.mat", gnd=struct_array(one_based(queries)))
    return task


@pytest.fixture
def published(tmp_path):
    root = tmp_path / "data"
    root.mkdir()
    return root, {column: write_set(root, SETS[column]) for column in COLUMNS_3}


def knn_map(task, level):
    """By hand: cosine, then the walk of the Oxford program."""
    X, Q = task.descriptors, task.queries
    lists = task.truth.lists.lists
    values = []
    for query, q in enumerate(Q):
        ranking = np.argsort(-(X @ q) / np.linalg.norm(X, axis=1), kind="stable")
        of = {name: set(lists[name][query].tolist()) for name in lists}
        right = {"mAP": of.get("ok"), "mAP medium": of.get("easy", set()) | of.get("hard", set())}[level]
        values.append(oxford_ap_by_walking(ranking, right, of["junk"]))
    return 100 * np.mean(values)


def test_table_3_runs_through_with_every_published_file_in_place(published, results, monkeypatch):
    root, tasks = published
    InProcess(monkeypatch)
    table = table3()
    run_missing(wanted_runs([table], 1, None), results, PaperRunOptions(folder=root), ignore)
    cells = {cell["cell"]: cell for cell in as_plain(table, results)["cells"]}
    assert len(cells) == 60
    assert {cell["state"] for cell in cells.values()} == {"done"}, [c for c in cells.values() if c["why"]]
    for column, task in tasks.items():
        expected = knn_map(task, SETS[column].measure)
        assert cells[f"k-NN / {column}"]["mean"] == pytest.approx(expected, abs=1e-4)
    assert cells["k-NN / RParis ResNet"]["difference"] == pytest.approx(expected - 77.2, abs=1e-4)


def test_with_some_of_the_files_the_other_cells_stay_not_run(published, results, monkeypatch):
    root, _ = published
    (root / "paris6k" / "paris6k_siamac.mat").unlink()
    InProcess(monkeypatch)
    table = table3()
    run_missing(wanted_runs([table], 1, "k-NN /"), results, PaperRunOptions(folder=root), ignore)
    rows = [cell for cell in as_plain(table, results)["cells"] if cell["cell"].startswith("k-NN /")]
    missing = [cell for cell in rows if cell["state"] == "not run"]
    assert [cell["cell"] for cell in missing] == ["k-NN / Paris6k VGG"]
    assert missing[0]["obtain"].startswith("paris6k_siamac (.mat or .npz) and gnd_paris6k")


def test_table_1_counts_what_the_files_hold(published, results, monkeypatch):
    root, _ = published
    InProcess(monkeypatch)
    run_missing(wanted_runs([table1()], 1, None), results, PaperRunOptions(folder=root), ignore)
    cells = {cell["cell"]: cell for cell in as_plain(table1(), results)["cells"]}
    assert cells["ROxford / items"]["mean"] == 120
    assert cells["Paris106k / classes"]["mean"] == 12
    assert cells["ORL / items"]["state"] == "not run"
