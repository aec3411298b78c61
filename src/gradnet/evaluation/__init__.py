"""Scores of rankings, each under a named rule, with the value of every query."""

from gradnet.evaluation.comparison import Difference, compare
from gradnet.evaluation.labels import bullseye, evaluate_labels, mean_average_precision
from gradnet.evaluation.lists import evaluate_lists
from gradnet.evaluation.score import Score

__all__ = [
    "Difference",
    "Score",
    "bullseye",
    "compare",
    "evaluate_labels",
    "evaluate_lists",
    "mean_average_precision",
]
