"""gradnet: better image retrieval from descriptors alone, without a label.

    model = gradnet.GradNet().fit(X)        # X (n, d) descriptors
    ranking = model.search(Q, k=10)         # ids and scores of the best items
    model.save("museum.gradnet", ids=names)
    gradnet.load("museum.gradnet").search(Q)  # in another process, without torch

Names are imported when they are first used, so that `gradnet.load` and searching never import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradnet.collection.collection import Collection, load
    from gradnet.config import PAPER
    from gradnet.errors import (
        CollectionError,
        DataError,
        FileFormatError,
        GradNetError,
        GraphError,
        InputError,
        MissingExtraError,
        TrainingError,
        UnseenQueriesError,
    )
    from gradnet.formats import read_ground_truth, read_vectors
    from gradnet.methods import METHODS
    from gradnet.methods.gradnet import GradNet
    from gradnet.progress import Progress
    from gradnet.ranking import Ranking

__version__ = "0.1.0"

_HOMES = {
    "Collection": "gradnet.collection.collection",
    "CollectionError": "gradnet.errors",
    "DataError": "gradnet.errors",
    "FileFormatError": "gradnet.errors",
    "GradNet": "gradnet.methods.gradnet",
    "GradNetError": "gradnet.errors",
    "GraphError": "gradnet.errors",
    "InputError": "gradnet.errors",
    "METHODS": "gradnet.methods",
    "MissingExtraError": "gradnet.errors",
    "PAPER": "gradnet.config",
    "Progress": "gradnet.progress",
    "Ranking": "gradnet.ranking",
    "TrainingError": "gradnet.errors",
    "UnseenQueriesError": "gradnet.errors",
    "load": "gradnet.collection.collection",
    "read_ground_truth": "gradnet.formats",
    "read_vectors": "gradnet.formats",
}

__all__ = [
    "METHODS",
    "PAPER",
    "Collection",
    "CollectionError",
    "DataError",
    "FileFormatError",
    "GradNet",
    "GradNetError",
    "GraphError",
    "InputError",
    "MissingExtraError",
    "Progress",
    "Ranking",
    "TrainingError",
    "UnseenQueriesError",
    "load",
    "read_ground_truth",
    "read_vectors",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gradnet' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
