"""Largest log ratios of two laws: of vectors, and along the paths of two chains."""
