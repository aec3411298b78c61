"""Scores of rankings, each under a named rule, with the value of every query."""

from manifind.evaluation.measures import Score
from manifind.evaluation.protocols import (
    Difference,
    bullseye,
    compare,
    evaluate_labels,
    evaluate_lists,
    mean_average_precision,
)

__all__ = ["Difference", "Score", "bullseye", "compare", "evaluate_labels", "evaluate_lists", "mean_average_precision"]
