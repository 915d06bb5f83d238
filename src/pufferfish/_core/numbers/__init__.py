"""Numbers: what users give, rounding up, wide exponents, inversion, branch and bound, compiled loops, progress."""
