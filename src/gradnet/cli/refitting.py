"""What `gradnet index` does behind a collection that it has brought up to date: fits it anew where that is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradnet.collection.collection import Collection
from gradnet.collection.database import work_folder
from gradnet.errors import GradNetError
from gradnet.progress import Listener


def refit_if_wanted(
    collection: Collection,
    settings: dict[str, Any],
    refit: bool,
    refit_when: float | None,
    listener: Listener,
) -> bool:
    """Whether it was fitted anew. refit: in any case. refit_when: the share of changes from which on."""
    if not refit and (refit_when is None or collection.changed < refit_when):
        return False
    from gradnet.methods.refit import refit as fit_anew  # imports torch

    with flags_named():
        fit_anew(collection, listener=listener, checkpoint=work_folder(collection.path), **settings)
    return True


@contextmanager
def flags_named() -> Iterator[None]:
    """Lets an error about n_neighbors speak of the flag."""
    try:
        yield
    except GradNetError as error:
        if "n_neighbors" not in error.problem:
            raise
        hint = error.hint.replace("set n_neighbors to", "give --n-neighbors")
        raise type(error)(error.problem, hint) from error
