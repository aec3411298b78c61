"""`manifind evaluate`: the scores of a ranking that anyone made, each with its rule."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from manifind.cli.compare import ListProtocol
from manifind.cli.scores import per_query_csv, scores_as_dicts, show_comparison, show_scores
from manifind.cli.terminal import say, show_json
from manifind.errors import InputError
from manifind.evaluation.files import Answers, JudgedQueries, read_answers, read_judged_queries
from manifind.evaluation.measures import BULLSEYE_RULES, Score
from manifind.evaluation.protocols import bullseye, compare, evaluate_labels, evaluate_lists
from manifind.files import write_file
from manifind.io.tables import ItemLabels


class Queries(StrEnum):
    """Where the queries were when the method was fitted."""

    in_graph = "in-graph"
    unseen = "unseen"
    not_stated = "not-stated"


_WORDS = {"in-graph": "in the graph", "unseen": "unseen", "not-stated": "not stated"}


def evaluate(
    ranking: Annotated[
        Path, typer.Argument(metavar="RANKING", help="A TREC run, or an .npy: a row per query, best first.")
    ],
    ground_truth: Annotated[
        Path,
        typer.Argument(
            metavar="GROUND-TRUTH",
            help="Published lists (.json, .pkl, .mat, a folder of Oxford text files) or labels (.npy, .csv).",
        ),
    ],
    against: Annotated[Path | None, typer.Option(help="A second ranking of the same queries, to compare with.")] = None,
    queries: Annotated[
        Queries, typer.Option(help="Were the queries part of what the method was fitted on?")
    ] = Queries.not_stated,
    protocol: Annotated[
        ListProtocol, typer.Option(help="landmarks: every right image of Oxford5k or Paris6k is a query in turn.")
    ] = ListProtocol.official,
    cutoffs: Annotated[
        list[int] | None, typer.Option("-k", min=1, help="Precision and recall at k; may be repeated.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="With labels: the bullseye score in this window, by three rules.")
    ] = None,
    distractors: Annotated[
        int, typer.Option(min=0, help="With lists: items behind those that the ground truth names.")
    ] = 0,
    per_query: Annotated[Path | None, typer.Option(help="Write every query's values to this .csv.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print scores, rules and per-query values as JSON.")] = False,
) -> None:
    """Score a ranking, whoever made it, by the protocol of its ground truth.

    A run has lines of `query Q0 item rank score tag` with the names that the ground truth uses; an .npy has
    positions in the database counted from 0, or names. A ranking may be cut at any length: what it leaves
    out counts as not found.
    """
    judged = read_judged_queries(ground_truth, protocol.value)
    options = _Options(_WORDS[queries.value], tuple(cutoffs or (1, 5, 10)), window, protocol.value, distractors)
    answers = read_answers(ranking, judged, distractors)
    scores = options.score(judged, answers)
    names = _query_names(judged, answers)
    other = [] if against is None else options.score(judged, read_answers(against, judged, distractors))
    differences = [compare(one, two) for one, two in zip(scores, other, strict=against is not None)]
    if per_query is not None:
        write_file(per_query, per_query_csv(scores, names).encode())
    if as_json:
        rows = scores_as_dicts(scores, names)
        for row, difference in zip(rows, differences, strict=against is not None):
            row["against"] = difference._asdict()
        show_json(rows)
        return
    show_scores(str(ranking), scores, names)
    if against is not None:
        show_comparison(str(ranking), str(against), scores, other, differences)
    if per_query is not None:
        say(f"every query: {per_query}")


class _Options(NamedTuple):
    """What was asked for, and the scores it gives."""

    queries: str
    cutoffs: tuple[int, ...]
    window: int | None
    protocol: str
    distractors: int

    def score(self, judged: JudgedQueries, answers: Answers) -> list[Score]:
        if isinstance(judged.truth, ItemLabels):
            return self._by_labels(judged.truth, answers)
        if self.window is not None:
            raise InputError("--window is for labels, and this ground truth has lists", "leave it out")
        return evaluate_lists(
            answers.ids,
            judged.truth,
            queries=self.queries,
            cutoffs=self.cutoffs,
            protocol=self.protocol,
            distractors=self.distractors,
        )

    def _by_labels(self, labels: ItemLabels, answers: Answers) -> list[Score]:
        if self.protocol != "official" or self.distractors:
            raise InputError(
                "--protocol and --distractors are for lists, and this ground truth has labels", "leave them out"
            )
        given: dict[str, Any] = {"asked": answers.asked, "queries": self.queries}
        scores = evaluate_labels(answers.ids, labels.values, cutoffs=self.cutoffs, **given)
        if self.window is not None:
            scores += [bullseye(answers.ids, labels.values, self.window, rule, **given) for rule in BULLSEYE_RULES]
        return scores


def _query_names(judged: JudgedQueries, answers: Answers) -> list[str]:
    names = judged.queries
    if names is None:
        return [str(row) for row in range(len(answers.ids))]
    return [names[row] for row in (range(len(names)) if answers.asked is None else answers.asked.tolist())]
