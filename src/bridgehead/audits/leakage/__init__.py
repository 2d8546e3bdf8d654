"""Leaks across a split: what test and training share by identity, text or rows; one item under two entities."""
