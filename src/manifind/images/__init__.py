"""Photographs: found in a folder, decoded in a process of their own, described, and indexed."""
