"""`manifind index FOLDER`: photographs described, fitted and kept, or a collection of them brought up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manifind.cli.index import flags_named, refit_if_wanted
from manifind.cli.terminal import say, show_json, show_table
from manifind.images.extractors import make_extractor
from manifind.images.index_folder import Outcome, index_folder
from manifind.io.tables import read_fields
from manifind.progress import progress_bars
from manifind.text import are, count

_SHOWN = 20  # problems on the screen; all of them are in the JSON


def index_pictures(
    folder: Path,
    target: Path,
    metadata: Path | None,
    allow_removals: bool,
    describer: str | None,
    multi_scale: bool,
    settings: dict[str, Any],
    seed: int | None,
    refit: bool,
    refit_when: float | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """The whole verb for a folder."""
    wanted = make_extractor(describer or "efficientnet", multi_scale=True) if multi_scale else describer
    options = {**settings, **({} if seed is None else {"seed": seed})}
    with progress_bars() as listener, flags_named():
        outcome = index_folder(
            folder,
            target,
            wanted,
            settings,
            seed or 0,
            metadata=None if metadata is None else read_fields(metadata, ("path", "id")),
            allow_removals=allow_removals,
            listener=listener,
            dry_run=dry_run,
        )
        refitted = False
        if outcome.collection is not None and not (dry_run or outcome.is_new):
            refitted = refit_if_wanted(outcome.collection, options, refit, refit_when, listener)
    if as_json:
        problems = [{"path": path, "reason": reason} for path, reason in outcome.problems]
        told = {"collection": str(target), "dry_run": dry_run, **outcome.counts, "refitted": refitted}
        told |= {"needs_allow_removals": outcome.needs_permission, "metadata_without_picture": outcome.unmatched}
        show_json({**told, "other_files": outcome.n_others, "problems": problems})
        return
    _show(target, outcome, refitted, dry_run)


def _show(target: Path, outcome: Outcome, refitted: bool, dry_run: bool) -> None:
    aside = ("unchanged", "kept")
    parts = [f"{count} {name}" for name, count in outcome.counts.items() if count and name not in aside]
    would = "would be " if dry_run else ""
    say(f"{target}: {would}{', '.join(parts) or 'nothing to do'}; {outcome.counts['unchanged']} unchanged")
    if kept := outcome.counts["kept"]:
        say(f"{kept} kept as before, since their files cannot be read or decoded now")
    if dry_run and outcome.needs_permission:
        say("so many removals need --allow-removals")
    if outcome.unmatched:
        first, more = outcome.unmatched[0], len(outcome.unmatched) - 1
        say(f"the metadata has {first!r}{f' and {more} more' if more else ''}, and there is no such picture")
    if outcome.problems:
        rows = outcome.problems[:_SHOWN]
        more = len(outcome.problems) - len(rows)
        show_table(f"{len(outcome.problems)} left out", ("file", "because it"), rows)
        if more:
            say(f"and {more} more: --json lists all")
    if outcome.n_others:
        say(f"left alone: {count(outcome.n_others, 'file')} that {are(outcome.n_others)} not pictures")
    if refitted:
        say("fitted anew")
    elif outcome.collection is not None and outcome.collection.changed and not dry_run:
        say(f"{outcome.collection.changed:.1%} of what was fitted has changed; --refit learns from it")
    if not dry_run:
        say(f"search it with: manifind search {target} PICTURE")
