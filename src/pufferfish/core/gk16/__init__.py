"""Ghosh and Kleinberg (2016): the influence matrix of a chain, and of matrices between bounds."""
