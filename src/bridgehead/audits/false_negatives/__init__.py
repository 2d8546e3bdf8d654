"""Negatives of a batch that are right after all, and the ceiling that duplicates put on recall@1."""
