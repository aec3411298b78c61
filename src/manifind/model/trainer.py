"""The training loop: its schedule, its state for checkpoints, its steps recorded as CUDA graphs."""

import gc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.optim import Adam

from manifind.arrays import Floats, Ints, Sparse
from manifind.checkpoint import Arrays
from manifind.errors import InputError, TrainingError
from manifind.graph.knn_graph import renormalised, transition
from manifind.graph.manifold import Manifold
from manifind.graph.subgraph import induced
from manifind.index.fit_context import FitContext
from manifind.index.gpu import products_in
from manifind.model import sampling
from manifind.model.layers import Propagation
from manifind.model.losses import PAIRS, Loss, cosine, gathered_cosines, sextet_loss
from manifind.model.network import Batch, GraphNetwork, joined_layers
from manifind.model.sampling import Sextets, SextetSteps
from manifind.settings import GradNetSettings
from manifind.text import count

_OF_ADAM = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class TrainingState:
    """The parts of a running training that change with every step; `losses` has one row for each step so far."""

    network: GraphNetwork
    adam: Adam
    sextets: np.random.Generator
    dropout: torch.Generator
    losses: list[tuple[float, float, float]]

    def arrays(self) -> Arrays:
        """The state as it is now, by name."""
        saved = {
            "sextets": np.frombuffer(json.dumps(self.sextets.bit_generator.state).encode(), dtype=np.uint8),
            "dropout": self.dropout.get_state().numpy(),
            "losses": np.array(self.losses, dtype=np.float64).reshape(-1, 3),
        }
        for name, weight in self.network.named_parameters():
            saved[f"weight {name}"] = weight.detach().cpu().numpy()
            for part in _OF_ADAM:
                saved[f"{part} {name}"] = self.adam.state[weight][part].cpu().numpy()
        return saved

    def restore(self, arrays: Arrays) -> None:
        """Restore every part from what `arrays` returned."""
        self.sextets.bit_generator.state = json.loads(arrays["sextets"].tobytes())
        self.dropout.set_state(torch.tensor(arrays["dropout"]))
        self.losses[:] = [tuple(row) for row in arrays["losses"].tolist()]
        names = [name for name, _ in self.network.named_parameters()]
        set_weights(self.network, {name: arrays[f"weight {name}"] for name in names})
        adam = self.adam.state_dict()
        adam["state"] = {
            number: {part: torch.tensor(arrays[f"{part} {name}"]) for part in _OF_ADAM}
            for number, name in enumerate(names)
        }
        self.adam.load_state_dict(adam)


def set_weights(network: GraphNetwork, weights: Mapping[str, Floats]) -> None:
    """Give every parameter of the network the weights of its name; refuse those of another network.

    Names that the network does not have are passed over.
    """
    for name, parameter in network.named_parameters():
        shape = weights[name].shape if name in weights else "missing"
        if shape != tuple(parameter.shape):
            hint = "start from a model that was fitted with the same layers, on descriptors of the same width"
            raise InputError(f"the weights of {name!r} are {shape}; expected {tuple(parameter.shape)}", hint)
        with torch.no_grad():
            parameter.copy_(torch.tensor(weights[name]))


_WARM_UP = 3  # steps before the recording, in which libraries choose their kernels


class CudaGraphSteps:
    """Steps that a GPU records once and repeats; on a CPU, which the tests use, they are taken one by one.

    loss_of: what is minimised, of one step's part of `SextetSteps`. adam: made with capturable=True. dropout: draws it.
    most: steps that are taken in one go.
    """

    def __init__(
        self, loss_of: Callable[..., Loss], adam: Adam, dropout: torch.Generator, most: int, n_sextets: int
    ) -> None:
        self._loss_of, self._adam, self._dropout = loss_of, adam, dropout
        self._weights = [weight for group in adam.param_groups for weight in group["params"]]
        device = self._weights[0].device
        self._at = torch.zeros(1, dtype=torch.int64, device=device)
        self._sextets = SextetSteps(
            torch.zeros(most, n_sextets, 6, dtype=torch.int64, device=device),
            torch.zeros(most, 6 * n_sextets, dtype=torch.int64, device=device),
            *(torch.zeros(most, n_sextets, device=device) for _ in range(2)),
        )
        self._losses = torch.zeros(most, 3, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None

    def run(self, sextets: SextetSteps, seed: int) -> Tensor:
        """(c, 3) total, local and global loss of c steps. seed: of their dropout."""
        steps = len(sextets.nodes)
        for saved, given in zip(self._sextets, sextets, strict=True):
            saved[:steps] = given
        if self._graph is None and self._at.is_cuda:
            self._record()
        self._at.zero_()
        self._dropout.manual_seed(seed)
        for _ in range(steps):
            if self._graph is None:
                self._step()
            else:
                self._graph.replay()
        return self._losses[:steps].clone()

    def _step(self) -> None:
        self._adam.zero_grad(set_to_none=True)
        with products_in("tf32"):
            loss = self._loss_of(*(part.index_select(0, self._at)[0] for part in self._sextets))
            loss.total.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        self._losses.index_copy_(0, self._at, torch.stack([part.detach() for part in loss])[None])
        self._at += 1

    def _record(self) -> None:
        """Take some steps to warm up, undo them, and record one."""
        saved = [weight.detach().clone() for weight in self._weights]
        memory = [{name: value.clone() for name, value in self._adam.state[weight].items()} for weight in self._weights]
        stream = _recording_stream(torch.cuda.current_device())
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                self._at.zero_()
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        gc.collect()  # nothing can be freed while a step is recorded
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._dropout)
        self._at.zero_()
        with torch.cuda.graph(graph, stream=stream):
            self._step()
        with torch.no_grad():
            for weight, before, moments in zip(self._weights, saved, memory, strict=True):
                weight.copy_(before)
                for name, value in self._adam.state[weight].items():
                    value.copy_(moments[name]) if name in moments else value.zero_()
        self._graph = graph


@cache
def _recording_stream(number: int) -> torch.cuda.Stream:
    """A GPU's for all recordings: libraries keep memory for each stream that they ever worked on."""
    return torch.cuda.Stream(number)  # type: ignore[no-untyped-call]


_MOST_WANTED = 0.5  # of all nodes: whoever needs more is cheaper served by the whole graph, which is kept ready
# The more sextets, the steadier a step, at little cost beside the graph's.
_SEXTETS_PER_NODE, _MOST_SEXTETS = 8, 16_384
# A step costs as much as there are nodes: where they are many, fewer steps, as long as those are enough to learn.
_ENOUGH_STEPS, _MANY_NODES, _FEWEST_STEPS = 150, 20_000, 30
# On a GPU: steps, and sextets of all of them, for which the host is asked once.
_STEPS_AT_ONCE, _SEXTETS_AT_ONCE = 256, 1 << 22
_BYTES_PER_SEXTET = 120  # and step, on the GPU
_LESS_WHEN_WARM = 3  # a network that has learned before needs a third of the steps


class Schedule:
    """How long to train on a graph, and at which rate. warm: the network comes from an earlier fit.

    sextets: of a step; eight for each node, as long as that is not too many, where `batch_size` is None. An epoch is
    ceil(N / sextets) steps, or ceil(edges / sextets). `max_steps` ends the training earlier: "auto" after 150 steps, or
    150 * 20,000 / N, but at least 30, where there are more nodes, and after a third of them for a warm network. The
    rate is halved after each of `milestones`, shares of the whole training, so that a shorter one has the same shape.
    """

    def __init__(self, settings: GradNetSettings, affinity: Sparse, warm: bool = False) -> None:
        N = affinity.shape[0]
        self._rate, self._milestones = settings.learning_rate, settings.milestones
        self.sextets: int = settings.batch_size or min(_SEXTETS_PER_NODE * N, _MOST_SEXTETS)
        samples: int = N if settings.epoch == "nodes" else affinity.nnz // 2
        self.steps_per_epoch = -(-samples // self.sextets)
        self.total = settings.epochs * self.steps_per_epoch
        if settings.max_steps == "auto":
            enough = max(round(_ENOUGH_STEPS * min(1.0, _MANY_NODES / N)), _FEWEST_STEPS)
            self.total = min(self.total, -(-enough // (_LESS_WHEN_WARM if warm else 1)))
        elif settings.max_steps is not None:
            self.total = min(self.total, int(settings.max_steps))

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        halvings = sum(step >= round(share * self.total) for share in self._milestones)
        return self._rate / 2.0**halvings


@dataclass(frozen=True)
class Report:
    """Where training stands after `step` of `total` steps, with the losses of that step's batch."""

    step: int
    total: int
    epoch: int
    loss: float
    local: float
    global_: float


class Trainer:
    """A network, its graph, and the loop that fits the one to the other.

    Processes that train together draw sextets of their own, and all take the same steps.
    ends: where walks on the graph end, (N, N) CSR, to draw positives from; None draws them from the edges.
    start: weights to begin with, by the names of the network's parameters; None draws them.
    subgraph: rising numbers of the nodes that are trained on, and between which `ends` are; None for all. The
    network's weights know nothing of nodes, so what it learns there holds for all.
    """

    def __init__(
        self,
        manifold: Manifold,
        settings: GradNetSettings,
        context: FitContext,
        ends: Sparse | None = None,
        start: Mapping[str, Floats] | None = None,
        subgraph: Ints | None = None,
    ) -> None:
        A, seed, processes = manifold.affinity, context.seed, context.processes
        device = self._device = torch.device(context.budget.device)
        S = transition(A) if settings.self_loops == "identity" else renormalised(A)
        self.S, self._affinity = (S, A) if subgraph is None else (induced(S, subgraph), induced(A, subgraph))
        self._schedule = Schedule(settings, self._affinity, warm=start is not None)
        self._settings, self._context, self._ends = settings, context, ends
        self._n_sextets = processes.share(self._schedule.sextets)
        self._rng = np.random.default_rng(processes.seed(seed))
        self._sampler = sampling.SextetSampler(self._affinity, self._rng, ends)
        self._dropout = torch.Generator(device).manual_seed(processes.seed(seed + 1))
        self.network = GraphNetwork(manifold.inputs.shape[1], settings, torch.Generator().manual_seed(seed)).to(device)
        if start is not None:
            set_weights(self.network, start)
        self._n_layers = len(settings.layers)
        size = (self.S.shape[0], self._n_sextets, manifold.inputs.shape[1])
        self._fits = sampling.bytes_of_steps(*size, settings.layers) <= context.budget.bytes
        self.curve: list[tuple[float, float, float]] = []  # total, local and global loss of every step
        self._lay_out(S, manifold.inputs, settings.layers, subgraph)

    def _lay_out(self, S: Sparse, inputs: Floats, layers: Sequence[int], subgraph: Ints | None) -> None:
        """What never changes: of all nodes where it fits, for features; of the subgraph on the device, for steps."""
        N, d = inputs.shape
        home = self._home = torch.device(self._context.budget.device_for(sampling.bytes_of_features(N, d, layers)))
        everywhere = Propagation(S, home, symmetric=True)
        with torch.no_grad():
            self._all_constants = self.network.to(home).prepare(everywhere, torch.from_numpy(inputs).to(home))
        self.network.to(self._device)
        self._everywhere = sampling.whole_graph(everywhere, self._n_layers)
        self._constants, self._whole = self._all_constants, self._everywhere
        if subgraph is not None or home != self._device:
            nodes = torch.from_numpy(np.arange(N) if subgraph is None else subgraph).to(home)
            self._constants = self._all_constants.of(nodes, self._device)
            self._whole = sampling.whole_graph(Propagation(self.S, self._device, symmetric=True), self._n_layers)

    @property
    def steps_per_epoch(self) -> int:
        return self._schedule.steps_per_epoch

    def steps(self, at_once: int = _STEPS_AT_ONCE) -> Iterator[Report]:
        """Train, one report after each step; those that the checkpoint has are not taken again, nor reported.

        at_once: the network is as a report says after every so many steps; on a GPU it is further at the others.
        """
        per_epoch, total = self.steps_per_epoch, self._schedule.total
        adam, checkpoint = self._optimiser(), self._context.checkpoint
        self.curve.clear()
        state = TrainingState(self.network, adam, self._rng, self._dropout, self.curve)
        if saved := checkpoint.load("training"):
            state.restore(saved)
        for losses in self._in_parts(adam, at_once) if self.uses_cuda_graph else self._one_by_one(adam):
            reports = [
                Report(step + 1, total, step // per_epoch + 1, *loss)
                for step, loss in enumerate(losses, len(self.curve))
            ]
            for report in reports:
                if not np.isfinite(report.loss):
                    hint = "lower learning_rate or beta, or check the descriptors for extreme values"
                    raise TrainingError(f"the loss is {report.loss} after {count(report.step, 'step')}", hint)
            self.curve += losses
            if checkpoint.due():
                checkpoint.save("training", state.arrays())
            yield from reports

    @property
    def uses_cuda_graph(self) -> bool:
        """Whether steps are recorded and repeated: on a GPU that holds the whole graph."""
        return self._device.type != "cpu" and self._fits and not self._context.processes.are_several

    def _optimiser(self) -> Adam:
        if not self.uses_cuda_graph:
            return Adam(self.network.parameters(), lr=self._settings.learning_rate, fused=True)
        rate = torch.tensor(self._settings.learning_rate, device=self._device)
        # The gradient of l2 |Theta|^2 is 2 l2 Theta, which Adam adds by itself, in the kernel that it has anyway.
        decay = 2 * self._settings.l2
        return Adam(self.network.parameters(), lr=rate, weight_decay=decay, fused=True, capturable=True)

    def _one_by_one(self, adam: Adam) -> Iterator[list[tuple[float, float, float]]]:
        for step in range(len(self.curve), self._schedule.total):
            adam.param_groups[0]["lr"] = self._schedule.rate(step)
            yield [self._step(adam)]

    def _in_parts(self, adam: Adam, at_once: int) -> Iterator[list[tuple[float, float, float]]]:
        """Many steps at a time, each part with random numbers of its own: it can begin anew at any of them."""
        sextets = min(_SEXTETS_AT_ONCE, self._context.budget.bytes / 10 / _BYTES_PER_SEXTET)
        most = max(1, min(at_once, int(sextets // self._n_sextets)))
        steps = CudaGraphSteps(self._loss_on_device, adam, self._dropout, most, self._n_sextets)
        sampler = sampling.DeviceSampler(self._affinity, self._ends, self._device)
        total = self._schedule.total
        while (done := len(self.curve)) < total:
            end = min(done + most - done % most, total)
            rates = [self._schedule.rate(step) for step in range(done, end)]
            same = next((at for at, rate in enumerate(rates) if rate != rates[0]), len(rates))
            adam.param_groups[0]["lr"].fill_(rates[0])
            seed = self._context.seed + 2 * done
            losses = steps.run(sampler.draw_steps(same, self._n_sextets, seed), seed + 1)
            yield [tuple(row) for row in losses.tolist()]

    def _loss_on_device(self, nodes: Tensor, order: Tensor, a_ij: Tensor, a_kl: Tensor) -> Loss:
        """The loss of sextets that lie on the device, without its share of the weights, which Adam adds."""
        s = gathered_cosines(self._parts(self._whole, True), nodes, order)
        with torch.no_grad():
            norms = torch._foreach_norm([weight.detach() for weight in self.network.parameters()])
            squared_norm = torch.stack(list(norms)).square().sum()
        return sextet_loss(s, a_ij, a_kl, squared_norm, self._settings)

    def _step(self, adam: Adam) -> tuple[float, float, float]:
        """One update. A method of its own, so that nothing of a batch is alive when the next one begins."""
        adam.zero_grad(set_to_none=True)
        loss = self._sextet_loss(self._sampler.draw(self._n_sextets))
        loss.total.backward()  # type: ignore[no-untyped-call]
        losses = torch.stack([part.detach() for part in loss])
        gradients = [weight.grad for weight in self.network.parameters() if weight.grad is not None]
        self._context.processes.average([losses, *gradients])
        adam.step()
        total, local, global_ = losses.tolist()
        return total, local, global_

    def _sextet_loss(self, sextets: Sextets) -> Loss:
        """The loss of a training step, whichever way needs less: both give the same but for the dropout."""
        is_most = len(np.unique(sextets.nodes)) > _MOST_WANTED * self.S.shape[0]
        return self.whole_graph_loss(sextets, True) if is_most else self.batch_loss(sextets, True)

    def batch_loss(self, sextets: Sextets, dropout: bool) -> Loss:
        """The loss of some sextets, from only the nodes that they need."""
        wanted, places = np.unique(sextets.nodes, return_inverse=True)
        batch = sampling.exact_batch(self.S, wanted, self._n_layers, self._device)
        return self._loss(self._parts(batch, dropout), places.reshape(6, -1), sextets)

    def whole_graph_loss(self, sextets: Sextets, dropout: bool) -> Loss:
        """The same loss from the whole graph: with dropout off, what `batch_loss` must equal."""
        return self._loss(self._parts(self._whole, dropout), sextets.nodes, sextets)

    def features(self) -> list[Tensor]:
        """H0, H1, ..., HL of every node, dropout off; only HL where the output is the last layer's.

        They lie where the whole graph fits.
        """
        with torch.no_grad():
            network = self.network if self._home == self._device else deepcopy(self.network).to(self._home)
            return joined_layers(network(self._all_constants, self._everywhere, None), network.output)

    def _parts(self, batch: Batch, dropout: bool) -> list[Tensor]:
        """What the features of a batch's nodes are made of."""
        outputs = self.network(self._constants, batch, self._dropout if dropout else None)
        return joined_layers(outputs, self.network.output)

    def _loss(self, parts: list[Tensor], rows: Ints, sextets: Sextets) -> Loss:
        pairs = torch.from_numpy(rows[np.array(PAIRS)]).to(self._device)  # (7, 2, b)
        s = cosine(parts, pairs[:, 0].reshape(-1), pairs[:, 1].reshape(-1)).view(len(PAIRS), -1)
        a_ij, a_kl = (torch.from_numpy(a).to(self._device) for a in (sextets.a_ij, sextets.a_kl))
        return sextet_loss(s, a_ij, a_kl, self.network.squared_norm(), self._settings)
