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

_PAGE = """
<h1>{n:,} handwritten digits, searched by likeness</h1>
<p class="lead">Each of {n:,} small scans was taken as a query once, to find the others that show the same digit.
Nobody told the computer which digit a scan shows; the labels serve only to count, afterwards, what was right.</p>
<p>k-NN, the plain way, compares two scans pixel by pixel. GRAD-Net first learns from all scans together: two that
look different may be joined by a chain of scans in which each resembles the next, and such chains mostly stay within
one digit. It then compares what it has learned.</p>
<h2>How good, and how long it took</h2>
<table><thead><tr><th scope="col">Method</th><th scope="col" class="number">mAP, %</th><td class="meter"></td>
<th scope="col" class="number">Seconds</th></tr></thead><tbody>{scores}</tbody></table>
<p class="note">mAP, the mean average precision, is 100 when every query has all scans of its digit before all others;
the query itself is left out. The seconds are those of preparing, learning included, and of ranking everything for
every query, in this one run.</p>
<h2>What queries find</h2>
<p>These {n_examples} queries were taken at equal distances from the collection, not for how well they do. Pictures
show the first {n_pictured} results, the best on the left; the bars below them show the first {n_kept}.</p>
<ul class="legend">
<li><span class="hit right"></span>right: the same digit, solid green frame and tall bar</li>
<li><span class="hit wrong"></span>wrong: another digit, dashed red frame with a cross and short bar</li></ul>
{examples}
<h2>How learning went</h2>
<p>The loss, what GRAD-Net makes small while it learns: faint at every step, strong as a moving mean. The local part
wants a neighbour to be more similar than a stranger, the global part wants neighbouring pairs to agree; the total
adds a small penalty on large parameters.</p>
<div class="charts">{curves}</div>
<h2>All scans on a map</h2>
<p>Every dot is a scan; scans that are alike lie together (t-SNE, which sees no labels). Colours and numerals say
which digit the scans show.</p>
<ul class="legend" aria-label="Colour of each digit">{swatches}</ul>
<div class="maps">{maps}</div>
<footer><h2>How this was made</h2>
<p>Data: the {n:,} scans of {result.digits.images.shape[1]} x {result.digits.images.shape[2]} pixels that come with
scikit-learn; descriptors: their {result.digits.descriptors.shape[1]} grey values, scaled to length 1. Seed
{result.seed}. {versions}. This file is complete: it loads nothing and runs nothing.</p>
<details><summary>Settings of GRAD-Net</summary><ul>{settings}</ul></details></footer>"""
_SCORE = """
<tr class="{kind}"><th scope="row">{score.method}</th><td class="number">{score.mean_average_precision:.2f}</td>
<td class="meter"><div style="width: {score.mean_average_precision:.1f}%"></div></td>
<td class="number">{score.seconds:.1f}</td></tr>"""
_EXAMPLE = """
<section class="example"><figure class="query"><img src="{scan}" alt="The query, a {digit}">
<figcaption>Query: a {digit} (scan {query})</figcaption></figure><div>{answers}</div></section>"""
_ANSWER = """
<div class="answer"><h3>{method}<span>{n_right} of the first {n} right</span></h3>
<ol class="hits">{hits}</ol>{bars}</div>"""
_HIT = """<li class="hit {verdict}"><img src="{scan}" alt="{found}, {verdict}"></li>"""
_FIGURE = "<figure><figcaption>{}</figcaption>{}</figure>"
_SWATCH = """<li><span class="swatch" style="background: var(--c{0})"></span>{0}</li>"""


def write_report(result: DemoResult, path: Path, listener: Listener = ignore) -> None:
    """Write the report; a file that is there already is replaced in one step."""
    with in_one_piece("report", listener):
        write_file(Path(path), page(result).encode())


def page(result: DemoResult) -> str:
    digits, curves = result.digits, zip(("Total", "Local", "Global"), result.loss_curve.T, strict=True)
    maps = {"Before: the pixels": result.descriptor_map, "After: what GRAD-Net learned": result.feature_map}
    main = fill(
        _PAGE,
        result=result,
        n=len(digits.labels),
        scores=join(*map(_score_row, result.scores)),
        n_examples=len(result.examples),
        n_pictured=N_PICTURED,
        n_kept=max((len(example.nearest) for example in result.examples), default=0),
        examples=join(*(_example_section(example, digits) for example in result.examples)),
        curves=join(*(fill(_FIGURE, f"{name} loss", curve(f"{name} loss", values)) for name, values in curves)),
        swatches=join(*(fill(_SWATCH, digit) for digit in np.unique(digits.labels))),
        maps=join(*(_map(name, places, digits.labels) for name, places in maps.items())),
        versions=", ".join(f"{name} {version}" for name, version in result.versions.items()),
        settings=join(*(tag("li", tag("code", f"{name} = {value!r}")) for name, value in result.settings.items())),
    )
    return document("GRAD-Net demonstration: handwritten digits", ("report.css",), main, images="img-src data:; ")


def _score_row(score: MethodScore) -> Html:
    return fill(_SCORE, score=score, kind="ours" if score.method == "GRAD-Net" else "peer")


def _map(name: str, places: Floats, labels: Ints) -> Html:
    return fill(_FIGURE, name, labelled_map(f"{name}, as a map coloured by digit", places, labels))


def _example_section(example: Example, digits: Digits) -> Html:
    digit = int(digits.labels[example.query])
    answers = {"k-NN": example.nearest, "GRAD-Net": example.learned}
    found = join(*(_answer(method, ids, digit, digits) for method, ids in answers.items()))
    scan = data_address(digits.images[example.query])
    return fill(_EXAMPLE, scan=scan, digit=digit, query=example.query, answers=found)


def _answer(method: str, ids: Ints, digit: int, digits: Digits) -> Html:
    right = digits.labels[ids] == digit
    hits = []
    for i in ids[:N_PICTURED]:
        verdict = "right" if digits.labels[i] == digit else "wrong"
        hits.append(fill(_HIT, verdict=verdict, scan=data_address(digits.images[i]), found=digits.labels[i]))
    return fill(_ANSWER, method=method, n_right=right.sum(), n=len(ids), hits=join(*hits), bars=bars(right))
