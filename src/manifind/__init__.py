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

from manifind.threads import let_threads_sleep

# As type checkers know it. The command line starts here, and `typing` would take long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from manifind.baselines import METHODS as METHODS
    from manifind.bench.compare import compare as compare
    from manifind.collection.collection import Collection as Collection
    from manifind.collection.collection import load as load
    from manifind.collection.searchable import QueryPart as QueryPart
    from manifind.errors import CollectionError as CollectionError
    from manifind.errors import DataError as DataError
    from manifind.errors import FileFormatError as FileFormatError
    from manifind.errors import GraphError as GraphError
    from manifind.errors import InputError as InputError
    from manifind.errors import ManifindError as ManifindError
    from manifind.errors import MissingExtraError as MissingExtraError
    from manifind.errors import StoreError as StoreError
    from manifind.errors import TrainingError as TrainingError
    from manifind.errors import UnseenQueriesError as UnseenQueriesError
    from manifind.io.ground_truth import read_ground_truth as read_ground_truth
    from manifind.io.vectors import read_vectors as read_vectors
    from manifind.model.estimator import GradNet as GradNet
    from manifind.model.index_folder import index_folder as index_folder
    from manifind.model.index_vectors import index_vectors as index_vectors
    from manifind.model.refit import measure_drift as measure_drift
    from manifind.model.refit import refit as refit
    from manifind.model.refit import refit_when as refit_when
    from manifind.progress import Progress as Progress
    from manifind.ranking import Ranking as Ranking
    from manifind.settings import PAPER as PAPER

__version__ = "0.1.0"

let_threads_sleep()

_NAMES = {
    "baselines": "METHODS",
    "bench.compare": "compare",
    "collection.collection": "Collection load",
    "collection.searchable": "QueryPart",
    "errors": "ManifindError InputError GraphError UnseenQueriesError FileFormatError DataError CollectionError "
    "StoreError TrainingError MissingExtraError",
    "model.index_folder": "index_folder",
    "io": "read_ground_truth read_vectors",
    "model.estimator": "GradNet",
    "model.index_vectors": "index_vectors",
    "model.refit": "measure_drift refit refit_when",
    "progress": "Progress",
    "ranking": "Ranking",
    "settings": "PAPER",
}
_HOMES = {name: f"manifind.{module}" for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'manifind' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
