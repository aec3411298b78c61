"""Which nodes may be the strangers of a sextet, by looking at every node."""


def far_from_all(A, four):
    """Nodes that are none of `four` and have no edge to any of them; A dense."""
    return [w for w in range(len(A)) if w not in four and all(A[x][w] == 0 for x in four)]


def far_from_anchor(A, anchor, partner):
    """Nodes that are neither of the pair and have no edge to the anchor: u of Eq. 19's (i, j, u)."""
    return [w for w in range(len(A)) if w not in (anchor, partner) and A[anchor][w] == 0]
