"""Laws of a statistic given a secret: their distances and the loss of Laplace noise."""
