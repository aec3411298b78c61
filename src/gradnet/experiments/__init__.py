"""Experiments: what is declared, the runs that fill it, and the renderings that show it."""
