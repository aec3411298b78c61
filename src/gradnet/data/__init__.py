"""Data sets: where they come from, and how they become descriptors with ground truth."""
