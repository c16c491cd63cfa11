"""What every example begins with."""

import numpy as np

import geon

np.set_printoptions(precision=4, suppress=True)
A, B = geon.Axis("A", 2), geon.Axis("B", 3)
x = geon.constant(np.array([[1.0, -2.0, 3.0], [4.0, 0.5, -6.0]], "float32"), [A, B], name="x")
n = geon.constant(np.array([3, 0, 2]), [B], name="n")
transformer = geon.NumPyTransformer()


def show(tensor):
    """Print the axes and the dtype of a tensor, compute it, and print its value."""
    print(tensor.axes, tensor.dtype)
    print(transformer.computation(tensor)())


def refused(build):
    """Print what geon says when it refuses to do this."""
    try:
        build()
    except geon.GeonError as error:
        print(f"{type(error).__name__}: {error}")
