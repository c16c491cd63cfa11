"""Loops"""

from .begin import *


# %% scan
def step(total, row):
    """Add a row to a running total, and give its square."""
    return total + row, geon.square(row)


last, squares = geon.scan(step, geon.constant(0.0), geon.cast(n, "float32"), over=B)
show(last)
show(squares)
refused(lambda: geon.scan(step, geon.constant(0.0), x, over="Z"))
