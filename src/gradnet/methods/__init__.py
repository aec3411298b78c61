"""Every retrieval method under one contract: `fit(X, queries=None)`, then `search(Q=None, k=10)`.

Q=None asks for the queries given to `fit` or, when there were none, for every item of the database.
Answers are `Ranking`s over positions in X, best first, ties by position. `answers_unseen` says whether Q may
hold anything that `fit` did not see, `cost` what a method takes in time and memory.
"""

from __future__ import annotations

from typing import Any

from gradnet.methods.alpha_qe import AlphaQE
from gradnet.methods.aqe import AQE
from gradnet.methods.cdm import CDM
from gradnet.methods.codes import Codes
from gradnet.methods.dba import DBA
from gradnet.methods.efficient import Efficient
from gradnet.methods.fsr import FSR
from gradnet.methods.generic_diffusion import GenericDiffusion
from gradnet.methods.gradnet import GradNet
from gradnet.methods.gradnet_paper import GradNetPaper
from gradnet.methods.graph_transduction import GraphTransduction
from gradnet.methods.gss import GSS
from gradnet.methods.k_reciprocal import KReciprocal
from gradnet.methods.knn import KNN
from gradnet.methods.lcdp import LCDP
from gradnet.methods.mr import ManifoldRanking
from gradnet.methods.regional import Regional
from gradnet.methods.regularised_diffusion import RegularisedDiffusion
from gradnet.methods.self_diffusion import SelfDiffusion
from gradnet.methods.smooth import Smooth
from gradnet.methods.tensor_product import TensorProduct

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
"""The class of each method by its short name, in the order of the paper's tables."""
