"""The random walk with restart, node by node."""


def walk_by_loops(S, start, alpha, steps):
    """f_i^(t+1) = alpha sum_j S_ij f_j^t + (1 - alpha) f_i^0 (Eq. 3)."""
    n = len(S)
    f = [float(x) for x in start]
    for _ in range(steps):
        f = [alpha * sum(float(S[i][j]) * f[j] for j in range(n)) + (1 - alpha) * float(start[i]) for i in range(n)]
    return f


def limit_by_elimination(S, start, alpha):
    """f* = (1 - alpha) (I - alpha S)^-1 f0, by Gaussian elimination with pivots (Eq. 4)."""
    n = len(S)
    rows = [[(i == j) - alpha * float(S[i][j]) for j in range(n)] + [(1 - alpha) * float(start[i])] for i in range(n)]
    for column in range(n):
        pivot = max(range(column, n), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(n):
            if i != column:
                factor = rows[i][column] / rows[column][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[column], strict=True)]
    return [rows[i][n] / rows[i][i] for i in range(n)]
