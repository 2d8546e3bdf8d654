"""The pairs themselves: descriptions that say little or fit many, pairs that look wrong, columns out of order."""
