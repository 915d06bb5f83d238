"""Algebra of Markov chains: powers and stationary laws, supports, matrices between bounds."""
