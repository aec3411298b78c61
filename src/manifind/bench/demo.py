"""The demonstration on handwritten digits, and its report as one HTML file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Floats, Ints
from manifind.baselines.query_expansion import AQE, KNN
from manifind.bench.html import (
    Html,
    bars,
    before_and_after,
    curve,
    data_address,
    document,
    join,
    labelled_map,
    tag,
    void,
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
    """What the demonstration found.

    loss_curve: (steps, 3) total, local, global. descriptor_map, feature_map: (n, 2), every item.
    settings: of GRAD-Net. versions: of what it ran with.
    """

    digits: Digits
    scores: tuple[MethodScore, ...]
    examples: tuple[Example, ...]
    loss_curve: Floats
    descriptor_map: Floats
    feature_map: Floats
    settings: dict[str, Any]
    versions: dict[str, str]
    seed: int


def run_demo(seed: int = 0, listener: Listener = ignore) -> DemoResult:
    """Search the digits by k-NN, by average query expansion and by GRAD-Net; every item is a query."""
    digits = load_digits()
    model = GradNet(preprocess="unit", random_state=seed)
    nearest, nearest_score = _plain("k-NN", KNN(preprocess="unit"), digits, listener)
    _, expansion_score = _plain("average query expansion", AQE(preprocess="unit"), digits, listener)
    learned, learned_score = _timed(
        "GRAD-Net", lambda: model.fit(digits.descriptors, listener=listener).search(k=len(digits.labels)).ids, digits
    )
    return DemoResult(
        digits,
        (nearest_score, expansion_score, learned_score),
        tuple(_example(i, nearest, learned) for i in example_queries(len(digits.labels))),
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


def _example(query: int, nearest: Ints, learned: Ints) -> Example:
    return Example(query, others(nearest[query], query)[:N_KEPT], others(learned[query], query)[:N_KEPT])


def _plain(name: str, method: Any, digits: Digits, listener: Listener) -> tuple[Ints, MethodScore]:
    with in_one_piece(name, listener):
        return _timed(name, lambda: method.fit(digits.descriptors).search(k=len(digits.labels)).ids, digits)


def _timed(name: str, rank_all: Callable[[], Ints], digits: Digits) -> tuple[Ints, MethodScore]:
    """Full rankings, (n, n), and their score; only the ranking is timed. The digits are few enough."""
    started = time.perf_counter()
    ids = rank_all()
    seconds = time.perf_counter() - started
    return ids, MethodScore(name, mean_average_precision(ids, digits.labels).value, seconds)


N_PICTURED = 10  # results that are shown as pictures


def examples(result: DemoResult) -> Html:
    """The section of the report that shows what some queries find."""
    return join(
        tag("h2", "What queries find"),
        tag(
            "p",
            f"These {len(result.examples)} queries were taken at equal distances from the collection, not "
            f"for how well they do. Pictures show the first {N_PICTURED} results, the best on the left; "
            f"the bars below them show the first {_most_kept(result)}.",
        ),
        _legend(),
        *(_example_section(example, result) for example in result.examples),
    )


def _most_kept(result: DemoResult) -> int:
    return max((len(example.nearest) for example in result.examples), default=0)


def _legend() -> Html:
    kinds = (
        ("hit right", "right: the same digit, solid green frame and tall bar"),
        ("hit wrong", "wrong: another digit, dashed red frame with a cross and short bar"),
    )
    return tag("ul", *(tag("li", tag("span", class_=kind), words) for kind, words in kinds), class_="legend")


def _example_section(example: Example, result: DemoResult) -> Html:
    digit = int(result.digits.labels[example.query])
    scan = data_address(result.digits.images[example.query])
    return tag(
        "section",
        tag(
            "figure",
            void("img", src=scan, alt=f"The query, a {digit}"),
            tag("figcaption", f"Query: a {digit} (scan {example.query})"),
            class_="query",
        ),
        tag(
            "div", _answer("k-NN", example.nearest, digit, result), _answer("GRAD-Net", example.learned, digit, result)
        ),
        class_="example",
    )


def _answer(method: str, ids: Ints, digit: int, result: DemoResult) -> Html:
    right = result.digits.labels[ids] == digit
    return tag(
        "div",
        tag("h3", method, tag("span", f"{right.sum()} of the first {len(ids)} right")),
        tag("ol", *_hits(ids[:N_PICTURED].tolist(), digit, result), class_="hits"),
        bars(right),
        class_="answer",
    )


def _hits(ids: Iterable[int], digit: int, result: DemoResult) -> Iterable[Html]:
    for i in ids:
        found = int(result.digits.labels[i])
        verdict = "right" if found == digit else "wrong"
        image = void("img", src=data_address(result.digits.images[i]), alt=f"{found}, {verdict}")
        yield tag("li", image, class_=f"hit {verdict}")


def write_report(result: DemoResult, path: Path, listener: Listener = ignore) -> None:
    """Write the report; a file that is there already is replaced in one step."""
    with in_one_piece("report", listener):
        write_file(Path(path), page(result).encode())


def page(result: DemoResult) -> str:
    """The whole document."""
    title = "GRAD-Net demonstration: handwritten digits"
    sections = (introduction, scores, examples, training, maps, making)
    main = tag("main", *(section(result) for section in sections))
    return document(title, ("report.css",), main, images="img-src data:; ")


def introduction(result: DemoResult) -> Html:
    """What one sees, in plain words."""
    n = len(result.digits.labels)
    return join(
        tag("h1", f"{n:,} handwritten digits, searched by likeness"),
        tag(
            "p",
            f"Each of {n:,} small scans was taken as a query once, to find the others that show the same "
            "digit. Nobody told the computer which digit a scan shows; the labels serve only to count, "
            "afterwards, what was right.",
            class_="lead",
        ),
        tag(
            "p",
            "k-NN, the plain way, compares two scans pixel by pixel. GRAD-Net first learns from all scans "
            "together: two that look different may be joined by a chain of scans in which each resembles "
            "the next, and such chains mostly stay within one digit. It then compares what it has learned.",
        ),
    )


def scores(result: DemoResult) -> Html:
    """The table of methods."""
    header = (
        tag("th", "Method", scope="col"),
        tag("th", "mAP, %", scope="col", class_="number"),
        tag("td", class_="meter"),
        tag("th", "Seconds", scope="col", class_="number"),
    )
    return join(
        tag("h2", "How good, and how long it took"),
        tag("table", tag("thead", tag("tr", *header)), tag("tbody", *map(_score_row, result.scores))),
        tag(
            "p",
            "mAP, the mean average precision, is 100 when every query has all scans of its digit before "
            "all others; the query itself is left out. The seconds are those of preparing, learning "
            "included, and of ranking everything for every query, in this one run.",
            class_="note",
        ),
    )


def training(result: DemoResult) -> Html:
    """The three losses over the steps."""
    names = ("Total loss", "Local loss", "Global loss")
    charts = (
        tag("figure", tag("figcaption", name), curve(name, values))
        for name, values in zip(names, result.loss_curve.T, strict=True)
    )
    return join(
        tag("h2", "How learning went"),
        tag(
            "p",
            "The loss, what GRAD-Net makes small while it learns: faint at every step, strong as a moving "
            "mean. The local part wants a neighbour to be more similar than a stranger, the global part "
            "wants neighbouring pairs to agree; the total adds a small penalty on large parameters.",
        ),
        tag("div", *charts, class_="charts"),
    )


def maps(result: DemoResult) -> Html:
    """All scans, before and after learning."""
    labels = result.digits.labels
    drawn = (("Before: the pixels", result.descriptor_map), ("After: what GRAD-Net learned", result.feature_map))
    figures = (
        tag("figure", tag("figcaption", name), labelled_map(f"{name}, as a map coloured by digit", places, labels))
        for name, places in drawn
    )
    swatches = (
        tag("li", tag("span", class_="swatch", style=f"background: var(--c{digit})"), str(digit))
        for digit in sorted(set(labels.tolist()))
    )
    return join(
        tag("h2", "All scans on a map"),
        tag(
            "p",
            "Every dot is a scan; scans that are alike lie together (t-SNE, which sees no labels). Colours "
            "and numerals say which digit the scans show.",
        ),
        tag("ul", *swatches, class_="legend", aria_label="Colour of each digit"),
        tag("div", *figures, class_="maps"),
    )


def making(result: DemoResult) -> Html:
    """Data, seed, versions and settings."""
    digits = result.digits
    settings = (tag("li", tag("code", f"{name} = {value!r}")) for name, value in result.settings.items())
    return tag(
        "footer",
        tag("h2", "How this was made"),
        tag(
            "p",
            f"Data: the {len(digits.labels):,} scans of {digits.images.shape[1]} x {digits.images.shape[2]} "
            f"pixels that come with scikit-learn; descriptors: their {digits.descriptors.shape[1]} grey "
            f"values, scaled to length 1. Seed {result.seed}. "
            + ", ".join(f"{name} {version}" for name, version in result.versions.items())
            + ". This file is complete: it loads nothing and runs nothing.",
        ),
        tag("details", tag("summary", "Settings of GRAD-Net"), tag("ul", *settings)),
    )


def _score_row(score: MethodScore) -> Html:
    ours = "ours" if score.method == "GRAD-Net" else "peer"
    percent = score.mean_average_precision
    return tag(
        "tr",
        tag("th", score.method, scope="row"),
        tag("td", f"{percent:.2f}", class_="number"),
        tag("td", tag("div", style=f"width: {percent:.1f}%"), class_="meter"),
        tag("td", f"{score.seconds:.1f}", class_="number"),
        class_=ours,
    )
