"""Every table, figure and claim by name, and their short forms for a quick try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from manifind.bench.paper.declared import Artefact, Run
from manifind.bench.paper.tables import (
    claims,
    claims_here,
    default_beside_paper,
    extensions,
    figure8,
    figure8_here,
    table1,
    table2,
    table3,
    table4,
    table5,
    unseen_beside_known,
)
from manifind.bench.sets import find_set
from manifind.errors import InputError

_ON_A_SET: dict[str, Callable[[str], list[Artefact]]] = {
    "table2": lambda on: [table2(on)],
    "table3": lambda on: [table3(on=on)],
    "table4": lambda on: [table4(on)],
    "table5": lambda on: [table5(on)],
    "beyond": extensions,
}
"""Those that can be put on another set than the paper's."""

LOCAL_SETS = ("MPEG-7 masks", "MPEG-7 EfficientNet", "COIL-20", "digits", "Oxford5k CaffeNet", "Paris subset")
"""The sets that Table 3's methods are run on where the paper's descriptors are not to be had."""


def local() -> list[Artefact]:
    """The same on data that anybody can have."""
    return [
        table2("ORL aligned"),
        table2(),
        table3(LOCAL_SETS),
        default_beside_paper(("ORL aligned", "ORL", *LOCAL_SETS), "local"),
        table5("MPEG-7 EfficientNet"),
        table5("Paris subset"),
        unseen_beside_known(("MPEG-7 EfficientNet", "Paris subset"), "local"),
        claims_here(),
        table4("ORL aligned"),
        figure8_here(),
    ]


_ITEMS: dict[str, Callable[[], list[Artefact]]] = {
    "table1": lambda: [table1()],
    "table2": lambda: [table2()],
    "table3": lambda: [table3()],
    "table4": lambda: [table4()],
    "table5": lambda: [table5()],
    "figure8": lambda: [figure8()],
    "claims": lambda: [claims()],
    "beyond": extensions,
    "local": local,
}
ITEMS = (*_ITEMS, "all")


def artefacts_of(item: str, on: str | None = None) -> list[Artefact]:
    """What an item of the command stands for. item: of ITEMS."""
    if on is not None:
        if item not in _ON_A_SET:
            raise InputError(
                f"{item} cannot be put on another set; expected one of {', '.join(_ON_A_SET)}", "leave --on out"
            )
        return _ON_A_SET[item](find_set(on).name)
    if item == "all":
        return [one for make in _ITEMS.values() for one in make()]
    return _ITEMS[item]()


_SHORT = {
    "gradnet-paper": {"epochs": 2, "n_anchors": 20},
    "gradnet": {"max_steps": 2, "n_anchors": 20},
    "codes": {"n_anchors": 20},
    "gss": {"steps": 2},
}


def on_toy_data(artefact: Artefact) -> Artefact:
    """The same artefact, saying what it is; numbers of toy data stand beside none of the paper's."""
    entries = tuple(replace(entry, paper=None, paper_deviation=None) for entry in artefact.entries)
    notes = ("Toy data in place of every set, and hardly any training: these numbers mean nothing.", *artefact.notes)
    return replace(artefact, title=f"{artefact.title} (toy data)", entries=entries, notes=notes)


def shortened(run: Run) -> Run:
    """The same run with as little training as shows that it works."""
    return replace(run, settings={**run.settings, **_SHORT.get(run.method, {})})
