"""Sets that grow: items that are never right, drawn where the set's own descriptors lie."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradnet.errors import InputError
from gradnet.experiments.compare_question import ListTruth, Question


def with_items(question: Question, items: int) -> Question:
    """The same question with so many items: without its last distractors, or with synthetic ones behind its own.

    Those are drawn, always the same, from the normal distribution that has the mean and the covariance of the set's
    descriptors: of no use for a score, but with neighbours among the real items, which costs depend on.
    """
    X, truth = question.descriptors, question.truth
    if not isinstance(truth, ListTruth) or items < len(X) - truth.distractors:
        raise InputError(f"{question.name} has {len(X):,} items; its distractors cannot make them {items:,}")
    grown = X[:items] if items <= len(X) else np.concatenate([X, _drawn_like(X, items - len(X))])
    distractors = truth.distractors + items - len(X)
    return question._replace(descriptors=grown, truth=truth._replace(distractors=distractors))


def _drawn_like(X: NDArray[Any], count: int) -> NDArray[Any]:
    mean, covariance = X.mean(axis=0, dtype=np.float64), np.cov(X, rowvar=False)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # (d, d), root @ root.T is the covariance
    normal = np.random.default_rng(0).standard_normal((count, X.shape[1]))
    return np.asarray(mean + normal @ root.T, dtype=X.dtype)
