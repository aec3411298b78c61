"""Answering: unseen queries join the learned features, and search is plain nearest neighbours over them."""
