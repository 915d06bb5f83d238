"""Θ: the distributions an adversary may believe in, and the secrets that are kept from him."""
