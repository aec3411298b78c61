"""Every artefact by the name that the command takes."""

from __future__ import annotations

from collections.abc import Callable

from gradnet.errors import InputError
from gradnet.reproduce.ablation import table4
from gradnet.reproduce.beyond import beyond, default_beside_paper, unseen_beside_known
from gradnet.reproduce.claims import claims, claims_here
from gradnet.reproduce.complexity import figure8, figure8_here
from gradnet.reproduce.declared import Artefact
from gradnet.reproduce.sets import find_set
from gradnet.reproduce.tables import table1, table2, table3, table5

_ON_A_SET: dict[str, Callable[[str], list[Artefact]]] = {
    "table2": lambda on: [table2(on)],
    "table3": lambda on: [table3(on=on)],
    "table4": lambda on: [table4(on)],
    "table5": lambda on: [table5(on)],
    "beyond": beyond,
}
"""Those that can be put on another set than the paper's."""

HERE = ("MPEG-7 masks", "MPEG-7 EfficientNet", "COIL-20", "digits", "Oxford5k CaffeNet", "Paris subset")
"""The sets that Table 3's methods are run on where the paper's descriptors are not to be had."""


def local() -> list[Artefact]:
    """The same on data that anybody can have."""
    return [
        table2("ORL aligned"),
        table2(),
        table3(HERE),
        default_beside_paper(("ORL aligned", "ORL", *HERE), "local"),
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
    "beyond": beyond,
    "local": local,
}
ITEMS = (*_ITEMS, "all")


def artefacts_of(item: str, on: str | None = None) -> list[Artefact]:
    """What an item of the command stands for. item: of ITEMS."""
    if on is not None:
        if item not in _ON_A_SET:
            raise InputError(
                f"{item} cannot be put on another set; expected one of {', '.join(_ON_A_SET)}",
                "leave --on out",
            )
        return _ON_A_SET[item](find_set(on).name)
    if item == "all":
        return [one for make in _ITEMS.values() for one in make()]
    return _ITEMS[item]()
