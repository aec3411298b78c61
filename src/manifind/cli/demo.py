"""`manifind demo`: the whole method on handwritten digits, with nothing to download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manifind.cli.terminal import say, show_json, show_table
from manifind.progress import progress_bars


def demo(
    report: Annotated[Path, typer.Option(help="Where the page goes.")] = Path("demo/report.html"),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same scores.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Fit GRAD-Net on 1,797 scanned digits, compare it with k-NN, and write a page to look at."""
    from manifind.bench.demo import run_demo, write_report

    with progress_bars() as listener:
        result = run_demo(seed=seed, listener=listener)
        write_report(result, report, listener)
    if as_json:
        show_json([row._asdict() for row in result.scores])
        return
    show_table(
        "1,797 handwritten digits, every one a query, itself left out",
        ("method", "mAP", "seconds"),
        [(row.method, f"{row.mean_average_precision:.2f}", f"{row.seconds:.1f}") for row in result.scores],
        numeric=("mAP", "seconds"),
    )
    say(f"look at it: {report}")
