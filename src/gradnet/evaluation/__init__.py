"""Scores of rankings, each under a named rule."""
