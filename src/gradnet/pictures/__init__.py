"""Photographs: found in a folder, decoded where they can do no harm, described, and kept as a collection."""
