"""Influence bounds: losses of several releases add, and the bound is asked what the sum leaks."""
