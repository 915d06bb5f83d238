"""Mechanisms for one query: the noise that the laws of its answer need."""
