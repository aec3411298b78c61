"""Readers for vectors and ground truth that others wrote, every file hostile until checked."""

from manifind.io.checks import Vectors
from manifind.io.ground_truth import GroundTruth, read_ground_truth
from manifind.io.mat import Regions, read_regions
from manifind.io.vectors import SUFFIXES, read_vectors

__all__ = ["SUFFIXES", "GroundTruth", "Regions", "Vectors", "read_ground_truth", "read_regions", "read_vectors"]
