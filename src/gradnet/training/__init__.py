"""Fitting the network: sextets, the part of the graph each batch needs, and the loop."""
