"""What the paper finds, and whether it holds on the sets here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from manifind.bench.html import markdown_table
from manifind.bench.paper.artefacts import LOCAL_SETS
from manifind.bench.paper.declared import Artefact, CellSpec
from manifind.bench.paper.procedures import seeds_of
from manifind.bench.paper.render import CellValue, cell_values
from manifind.bench.paper.tables import MEMORY, PASS, claims_here, figure8_here, table2, table3, table4, table5
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
        cells = cell_values(table2(on), results)
        for rule in dict.fromkeys(cell.entry.column for cell in cells):
            apart = {cell.entry.row: cell.difference for cell in cells if cell.entry.column == rule}
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
    """says: the finding in words. cell: what it speaks for. others: what that must beat, all of one artefact.

    lower: whether the smaller value is the better one. least: what the value must exceed, where there are no others.
    """

    says: str
    artefact: Artefact
    cell: str
    others: tuple[str, ...]
    lower: bool = False
    least: float | None = None


class Verdict(NamedTuple):
    """verdict: one of HOLDS, FAILS, UNDECIDED, NOT_RUN. own, best: the cells that were compared.

    on_one_seed: whether a value that another seed would change rests on a single one.
    """

    finding: Finding
    verdict: str
    own: CellValue | None = None
    best: CellValue | None = None
    on_one_seed: bool = False


def findings() -> list[Finding]:
    """Everything that the paper concludes from its tables and that the sets here can be asked."""
    return [*_ahead(), *_ablation(), *_unseen(), *_claimed(), *_costs()]


def judge(finding: Finding, results: Results) -> Verdict:
    """Whether the cell's mean lies beyond the best of the others by more than twice the larger deviation."""
    cells = {cell.entry.name: cell for cell in cell_values(finding.artefact, results)}
    own, others = cells[finding.cell], [cells[name] for name in finding.others]
    if own.mean is None or any(other.mean is None for other in others):
        return Verdict(finding, NOT_RUN)
    if finding.least is not None:
        beyond, doubt = own.mean - finding.least, 2 * (own.deviation or 0.0)
        decided = HOLDS if beyond > 0 else FAILS
        verdict = decided if abs(beyond) > doubt or beyond == 0 else UNDECIDED
        return Verdict(finding, verdict, own, None, _has_one_seed(own))
    sign = -1.0 if finding.lower else 1.0
    best = max(others, key=lambda one: sign * _mean(one))
    ahead = sign * (_mean(own) - _mean(best))
    doubt = 2 * max(own.deviation or 0.0, best.deviation or 0.0)
    decided = HOLDS if ahead > 0 else FAILS
    verdict = UNDECIDED if abs(ahead) <= doubt else decided
    return Verdict(finding, verdict, own, best, _has_one_seed(own) or _has_one_seed(best))


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
    assert cell.mean is not None  # noqa: S101  the caller looked
    return cell.mean


def _evidence(cell: CellValue) -> str:
    spread = "" if cell.deviation is None else f" ± {cell.deviation:.2f}"
    return f"{cell.entry.row} {_mean(cell):,.2f}{spread}"


def _names(entries: Iterable[CellSpec], column: str, but: str) -> tuple[str, ...]:
    return tuple(entry.name for entry in entries if entry.column == column and entry.row != but)


def _ahead() -> list[Finding]:
    """Tables 2 and 3: GRAD-Net is ahead of all others."""
    found = []
    for name in ("ORL aligned", "ORL"):
        table = table2(name if name != "ORL" else None)
        column = table.columns[0]
        others = _names(table.entries, column, "GRAD-Net")
        found.append(Finding(f"GRAD-Net is ahead of all others on {name}", table, f"GRAD-Net / {column}", others))
    table = table3(LOCAL_SETS)
    for column in table.columns:
        others = _names(table.entries, column, "GRAD-Net")
        says = f"GRAD-Net is ahead of all others on {column}"
        found.append(Finding(says, table, f"GRAD-Net / {column}", others))
    return found


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


def _ablation() -> list[Finding]:
    table = table4("ORL aligned")
    return [
        Finding(f"{says} (ORL aligned)", table, "base / score", (f"{row} / score",)) for says, row in _PARTS.items()
    ]


def _unseen() -> list[Finding]:
    found = []
    for on in ("MPEG-7 EfficientNet", "Paris subset"):
        table = table5(on)
        (column,) = table.columns
        once, twice, expanded = (f"{row} / {column}" for row in ("QFE", "QFE x 2", "Query Expansion, Efficient"))
        found += [
            Finding(f"QFE is ahead of query expansion with Efficient on {on}", table, once, (expanded,)),
            Finding(f"QFE x 2 is a little better than QFE on {on}", table, twice, (once,)),
        ]
    return found


_EXCEEDS = {
    "batches, times faster": ("mini-batches are over 20 times faster", 20.0),
    "left out by truncation, %": ("truncation leaves out some right images", 0.0),
    "what is lost without the global loss": ("the global loss helps", 0.0),
}
"""How a row of the claims begins, what it is a claim of, and what it must exceed for that."""
_ON_CODES = "k-NN on Z alone"


def _claimed() -> list[Finding]:
    """Each row of the claims but for k-NN's own; what follows its beginning names the set."""
    table, found = claims_here(), []
    for row in table.rows:
        for beginning, (says, least) in _EXCEEDS.items():
            if row.startswith(beginning):
                on = row.removeprefix(beginning)
                found.append(Finding(f"{says}{on}", table, f"{row} / value", (), least=least))
        if row.startswith(_ON_CODES):
            on = row.removeprefix(_ON_CODES)
            says = f"k-NN is better on Z alone than on the descriptors{on}"
            found.append(Finding(says, table, f"{row} / value", (f"k-NN{on} / value",)))
    return found


def _costs() -> list[Finding]:
    table = figure8_here()
    return [
        Finding(
            "from 20,000 items on GRAD-Net needs less memory than Efficient",
            table,
            f"GRAD-Net: {MEMORY} / 20,000 items",
            (f"Efficient: {MEMORY} / 20,000 items",),
            lower=True,
        ),
        Finding(
            "truncation saves memory at 100,000 items",
            table,
            f"GRAD-Net, truncated: {MEMORY} / 100,000 items",
            (f"GRAD-Net: {MEMORY} / 100,000 items",),
            lower=True,
        ),
        Finding(
            "a pass of GRAD-Net is faster than one of GSS at 20,000 items",
            table,
            f"GRAD-Net: {PASS} / 20,000 items",
            (f"GSS: {PASS} / 20,000 items",),
            lower=True,
        ),
    ]
