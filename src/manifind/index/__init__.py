"""Indexes over vectors: exact, inverted file, and on a GPU."""
