"""Markov quilts: influences, the best quilt of a chain and the best quilt of a network."""
