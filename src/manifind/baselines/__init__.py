"""Every retrieval method under one contract: `fit(X, queries=None)`, then `search(Q=None, k=10)`.

Q=None asks for the queries given to `fit` or, when there were none, for every item of the database.
Answers are `Ranking`s over positions in X, best first, ties by position. `answers_unseen` says whether Q may
hold anything that `fit` did not see, `cost` what a method takes in time and memory.
"""

from typing import Any

from manifind.baselines import diffusion, query_expansion
from manifind.baselines.generic_diffusion import GenericDiffusion
from manifind.baselines.gss import GSS
from manifind.baselines.k_reciprocal import KReciprocal
from manifind.baselines.regional import Regional
from manifind.model.estimator import GradNet, GradNetPaper

METHODS: dict[str, Any] = {
    "knn": query_expansion.KNN,
    "codes": query_expansion.Codes,
    "aqe": query_expansion.AQE,
    "alpha-qe": query_expansion.AlphaQE,
    "dba": query_expansion.DBA,
    "sd": diffusion.SelfDiffusion,
    "lcdp": diffusion.LCDP,
    "tpg": diffusion.TensorProduct,
    "mr": diffusion.ManifoldRanking,
    "gdp": GenericDiffusion,
    "rdp": diffusion.RegularisedDiffusion,
    "regional": Regional,
    "fsr": diffusion.FSR,
    "efficient": diffusion.Efficient,
    "gss": GSS,
    "gt": diffusion.GraphTransduction,
    "cdm": query_expansion.CDM,
    "k-reciprocal": KReciprocal,
    "smooth": diffusion.Smooth,
    "gradnet": GradNet,
    "gradnet-paper": GradNetPaper,
}
"""The class of each retrieval method by its short name, in the order of the paper's tables.

Every class is a scikit-learn estimator with ``fit(X, queries=None)`` and ``search(Q=None, k=10)``:
``METHODS["knn"]().fit(X).search(k=5)``. docs/methods.md describes each method.
"""
