"""The losses for one sextet at a time, with `math` only."""

import math

SMALLEST = 1e-6


def cosine_by_loops(a, b):
    """s_ij = h_i . h_j / (|h_i| |h_j|) (Eq. 18)."""
    product = sum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    return product / math.sqrt(sum(float(x) ** 2 for x in a)) / math.sqrt(sum(float(y) ** 2 for y in b))


def local_by_loops(s_ij, s_iu, kind="bpr", temperature=1.0):
    """-ln sigmoid((s_ij - s_iu) / T), or -ln((s_ij - s_iu) / T) kept off zero for "log" (Eq. 19)."""
    difference = (s_ij - s_iu) / temperature
    if kind == "log":
        return -math.log(max(difference, SMALLEST))
    return -math.log(1 / (1 + math.exp(-difference)))


def global_by_loops(s_ki, s_lj, s_li, a_ij, a_kl, beta, coefficient):
    """ln(1 + beta a_ij a_kl w (s_ki - s_lj)^2), w = s_ki s_li if "printed", else s_ki s_lj (Eq. 20)."""
    w = max(s_ki * (s_li if coefficient == "printed" else s_lj), SMALLEST)
    return math.log(1 + beta * a_ij * a_kl * w * (s_ki - s_lj) ** 2)


def total_by_loops(local, global_, squared_norm, local_weight, global_weight, l2):
    """L = L_local + alpha L_global + lambda |Theta|^2 (Eq. 21)."""
    return local_weight * local + global_weight * global_ + l2 * squared_norm


def sextet_loss_by_loops(H, sextets, squared_norm, settings):
    """(1/b) sum {L_local(i,j,u) + L_local(k,l,v) + alpha L_global(i,j,k,l) + lambda |Theta|^2} (Eq. 22).

    H: features of all nodes. sextets: (i, j, k, l, u, v, a_ij, a_kl) each. Returns (total, local, global).
    """
    total = local_sum = global_sum = 0.0
    for i, j, k, l, u, v, a_ij, a_kl in sextets:  # noqa: E741 - the paper's letter
        local = 0.0
        for first, near, far in ((i, j, u), (k, l, v)):
            s_near, s_far = cosine_by_loops(H[first], H[near]), cosine_by_loops(H[first], H[far])
            local += local_by_loops(s_near, s_far, settings.local_loss, settings.temperature)
        s_ki, s_lj, s_li = (cosine_by_loops(H[a], H[b]) for a, b in ((k, i), (l, j), (l, i)))
        global_ = global_by_loops(s_ki, s_lj, s_li, a_ij, a_kl, settings.beta, settings.global_coefficient)
        total += total_by_loops(
            local, global_, squared_norm, settings.local_weight, settings.global_weight, settings.l2
        )
        local_sum, global_sum = local_sum + local, global_sum + global_
    b = len(sextets)
    return total / b, local_sum / b, global_sum / b
