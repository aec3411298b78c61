"""gradnet: better image retrieval from descriptors alone, without a label.

    model = gradnet.GradNet().fit(X)        # X (n, d) descriptors
    ranking = model.search(Q, k=10)         # ids and scores of the best items
    model.save("museum.gradnet", ids=names)
    museum = gradnet.load("museum.gradnet")   # in another process, without torch
    museum.search(Q, k=10, where="year < 1900")
    museum.add(new, ids=new_names)            # searchable at once; gradnet.refit(museum) learns from them

Names are imported when they are first used, so that `gradnet.load` and searching never import torch.
"""

from __future__ import annotations

# As type checkers know it. The command line starts here, and `typing` would take long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
        StoreError,
        TrainingError,
        UnseenQueriesError,
    )
    from gradnet.formats import read_ground_truth, read_vectors
    from gradnet.methods import METHODS
    from gradnet.methods.drift import measure_drift
    from gradnet.methods.gradnet import GradNet
    from gradnet.methods.refit import refit, refit_when
    from gradnet.pictures.indexing import index_folder
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
    "StoreError": "gradnet.errors",
    "TrainingError": "gradnet.errors",
    "UnseenQueriesError": "gradnet.errors",
    "index_folder": "gradnet.pictures.indexing",
    "load": "gradnet.collection.collection",
    "measure_drift": "gradnet.methods.drift",
    "read_ground_truth": "gradnet.formats",
    "read_vectors": "gradnet.formats",
    "refit": "gradnet.methods.refit",
    "refit_when": "gradnet.methods.refit",
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
    "StoreError",
    "TrainingError",
    "UnseenQueriesError",
    "index_folder",
    "load",
    "measure_drift",
    "read_ground_truth",
    "read_vectors",
    "refit",
    "refit_when",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gradnet' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
