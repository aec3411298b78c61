"""The network node by node and message by message, in plain Python numbers."""

import math

import numpy as np


def _times(h, W):
    """h W, for one row h."""
    return [sum(h[a] * float(W[a][b]) for a in range(len(h))) for b in range(len(W[0]))]


def _add(total, message):
    return [a + b for a, b in zip(total, message, strict=True)]


def first_order_by_loops(S, H, W1, self_weight):
    """m_u = sum_i S_ui h_i W1, with self_weight h_u W1 for the self-loop (Eq. 12, 13)."""
    out = []
    for u in range(len(S)):
        total = [self_weight * value for value in _times([float(x) for x in H[u]], W1)]
        for i in range(len(S)):
            total = _add(total, _times([float(S[u][i]) * float(x) for x in H[i]], W1))
        out.append(total)
    return np.array(out)


def second_order_by_loops(S, H, W2):
    """m_u = sum over paths u <- i <- j of S_ui S_ij (h_j * h_i) W2 (Eq. 14, 15)."""
    out = []
    for u in range(len(S)):
        total = [0.0] * len(W2[0])
        for i in range(len(S)):
            for j in range(len(S)):
                weight = float(S[u][i]) * float(S[i][j])
                if weight != 0:
                    message = [weight * float(a) * float(b) for a, b in zip(H[j], H[i], strict=True)]
                    total = _add(total, _times(message, W2))
        out.append(total)
    return np.array(out)


def leaky_relu_by_loops(Y, slope):
    """sigma(y) = y where y > 0, slope y elsewhere."""
    return np.array([[float(y) if y > 0 else slope * float(y) for y in row] for row in Y])


def unit_rows_by_loops(Y):
    """y / |y| for each row; zeros stay."""
    out = []
    for row in Y:
        length = math.sqrt(sum(float(y) ** 2 for y in row))
        out.append([float(y) / length if length > 0 else 0.0 for y in row])
    return np.array(out)


def gcn_layer_by_loops(S, H, W, self_weight):
    """(I + S) H W before sigma (Eq. 6)."""
    return first_order_by_loops(S, H, W, self_weight)


def diffusion_layer_by_loops(S, H, W1, W2, self_weight):
    """(I + S) H W1 + S (S H * H) W2 before sigma (Eq. 11, 16)."""
    return first_order_by_loops(S, H, W1, self_weight) + second_order_by_loops(S, H, W2)


def network_by_loops(S, H0, weights, slope, self_weight):
    """[H0, H1, ..., HL]: each layer, then sigma, then unit rows; no dropout.

    weights: one tuple per layer, (W1, W2) for the diffusion layer, (W,) for the GCN layer.
    """
    outputs = [np.asarray(H0, dtype=np.float64)]
    for layer in weights:
        apply = diffusion_layer_by_loops if len(layer) == 2 else gcn_layer_by_loops
        Y = apply(S, outputs[-1], *layer, self_weight)
        outputs.append(unit_rows_by_loops(leaky_relu_by_loops(Y, slope)))
    return outputs


def joined_by_loops(outputs):
    """h_i = h_i^0 || h_i^1 || ... || h_i^L (Eq. 17)."""
    return np.array([[float(x) for H in outputs for x in H[i]] for i in range(len(outputs[0]))])
