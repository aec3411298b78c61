"""Alpha query expansion (Radenovic et al. 2018): ask again with a mean in which nearer answers count more."""

from __future__ import annotations

from typing import ClassVar

from gradnet.arrays import Floats
from gradnet.config import NOT_NEGATIVE, Constraints
from gradnet.descriptors.preprocess import unit_rows
from gradnet.graph.neighbours import nearest
from gradnet.methods.expansion import cosine_powers, expanded
from gradnet.methods.plain import PlainMethod
from gradnet.ranking import Ranking


class AlphaQE(PlainMethod):
    """Items ranked by cosine to the sum of the query and its n_neighbors nearest items times cos^alpha.

    With alpha = 0 this is average query expansion, but for neighbours at more than a right angle.
    """

    cost = "linear: two searches for each query"
    constraints: ClassVar[Constraints] = {"alpha": NOT_NEGATIVE}

    def __init__(self, *, preprocess: str = "unit", n_neighbors: int = 50, alpha: float = 3.0) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.alpha = alpha

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        q, x = unit_rows(prepared), unit_rows(self.descriptors_)
        found = nearest(q, x, min(self.n_neighbors, len(x)), "cosine").ids
        return nearest(expanded(q, x, found, cosine_powers(q, x, found, self.alpha)), x, k, "cosine")
