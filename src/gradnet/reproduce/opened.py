"""A GRAD-Net of the paper's kind taken apart, for those who look at it while it learns: nodes, graph, trainer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradnet.arrays import Floats, Ints
from gradnet.config import settings_for
from gradnet.descriptors.check import check_descriptors
from gradnet.descriptors.preprocess import fit_preprocessor, unit_rows
from gradnet.errors import InputError
from gradnet.experiments.compare_question import Question
from gradnet.graph.manifold import GraphSettings, Manifold, build_manifold
from gradnet.graph.neighbours import nearest
from gradnet.graph.nodes import Nodes, gather_nodes
from gradnet.methods.plain import draw_seed
from gradnet.nn.room import find_room
from gradnet.progress import Listener
from gradnet.training.learning import make_trainer, pick_device
from gradnet.training.trainer import Trainer


class Opened(NamedTuple):
    """A network before its first step, with what it is trained on."""

    question: Question
    nodes: Nodes
    manifold: Manifold
    trainer: Trainer

    def features(self) -> tuple[Floats, Floats]:
        """Unit rows of the queries, (m, D), and of the items, (n, D), as they are now."""
        of_nodes = unit_rows(np.concatenate([part.cpu().numpy() for part in self.trainer.features()], axis=1))
        items = of_nodes[self.nodes.of_items]
        if self.question.queries is not None:
            return of_nodes[self.nodes.of_queries], items
        return (items if self.question.asked is None else items[self.question.asked]), items

    def rankings(self, k: int) -> Ints:
        """(m, k) items by the cosine of their features, as `GradNet.search` has them."""
        asked, items = self.features()
        return nearest(asked, items, k, "cosine").ids


def open_network(question: Question, settings: dict[str, Any], listener: Listener) -> Opened:
    """What `GradNet(**settings).fit` would train; refused where more than the network makes its features."""
    needed = {"walk_weight": 0.0, "positives": "edges", "guard": False, "n_components": None}
    for name, value in {**needed, "truncation": None}.items():
        if settings[name] != value:
            raise InputError(
                f"{name} = {settings[name]!r}; a network can be looked at while it learns with {value!r}"
            )
    X = check_descriptors(question.descriptors)
    prepare = fit_preprocessor(settings["preprocess"], X)
    queries = (
        X[:0] if question.queries is None else check_descriptors(question.queries, "queries", X.shape[1])
    )
    nodes = gather_nodes(prepare(queries), prepare(X), None)
    seed = draw_seed(settings["random_state"])
    manifold = build_manifold(nodes.descriptors, settings_for(GraphSettings, settings), seed, listener)
    room = find_room(pick_device(settings["device"]), settings["device_memory"])
    trainer = make_trainer(manifold, settings, seed, room)
    return Opened(question, nodes, manifold, trainer)
