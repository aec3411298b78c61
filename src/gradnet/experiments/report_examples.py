"""The report's queries: what each finds under k-NN and under GRAD-Net, right and wrong told apart."""

from __future__ import annotations

from collections.abc import Iterable

from gradnet.arrays import Ints
from gradnet.experiments.charts import bars
from gradnet.experiments.demo import DemoResult, Example
from gradnet.experiments.markup import Html, join, tag, void
from gradnet.experiments.thumbnails import data_address

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
        *(_example(example, result) for example in result.examples),
    )


def _most_kept(result: DemoResult) -> int:
    return max((len(example.nearest) for example in result.examples), default=0)


def _legend() -> Html:
    kinds = (
        ("hit right", "right: the same digit, solid green frame and tall bar"),
        ("hit wrong", "wrong: another digit, dashed red frame with a cross and short bar"),
    )
    return tag("ul", *(tag("li", tag("span", class_=kind), words) for kind, words in kinds), class_="legend")


def _example(example: Example, result: DemoResult) -> Html:
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
            "div",
            _answer("k-NN", example.nearest, digit, result),
            _answer("GRAD-Net", example.learned, digit, result),
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
