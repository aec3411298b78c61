"""Which form of ORL, and which rule of counting, the paper's Table 2 may have had: how far ours lies from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradnet.experiments.compare_store import Results
from gradnet.reproduce.shown import shown_cells
from gradnet.reproduce.tables import table2


class Distance(NamedTuple):
    """Ours less the paper's: of k-NN, which has no setting, and the mean size of it over all methods that were run."""

    on: str
    rule: str
    knn: float
    mean: float
    n_methods: int


def distances(results: Results) -> list[Distance]:
    """For each form of ORL and each rule, where k-NN was run."""
    found = []
    for on in ("ORL aligned", "ORL"):
        cells = shown_cells(table2(on), results)
        for rule in dict.fromkeys(cell.entry.column for cell in cells):
            apart = {cell.entry.row: cell.difference for cell in cells if cell.entry.column == rule}
            known = {row: value for row, value in apart.items() if value is not None}
            if "k-NN" in known:
                mean = float(np.mean(np.abs(list(known.values()))))
                found.append(Distance(on, rule, known["k-NN"], mean, len(known)))
    return found


def as_table(found: list[Distance]) -> str:
    """The distances in markdown."""
    lines = [
        "| set | rule | k-NN less the paper's | mean size over the methods | methods |",
        "|---|---|--:|--:|--:|",
    ]
    lines += [f"| {on} | {rule} | {knn:+.2f} | {mean:.2f} | {n} |" for on, rule, knn, mean, n in found]
    return "\n".join(lines)
