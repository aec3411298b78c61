"""Readers for matrices of vectors, every file hostile until checked."""

from gradnet.formats.vectors import SUFFIXES, Vectors, read_vectors

__all__ = ["SUFFIXES", "Vectors", "read_vectors"]
