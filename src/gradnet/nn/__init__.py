"""The network in PyTorch: propagation, the two kinds of layer, the whole network, affinity and losses."""
