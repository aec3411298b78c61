"""Vectors as they come in: checked, converted, preprocessed, duplicates found."""
