"""Every retrieval method under one contract: `fit(X, queries=None)`, then `search(Q=None, k=10)`.

Q=None asks for the queries given to `fit` or, when there were none, for every item of the database.
Answers are `Ranking`s over positions in X, best first, ties by position. `answers_unseen` says whether Q may
hold anything that `fit` did not see, `cost` what a method takes in time and memory.
"""

from typing import Any

from manifind.baselines.diffusion import (
    FSR,
    LCDP,
    Efficient,
    GraphTransduction,
    ManifoldRanking,
    RegularisedDiffusion,
    SelfDiffusion,
    Smooth,
    TensorProduct,
)
from manifind.baselines.generic_diffusion import GenericDiffusion
from manifind.baselines.gss import GSS
from manifind.baselines.k_reciprocal import KReciprocal
from manifind.baselines.query_expansion import AQE, CDM, DBA, KNN, AlphaQE, Codes
from manifind.baselines.regional import Regional
from manifind.model.estimator import GradNet, GradNetPaper

METHODS: dict[str, Any] = {
    "knn": KNN,
    "codes": Codes,
    "aqe": AQE,
    "alpha-qe": AlphaQE,
    "dba": DBA,
    "sd": SelfDiffusion,
    "lcdp": LCDP,
    "tpg": TensorProduct,
    "mr": ManifoldRanking,
    "gdp": GenericDiffusion,
    "rdp": RegularisedDiffusion,
    "regional": Regional,
    "fsr": FSR,
    "efficient": Efficient,
    "gss": GSS,
    "gt": GraphTransduction,
    "cdm": CDM,
    "k-reciprocal": KReciprocal,
    "smooth": Smooth,
    "gradnet": GradNet,
    "gradnet-paper": GradNetPaper,
}
"""The class of each retrieval method by its short name, in the order of the paper's tables.

Every class is a scikit-learn estimator with ``fit(X, queries=None)`` and ``search(Q=None, k=10)``:
``METHODS["knn"]().fit(X).search(k=5)``. docs/methods.md describes each method.
"""
