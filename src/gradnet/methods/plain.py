"""What the methods without a graph share: preprocessed descriptors, and the database as its own queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from gradnet.arrays import Floats
from gradnet.config import NO_CONSTRAINTS, SOME_NEIGHBOURS, Constraints, check_settings
from gradnet.descriptors.check import check_descriptors
from gradnet.descriptors.preprocess import fit_preprocessor
from gradnet.errors import InputError
from gradnet.ranking import Ranking
from gradnet.search.learned import check_k


class PlainMethod(BaseEstimator, ABC):
    """A method that answers any query from the descriptors alone; `_rank` is what makes it itself."""

    preprocess: str

    answers_unseen: ClassVar[bool] = True
    cost: ClassVar[str] = "linear: a search for each query"
    constraints: ClassVar[Constraints] = NO_CONSTRAINTS
    """What the settings that only this method has may be."""

    def fit(self, X: Any, queries: Any = None) -> Self:
        """Keep the database X, (n, d), and the queries, (m, d), if they are known."""
        check_settings(self.get_params(), {**SOME_NEIGHBOURS, **self.constraints})
        X = check_descriptors(X)
        self.preprocessor_ = fit_preprocessor(self.preprocess, X)
        self.descriptors_ = self.preprocessor_(X)
        self.queries_ = None if queries is None else self._prepare(queries)
        return self

    def search(self, Q: Any = None, k: int = 10) -> Ranking:
        """The k best items for each row of Q."""
        k = check_k(k, len(self.descriptors_))
        if Q is not None:
            return self._rank(self._prepare(Q), k)
        return self._rank(self.descriptors_ if self.queries_ is None else self.queries_, k)

    def _prepare(self, Q: Any) -> Floats:
        return self.preprocessor_(check_descriptors(Q, "X", self.descriptors_.shape[1]))

    @abstractmethod
    def _rank(self, prepared: Floats, k: int) -> Ranking:
        """The k best items for preprocessed queries, (m, d)."""


def draw_seed(random_state: Any) -> int:
    """A seed from what scikit-learn takes for a random state; 0 is a seed like any other."""
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InputError(
            f"random_state = {random_state!r}; expected a whole number from 0 to 2**32 - 1, or None"
        ) from error
