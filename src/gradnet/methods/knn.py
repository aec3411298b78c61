"""Plain nearest neighbours by Euclidean distance: what every other method must beat."""

from __future__ import annotations

from gradnet.arrays import Floats
from gradnet.graph.neighbours import nearest
from gradnet.methods.plain import PlainMethod
from gradnet.ranking import Ranking


class KNN(PlainMethod):
    """Items ranked by the distance of their descriptors; on unit rows the same order as by cosine.

    Scores are negative distances.
    """

    def __init__(self, *, preprocess: str = "unit") -> None:
        self.preprocess = preprocess

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        return nearest(prepared, self.descriptors_, k, "euclidean")
