"""`manifind demo`: the whole method on handwritten digits, with nothing to download."""

from pathlib import Path
from typing import Annotated

from manifind.cli.options import ScoreSeed, option
from manifind.cli.terminal import say, show_json, show_table
from manifind.progress import progress_bars


def demo(
    report: Annotated[Path, option("Where the page goes.")] = Path("demo/report.html"),
    seed: ScoreSeed = 0,
    as_json: Annotated[bool, option("Print the scores as JSON.", "--json")] = False,
) -> None:
    """Fit GRAD-Net on 1,797 scanned digits, compare it with k-NN, and write a page to look at."""
    from manifind.bench.demo import run_demo, write_report

    with progress_bars() as listener:
        result = run_demo(seed=seed, listener=listener)
        write_report(result, report, listener)
    if as_json:
        show_json([row._asdict() for row in result.scores])
        return
    rows = [(row.method, f"{row.mean_average_precision:.2f}", f"{row.seconds:.1f}") for row in result.scores]
    title = "1,797 handwritten digits, every one a query, itself left out"
    show_table(title, ("method", "mAP", "seconds"), rows, numeric=("mAP", "seconds"))
    say(f"look at it: {report}")
