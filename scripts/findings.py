"""What the paper finds, and whether it holds on the sets here: tables of docs/results/local.md and the README."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from manifind.bench.html import markdown_table
from manifind.bench.paper import tables
from manifind.bench.paper.declared import Artefact
from manifind.bench.paper.procedures import seeds_of
from manifind.bench.paper.render import CellValue, cell_values
from manifind.bench.paper.tables import MEMORY, PASS
from manifind.bench.results import Results


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
        cells = cell_values(tables.table2(on), results)
        for rule in dict.fromkeys(cell.entry.column for cell in cells):
            of_rule = [cell for cell in cells if cell.entry.column == rule and cell.entry.row in tables.METHODS_2]
            apart = {cell.entry.row: cell.difference for cell in of_rule}
            known = {row: value for row, value in apart.items() if value is not None}
            if "k-NN" in known:
                mean = float(np.mean(np.abs(list(known.values()))))
                found.append(Distance(on, rule, known["k-NN"], mean, len(known)))
    return found


def distances_table(found: list[Distance]) -> str:
    """The distances in markdown."""
    head = ["set", "rule", "k-NN less the paper's", "mean size over the methods", "methods"]
    rows = [[on, rule, f"{knn:+.2f}", f"{mean:.2f}", str(n)] for on, rule, knn, mean, n in found]
    return markdown_table(head, rows, n_texts=2)


HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "**does not hold**", "too close to call", "not run"


@dataclass(frozen=True)
class Finding:
    """What the paper finds, as cells of one artefact."""

    says: str  # the finding in words
    artefact: Artefact
    cell: str  # what it speaks for
    others: tuple[str, ...]  # what that must beat
    lower: bool = False  # whether the smaller value is the better one
    least: float | None = None  # what the value must exceed, where there are no others


class Verdict(NamedTuple):
    """Whether a finding holds here."""

    finding: Finding
    verdict: str  # one of HOLDS, FAILS, UNDECIDED, NOT_RUN
    own: CellValue | None = None  # the cells that were compared
    best: CellValue | None = None
    on_one_seed: bool = False  # whether a value that another seed would change rests on a single one


def judge(finding: Finding, results: Results) -> Verdict:
    """Whether the cell's mean lies beyond the best of the others by more than twice the larger deviation."""
    cells = {cell.entry.name: cell for cell in cell_values(finding.artefact, results)}
    means = {name: cells[name].mean for name in (finding.cell, *finding.others)}
    if None in means.values():
        return Verdict(finding, NOT_RUN)
    sign = -1.0 if finding.lower else 1.0
    own, others = cells[finding.cell], [cells[name] for name in finding.others]
    best = max(others, key=lambda one: sign * _mean(one), default=None)
    compared = [own] if best is None else [own, best]
    ahead = sign * (_mean(own) - (finding.least or 0.0 if best is None else _mean(best)))
    doubt = 2 * max(one.deviation or 0.0 for one in compared)
    is_open = abs(ahead) <= doubt and (best is not None or ahead != 0)
    verdict = UNDECIDED if is_open else HOLDS if ahead > 0 else FAILS
    return Verdict(finding, verdict, own, best, any(map(_has_one_seed, compared)))


def findings_table(verdicts: Iterable[Verdict]) -> str:
    """The verdicts in markdown, with the two numbers that each rests on."""
    rows = []
    for finding, verdict, own, best, on_one_seed in verdicts:
        evidence = "" if own is None else _evidence(own)
        evidence += "" if best is None else f" against {_evidence(best)}"
        doubt = ", on one seed" if on_one_seed else ""
        rows.append([finding.says, f"{verdict}{doubt}", evidence])
    return markdown_table(["the paper finds", "verdict here", "evidence"], rows, n_texts=3)


def _has_one_seed(cell: CellValue) -> bool:
    run = cell.entry.run
    return run is not None and len(cell.values) == 1 and len(seeds_of(run, 2)) > 1


def _mean(cell: CellValue) -> float:
    assert cell.mean is not None
    return cell.mean


def _evidence(cell: CellValue) -> str:
    spread = "" if cell.deviation is None else f" ± {cell.deviation:.2f}"
    return f"{cell.entry.row} {_mean(cell):,.2f}{spread}"


_PARTS = {
    "the local loss is needed": "w/o local loss",
    "the global loss helps": "w/o global loss",
    "Z helps": "w/o Z",
    "the original features are needed": "w/o original features",
    "the second order helps": "GCN w/o 2nd order",
    "concatenation helps": "w/o concatenation",
    "k = 15 is better than k = 8": "k = 8",
    "k = 15 is better than k = 64": "k = 64",
    "Euclidean similarity is better than Gaussian": "Gaussian similarity",
    "a batch of 64 is better than one of 1,024": "batch = 1024",
}
"""What the ablation finds, and the row that is behind the base for it."""
_EXCEEDS = {
    "batches, times faster": ("mini-batches are over 20 times faster", 20.0),
    "left out by truncation, %": ("truncation leaves out some right images", 0.0),
    "what is lost without the global loss": ("the global loss helps", 0.0),
    "what GRAD-Net adds to k-NN on Z alone": ("GRAD-Net is better than k-NN on Z alone", 0.0),
    "GRAD-Net ahead of Efficient": ("GRAD-Net is ahead of Efficient", 0.0),
}
"""How a row of the claims begins, what it is a claim of, and what it must exceed for that."""
_ON_CODES = "k-NN on Z alone"
_LOWER = {
    "from 20,000 items on GRAD-Net needs less memory than Efficient": (MEMORY, "20,000", "GRAD-Net", "Efficient"),
    "truncation saves memory at 100,000 items": (MEMORY, "100,000", "GRAD-Net, truncated", "GRAD-Net"),
    "a pass of GRAD-Net is faster than one of GSS at 20,000 items": (PASS, "20,000", "GRAD-Net", "GSS"),
}
"""What is measured, at how many items, whose cost is lower, and than whose."""


def findings() -> list[Finding]:
    """Everything that the paper concludes from its tables and that the sets here can be asked."""
    ablation = tables.table4("ORL aligned")
    parts = [
        Finding(f"{says} (ORL aligned)", ablation, "base / score", (f"{row} / score",)) for says, row in _PARTS.items()
    ]
    return [*_ahead(), *_trained(), *parts, *_unseen(), *_claimed(), *_costs()]


def _ahead() -> Iterator[Finding]:
    """Tables 2 and 3: GRAD-Net is ahead of all others."""
    orl, here = {"ORL aligned": tables.table2("ORL aligned"), "ORL": tables.table2()}, tables.table3(tables.LOCAL_SETS)
    places = [(on, table, table.columns[0]) for on, table in orl.items()]
    for on, table, column in [*places, *((column, here, column) for column in here.columns)]:
        methods = tables.METHODS_3 if table is here else tables.METHODS_2
        others = tuple(f"{row} / {column}" for row in methods if row != "GRAD-Net")
        yield Finding(f"GRAD-Net is ahead of all others on {on}", table, f"GRAD-Net / {column}", others)


def _trained() -> Iterator[Finding]:
    """Figure 5: training improves retrieval. The untrained network has the same graph, codes and first weights."""
    for on in ("ORL aligned", "ORL"):
        table = tables.table2(on)
        column = table.columns[0]
        pairs = {"": ("GRAD-Net", "untrained network")}
        pairs[", centred, k = 8"] = (tables.CHOSEN_2, "untrained network, centred, k = 8")
        for how, (trained, untrained) in pairs.items():
            says = f"training improves retrieval on {on}{how}"
            yield Finding(says, table, f"{trained} / {column}", (f"{untrained} / {column}",))


def _unseen() -> Iterator[Finding]:
    for on in ("MPEG-7 EfficientNet", "Paris subset"):
        table = tables.table5(on)
        (column,) = table.columns
        once, twice, expanded = (f"{row} / {column}" for row in ("QFE", "QFE x 2", "Query Expansion, Efficient"))
        yield Finding(f"QFE is ahead of query expansion with Efficient on {on}", table, once, (expanded,))
        yield Finding(f"QFE x 2 is a little better than QFE on {on}", table, twice, (once,))


def _claimed() -> Iterator[Finding]:
    """Each row of the claims but for k-NN's own; what follows its beginning names the set."""
    table = tables.claims_here()
    for row in table.rows:
        for beginning, (says, least) in _EXCEEDS.items():
            if row.startswith(beginning):
                yield Finding(f"{says}{row.removeprefix(beginning)}", table, f"{row} / value", (), least=least)
        if row.startswith(_ON_CODES):
            on = row.removeprefix(_ON_CODES)
            says = f"k-NN is better on Z alone than on the descriptors{on}"
            yield Finding(says, table, f"{row} / value", (f"k-NN{on} / value",))


def _costs() -> Iterator[Finding]:
    table = tables.figure8_here()
    for says, (quantity, items, *methods) in _LOWER.items():
        own, other = (f"{method}: {quantity} / {items} items" for method in methods)
        yield Finding(says, table, own, (other,), lower=True)
