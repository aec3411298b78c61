"""Vectors as a file of faiss, for programs that search with it; gradnet itself reads none."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gradnet.arrays import Floats, Ints


def write_faiss(file: Path, features: Floats, ids: Ints) -> None:
    """An exact index by inner product over unit rows, which are found by their ids."""
    import faiss

    index = faiss.IndexIDMap2(faiss.IndexFlatIP(features.shape[1]))
    index.add_with_ids(np.ascontiguousarray(features), ids)
    faiss.write_index(index, str(file))
