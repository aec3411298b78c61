"""The demonstration's report: one HTML file that needs nothing but itself."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from gradnet.experiments.charts import curve, labelled_map
from gradnet.experiments.demo import DemoResult, MethodScore
from gradnet.experiments.markup import Html, join, tag, void
from gradnet.experiments.report_examples import examples
from gradnet.progress import Listener, ignore, in_one_piece
from gradnet.whole_files import put_in_place

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # no request, whatever happens


def write_report(result: DemoResult, path: Path, listener: Listener = ignore) -> None:
    """Write the report; a file that is there already is replaced in one step."""
    with in_one_piece("report", listener):
        put_in_place(Path(path), page(result).encode())


def page(result: DemoResult) -> str:
    """The whole document."""
    title = "GRAD-Net demonstration: handwritten digits"
    head = (
        void("meta", charset="utf-8"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("title", title),
        tag("style", Html(files("gradnet.experiments").joinpath("report.css").read_text("utf-8"))),
    )
    sections = (introduction, scores, examples, training, maps, making)
    main = tag("main", *(section(result) for section in sections))
    return "<!doctype html>\n" + tag("html", tag("head", *head), tag("body", main), lang="en") + "\n"


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
        tag(
            "table",
            tag("thead", tag("tr", *header)),
            tag("tbody", *map(_score_row, result.scores)),
        ),
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
    drawn = (
        ("Before: the pixels", result.descriptor_map),
        ("After: what GRAD-Net learned", result.feature_map),
    )
    figures = (
        tag(
            "figure",
            tag("figcaption", name),
            labelled_map(f"{name}, as a map coloured by digit", places, labels),
        )
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
