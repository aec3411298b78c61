"""Tests of benchmarks/matrix_products.py: nothing escapes the recording, and nothing is counted twice."""

import numpy as np
import torch
from scipy import sparse

from manifind.model.layers import Propagation
from manifind.model.losses import PAIRS
from manifind.model.sampling import exact_batch


def test_the_products_of_both_directions_are_recorded_with_their_flops(module):
    X, W = torch.ones(5, 7), torch.ones(7, 3, requires_grad=True)
    S = Propagation(sparse.eye_array(5, format="csr", dtype=np.float32), torch.device("cpu"))
    with module("matrix_products").RecordProducts() as recorded:
        (S @ (X @ W)).square().sum().backward()
    dense = [product.flops() for product in recorded.products if not product.is_sparse()]
    assert dense == [2 * 5 * 7 * 3] * 2, "X W, and X^T times the gradient"
    assert [p.flops() for p in recorded.products if p.is_sparse()] == [2 * 5 * 3] * 2, "S, and S^T"


def test_products_run_alone_give_what_they_gave(module):
    X, W, out = torch.randn(5, 7), torch.randn(7, 3), torch.empty(5, 3)
    with module("matrix_products").RecordProducts() as recorded:
        torch.mm(X, W, out=out)
        torch.relu(out)
    out.zero_()
    module("matrix_products").replay(recorded.products)
    torch.testing.assert_close(out, X @ W)
    assert len(recorded.products) == 1


def test_a_step_multiplies_as_much_as_its_shapes_imply(module):
    """Products that are made twice, or escape the recording, would flatter the ratio or spoil it."""
    trainer = module("paper_step").paper_trainer(300, 32, seed=0)
    sextets = trainer._sampler.draw(4)
    with module("matrix_products").RecordProducts() as recorded:
        trainer.batch_loss(sextets, dropout=True).total.backward()
    batch = exact_batch(trainer.S, np.unique(sextets.nodes), 3, torch.device("cpu"))
    d0, *widths = 32 + 100, 1024, 256, 128
    nodes = sextets.nodes
    n_pairs = len({pair for a, b in PAIRS for pair in zip(nodes[a], nodes[b], strict=True)})
    mixing = 2 * n_pairs + batch.n_wanted  # entries of the matrix that brings back the cosines' gradient
    dense = 2 * (2 * len(batch.nodes) * 2 * d0 * widths[0])  # forward, and to the weights
    sparse = 2 * n_pairs * (d0 + sum(widths)) + 2 * mixing * sum(widths)
    for (near, far), d, d_next in zip(batch.hops, widths[:-1], widths[1:], strict=True):
        dense += 3 * 2 * (len(near) + len(far)) * d * d_next  # forward, to the weights, to the input
        sparse += 2 * 2 * (near.block.values().numel() * d + far.block.values().numel() * d_next)
    found = recorded.products
    assert sum(product.flops() for product in found if not product.is_sparse()) == dense
    assert sum(product.flops() for product in found if product.is_sparse()) == sparse
