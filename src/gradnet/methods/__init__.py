"""Every retrieval method under one contract: `fit(X, queries=None)`, then `search(Q=None, k=10)`.

Q=None asks for the queries given to `fit` or, when there were none, for every item of the database.
Answers are `Ranking`s over positions in X, best first, ties by position. `answers_unseen` says whether Q may
hold anything that `fit` did not see, `cost` what a method takes in time and memory.
"""

from __future__ import annotations

from typing import Any

from gradnet.methods.alpha_qe import AlphaQE
from gradnet.methods.aqe import AQE
from gradnet.methods.codes import Codes
from gradnet.methods.dba import DBA
from gradnet.methods.fsr import FSR
from gradnet.methods.gradnet import GradNet
from gradnet.methods.gradnet_paper import GradNetPaper
from gradnet.methods.gss import GSS
from gradnet.methods.knn import KNN
from gradnet.methods.mr import ManifoldRanking
from gradnet.methods.regional import Regional
from gradnet.methods.smooth import Smooth

METHODS: dict[str, Any] = {
    "knn": KNN,
    "codes": Codes,
    "aqe": AQE,
    "alpha-qe": AlphaQE,
    "dba": DBA,
    "mr": ManifoldRanking,
    "regional": Regional,
    "fsr": FSR,
    "gss": GSS,
    "smooth": Smooth,
    "gradnet": GradNet,
    "gradnet-paper": GradNetPaper,
}
"""The class of each method by its short name, in the order of the paper's tables."""
