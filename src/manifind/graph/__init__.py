"""The manifold as graphs: neighbours, affinities, transition matrices, walks, anchors, batches of nodes."""
