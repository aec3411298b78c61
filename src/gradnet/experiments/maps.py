"""Vectors laid out in the plane, so that people can look at them."""

from __future__ import annotations

import numpy as np
from sklearn.manifold import TSNE

from gradnet.arrays import Floats
from gradnet.progress import Listener, Progress

_PERPLEXITY = 30.0  # neighbours that count; needs to be below a third of the items


def flat_map(vectors: Floats, seed: int) -> Floats:
    """(n, 2) t-SNE of the vectors, started from their principal components; the same seed, the same map."""
    perplexity = min(_PERPLEXITY, (len(vectors) - 1) / 3)
    tsne = TSNE(init="pca", perplexity=perplexity, random_state=seed)
    return np.asarray(tsne.fit_transform(vectors), dtype=np.float32)


def before_and_after(
    original: Floats, learned: Floats, seed: int, listener: Listener
) -> tuple[Floats, Floats]:
    """Maps of the same items, (n, 2) each, by what they were and by what was learned."""
    listener(Progress("maps", 0, 2))
    before = flat_map(original, seed)
    listener(Progress("maps", 1, 2))
    after = flat_map(learned, seed)
    listener(Progress("maps", 2, 2))
    return before, after
