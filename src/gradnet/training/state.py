"""All that decides how a training goes on, as arrays and back: weights, Adam's memory, random states, losses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradnet.arrays import Floats
from gradnet.checkpoint import Arrays
from gradnet.errors import InputError
from gradnet.nn.network import GraphNetwork

_OF_ADAM = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class TrainingState:
    """The parts of a running training that change with every step; `losses` has one row for each step so far."""

    network: GraphNetwork
    adam: torch.optim.Adam
    sextets: np.random.Generator
    dropout: torch.Generator
    losses: list[tuple[float, float, float]]

    def arrays(self) -> Arrays:
        """The state as it is now, by name."""
        kept = {
            "sextets": np.frombuffer(json.dumps(self.sextets.bit_generator.state).encode(), dtype=np.uint8),
            "dropout": self.dropout.get_state().numpy(),
            "losses": np.array(self.losses, dtype=np.float64).reshape(-1, 3),
        }
        for name, weight in self.network.named_parameters():
            kept[f"weight {name}"] = weight.detach().cpu().numpy()
            for part in _OF_ADAM:
                kept[f"{part} {name}"] = self.adam.state[weight][part].cpu().numpy()
        return kept

    def restore(self, arrays: Arrays) -> None:
        """Make every part what `arrays` told of it."""
        self.sextets.bit_generator.state = json.loads(arrays["sextets"].tobytes())
        self.dropout.set_state(torch.tensor(arrays["dropout"]))
        self.losses[:] = [tuple(row) for row in arrays["losses"].tolist()]
        set_weights(self.network, _named(arrays, "weight"))
        adam = self.adam.state_dict()
        of_part = {part: _named(arrays, part) for part in _OF_ADAM}
        adam["state"] = {
            number: {part: torch.tensor(of_part[part][name]) for part in _OF_ADAM}
            for number, (name, _) in enumerate(self.network.named_parameters())
        }
        self.adam.load_state_dict(adam)


def set_weights(network: GraphNetwork, weights: Mapping[str, Floats]) -> None:
    """Give every parameter of the network the weights of its name; refuse those of another network.

    Names that the network does not have are passed over.
    """
    for name, parameter in network.named_parameters():
        shape = weights[name].shape if name in weights else "missing"
        if shape != tuple(parameter.shape):
            raise InputError(
                f"the weights of {name!r} are {shape}; expected {tuple(parameter.shape)}",
                "start from a model that was fitted with the same layers, on descriptors of the same width",
            )
        with torch.no_grad():
            parameter.copy_(torch.tensor(weights[name]))


def _named(arrays: Arrays, part: str) -> dict[str, NDArray[Any]]:
    return {
        key.removeprefix(f"{part} "): array for key, array in arrays.items() if key.startswith(f"{part} ")
    }
