"""Artefacts and runs as they are tried out: on toy data, cut short, and without the paper's values."""

from __future__ import annotations

from dataclasses import replace

from gradnet.reproduce.declared import Artefact, Run

_SHORT = {
    "gradnet-paper": {"epochs": 2, "n_anchors": 20},
    "gradnet": {"max_steps": 2, "n_anchors": 20},
    "codes": {"n_anchors": 20},
    "gss": {"steps": 2},
}


def on_toy_data(artefact: Artefact) -> Artefact:
    """The same artefact, saying what it is; numbers of toy data stand beside none of the paper's."""
    entries = tuple(replace(entry, paper=None, paper_deviation=None) for entry in artefact.entries)
    notes = (
        "Toy data in place of every set, and hardly any training: these numbers mean nothing.",
        *artefact.notes,
    )
    return replace(artefact, title=f"{artefact.title} (toy data)", entries=entries, notes=notes)


def shortened(run: Run) -> Run:
    """The same run with as little training as shows that it works."""
    return replace(run, settings={**run.settings, **_SHORT.get(run.method, {})})
