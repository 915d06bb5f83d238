"""Arrays in, arrays out: the mathematics, with nothing but numpy.

What is called ``*_upper`` here is a number that rounding has pushed towards privacy.
"""
