"""Every retrieval method under one contract: `fit(X, queries=None)`, then `search(Q=None, k=10)`.

Q=None asks for the queries given to `fit` or, when there were none, for every item of the database.
Answers are `Ranking`s over positions in X, best first, ties by position.
"""

from __future__ import annotations

from typing import Any

from gradnet.methods.aqe import AQE
from gradnet.methods.codes import Codes
from gradnet.methods.gradnet import GradNet
from gradnet.methods.knn import KNN

METHODS: dict[str, Any] = {"knn": KNN, "codes": Codes, "aqe": AQE, "gradnet": GradNet}
"""The class of each method by its short name, in the order of the paper's tables."""
