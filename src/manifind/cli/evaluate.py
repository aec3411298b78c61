"""`manifind evaluate`: the scores of a ranking that anyone made, each with its rule."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np

from manifind.bench.task import LabelTruth, ListTruth, Truth
from manifind.cli.options import ListProtocol, argument, option
from manifind.cli.scores import per_query_csv, scores_as_dicts, show_comparison, show_scores
from manifind.cli.terminal import say, show_json
from manifind.errors import InputError
from manifind.evaluation.files import Answers, JudgedQueries, read_answers, read_judged_queries
from manifind.evaluation.protocols import compare
from manifind.files import write_file
from manifind.io.tables import ItemLabels

Queries = StrEnum("Queries", {"in_graph": "in-graph", "unseen": "unseen", "not_stated": "not-stated"})
"""Where the queries were when the method was fitted."""
_WORDS = {"in-graph": "in the graph", "unseen": "unseen", "not-stated": "not stated"}
_TRUTH = "Published lists (.json, .pkl, .mat, a folder of Oxford text files) or labels (.npy, .csv)."
_PROTOCOL = "landmarks: every right image of Oxford5k or Paris6k is a query in turn."


def evaluate(
    ranking: Annotated[Path, argument("RANKING", "A TREC run, or an .npy: a row per query, best first.")],
    ground_truth: Annotated[Path, argument("GROUND-TRUTH", _TRUTH)],
    against: Annotated[Path | None, option("A second ranking of the same queries, to compare with.")] = None,
    queries: Annotated[Queries, option("Were the queries part of what the method was fitted on?")] = Queries.not_stated,
    protocol: Annotated[ListProtocol, option(_PROTOCOL)] = ListProtocol.official,
    cutoffs: Annotated[list[int] | None, option("Precision and recall at k; may be repeated.", "-k", min=1)] = None,
    window: Annotated[
        int | None, option("With labels: the bullseye score in this window, by three rules.", min=1)
    ] = None,
    distractors: Annotated[int, option("With lists: items behind those that the ground truth names.", min=0)] = 0,
    per_query: Annotated[Path | None, option("Write every query's values to this .csv.")] = None,
    as_json: Annotated[bool, option("Print scores, rules and per-query values as JSON.", "--json")] = False,
) -> None:
    """Score a ranking, whoever made it, by the protocol of its ground truth.

    A run has lines of `query Q0 item rank score tag` with the names that the ground truth uses; an .npy has
    positions in the database counted from 0, or names. A ranking may be cut at any length: what it leaves
    out counts as not found.
    """
    judged = read_judged_queries(ground_truth, protocol.value)
    answers = read_answers(ranking, judged, distractors)
    truth, names = _truth(judged, window, protocol.value, distractors), _query_names(judged, answers)
    how = _WORDS[queries.value], tuple(cutoffs or (1, 5, 10))
    scores, other = truth.scores(answers.ids, answers.query_items, *how), []
    if against is not None:
        second = read_answers(against, judged, distractors)
        other = truth.scores(second.ids, second.query_items, *how)
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


def _truth(judged: JudgedQueries, window: int | None, protocol: str, distractors: int) -> Truth:
    if not isinstance(judged.truth, ItemLabels):
        if window is not None:
            raise InputError("--window is for labels, and this ground truth has lists", "leave it out")
        return ListTruth(judged.truth, protocol, distractors)
    if (protocol, distractors) != ("official", 0):
        problem = "--protocol and --distractors are for lists, and this ground truth has labels"
        raise InputError(problem, "leave them out")
    return LabelTruth(np.asarray(judged.truth.values), window)


def _query_names(judged: JudgedQueries, answers: Answers) -> list[str]:
    names = judged.queries
    if names is None:
        return [str(row) for row in range(len(answers.ids))]
    return [names[row] for row in (range(len(names)) if answers.query_items is None else answers.query_items.tolist())]
