"""Algebra of Bayesian networks: junction trees and the laws of their clusters."""
