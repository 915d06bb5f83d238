"""Arrays in, arrays out: the mathematics, with nothing but numpy.

What is called ``*_upper`` here is a number that rounding has pushed towards privacy.
"""

import numpy as np
from numpy.typing import NDArray

Array = Matrix = Vector = NDArray[np.float64]  # of any shape, of two axes or more, of one
Mask = NDArray[np.bool_]
Whole = NDArray[np.int64]
Indices = NDArray[np.intp]
