"""What other records tell of one: the sweep over a chain, a tree and a cluster tree, and lower bounds."""
