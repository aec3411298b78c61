"""The paper's figures, drawn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Ints
from manifind.baselines.diffusion import ManifoldRanking
from manifind.baselines.query_expansion import KNN
from manifind.bench.held_out import asking_twice
from manifind.bench.html import INK, before_and_after, new_figure
from manifind.bench.letters import draw_retrievals, letter_precision, settings
from manifind.bench.paper.declared import Artefact, read_table
from manifind.bench.paper.procedures import distinct_answers, open_training_probe
from manifind.bench.paper.render import cell_values
from manifind.bench.paper.tables import GPU, MEMORY, METHODS, PASS, PRINTED
from manifind.bench.results import Results
from manifind.bench.sets import find_set, read_set, toy_task
from manifind.bench.task import LabelTruth, RetrievalTask
from manifind.datasets.synthetic import make_letters
from manifind.errors import InputError
from manifind.model.estimator import GradNetPaper
from manifind.progress import Listener, Progress, ignore

RIGHT, WRONG, FAINT = "#2f86d6", "#d1242f", "#d5d5d8"
_USUAL = "digits"  # the set of a figure that is of one


class Brief(NamedTuple):
    """How a figure is to be drawn. on: another set than the figure's own. smoke: as quickly as possible."""

    on: str | None = None
    folder: Path | None = None
    seed: int = 0
    smoke: bool = False
    listener: Listener = ignore

    def task(self) -> RetrievalTask:
        """The task that the figure is drawn from; toy data in its place where it is only tried out."""
        dataset = find_set(self.on or _USUAL)
        return toy_task(dataset) if self.smoke else read_set(dataset, self.folder)

    def model(self) -> GradNetPaper:
        """GRAD-Net with the paper's settings; with hardly any training where it is only tried out."""
        short: dict[str, Any] = {"epochs": 2, "n_anchors": 20} if self.smoke else {}
        return GradNetPaper(random_state=self.seed, **short)

    def refuse_set(self, figure: str) -> None:
        """For figures that are of no data set."""
        if self.on is not None:
            raise InputError(f"{figure} is of no data set, so it cannot be put on {self.on!r}", "leave --on out")


def framework(brief: Brief) -> Any:
    """Figure 2: descriptors, two graphs, stacked layers, two losses; at the right one layer in detail."""
    brief.refuse_set("figure2")
    drawn = read_table("figure2.toml")
    figure = new_figure(12.0, 4.6)
    axes = _blank(figure, 12.0, 4.6)
    for x, y, width, height, colour, text in drawn["boxes"]:
        middle, fill = x + width / 2, drawn["colours"][colour]
        axes.bar(middle, height, width, bottom=y, color=fill, edgecolor=INK, linewidth=1)
        axes.text(middle, y + height / 2, text, ha="center", va="center", fontsize=8, color=INK)
    for start, end in drawn["arrows"]:
        axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "->", "color": INK})
    axes.plot([9.35, 9.35], [0.3, 4.3], color=FAINT, linewidth=1)
    axes.text(10.7, 4.25, "one layer", ha="center", fontsize=9, color=INK)
    axes.text(8.15, 2.5, "gradients", fontsize=8, color=INK)
    return figure


_PLACES = {"i": (2.0, 3.0), "j": (1.2, 1.7), "k": (6.0, 3.0), "l": (6.8, 1.7), "u": (2.6, 0.5), "v": (5.4, 0.5)}


def sextet(brief: Brief) -> Any:
    """Figure 3: neighbours i, j and k, l, their strangers u and v, and which similarities are compared."""
    brief.refuse_set("figure3")
    figure = new_figure(8.0, 4.0)
    axes = _blank(figure, 8.0, 4.0)
    for first, second in ("ij", "kl"):
        _line(axes, first, second, INK, "-", "neighbours")
    for first, second in ("iu", "kv"):
        _line(axes, first, second, WRONG, ":", "strangers")
    for (first, second), name in (("ki", "$s_{ki}$"), ("lj", "$s_{lj}$")):
        _line(axes, first, second, RIGHT, "--", name)
    for name, (x, y) in _PLACES.items():
        axes.scatter(x, y, s=700, c="white", edgecolors=INK, zorder=3)
        axes.text(x, y, f"${name}$", ha="center", va="center", fontsize=13, color=INK, zorder=4)
    axes.text(4.0, 3.75, "global order: $s_{ki}$ and $s_{lj}$ should be alike (Eq. 20)", ha="center", color=RIGHT)
    axes.text(4.0, 0.05, "local smoothness: a neighbour is nearer than a stranger (Eq. 19)", ha="center", color=WRONG)
    return figure


def _line(axes: Any, first: str, second: str, colour: str, style: str, name: str) -> None:
    (x0, y0), (x1, y1) = _PLACES[first], _PLACES[second]
    axes.plot([x0, x1], [y0, y1], color=colour, linestyle=style, linewidth=1.6, zorder=1)
    middle = ((x0 + x1) / 2, (y0 + y1) / 2 + 0.12)
    axes.text(*middle, name, ha="center", fontsize=8, color=colour, backgroundcolor="white", zorder=2)


def _blank(figure: Any, width: float, height: float) -> Any:
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    return axes


_OF_NO_QUERY = -1


def feature_maps(brief: Brief) -> Any:
    """Figure 6: two maps of the same items; grey are those that no query looks for."""
    task = brief.task()
    model = brief.model().fit(task.descriptors, queries=task.queries, listener=brief.listener)
    maps = before_and_after(task.descriptors, model.features_, brief.seed, brief.listener)
    groups = categories(task)
    grey = groups == _OF_NO_QUERY
    figure = new_figure(11.0, 5.4)
    titles = ("(a) t-SNE of the descriptors", "(b) t-SNE of the learned features")
    for place, (title, places) in enumerate(zip(titles, maps, strict=True), start=1):
        axes = figure.add_subplot(1, 2, place)
        axes.scatter(*places[grey].T, s=3, c=FAINT, linewidths=0)
        axes.scatter(*places[~grey].T, s=6, c=groups[~grey], cmap="tab20", linewidths=0)
        axes.set_axis_off()
        axes.set_title(title, fontsize=11, color=INK)
    return figure


def categories(task: RetrievalTask) -> Ints:
    """(n,) the class of each item, or the first of the queries whose right images it is among; -1 for none."""
    if isinstance(task.truth, LabelTruth):
        return task.truth.labels
    groups = np.full(len(task.descriptors), _OF_NO_QUERY)
    for number, right in enumerate(distinct_answers(task.truth)):
        groups[right[groups[right] == _OF_NO_QUERY]] = number
    return groups


_POINTS, _FEW_POINTS = 1500, 200


def toy(brief: Brief) -> Any:
    """Figure 1: each point in the colour of the query that retrieves it."""
    brief.refuse_set("figure1")
    letters = make_letters(_FEW_POINTS if brief.smoke else _POINTS, "letter", brief.seed)
    n = len(letters.points)
    k = 10 if brief.smoke else settings("letter", brief.seed)["n_neighbors"]
    methods: dict[str, KNN | ManifoldRanking] = {
        "(a) Euclidean distance": KNN(preprocess="none"),
        "(b) diffusion": ManifoldRanking(preprocess="none", n_neighbors=k, graph="mutual", similarity="euclidean"),
    }
    figure = new_figure(11.0, 3.0)
    for place, (name, method) in enumerate(methods.items(), start=1):
        brief.listener(Progress("letters", place - 1, len(methods)))
        ids = method.fit(letters.points, queries=letters.queries).search(k=n).ids
        axes = figure.add_subplot(1, len(methods), place)
        draw_retrievals(axes, letters, ids)
        right = 100 * letter_precision(ids, letters.labels).mean()
        axes.set_title(f"{name}: {right:.0f}% of what is found is right", fontsize=11, color=INK)
    brief.listener(Progress("letters", len(methods), len(methods)))
    return figure


_COLOURS = dict(zip(METHODS, ("#2f86d6", "#1b9e77", "#e8b000", "#6a2c91"), strict=True))
_PANELS = {MEMORY: "(a) memory, MB", GPU: "(b) GPU memory, MB", PASS: "(c) a forward and backward pass, s"}


def draw_results(artefact: Artefact, results: Results) -> Any:
    """The plot of an artefact that has one."""
    return (draw_ablation if artefact.name == "table4" else draw_complexity)(artefact, results)


_VERDICTS = {"same direction": RIGHT, "too close to call": "#e3a008", "opposite direction": WRONG}


def draw_ablation(artefact: Artefact, results: Results) -> Any:
    """Table 4: what each variant loses against the base, the paper's beside ours, with deviations of single runs."""
    ours = {cell.entry.row: cell for cell in cell_values(artefact, results) if cell.entry.column == "drop"}
    printed = {row: one for row, one in PRINTED["table4"]["rows"].items() if "drop" in one}
    figure = new_figure(8.0, 0.3 * len(printed) + 1.4)
    axes = figure.add_subplot()
    axes.axvline(0, color=INK, linewidth=0.8)
    for place, (row, one) in enumerate(printed.items()):
        _difference(axes, one["drop"], one["deviation"], place - 0.14, "0.55", "paper, Oxford5k")
        cell = ours[row]
        if cell.mean is not None:
            verdict = direction(one["drop"], cell.mean, cell.deviation or 0.0)
            label = f"{artefact.on or 'here'}: {verdict}"
            _difference(axes, cell.mean, cell.deviation, place + 0.14, _VERDICTS[verdict], label)
    axes.set(yticks=range(len(printed)), yticklabels=list(printed), xlabel="points below the base, ± deviation of runs")
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    named = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(named.values(), named.keys(), loc="upper center", ncols=2, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.6 / figure.get_figheight()))
    return figure


def _difference(axes: Any, value: float, deviation: float | None, place: float, colour: str, label: str) -> None:
    axes.errorbar(value, place, xerr=deviation, color=colour, fmt="o", markersize=5, capsize=2, label=label)


def direction(paper: float, here: float, deviation: float) -> str:
    """Whether a difference here points where the paper's does, by more than twice the deviation of single runs."""
    if abs(here) <= 2 * deviation:
        return "too close to call"
    return "same direction" if (here > 0) == (paper > 0) else "opposite direction"


def draw_complexity(artefact: Artefact, results: Results) -> Any:
    """Three panels with a line for each method; a panel without a number says so."""
    points = _points(artefact, results)
    figure = new_figure(12.0, 3.8)
    for place, (quantity, title) in enumerate(_PANELS.items(), start=1):
        axes = figure.add_subplot(1, 3, place)
        axes.set_title(title, fontsize=10, color=INK)
        _panel(axes, {method: xy for (method, what), xy in points.items() if what == quantity})
    figure.tight_layout()
    return figure


def _points(artefact: Artefact, results: Results) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """By method and quantity: (items, value), rising."""
    points: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for cell in cell_values(artefact, results):
        if cell.mean is not None:
            method, _, quantity = cell.entry.row.partition(": ")
            items = int(cell.entry.column.split()[0].replace(",", ""))
            points.setdefault((method, quantity), []).append((items, cell.mean))
    return {name: sorted(xy) for name, xy in points.items()}


def _panel(axes: Any, lines: dict[str, list[tuple[int, float]]]) -> None:
    if not lines:
        axes.text(0.5, 0.5, "not run", ha="center", color=INK, transform=axes.transAxes)
        axes.set_axis_off()
        return
    for method, xy in lines.items():
        axes.plot(*zip(*xy, strict=True), marker="o", color=_COLOURS[method], label=method)
    axes.set(xscale="log", yscale="log", xlabel="items")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


TOP = 5
EPOCHS = (0, 1, 20, 60)
_HEIGHTS = {"digits": 8, "MPEG-7 masks": 32, "COIL-20": 32, "ORL": 112, "ORL aligned": 32}
"""Sets whose descriptors are the pixels of their pictures, and how high these are."""
_SHORT_EPOCHS = (0, 1, 2)


def while_learning(brief: Brief) -> Any:
    """Figure 5: the top five of the query that gains most, after some epochs of training with the paper's settings."""
    task, labels, height = _pictures(brief)
    epochs = _SHORT_EPOCHS if brief.smoke else EPOCHS
    settings = GradNetPaper(random_state=brief.seed, n_anchors=20 if brief.smoke else 100).get_params()
    probe = open_training_probe(task, settings, brief.listener)
    found = {0: probe.rankings(TOP + 1)}
    per_epoch, last = probe.trainer.steps_per_epoch, epochs[-1]
    for report in probe.trainer.steps(at_once=per_epoch):
        brief.listener(Progress("training", report.step, last * per_epoch))
        if report.step % per_epoch == 0 and report.epoch in epochs:
            found[report.epoch] = probe.rankings(TOP + 1)
        if report.step == last * per_epoch:
            break
    others = {epoch: _without_self(ids) for epoch, ids in found.items()}
    query = _gains_most(others[0], others[last], labels, np.arange(len(labels)))
    rows = {f"epoch {epoch}": ids[query] for epoch, ids in others.items()}
    return _draw(task.descriptors, labels, query, rows, height)


def unseen_query(brief: Brief) -> Any:
    """Figure 7: an unseen query in the original space, by QFE, and by QFE twice."""
    task, labels, height = _pictures(brief)
    X = task.descriptors
    out = np.random.default_rng(brief.seed).permutation(len(X))[: len(X) // 5]
    kept = np.setdiff1d(np.arange(len(X)), out)
    model = brief.model().fit(X[kept], listener=brief.listener)
    found = {
        "original": KNN().fit(X[kept]).search(X[out], k=TOP).ids,
        "QFE": model.search(X[out], k=TOP).ids,
        "QFE x 2": asking_twice(model).search(X[out], TOP).ids,
    }
    named = {name: kept[ids] for name, ids in found.items()}
    place = _gains_most(named["original"], named["QFE x 2"], labels, out)
    rows = {name: ids[place] for name, ids in named.items()}
    return _draw(X, labels, int(out[place]), rows, height)


def _pictures(brief: Brief) -> tuple[RetrievalTask, Ints, int]:
    """The task, its labels, and how high its pictures are."""
    name = find_set(brief.on or _USUAL).name
    if name not in _HEIGHTS:
        raise InputError(
            f"on = {name!r}; expected a set whose descriptors are pixels: {', '.join(map(repr, _HEIGHTS))}",
            "choose one of these with --on",
        )
    task = brief.task()
    assert isinstance(task.truth, LabelTruth)  # noqa: S101  all of _HEIGHTS have labels
    return task, task.truth.labels, 4 if brief.smoke else _HEIGHTS[name]


def _without_self(ids: Ints) -> Ints:
    """(n, TOP) what items find besides themselves."""
    return np.array([row[row != item][:TOP] for item, row in enumerate(ids)])


def _gains_most(before: Ints, after: Ints, labels: Ints, queries: Ints) -> int:
    """The row whose first five become right more than any other's; of several the first."""
    own = labels[queries][:, None]
    return int(np.argmax((labels[after] == own).sum(axis=1) - (labels[before] == own).sum(axis=1)))


def _draw(X: NDArray[Any], labels: Ints, query: int, rows: dict[str, Ints], height: int) -> Any:
    """The query's picture, and in each row the pictures that it finds at some point. rows: (TOP,) by name."""
    figure = new_figure(1.3 * (TOP + 1) + 0.6, 1.3 * len(rows) + 0.3)
    grid = figure.add_gridspec(len(rows), TOP + 1, left=0.01, right=0.99, top=0.9, bottom=0.02, wspace=0.12)
    _picture(figure.add_subplot(grid[0, 0]), X[query].reshape(height, -1), INK, "query")
    for place, (name, ids) in enumerate(rows.items()):
        for rank, item in enumerate(ids):
            colour, title = RIGHT if labels[item] == labels[query] else WRONG, "" if rank else name
            _picture(figure.add_subplot(grid[place, rank + 1]), X[item].reshape(height, -1), colour, title)
    return figure


def _picture(axes: Any, pixels: NDArray[Any], colour: str, title: str) -> None:
    axes.imshow(pixels, cmap="gray", interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=8, color=INK, loc="left", pad=3)
    for side in axes.spines.values():
        side.set(edgecolor=colour, linewidth=2.5)


FIGURES: dict[str, Callable[[Brief], Any]] = {
    "figure1": toy,
    "figure2": framework,
    "figure3": sextet,
    "figure5": while_learning,
    "figure6": feature_maps,
    "figure7": unseen_query,
}
