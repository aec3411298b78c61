"""The demonstration on handwritten digits, and its report as one HTML file."""

import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Floats, Ints
from manifind.baselines.query_expansion import AQE, KNN
from manifind.bench.cell import fit_arguments
from manifind.bench.html import (
    Html,
    bars,
    before_and_after,
    curve,
    data_address,
    document,
    fill,
    join,
    labelled_map,
    tag,
)
from manifind.bench.results import versions
from manifind.datasets.labelled import Digits, load_digits
from manifind.evaluation.protocols import mean_average_precision
from manifind.files import write_file
from manifind.graph.preprocess import unit_rows
from manifind.model.estimator import GradNet
from manifind.progress import Listener, ignore, in_one_piece
from manifind.settings import fit_settings

N_EXAMPLES = 8
N_KEPT = 100  # results kept of an example; every digit has at least 174 scans, so all could be right


class MethodScore(NamedTuple):
    """mean_average_precision: in percent. seconds: of fitting and of the full search of every item."""

    method: str
    mean_average_precision: float
    seconds: float


@dataclass(frozen=True)
class Example:
    """One query and its best results, itself left out. nearest, learned: (100,) by k-NN and by GRAD-Net."""

    query: int
    nearest: Ints
    learned: Ints


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found."""

    digits: Digits
    scores: tuple[MethodScore, ...]
    examples: tuple[Example, ...]
    loss_curve: Floats  # (steps, 3) total, local, global
    descriptor_map: Floats  # (n, 2), every item
    feature_map: Floats  # (n, 2)
    settings: dict[str, Any]  # of GRAD-Net
    versions: dict[str, str]  # of what it ran with
    seed: int


def run_demo(seed: int = 0, listener: Listener = ignore) -> DemoResult:
    """Search the digits by k-NN, by average query expansion and by GRAD-Net; every item is a query."""
    digits = load_digits()
    model = GradNet(preprocess="unit", random_state=seed)
    plain = {"k-NN": KNN(preprocess="unit"), "average query expansion": AQE(preprocess="unit")}
    methods: dict[str, Any] = {**plain, "GRAD-Net": model}
    scores, rankings = [], []
    for name, method in methods.items():
        arguments = fit_arguments(method, None, listener)
        with nullcontext() if arguments else in_one_piece(name, listener):
            started = time.perf_counter()
            ids = method.fit(digits.descriptors, **arguments).search(k=len(digits.labels)).ids
            seconds = time.perf_counter() - started
        scores.append(MethodScore(name, mean_average_precision(ids, digits.labels).value, seconds))
        rankings.append(ids)  # (n, n); the digits are few enough
    return DemoResult(
        digits,
        tuple(scores),
        tuple(
            Example(i, *(others(ids[i], i)[:N_KEPT] for ids in (rankings[0], rankings[-1])))
            for i in example_queries(len(digits.labels))
        ),
        model.loss_curve_,
        *before_and_after(unit_rows(digits.descriptors), model.features_, seed, listener),
        fit_settings(model.get_params()),
        versions(),
        seed,
    )


def example_queries(n_items: int) -> list[int]:
    """Eight positions, evenly spaced: a rule that cannot know which method wins on them."""
    return [n_items * i // N_EXAMPLES for i in range(N_EXAMPLES)]


def others(ids: Ints, query: int) -> Ints:
    """A query's ranking without itself, wherever it stands."""
    return np.asarray(ids[ids != query])


N_PICTURED = 10  # results that are shown as pictures


def write_report(result: DemoResult, path: Path, listener: Listener = ignore) -> None:
    """Write the report; a file that is there already is replaced in one step."""
    with in_one_piece("report", listener):
        write_file(Path(path), page(result).encode())


def page(result: DemoResult) -> str:
    digits, curves = result.digits, zip(("Total", "Local", "Global"), result.loss_curve.T, strict=True)
    maps = {"Before: the pixels": result.descriptor_map, "After: what GRAD-Net learned": result.feature_map}
    main = fill(
        "demo/page",
        result=result,
        n=len(digits.labels),
        scores=join(*map(_score_row, result.scores)),
        n_examples=len(result.examples),
        n_pictured=N_PICTURED,
        n_kept=max((len(example.nearest) for example in result.examples), default=0),
        examples=join(*(_example_section(example, digits) for example in result.examples)),
        curves=join(*(fill("demo/figure", f"{name} loss", curve(f"{name} loss", values)) for name, values in curves)),
        swatches=join(*(fill("demo/swatch", digit) for digit in np.unique(digits.labels))),
        maps=join(*(_map(name, places, digits.labels) for name, places in maps.items())),
        versions=", ".join(f"{name} {version}" for name, version in result.versions.items()),
        settings=join(*(tag("li", tag("code", f"{name} = {value!r}")) for name, value in result.settings.items())),
    )
    return document("GRAD-Net demonstration: handwritten digits", ("report.css",), main, images="img-src data:; ")


def _score_row(score: MethodScore) -> Html:
    return fill("demo/score", score=score, kind="ours" if score.method == "GRAD-Net" else "peer")


def _map(name: str, places: Floats, labels: Ints) -> Html:
    return fill("demo/figure", name, labelled_map(f"{name}, as a map coloured by digit", places, labels))


def _example_section(example: Example, digits: Digits) -> Html:
    digit = int(digits.labels[example.query])
    answers = {"k-NN": example.nearest, "GRAD-Net": example.learned}
    found = join(*(_answer(method, ids, digit, digits) for method, ids in answers.items()))
    scan = data_address(digits.images[example.query])
    return fill("demo/example", scan=scan, digit=digit, query=example.query, answers=found)


def _answer(method: str, ids: Ints, digit: int, digits: Digits) -> Html:
    right = digits.labels[ids] == digit
    hits = []
    for i in ids[:N_PICTURED]:
        verdict = "right" if digits.labels[i] == digit else "wrong"
        hits.append(fill("demo/hit", verdict=verdict, scan=data_address(digits.images[i]), found=digits.labels[i]))
    return fill("demo/answer", method=method, n_right=right.sum(), n=len(ids), hits=join(*hits), bars=bars(right))
