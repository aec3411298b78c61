"""Runs the toy letters into docs/results/letters.jsonl, and renders the table and the picture of the README.

`make results` runs what the file lacks, then renders; `--outdated` runs again what other code made, and `--render` only
renders. The other rows come from docs/results/suite.jsonl, in which `manifind compare --suite local` saves them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from manifind.bench.cell import finished
from manifind.bench.html import put_between
from manifind.bench.results import Results
from manifind.bench.runner import CellJob, RunOptions, open_runner
from manifind.bench.suite import PEERS, SUITES, read_rows

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "docs" / "results" / "letters.jsonl"
SUITE = ROOT / "docs" / "results" / "suite.jsonl"
PICTURE = ROOT / "docs" / "images" / "letters.png"


def letters_key(count: str) -> dict[str, Any]:
    """What the letters counted this way are saved under."""
    return {"kind": "letters", "settings": {"count": count}, "seed": 0}


def run() -> None:
    """Every cell that the file does not have yet from this version."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "scripts"), os.environ.get("PYTHONPATH")]))
    jobs = [
        CellJob(
            letters_key(count), "results:measure_letters", None, {"settings": {"count": count}, "seed": 0}, "letters"
        )
        for count in ("word", "letter")
    ]
    with open_runner(None, Results(RESULTS), RunOptions(outdated="--outdated" in sys.argv)) as runner:
        for job, record in runner.run_all([job for job in jobs if runner.known(job) is None]):
            if record["state"] != "done":
                sys.exit(f"letters per {job.key['settings']['count']} {record['state']}: {record['reason']}")


def measure_letters(task: None, factory: None, job: dict[str, Any], listener: Any) -> dict[str, Any]:
    """The toy letters; the picture of the README is drawn from the run over the word."""
    from manifind.bench.letters import draw_letters, run_letters

    count = job["settings"]["count"]
    result = run_letters(count=count, seed=job["seed"], listener=listener)
    if count == "word":
        draw_letters(result, PICTURE)
    return finished(euclidean=float(result.euclidean_precision.mean()), gradnet=float(result.gradnet_precision.mean()))


def rendered_pages() -> dict[Path, str]:
    """Each page that shows these results, as it should read."""
    return {README: put_between(README.read_text(), "results", _main_table())}


def _main_table() -> str:
    lines = [
        f"| set, descriptors | score | k-NN | best of {len(PEERS)} peers, tuned with the labels | GRAD-Net, default |",
        "|---|---|--:|--:|--:|",
    ]
    for row in read_rows(SUITES["local"], Results(SUITE)):
        best = "" if row.best is None else f"{row.best.value:.1f} ({row.best.method})"
        shown = f"{row.member.name}, {row.preprocess} | {row.member.measure} | {row.knn:.1f} | {best}"
        lines.append(f"| {shown} | **{row.mean:.1f}** ± {row.deviation:.1f} |")
    results = Results(RESULTS)
    for count in ("word", "letter"):
        values = (results.get(letters_key(count)) or {})["values"]
        knn, learned = 100 * values["euclidean"], 100 * values["gradnet"]
        lines.append(f"| toy letters, 1,500 points per {count} | precision | {knn:.1f} | | **{learned:.1f}** |")
    return "\n".join(lines)


if __name__ == "__main__":
    if "--render" not in sys.argv:
        run()
    for page, text in rendered_pages().items():
        page.write_text(text)
