"""Small collections for the page, and the application around them."""

from __future__ import annotations

import numpy as np

import manifind
from images.painted import paint_many
from manifind.model.index_folder import index_folder
from manifind.server.app import make_app
from manifind.server.middleware import AccessRules
from manifind.server.service import Service

SMALL = {"n_neighbors": 3, "layers": (8, 4), "max_steps": 2, "batch_size": 8}
HOST = "http://127.0.0.1"


def make_vectors(path, n=40, d=6):
    """Two groups of vectors, each along a curve, with numbers for ids, and metadata."""
    turn = 2 * np.pi * (np.arange(n) // 2) / (n // 2)
    waves = [np.cos(turn), np.sin(turn), np.cos(2 * turn), np.sin(2 * turn)]
    X = np.stack([*waves, *[np.arange(n) % 2 * 3.0] * (d - 4)], axis=1).astype(np.float32)
    X += np.random.default_rng(0).normal(size=X.shape).astype(np.float32) * 0.05
    fields = [{"year": 1900 + row, "name": f"<b>item {row}</b>"} for row in range(n)]
    return manifind.GradNet(**{**SMALL, "n_neighbors": 8}, random_state=0).fit(X).save(path, range(n), fields), X


def make_pictures(path, folder):
    """Twenty painted pictures, described by their pixels."""
    return index_folder(paint_many(folder), path, "pixels", SMALL).collection


def make_service(path, tmp_path):
    return Service(path, cache=tmp_path / "cache")


def app_of(service, can_edit=False, **rules):
    return make_app(service, AccessRules(**rules), can_edit)
