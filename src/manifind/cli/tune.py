"""`manifind tune`: settings chosen by judged queries."""

from pathlib import Path
from typing import Annotated

from manifind.cli.options import CollectionPath, DoneAsJson, option
from manifind.cli.terminal import resumable, say, show_json, show_table
from manifind.collection.collection import load
from manifind.progress import progress_bars


def tune(
    collection: CollectionPath,
    judged: Annotated[
        Path | None, option("A table to add first, .csv or .tsv: query, item, right (1 or 0).", metavar="FILE")
    ] = None,
    dry_run: Annotated[
        bool, option("Say what would be chosen, and change nothing but judgements.", "--dry-run")
    ] = False,
    as_json: DoneAsJson = False,
) -> None:
    """Choose settings by the judged queries of a collection, and fit it anew where that gains.

    A dozen fits with other settings answer the judged queries. The best is taken if its gain holds on queries that did
    not choose it, beyond chance; else the settings stay. Results are judged on the page (`manifind serve
    --allow-edit`), in Python, or by a table with the ids of queries and items.
    """
    from manifind.bench.tuning import settings_in_words  # imports torch
    from manifind.bench.tuning import tune as tune_collection

    opened = load(collection)
    if judged is not None:
        opened.judgements.add_file(judged)
    with progress_bars() as listener, resumable():
        found = tune_collection(opened, apply=not dry_run, listener=listener)
    if as_json:
        show_json(
            {
                "collection": str(collection),
                "queries": found.n_queries,
                "chosen": found.chosen,
                "best": found.best,
                "gain": found.gain._asdict(),
                "scores": [{"settings": settings, "mAP": value} for settings, value in found.scores],
                "refitted": found.refitted,
            }
        )
        return
    words = ("does not fit the items" if value is None else f"{value:.1f}" for _, value in found.scores)
    rows = [(settings_in_words(settings), value) for (settings, _), value in zip(found.scores, words, strict=True)]
    show_table("mAP over the judged items", ("settings", "mAP"), rows, ("mAP",))
    say(f"{collection}: {found.words}")
    if found.chosen:
        say("it was fitted anew" if found.refitted else "without --dry-run it is fitted anew with these settings")
