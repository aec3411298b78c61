"""The tables of the page on performance, one function for each benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adding
import against_efficient
import busy
import default_vs_paper
import efficient
import fit_sizes
import growth
import living
import paper_step
import raw_sockets
import serving

from manifind.bench.html import markdown_table

Cases = dict[str, Any]
Number = dict[str, float]


def fit_sizes_table(cases: Cases) -> str:
    """Time and memory of a fit, each beside its limit."""
    head = ["descriptors", "whole fit, s", "limit", "graph, s", "a step, s", "peak, GB", "limit"]
    rows = []
    for name, case in cases.items():
        limits, of = fit_sizes.LIMITS.get(name, {}), case["numbers"]
        seconds, peak = of["seconds"], of["peak_GB"]
        time = [_spread(seconds, 1), _at_most(limits.get("seconds"), seconds["median"])]
        parts = [_spread(of["graph_seconds"], 1), _spread(of["step_seconds"], 2)]
        memory = [_spread(peak, 2), _at_most(limits.get("peak_GB"), peak["median"])]
        rows.append([name, *time, *parts, *memory])
    return markdown_table(head, rows)


def paper_step_table(cases: Cases) -> str:
    """A step, its products alone, and their ratio beside its limit."""
    head = ["descriptors", "a step, ms", "its products alone, ms", "ratio", "limit", "products", "gigaflops"]
    rows = []
    for name, case in cases.items():
        of = case["numbers"]
        ratio = [_spread(of["ratio"], 2), _at_most(paper_step.LIMIT, of["ratio"]["median"])]
        flops = of["dense_gigaflops"]["median"] + of["sparse_gigaflops"]["median"]
        size = [f"{of['products']['median']:.0f}", f"{flops:.1f}"]
        rows.append([name, _spread(of["step_ms"], 0), _spread(of["products_ms"], 0), *ratio, *size])
    return markdown_table(head, rows)


def default_vs_paper_table(cases: Cases) -> str:
    """Time and score of both settings, then how they compare, each beside its limit."""
    head = ["set", "default, s", "`PAPER`, s", "times faster", "limit"]
    head += ["default, score", "`PAPER`, score", "difference", "limit"]
    rows = []
    for name, one in default_vs_paper.SETS.items():
        if f"{name} default" in cases and f"{name} paper" in cases:
            ours, paper = (cases[f"{name} {kind}"]["numbers"] for kind in ("default", "paper"))
            faster = paper["seconds"]["median"] / ours["seconds"]["median"]
            difference = ours["score"]["median"] - paper["score"]["median"]
            time = [_spread(ours["seconds"], 1), _spread(paper["seconds"], 1)]
            time += [f"{faster:.1f}", _at_least(default_vs_paper.TIMES_FASTER, faster)]
            score = [_spread(ours["score"], 1), _spread(paper["score"], 1)]
            score += [f"{difference:+.2f}", _at_least(-default_vs_paper.POINTS_BELOW, difference)]
            rows.append([one.title, *time, *score])
    return markdown_table(head, rows)


def variants_table(cases: Cases) -> str:
    """Score, time and what float16 would change, for every variant of every set."""
    head = ["set, variant", "score", "fit, s", "top ten changed by float16, %"]
    keys = {"score": 2, "seconds": 1, "changed": 1}
    return markdown_table(head, [[name, *_spreads(case["numbers"], keys)] for name, case in cases.items()])


def living_table(cases: Cases) -> str:
    """What a collection costs, a row for each thing, beside its limit."""
    head = ["collection", "what", "measured", "limit"]
    rows = []
    for name, case in cases.items():
        of = case["numbers"]
        opening, searches = of["open_seconds"], of["searches"]
        rows += [
            [name, "to save it, s", _spread(of["save_seconds"], 1), ""],
            ["", "to import the library, s", _spread(of["import_seconds"], 2), ""],
            ["", "to open it, s", _spread(of["load_seconds"], 2), ""],
            ["", "first answer, s", _spread(of["first_answer_seconds"], 2), ""],
            ["", "both together, s", _spread(opening, 2), _at_most(living.MOST_SECONDS, opening["median"])],
            ["", "one unseen query, ms", _spread(of["search_ms"], 2), ""],
            ["", "to add one item, ms", _spread(of["add_ms"], 2), ""],
            ["", "of which the commit, ms", _spread(of["commit_ms"], 2), ""],
            ["", "the rest, in queries", _spread(searches, 1), _at_most(living.MOST_SEARCHES, searches["median"])],
            ["", "to remove one item, ms", _spread(of["remove_ms"], 2), ""],
            ["", "on disk, bytes per item", _spread(of["bytes_per_item"], 0), ""],
            ["", "compressed, bytes per item", _spread(of["compressed_bytes_per_item"], 0), ""],
            ["", "recall of compressed features", _spread(of["compressed_recall"], 3), ""],
        ]
    return markdown_table(head, rows)


def adding_table(cases: Cases) -> str:
    """Scores of items that came later, added and fitted, and what adding loses beside its limit."""
    head = ["set", "added", "after a warm refit", "full fit", "lost by adding", "limit", "answers restored"]
    head += ["warm refit, s", "full fit, s"]
    rows = []
    for name, case in cases.items():
        of = case["numbers"]
        lost = of["lost"]
        scores = [_spread(of[key], 1) for key in ("added", "refit", "full")]
        limit = _at_most(adding.MOST_POINTS, lost["median"])
        restored = "exactly" if of["restored"]["median"] == 1 else "not"
        times = [_spread(of[key], 1) for key in ("refit_seconds", "full_seconds")]
        rows.append([adding.SETS[name], *scores, _spread(lost, 2), limit, restored, *times])
    return markdown_table(head, rows)


def serving_table(cases: Cases) -> str:
    """The page under load and in a browser, a row for each thing, beside its limit."""
    rows = []
    for name, case in cases.items():
        of = case["numbers"]
        rows += [
            [name, "searches answered in a second", _spread(of["per_second"], 0), ""],
            ["", "a search by id, p50, ms", _spread(of["p50_ms"], 0), ""],
            ["", "p95, ms", _spread(of["p95_ms"], 0), ""],
            ["", "p99, ms", _spread(of["p99_ms"], 0), _at_most(serving.MOST_P99_MS, of["p99_ms"]["median"])],
            ["", "errors", _spread(of["errors"], 0), _at_most(0, of["errors"]["median"])],
            ["", "growth of memory over 10,000 searches, MB", _spread(of["growth_MB"], 1), ""],
        ]
        if "paint_ms" in of:
            paint, size, frames = of["paint_ms"], of["megabytes"], of["frames_per_second"]
            rows += [
                ["", "first contentful paint, ms", _spread(paint, 0), _at_most(serving.MOST_PAINT_MS, paint["median"])],
                ["", "first view, MB", _spread(size, 2), _at_most(serving.MOST_MEGABYTES, size["median"])],
                ["", "frames a second on a map of 50,000 points", _spread(frames, 0), ""],
            ]
            rows[-1][-1] = _at_least(serving.LEAST_FRAMES, frames["median"])
    return markdown_table(["collection", "what", "measured", "limit"], rows)


def raw_sockets_table(cases: Cases) -> str:
    """What a client and the server's memory notice of raw sockets, a row for each thing, beside its limit."""
    rows = []
    for name, case in cases.items():
        of = case["numbers"]
        slowest, growth = of["max_ms"], of["growth_MB"]
        rows += [
            [name, "connections opened in all", _spread(of["opened"], 0), ""],
            ["", "`/healthz` asked", _spread(of["asked"], 0), ""],
            ["", "not answered", _spread(of["failed"], 0), _at_most(0, of["failed"]["median"])],
            ["", "p50, ms", _spread(of["p50_ms"], 1), ""],
            ["", "p99, ms", _spread(of["p99_ms"], 1), ""],
            ["", "slowest, ms", _spread(slowest, 0), _at_most(raw_sockets.MOST_MS, slowest["median"])],
            ["", "growth of memory, MB", _spread(growth, 1), _at_most(raw_sockets.MOST_GROWTH_MB, growth["median"])],
        ]
    return markdown_table(["sockets", "what", "measured", "limit"], rows)


def gpu_table(found: dict[str, Any]) -> str:
    """What `gpu.py` has printed, a row for each thing, beside its limit."""
    check, paper, default, scores, top = (found[part] for part in ("check", "paper", "default", "scores", "ceiling"))
    forward, backward = top["first_layer_forward"], top["first_layer_backward"]
    stages = ", ".join(f"{name} {seconds:.0f}" for name, seconds in default["stages"].items())
    rows = [
        [
            "`PAPER` step at 5,063 x 2,048, first layer in bfloat16, ms",
            f"{paper['step_ms_bfloat16']:.2f}",
            _at_most(1.0, paper["step_ms_bfloat16"]),
        ],
        ["the same with TF32 throughout, ms", f"{paper['step_ms_tf32']:.2f}", ""],
        [
            f"{paper['steps']:,} such steps, s",
            f"{paper['training_seconds']:.1f}",
            _at_most(25, paper["training_seconds"]),
        ],
        ["default fit at 105,000 x 2,048, s", f"{default['seconds']:.1f}", _at_most(60, default["seconds"])],
        ["of which, s", stages, ""],
        ["losses of the same seed, twice", "equal" if check["same_seed_same_losses"] else "**different**", ""],
        ["gradients against the CPU's, relative", f"{check['gradient_difference']:.1e}", ""],
        ["matrix unit alone, TF32, teraflops", f"{top['tf32_teraflops']:.0f}", ""],
        ["share of it in the first layer, forwards and back", f"{forward['share']:.0%}, {backward['share']:.0%}", ""],
        ["memory alone, copying, TB/s", f"{top['copy_TB_per_s']:.1f}", ""],
    ]
    for name, values in scores.items():
        rows.append([f"{name}, mAP of three seeds", ", ".join(f"{value:.1f}" for value in values), ""])
    for limit, of in found["bounded"].items():
        what = "no `device_memory`" if limit == "None" else f"`device_memory={float(limit):g}`"
        told = f"{of['held_GB']:.2f} GB held, {of['seconds']:.0f} s, {of['nodes']:,} nodes trained on, "
        within = "" if limit == "None" else _at_most(float(limit), of["held_GB"])
        rows.append([f"105,000 x 512 with {what}", told + f"{of['right']:.1f} % right of ten", within])
    return markdown_table([found["gpu"], "measured", "limit"], rows)


def busy_table(cases: Cases) -> str:
    """Seconds of a fit, a row for each way of waiting, a column for each number of busy programs."""
    head = ["threads that wait", *(f"{others} other programs, s" for others in busy.OTHERS)]
    rows = [
        [waiting, *(_spread(cases[f"{waiting}, {others}"]["numbers"]["seconds"], 1) for others in busy.OTHERS)]
        for waiting in busy.WAITING
        if all(f"{waiting}, {others}" in cases for others in busy.OTHERS)
    ]
    return markdown_table(head, rows)


def growth_table(cases: Cases) -> str:
    """Time and memory at every size; in the last line the exponents beside their limit."""
    head = ["items", "whole fit, s", "graph, s", "a step, s", "saved, s", "opened, s", "1,000 queries, s"]
    head += ["together, s", "limit", "memory above the libraries', GB", "peak, GB", "limit"]
    head += ["loss left, %", "right of ten, %", "plain, %"]
    before = {"seconds": 1, "graph_seconds": 1, "step_seconds": 2, "save_seconds": 1, "open_seconds": 2}
    before |= {"search_seconds": 1, "total_seconds": 1}
    rows = []
    for name, case in cases.items():
        of, limits = case["numbers"], growth.LIMITS.get(name, {})
        within = [_at_most(limits.get(key), of[key]["median"]) for key in ("total_seconds", "peak_GB")]
        memory = _spreads(of, {"memory_GB": 2, "peak_GB": 2})
        right = _spreads(of, {"loss_left": 0, "precision": 1, "plain": 1})
        rows.append([name, *_spreads(of, before), within[0], *memory, within[1], *right])
    if len(cases) < 2:
        return markdown_table(head, rows)
    time, memory_power = (growth.exponents(cases)[key] for key in ("total_seconds", "memory_GB"))
    return markdown_table(head, rows) + (
        f"\n\nTime grows with the power {time:.2f} of the number of items ({_at_most(growth.LIMIT, time)}), "
        f"memory with the power {memory_power:.2f} ({_at_most(growth.LIMIT, memory_power)})."
    )


def noise_memory_table(cases: Cases) -> str:
    """Memory and the size of the graph, without a limit."""
    head = ["descriptors", "edges", "a step, s", "memory above the libraries', GB", "peak, GB"]
    keys = {"edges": 0, "step_seconds": 2, "memory_GB": 2, "peak_GB": 2}
    rows = [[name, *_spreads(case["numbers"], keys)] for name, case in cases.items()]
    return markdown_table(head, rows)


def query_table(cases: Cases) -> str:
    """Latency of one query, ours and plain, at the median and at the 99th percentile."""
    head = ["index", "", "library, ms", "plain faiss, ms", "ratio"]
    rows = []
    for name, case in cases.items():
        for place in ("p50", "p99"):
            keys = {f"{place}_ms": 2, f"plain_{place}_ms": 2, f"ratio_{place}": 2}
            rows.append([name, place, *_spreads(case["numbers"], keys)])
    return markdown_table(head, rows)


def efficient_table(cases: Cases) -> str:
    """What was measured, a line each, beside its limit where it has one."""
    rows = []
    if "efficient" in cases:
        of = cases["efficient"]["numbers"]
        rows += [
            ["efficient, preparing, s", _spread(of["seconds"], 1), ""],
            ["its transcription, s", _spread(of["transcription_seconds"], 1), ""],
            ["ratio", _spread(of["ratio"], 2), _at_most(round(efficient.LIMIT, 3), of["ratio"]["median"])],
            ["ratio of the systems alone", _spread(of["systems_ratio"], 2), ""],
            ["queries with the same first hundred in the same order", _spread(of["agreeing"], 4), ""],
            ["of those hundreds the same, in any order", _spread(of["shared"], 5), ""],
        ]
    if "k-reciprocal" in cases:
        of = cases["k-reciprocal"]["numbers"]
        rows += [
            ["k-reciprocal, the first hundred for every item, s", _spread(of["seconds"], 1), ""],
            ["peak, GB", _spread(of["peak_GB"], 2), _at_most(efficient.LIMIT_GB, of["peak_GB"]["median"])],
        ]
    return markdown_table(["", "measured", "limit"], rows)


def training_part_table(cases: Cases) -> str:
    """What a part saves, and what it costs."""
    head = ["nodes trained on", "whole fit, s", "steps", "a step, s", "peak, GB", "right of ten, %"]
    keys = {"seconds": 1, "steps": 0, "step_seconds": 2, "peak_GB": 2, "precision": 2}
    return markdown_table(head, [[name, *_spreads(case["numbers"], keys)] for name, case in cases.items()])


def part_scores_table(cases: Cases) -> str:
    """What a part costs in score."""
    head = ["set, nodes trained on", "nodes", "mAP"]
    return markdown_table(
        head, [[name, *_spreads(case["numbers"], {"nodes": 0, "score": 1})] for name, case in cases.items()]
    )


def against_efficient_table(cases: Cases) -> str:
    """Time and memory of both, and their ratios beside the limits."""
    head = ["descriptors", "", "GRAD-Net", "efficient", "ratio", "limit"]
    rows = []
    for name, case in cases.items():
        of = case["numbers"]
        for first, key, what, digits, most in (
            (name, "seconds", "to prepare, s", 0, against_efficient.MOST_TIME),
            ("", "peak_GB", "peak, GB", 2, against_efficient.MOST_MEMORY),
        ):
            ratio = of[f"{key}_ratio"]
            both = [_spread(of[key], digits), _spread(of[f"efficient_{key}"], digits)]
            rows.append([first, what, *both, _spread(ratio, 2), _at_most(most, ratio["median"])])
    return markdown_table(head, rows)


TABLES: dict[str, Callable[[Cases], str]] = {
    "fit_sizes": fit_sizes_table,
    "paper_step": paper_step_table,
    "default_vs_paper": default_vs_paper_table,
    "variants": variants_table,
    "growth": growth_table,
    "noise_memory": noise_memory_table,
    "query": query_table,
    "busy": busy_table,
    "living": living_table,
    "adding": adding_table,
    "serving": serving_table,
    "raw_sockets": raw_sockets_table,
    "efficient": efficient_table,
    "against_efficient": against_efficient_table,
    "training_part": training_part_table,
    "part_scores": part_scores_table,
}


def provenance_table(benchmarks: dict[str, Any]) -> str:
    """When, where, with what and how often each benchmark was measured."""
    head = ["benchmark", "date", "machine", "versions", "code", "processes for a case"]
    rows = []
    for name, benchmark in benchmarks.items():
        machine = "{cores} cores, {processor}, {memory_GB} GB".format(**benchmark["machine"])
        versions = ", ".join(f"{package} {number}" for package, number in benchmark["versions"].items())
        often = sorted({case["repetitions"] for case in benchmark["cases"].values()})
        code = f"`{benchmark['code'][:8]}`" if benchmark["code"] else "not recorded"
        rows.append([f"`{name}`", benchmark["date"], machine, versions, code, " or ".join(map(str, often))])
    return markdown_table(head, rows)


def _spread(number: Number, digits: int) -> str:
    """The median, and from the least to the most where there were several repetitions."""
    middle, least, most = (f"{number[key]:,.{digits}f}" for key in ("median", "min", "max"))
    return middle if least == most else f"{middle} ({least} to {most})"


def _spreads(numbers: dict[str, Number], digits: dict[str, int]) -> list[str]:
    return [_spread(numbers[key], many) for key, many in digits.items()]


def _at_most(limit: float | None, value: float) -> str:
    return "" if limit is None else f"at most {limit:g}: {_verdict(value <= limit)}"


def _at_least(limit: float, value: float) -> str:
    return f"at least {limit:g}: {_verdict(value >= limit)}"


def _verdict(held: bool) -> str:
    return "held" if held else "**not held**"
