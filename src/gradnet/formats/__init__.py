"""Readers for vectors and ground truth that others wrote, every file hostile until checked."""

from gradnet.formats.ground_truth import GroundTruth, read_ground_truth
from gradnet.formats.regions import Regions, read_regions
from gradnet.formats.vectors import SUFFIXES, Vectors, read_vectors

__all__ = [
    "SUFFIXES",
    "GroundTruth",
    "Regions",
    "Vectors",
    "read_ground_truth",
    "read_regions",
    "read_vectors",
]
