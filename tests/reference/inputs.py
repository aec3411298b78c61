"""What the network is given, number by number."""


def joined_by_loops(queries, X):
    """{q_1, ..., q_m, x_1, ..., x_n} (Eq. 1)."""
    nodes = []
    for q in queries:
        nodes.append([float(value) for value in q])
    for x in X:
        nodes.append([float(value) for value in x])
    return nodes


def inputs_by_loops(nodes, Z):
    """H0 = [x_1, ..., x_N]^T with the code z_i appended to x_i (Eq. 10)."""
    return [[float(v) for v in x] + [float(v) for v in z] for x, z in zip(nodes, Z, strict=True)]
