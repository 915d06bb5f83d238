"""Algebra of Bayesian networks: elimination, d-separation, junction trees and the laws of their clusters."""
