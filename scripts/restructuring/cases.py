"""What golden.py runs: small files made with fixed seeds, and for each verb the commands that are pinned."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

N, D = 60, 6
NAMES = [f"cat {number:02}" for number in range(N)]
IMAGES = ["church_0", "church_1", "church_2", "tower_0", "tower_1", "street_0"]
QUICK = "--max-steps 3 --n-neighbors 3 --n-components 8"


def make_files(folder: Path) -> None:
    """Vectors in several formats, a folder of pictures, rankings with ground truth, and files with mistakes."""
    for name in ("data", "home"):
        (folder / name).mkdir()
    rng = np.random.default_rng(0)
    labels = np.arange(N) % 4
    rows = (rng.normal(size=(4, D))[labels] + rng.normal(size=(N, D)) / 2).astype(np.float32)
    queries = rng.normal(size=(3, D)).astype(np.float32)
    _make_vectors(folder, rows, labels, queries)
    _make_mistakes(folder, rows, queries)
    _make_rankings(folder)
    _paint(folder / "pictures")


def _make_vectors(folder: Path, rows: np.ndarray, labels: np.ndarray, queries: np.ndarray) -> None:
    np.save(folder / "vectors.npy", rows)
    np.savez(folder / "named.npz", vectors=rows, names=np.array(NAMES))
    np.savez(folder / "labelled.npz", vectors=rows, labels=labels)
    _write_csv(folder / "named.csv", NAMES, rows)
    _write_csv(folder / "fewer.csv", [*NAMES[5:], "dog 1"], np.concatenate([rows[5:], queries[:1]]))
    dims = np.full((N, 1), D, np.int32).view(np.float32)
    np.concatenate([dims, rows], axis=1).tofile(folder / "vectors.fvecs")
    long = [str(10**18 + 7 * number) for number in range(N)]
    _write_csv(folder / "long_ids.csv", long, rows)
    fields = [{"id": name, "year": 1980 + number, "place": "Rome"} for number, name in enumerate(NAMES)]
    (folder / "fields.jsonl").write_text("".join(json.dumps(line) + "\n" for line in fields))
    np.save(folder / "queries.npy", queries)
    np.savez(folder / "queries.npz", vectors=queries, ids=np.array(["red", "green", "blue"]))


def _write_csv(path: Path, names: list[str], rows: np.ndarray) -> None:
    lines = [f"{name},{','.join(map(str, row.tolist()))}" for name, row in zip(names, rows, strict=True)]
    path.write_text("\n".join(["id," + ",".join(f"x{i}" for i in range(rows.shape[1])), *lines]) + "\n")


def _make_mistakes(folder: Path, rows: np.ndarray, queries: np.ndarray) -> None:
    np.save(folder / "narrow.npy", queries[:, :4])
    (folder / "cut.npy").write_bytes((folder / "vectors.npy").read_bytes()[:200])
    (folder / "empty.npy").write_bytes(b"")
    (folder / "vectors.txt").write_text("1 2 3")
    with_nan = rows.copy()
    with_nan[7, 2] = np.nan
    np.save(folder / "nan.npy", with_nan)
    (folder / "broken.pkl").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    (folder / "folder").mkdir()
    (folder / "folder" / "inside.txt").write_text("mine")


def _make_rankings(folder: Path) -> None:
    lists = [{"ok": [0, 1], "junk": [2]}, {"ok": [3, 4], "junk": []}]
    truth = {"gnd": lists, "imlist": IMAGES, "qimlist": ["church_0", "tower_0"]}
    (folder / "gnd_town.json").write_text(json.dumps(truth))
    best = np.array([[0, 2, 1, 3, 4, 5], [3, 5, 0, 4, 1, 2]])
    np.save(folder / "mine.npy", best)
    np.save(folder / "theirs.npy", best[:, ::-1])
    lines = ["tower_0 Q0 tower_0 1 -1 them", "tower_0 Q0 tower_1 2 -2 them", "church_0 Q0 street_0 1 -1 them"]
    (folder / "theirs.run").write_text("\n".join(lines) + "\n")
    np.save(folder / "labels.npy", np.array([0, 0, 1, 1]))
    np.save(folder / "ranks.npy", np.array([[0, 2, 1, 3], [1, 0, 2, 3], [2, 3, 0, 1], [3, 0, 2, 1]]))


def _paint(folder: Path) -> None:
    from PIL import Image

    for number in range(20):
        path = folder / ("north" if number % 2 else "south") / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 255, size=(6, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((64, 48)).save(path)
    (folder / "broken.jpg").write_text("hello")
    (folder / "copy.png").write_bytes((folder / "north" / "01.png").read_bytes())
    for path in folder.rglob("*.*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # it is part of what is known of a picture


CASES: dict[str, list[str]] = {
    "demo": ["demo --report demo.html --seed 0 --json", "demo --seed -1"],
    "index": [
        f"index vectors.npy plain {QUICK} --dry-run --json",
        f"index vectors.npy plain {QUICK} --json",
        "index vectors.npy plain --json",
        "index vectors.npy plain",
        f"index named.npz named_npz {QUICK} --graph union --preprocess center --seed 3 --json",
        f"index named.csv named {QUICK} --metadata fields.jsonl --json",
        f"index vectors.fvecs fvecs {QUICK} --preprocess whiten --json",
        f"index long_ids.csv long_ids {QUICK} --json",
        f"index named.csv paper {QUICK} --paper --json",
        f"index pictures photos --extractor pixels {QUICK} --json",
        "index pictures photos --extractor pixels --json",
        "index vectors.npy plain --n-neighbors 4 --json",
        "index vectors.npy plain --refit --n-neighbors 4 --json",
        "index fewer.csv named --dry-run --json",
        "index fewer.csv named --json",
        "index fewer.csv named --refit --json",
        "index missing.npy other",
        "index empty.npy other",
        "index cut.npy other",
        "index vectors.txt other",
        "index nan.npy other",
        "index vectors.npy folder",
        "index vectors.npy vectors.npy",
        "index vectors.npy other --n-neighbors 400",
        "index vectors.npy other --n-neighbors 0",
        "index vectors.npy other --preprocess bleach",
        "index vectors.npy other --graph full",
        "index vectors.npy other --device tpu",
        "index vectors.npy other --extractor pixels",
        "index pictures other --extractor nonsense",
        "index narrow.npy plain",
        "index vectors.npy",
        "index vectors.npy other --seed x",
    ],
    "search": [
        "search plain queries.npy -k 3 --json",
        "search plain queries.npz -k 3 --json",
        "search plain 7 -k 3 --json",
        "search plain 7 -k 1000 --json",
        "search long_ids 1000000000000000007 -k 3 --json",
        "search named queries.npy -k 3 --json",
        "search named 'cat 07' 'cat 09' -k 3 --json",
        "search named 'cat 07' -k 3",
        "search named queries.npy -k 5 --where \"year >= 1990 and place = 'Rome'\" --json",
        "search photos pictures/north/01.png -k 3 --json",
        "search photos 02.png -k 3 --json",
        "search photos north/01.png -k 3 --page answers.html",
        "search paper queries.npy -k 3 --json",
        "search plain queries.npy -k 0",
        "search plain narrow.npy",
        "search named 'cat 7'",
        "search plain 4711",
        "search plain -- --5",
        "search named queries.npy --where 'year >'",
        "search named queries.npy --where 'yaer > 3'",
        "search missing queries.npy",
        "search folder queries.npy",
        "search photos pictures/broken.jpg",
        "search plain pictures/north/01.png",
        "search plain",
    ],
    "remove": [
        "remove named 'cat 10' 'cat 11' --json",
        "remove photos south/02.png --json",
        "remove plain 3 5",
        "remove long_ids 1000000000000000014 --json",
        "remove named 'cat 10'",
        "remove named 'cat 12' nobody",
        "remove missing 1",
    ],
    "info": [
        "info named --json",
        "info plain --verify --index --json",
        "info plain --drift --json",
        "info photos --duplicates --json",
        "info long_ids --json",
        "info missing",
        "info folder",
        "info vectors.npy",
    ],
    "export": [
        "export named features.npy --to npy --json",
        "export named features.parquet --to parquet --json",
        "export plain features.faiss --to faiss --json",
        "export named compressed --to compressed --json",
        "export named compressed_pq --to compressed --codes pq --json",
        "export named compressed --to compressed --overwrite --json",
        "search compressed queries.npy -k 3 --json",
        "info compressed --verify --json",
        "export named features.npy --to npy",
        "export named compressed --to compressed",
        "export named x --to xml",
        "export named x --to compressed --codes zip",
        "remove compressed 'cat 20'",
        "info compressed --duplicates",
    ],
    "publish": [
        "publish named store.db --json",
        "publish named store.db --json",
        "publish named",
        "publish named ftp://somewhere",
        "publish missing store.db",
    ],
    "data": [
        "data list --json",
        "data list",
        "data check digits --json",
        "data check digits --window 40",
        "data check labelled.npz --json",
        "data check orl",
        "data check nothing",
        "data fetch nothing",
        "data fetch oxford5k --part nothing",
    ],
    "evaluate": [
        "evaluate mine.npy gnd_town.json --json",
        "evaluate theirs.run gnd_town.json --json",
        "evaluate mine.npy gnd_town.json --against theirs.npy --queries unseen -k 2 --json",
        "evaluate mine.npy gnd_town.json --against theirs.npy --per-query values.csv",
        "evaluate ranks.npy labels.npy --window 2 --json",
        "evaluate mine.npy gnd_town.json --distractors 3 --json",
        "evaluate mine.npy gnd_town.json --against theirs.run",
        "evaluate mine.npy broken.pkl",
        "evaluate missing.npy gnd_town.json",
        "evaluate ranks.npy gnd_town.json",
        "evaluate mine.npy gnd_town.json --queries perhaps",
    ],
    "compare": [
        "compare digits --methods knn,aqe --seed 0 --results cells.jsonl --json",
        "compare digits --methods knn,aqe --seed 0 --results cells.jsonl --html compared.html --json",
        "compare labelled.npz --methods knn,gradnet --results own.jsonl --json",
        "compare digits --methods nonsense",
        "compare digits --measure nonsense --methods knn",
        "compare --methods knn",
        "compare nothing --methods knn",
        "compare orl --methods knn",
        "compare --suite elsewhere",
        "compare digits --suite local",
    ],
    "reproduce": [
        "reproduce table3 --on digits --only 'k-NN /' --results runs.jsonl --json",
        "reproduce table3 --on digits --cell 'k-NN / digits' --results runs.jsonl --json",
        "reproduce table3 --on digits --render --results runs.jsonl --out pages --json",
        "reproduce claims --smoke --only k-NN --results smoke.jsonl --json",
        "reproduce claims --smoke --only 'without the global loss' --results smoke.jsonl --json",
        "reproduce table1 --render --results none.jsonl --json",
        "reproduce figure8 --render --results none.jsonl --out pages --json",
        "reproduce figure3 --smoke --out figures --json",
        "reproduce table9",
        "reproduce figure3 --render",
        "reproduce table3 --count letter",
        "reproduce table3 --on nowhere",
        "reproduce table3 --cell nobody --results none.jsonl",
    ],
}
"""The commands of each verb, in the order in which they are run: the first verbs make what the later ones ask for."""

# Later verbs change collections, so that the order is part of what is pinned.
ORDER = (
    "index", "search", "export", "remove", "info", "publish", "evaluate", "data", "compare", "reproduce", "demo",
)  # fmt: skip

FILES = ("features.npy.ids.json", "values.csv", "pages/table3.md", "pages/figure8.md")
"""Text files that these commands leave behind."""

MAKE_SERVED = f"index named.csv served {QUICK} --metadata fields.jsonl"

SERVED = (
    ("GET", "/healthz", None),
    ("GET", "/api/v1/collection", None),
    ("GET", "/api/v1/items?limit=3", None),
    ("GET", "/api/v1/items", None),
    ("GET", "/api/v1/item?id=cat%2020", None),
    ("GET", "/api/v1/item?id=nobody", None),
    ("GET", "/api/v1/search?id=cat%2020&k=3", None),
    ("GET", "/api/v1/search?id=cat%2020&k=3&where=year%20%3C%202000", None),
    ("GET", "/api/v1/search?id=cat%2020&k=3&where=year%20%3C", None),
    ("GET", "/api/v1/why?id=cat%2020&result=cat%2021", None),
    ("POST", "/api/v1/search/vector", {"vector": [1, 2, 3, 4, 5, 6], "k": 3}),
    ("POST", "/api/v1/search/vector", {"vector": [1, 2], "k": 3}),
    ("GET", "/api/v1/compare?id=cat%2020&k=3", None),
    ("GET", "/api/v1/search?id=cat%2020&k=3&method=knn", None),
    ("GET", "/api/v1/search?id=--5", None),
    ("GET", "/api/v1/nothing", None),
    ("DELETE", "/api/v1/items?id=cat%2020", None),
    ("GET", "/", None),
    ("GET", "/api", None),
    ("GET", "/metrics", None),
)
"""Requests to the page that serves that collection."""

INTENDED = {
    "search / 13 search plain queries.npy -k 0 / stderr [0]": "k may be larger than the number of items",
    "reproduce / 11 reproduce table3 --on nowhere / stderr [0]": "one list of sets names those of all tables",
}
"""Where messages differ on purpose, and why."""

INTENDED_DEFAULTS = {
    " / public names / index_folder / seed = 0": "None, as in index_vectors: 0 for a new collection, else its own seed"
}
"""Defaults that are others on purpose, and why."""
