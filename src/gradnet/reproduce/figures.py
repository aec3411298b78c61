"""Every drawn figure by the name that the command takes; Figures 4 and 8 have numbers of their own behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradnet.reproduce.diagrams import framework, sextet
from gradnet.reproduce.drawing import Brief
from gradnet.reproduce.feature_maps import feature_maps
from gradnet.reproduce.gallery import unseen_query, while_learning
from gradnet.reproduce.toy_figure import toy

FIGURES: dict[str, Callable[[Brief], Any]] = {
    "figure1": toy,
    "figure2": framework,
    "figure3": sextet,
    "figure5": while_learning,
    "figure6": feature_maps,
    "figure7": unseen_query,
}
