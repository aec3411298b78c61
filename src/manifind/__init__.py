"""manifind: better image retrieval from descriptors alone, without a label.

    model = manifind.GradNet().fit(X)        # X (n, d) descriptors
    ranking = model.search(Q, k=10)         # ids and scores of the best items
    model.save("museum.manifind", ids=names)
    museum = manifind.load("museum.manifind")   # in another process, without torch
    museum.search(Q, k=10, where="year < 1900")
    museum.add(new, ids=new_names)            # searchable at once; manifind.refit(museum) learns from them

Names are imported when they are first used, so that `manifind.load` and searching never import torch.
"""

from __future__ import annotations

# As type checkers know it. The command line starts here, and `typing` would take long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from manifind.baselines import METHODS
    from manifind.bench.compare import compare
    from manifind.collection.collection import Collection, load
    from manifind.errors import (
        CollectionError,
        DataError,
        FileFormatError,
        GraphError,
        InputError,
        ManifindError,
        MissingExtraError,
        StoreError,
        TrainingError,
        UnseenQueriesError,
    )
    from manifind.images.index_folder import index_folder
    from manifind.io.ground_truth import read_ground_truth
    from manifind.io.vectors import read_vectors
    from manifind.model.drift import measure_drift
    from manifind.model.estimator import GradNet
    from manifind.model.index_vectors import index_vectors
    from manifind.model.refit import refit, refit_when
    from manifind.progress import Progress
    from manifind.ranking import Ranking
    from manifind.settings import PAPER

__version__ = "0.1.0"

_HOMES = {
    "Collection": "manifind.collection.collection",
    "CollectionError": "manifind.errors",
    "DataError": "manifind.errors",
    "FileFormatError": "manifind.errors",
    "GradNet": "manifind.model.estimator",
    "ManifindError": "manifind.errors",
    "GraphError": "manifind.errors",
    "InputError": "manifind.errors",
    "METHODS": "manifind.baselines",
    "MissingExtraError": "manifind.errors",
    "PAPER": "manifind.settings",
    "Progress": "manifind.progress",
    "Ranking": "manifind.ranking",
    "StoreError": "manifind.errors",
    "TrainingError": "manifind.errors",
    "UnseenQueriesError": "manifind.errors",
    "compare": "manifind.bench.compare",
    "index_folder": "manifind.images.index_folder",
    "index_vectors": "manifind.model.index_vectors",
    "load": "manifind.collection.collection",
    "measure_drift": "manifind.model.drift",
    "read_ground_truth": "manifind.io",
    "read_vectors": "manifind.io",
    "refit": "manifind.model.refit",
    "refit_when": "manifind.model.refit",
}

__all__ = [
    "METHODS",
    "PAPER",
    "Collection",
    "CollectionError",
    "DataError",
    "FileFormatError",
    "GradNet",
    "GraphError",
    "InputError",
    "ManifindError",
    "MissingExtraError",
    "Progress",
    "Ranking",
    "StoreError",
    "TrainingError",
    "UnseenQueriesError",
    "compare",
    "index_folder",
    "index_vectors",
    "load",
    "measure_drift",
    "read_ground_truth",
    "read_vectors",
    "refit",
    "refit_when",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'manifind' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
