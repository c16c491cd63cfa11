"""Data of the examples of ``names``: for PyTorch as tensors, for geon as placeholders."""

import math
from typing import Any

import numpy as np

import geon

A, B, C, K, E = (geon.Axis(*each) for each in zip("ABCKE", (3, 4, 2, 2, 5), strict=True))
N, D, M, R, S = (geon.Axis(*each) for each in zip("NDMRS", (2, 3, 4, 3, 3), strict=True))
H, W, L, P, Q = (geon.Axis(*each) for each in zip("HWLPQ", (4, 4, 6, 2, 2), strict=True))
H6 = geon.Axis("H", 6)
random = np.random.default_rng(5)


def normal(*axes: geon.Axis) -> tuple[np.ndarray[Any, Any], tuple[geon.Axis, ...]]:
    """Normal numbers over these axes, and the axes."""
    return random.normal(size=[int(axis.length) for axis in axes]), axes


def definite() -> np.ndarray[Any, Any]:
    """A positive definite matrix."""
    root, _ = normal(A, A.prime)
    return root @ root.T + np.eye(3)


DATA = {
    "x": normal(A, B),
    "u": normal(A, B),
    "y": normal(B, C),
    "v": normal(A),
    "w": normal(B),
    "s": normal(A, A.prime),
    "p": (definite(), (A, A.prime)),
    "b": normal(K, A, B),
    "d": normal(K, B, C),
    "l": normal(C, B, B.prime),
    "t": (random.uniform(0.1, 0.9, (3, 4)), (A, B)),
    "i": (np.array([2, 0, 2]), (A,)),
    "n": (random.integers(0, 9, (3, 4)), (A, B)),
    "m": (np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0]], bool), (A, B)),
    "e": normal(E),
    "g": normal(N, D, H, W),
    "k": normal(M, D, R, S),
    "c": normal(N, D, L),
    "h": normal(M, D, R),
    "z": (normal(A, B)[0] + 1j * normal(A, B)[0], (A, B)),
}
PLACEHOLDERS = {
    name: geon.placeholder(axes, array.dtype.name, name=name)
    for name, (array, axes) in DATA.items()
}


def constant(value: float) -> geon.Tensor:
    """A float64 number, beside integers."""
    return geon.constant(float(value), dtype="float64")


NAMES = {
    **{"geon": geon, "math": math, "constant": constant, "H6": H6},
    **{axis.name: axis for axis in (A, B, C, K, E, N, D, M, R, S, H, W, L, P, Q)},
}
