"""Breadth-first search with sets."""


def hops_by_loops(A, seeds, hops):
    """{node: its distance in hops from the nearest seed}, for all within `hops`; A dense."""
    distance = {int(seed): 0 for seed in seeds}
    frontier = list(distance)
    for hop in range(1, hops + 1):
        following = []
        for node in frontier:
            for other in range(len(A)):
                if A[node][other] != 0 and other not in distance:
                    distance[other] = hop
                    following.append(other)
        frontier = following
    return distance
