"""Tables 1 to 5, Figure 8's numbers, the claims of the text and further tables, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from manifind.bench.held_out import TWICE
from manifind.bench.paper import values as paper
from manifind.bench.paper.declared import Artefact, CellSpec, Drop, EpochsTo, Run, Show, Value
from manifind.bench.sets import CAFFENET, GROWN_TO, RESNET_105K, SETS
from manifind.evaluation.measures import BULLSEYE_RULES

METHODS_2 = {
    "k-NN": "knn",
    "SD": "sd",
    "LCDP": "lcdp",
    "TPG": "tpg",
    "MR": "mr",
    "GDP": "gdp",
    "RDP": "rdp",
    "Efficient": "efficient",
    "GSS": "gss",
    "GRAD-Net": "gradnet-paper",
}
METHODS_3 = {
    "k-NN": "knn",
    "k-NN + AQE": "aqe",
    "Regional Diffusion": "regional",
    "Efficient": "efficient",
    "GSS": "gss",
    "GRAD-Net": "gradnet-paper",
}
"""The rows of both tables, and what runs in them; each with its default settings, GRAD-Net with the paper's."""
COLUMNS_3 = list(dict.fromkeys(name for _, name in paper.TABLE_3))
LARGE = ("Oxford105k", "Paris106k")
TRUNCATION = 500  # "the top 500 nearest neighbors for each query"
EFFICIENT_LARGE = 5000  # what the authors of Efficient truncate to on the large sets; elsewhere 1,000
UNIT = "All methods get the same descriptors, rows scaled to length 1, and their default settings; none is tuned."


def score_run(on: str, method: str, settings: Mapping[str, Any] | None = None) -> Run:
    """A method scored on a set, by all the measures that are kept of it."""
    usual: dict[str, Any] = {}
    if method == "gradnet-paper":
        usual = paper_settings(on)
    if method == "efficient" and on.startswith(LARGE):
        usual = {"truncation": EFFICIENT_LARGE}
    return Run("score", on, method, {**usual, **(settings or {})}, {"measures": list(SETS[on].measures)})


def paper_settings(on: str) -> dict[str, Any]:
    """What the paper changes from set to set: k = 60 on Paris, and truncation on the large sets."""
    settings: dict[str, Any] = {}
    if (k := SETS[on].n_neighbors) is not None:
        settings["n_neighbors"] = k
    if on.startswith(LARGE):
        settings["truncation"] = TRUNCATION
    return settings


def table1() -> Artefact:
    """The sets: classes, items and dimensions."""
    entries = []
    for row, printed in paper.TABLE_1.items():
        sets = [name for name in SETS if name == row or name in (f"{row} VGG", f"{row} ResNet")]
        on = sets[-1]
        for column, value in printed._asdict().items():
            entries.append(CellSpec(row, column, Run("facts", on, "knn"), Value(column), value))
    notes = ("Of two descriptors ResNet's are counted. Classes: labels, or queries with different right images.",)
    return Artefact("table1", "Table 1: the data sets", tuple(entries), notes, digits=0)


def table2(on: str | None = None) -> Artefact:
    """Bullseye scores, under all three rules where the set has a window."""
    name = on or "ORL"
    entries = [
        CellSpec(row, measure, score_run(name, method), Value(measure), paper.TABLE_2[row] if _is_orl(name) else None)
        for row, method in METHODS_2.items()
        for measure in SETS[name].measures
    ]
    notes = (
        UNIT,
        *(f"{rule}: {words}." for rule, words in BULLSEYE_RULES.items() if SETS[name].measure.startswith("bull")),
        *(["The paper does not say by which rule it counts; its value stands beside each."] if _is_orl(name) else []),
    )
    return Artefact("table2", f"Table 2: all methods on {name}", tuple(entries), notes, on=on)


def table3(sets: Sequence[str] | None = None, on: str | None = None) -> Artefact:
    """mAP on Oxford and Paris, with VGG and ResNet descriptors; or the same methods on other sets."""
    columns = [on] if on else list(sets or COLUMNS_3)
    entries = [
        CellSpec(row, column, score_run(column, method), Value(SETS[column].measure), paper.TABLE_3.get((row, column)))
        for row, method in METHODS_3.items()
        for column in columns
    ]
    scores = {column: SETS[column].measure for column in columns}
    where = " and ".join(columns) if len(columns) < 3 else "Oxford and Paris" if sets is None else "the sets here"
    notes = (UNIT, "Scores: " + "; ".join(f"{column}: {measure}" for column, measure in scores.items()) + ".")
    name = "local" if sets else "table3"
    return Artefact(name, f"Table 3: methods on {where}", tuple(entries), notes, on=on)


def table5(on: str | None = None) -> Artefact:
    """Queries that were kept out of the fit: 11 of 55, or a fifth."""
    name = on or "Oxford5k ResNet"
    measure = SETS[name].measure
    kept = {"measures": [measure]}
    ours = Run("held-out", name, "gradnet-paper", paper_settings(name), {**kept, "twice": True})
    rows = {
        "k-NN": (Run("held-out", name, "knn", {}, kept), measure),
        "Query Expansion, Efficient": (Run("held-out", name, "efficient", {}, kept), measure),
        "QFE": (ours, measure),
        "QFE x 2": (ours, measure + TWICE),
    }
    entries = tuple(
        CellSpec(row, measure, run, Value(value), None if on else paper.TABLE_5.get(row))
        for row, (run, value) in rows.items()
    )
    notes = (
        "A fifth of the queries, drawn by the seed, is kept out of the fit and asked afterwards; queries that are "
        "items leave the database with it. The deviation is over such draws. k-NN is no row of the paper's.",
    )
    return Artefact("table5", f"Table 5: unseen queries on {name}", entries, notes, on=on)


def _is_orl(name: str) -> bool:
    return name.startswith("ORL")


VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "w/o local loss": {"local_weight": 0.0},
    "w/o global loss": {"global_weight": 0.0},
    "w/o weight penalty": {"l2": 0.0},
    "w/o Z": {"inputs": "descriptors"},
    "w/o original features": {"inputs": "codes"},
    "layers 1024, 256, 128, 128": {"layers": [1024, 256, 128, 128]},
    "layers 1024, 256": {"layers": [1024, 256]},
    "layers 512, 128, 64": {"layers": [512, 128, 64]},
    "GCN w/o 2nd order": {"layer": "gcn"},
    "w/o concatenation": {"output": "last"},
    **{f"k = {k}": {"n_neighbors": k} for k in (8, 20, 25, 32, 64)},
    "Gaussian similarity": {"similarity": "gaussian"},
    "cosine similarity": {"similarity": "cosine"},
    **{f"batch = {size}": {"batch_size": size} for size in (32, 128, 256, 1024)},
}
"""By the name of the row: what differs from the paper's settings."""
COLUMNS = ("epochs", "score", "drop")


def table4(on: str | None = None) -> Artefact:
    """Epochs to a score, the score after the last epoch, and how far that is below the base."""
    name = on or "Oxford5k ResNet"
    measure, target = SETS[name].measure, None if on else paper.TARGET_4
    runs = {row: _run(name, settings) for row, settings in VARIANTS.items()}
    knn = score_run(name, "knn")
    entries = []
    for row, run in runs.items():
        printed = None if on else paper.TABLE_4[row]
        shows: tuple[Show, ...] = (
            EpochsTo(measure, target, runs["base"], knn),
            Value(measure),
            Drop(measure, runs["base"]),
        )
        for column, show in zip(COLUMNS, shows, strict=True):
            if row == "base" and column == "drop":
                entries.append(CellSpec(row, column, None))
                continue
            values = _printed(printed, column)
            entries.append(CellSpec(row, column, run, show, *values))
    reached = f"mAP {target:g}" if target else f"k-NN's score and {EpochsTo.SHARE:.0%} of what the base gains over it"
    notes = (
        f"Score: {measure}, of the model after the last epoch. Epochs: until {reached} is first reached, counted "
        "after each epoch up to 64 and then every tenth; never where one of the trials does not reach it. "
        "Drop: below the base.",
    )
    return Artefact("table4", f"Table 4: ablation on {name}", tuple(entries), notes, on=on)


def _run(on: str, settings: dict[str, Any]) -> Run:
    ours = {**paper_settings(on), **settings}
    return Run("curve", on, "gradnet-paper", ours, {"measures": [SETS[on].measure]})


def _printed(row: paper.Ablation | None, column: str) -> tuple[float | str | None, float | None]:
    if row is None:
        return None, None
    if column == "score":
        return row.score, row.deviation
    if column == "drop":
        return row.drop, None
    return "never" if row.epochs is None else row.epochs, None


_STEPS = {"max_steps": 6}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "GRAD-Net": ("gradnet-paper", {"n_neighbors": 15, **_STEPS}),
    "GRAD-Net, truncated": ("gradnet-paper", {"n_neighbors": 15, "truncation": TRUNCATION, **_STEPS}),
    "Efficient": ("efficient", {}),
    "GSS": ("gss", {"steps": 2}),
}
MEMORY, GPU, PASS = "memory, MB", "GPU memory, MB", "a pass, s"
QUANTITIES = {
    MEMORY: tuple(METHODS),
    GPU: ("GRAD-Net", "GRAD-Net, truncated"),  # our GSS and Efficient compute on the CPU
    PASS: ("GRAD-Net", "GRAD-Net, truncated", "GSS"),
}
"""What is measured, and of which methods: Efficient has no passes."""


def figure8() -> Artefact:
    """Oxford5k with more and more of Oxford105k's distractors."""
    sets = {items: f"{RESNET_105K}, {items:,} items" for items in GROWN_TO}
    return _complexity("figure8", "Oxford105k's distractors", {5_063: "Oxford5k ResNet", **sets}, "figure8.png")


def figure8_here() -> Artefact:
    """Oxford5k's weak descriptors with synthetic distractors."""
    sets = {items: f"{CAFFENET}, {items:,} items" for items in GROWN_TO}
    return _complexity("local", "synthetic distractors", {5_063: CAFFENET, **sets}, "figure8_here.png")


def _complexity(name: str, distractors: str, sets: dict[int, str], picture: str) -> Artefact:
    entries = tuple(
        CellSpec(f"{method}: {quantity}", f"{items:,} items", _complexity_run(quantity, method, on), Value(quantity))
        for quantity, methods in QUANTITIES.items()
        for method in methods
        for items, on in sets.items()
    )
    notes = (
        "Memory: the most that the whole process had, Python, libraries and descriptors among it; of a "
        "GPU, what torch held there. A pass: forward and "
        f"backward, {TRUNCATION} nearest of each query where truncated; of GRAD-Net the median, of GSS the mean.",
    )
    title = f"Figure 8: memory and time, Oxford5k with {distractors}"
    return Artefact(name, title, entries, notes, picture=picture)


def _complexity_run(quantity: str, method: str, on: str) -> Run:
    name, settings = METHODS[method]
    return Run("gpu cost" if quantity == GPU else "cost", on, name, settings)


GRADNETS = {"GRAD-Net, paper": "gradnet-paper", "GRAD-Net, default": "gradnet"}
_REVISITED = ("ROxford ResNet", "RParis ResNet")
_LARGEST_UNSEEN = ("Oxford5k ResNet", "Paris6k ResNet")


def extensions(on: str | None = None) -> list[Artefact]:
    """Easy and Hard, the default settings, and unseen queries: on the paper's sets, or on another."""
    if on is not None:
        return [default_beside_paper([on], "beyond", on), unseen_beside_known([on], "beyond", on)]
    return [easy_and_hard(), default_beside_paper(COLUMNS_3, "beyond"), unseen_beside_known(_LARGEST_UNSEEN, "beyond")]


def easy_and_hard() -> Artefact:
    """The levels of the revisited sets that the paper leaves out."""
    entries = tuple(
        CellSpec(row, f"{on}, {level}", score_run(on, method), Value(f"mAP {level}"))
        for row, method in METHODS_3.items()
        for on in _REVISITED
        for level in ("easy", "hard")
    )
    return Artefact("beyond", "Beyond the paper: Easy and Hard", entries, (UNIT,))


def default_beside_paper(sets: Sequence[str], name: str, on: str | None = None) -> Artefact:
    """GRAD-Net as it comes, beside the paper's settings and k-NN."""
    entries = tuple(
        CellSpec(row, column, score_run(column, method), Value(SETS[column].measure))
        for row, method in {"k-NN": "knn", **GRADNETS}.items()
        for column in sets
    )
    notes = (
        "The default's settings were chosen with the scores of the sets in docs/default.md in view, the paper's not.",
        "Scores: " + "; ".join(f"{column}: {SETS[column].measure}" for column in sets) + ".",
    )
    return Artefact(name, "Beyond the paper: the default beside the paper's settings", entries, notes, on=on)


def unseen_beside_known(sets: Sequence[str], name: str, on: str | None = None) -> Artefact:
    """The same fifth of the queries, in the graph and kept out of it, asked among the same items."""
    entries = [
        CellSpec(row, f"{column}, {place}", run, Value(SETS[column].measure))
        for row, method in GRADNETS.items()
        for column in sets
        for place, run in _known_and_unseen(column, method).items()
    ]
    notes = ("A fifth of the queries, drawn by the seed; those that are items are nowhere counted as found.",)
    return Artefact(name, "Beyond the paper: queries in the graph and unseen", tuple(entries), notes, on=on)


def _known_and_unseen(on: str, method: str) -> dict[str, Run]:
    settings = paper_settings(on) if method == "gradnet-paper" else {}
    measures = {"measures": [SETS[on].measure]}
    return {
        "in the graph": Run("held-out", on, method, settings, {**measures, "in_graph": True}),
        "unseen": Run("held-out", on, method, settings, {**measures, "twice": True}),
    }


_REPETITIONS = 5
_VALUE = "value"


def claims() -> Artefact:
    """What only the text says, on the sets that it says it of."""
    return _claims(
        "claims",
        "Claims of the text",
        codes=["Oxford5k ResNet"],
        without_global="Oxford105k ResNet",
        batches=["Oxford105k ResNet"],
        truncated=["Oxford105k VGG", "Paris106k VGG", "Oxford105k ResNet", "Paris106k ResNet"],
        printed=True,
    )


def claims_here() -> Artefact:
    """The same on data that anybody can have."""
    grown = "Oxford5k CaffeNet, 100,000 items"
    return _claims(
        "local",
        "Claims of the text, on the sets here",
        codes=["ORL aligned", "MPEG-7 EfficientNet", "digits", "Paris subset"],
        without_global="Paris subset",
        batches=["Oxford5k CaffeNet", grown],
        truncated=["Oxford5k CaffeNet", grown],
        printed=False,
    )


def _claims(
    name: str,
    title: str,
    *,
    codes: Sequence[str],
    without_global: str,
    batches: Sequence[str],
    truncated: Sequence[str],
    printed: bool,
) -> Artefact:
    entries: list[CellSpec] = []
    for on in codes:
        measure = SETS[on].measure
        entries += [
            CellSpec(f"k-NN, {on}", _VALUE, score_run(on, "knn"), Value(measure)),
            CellSpec(
                f"k-NN on Z alone, {on}",
                _VALUE,
                score_run(on, "codes"),
                Value(measure),
                paper.CODES_ALONE if printed else None,
            ),
        ]
    entries.append(_global_loss(without_global, printed))
    entries += [_batches(on, printed) for on in batches]
    entries += [_truncated(on, printed and "VGG" in on) for on in truncated]
    notes = (
        "Times faster: a loss and its gradients from the nodes that 64 sextets need, against the whole graph, the "
        f"median of {_REPETITIONS} each.",
        f"Left out: right items that are not among the {TRUNCATION} nearest of any query, in percent of all.",
    )
    return Artefact(name, title, tuple(entries), notes)


def _global_loss(on: str, printed: bool) -> CellSpec:
    measure = SETS[on].measure
    run = score_run(on, "gradnet-paper", {"global_weight": 0.0})
    drop = Drop(measure, score_run(on, "gradnet-paper"))
    value = paper.DROP_WITHOUT_GLOBAL_LOSS if printed else None
    return CellSpec(f"what is lost without the global loss, {on}", _VALUE, run, drop, value)


def _batches(on: str, printed: bool) -> CellSpec:
    run = Run("batches", on, "gradnet-paper", _whole_graph(on), {"repetitions": _REPETITIONS})
    value = paper.BATCHES_FASTER if printed else None
    return CellSpec(f"batches, times faster, {on}", _VALUE, run, Value("times faster"), value)


def _whole_graph(on: str) -> dict[str, Any]:
    """The paper's settings for the set, but nothing truncated."""
    settings = dict(score_run(on, "gradnet-paper").settings)
    settings.pop("truncation", None)
    return settings


def _truncated(on: str, printed: bool) -> CellSpec:
    options = {"measures": [SETS[on].measure], "truncation": TRUNCATION}
    run = Run("left-out", on, "knn", {}, options)
    value = paper.LEFT_OUT_BY_TRUNCATION if printed else None
    return CellSpec(f"left out by truncation, %, {on}", _VALUE, run, Value("right items left out"), value)
