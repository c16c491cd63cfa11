"""Operators that make numbers: constants, ranges, random draws, dropout.

A random operator draws from the stream that ``streams`` gives for its seed; an executor sets it, so
that each operator of a program has its own stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

import geon

from ...positional.elementwise import elementwise
from ...positional.picking import numbers
from ...positional.programs import cast
from ...positional.values import Size, Value, array, as_array, axes_for, host, position
from ..values import added, constant
from .rows import FLOAT, FLOATS, INT, INTS, Function, Row, matched, with_attributes

streams: ContextVar[Callable[[int], Any]] = ContextVar("streams", default=geon.Random)


def batch_size_like(f: Function) -> Function:
    """Return a function that makes numbers like ``f``, but takes one length from an input."""

    def build(like: Value, *, input_dim_idx: int, output_dim_idx: int, **options: Any) -> Value:
        shape: list[Size] = list(options.pop("shape"))
        at = position(output_dim_idx, len(shape))
        shape[at] = like.shape[position(input_dim_idx, len(like.shape))]
        found: Value = f(shape=shape, **options)
        return found

    return with_attributes(build, f, {"input_dim_idx": 0, "output_dim_idx": 0})


def fill(*, shape: Any = INTS, value: float = 0.0, dtype: str = "float32") -> Value:
    """Return a number in a shape."""
    return constant(value, shape, dtype)


def drawn(method: str, shape: Sequence[Size], seed: int, dtype: str, *bounds: float) -> Value:
    """Return a draw of a distribution of ``geon.Random`` in a shape."""
    axes = axes_for(shape)
    return array(getattr(streams.get()(seed), method)(axes, *bounds, dtype=dtype), axes)


def uniform_random(
    *, shape: Any = INTS, min: float = -1.0, max: float = 1.0, seed: int = 0, dtype: str = "float32"
) -> Value:
    """Return uniform random numbers from min to max."""
    return drawn("uniform", shape, seed, dtype, min, max)


def gaussian_random(
    *, shape: Any = INTS, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: str = "float32"
) -> Value:
    """Return normal random numbers."""
    return drawn("normal", shape, seed, dtype, mean, std)


def truncated_gaussian_random(
    *, shape: Any = INTS, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: str = "float32"
) -> Value:
    """Return normal random numbers that are at most two deviations from the mean."""
    return drawn("truncated_normal", shape, seed, dtype, mean, std, mean - 2 * std, mean + 2 * std)


def dropout(
    x: Value,
    *,
    dropout_prob: float = 0.5,
    is_test: bool = False,
    seed: int = 0,
    dropout_implementation: str = "downgrade_in_infer",
) -> tuple[Value, Value]:
    """Return X with random elements 0, and the mask of the others.

    By "downgrade_in_infer" X is scaled by 1 - dropout_prob for inference, by "upscale_in_train" the
    rest of X by 1 / (1 - dropout_prob) in training.
    """
    p = dropout_prob
    scaled_in_training = dropout_implementation == "upscale_in_train"
    if is_test:
        factor = 1.0 if scaled_in_training else 1 - p
        return elementwise(lambda t: t * factor, x), constant(1, x.shape, x.dtype)
    given = as_array(x)
    kept = streams.get()(seed).bernoulli(given.tensor.axes, p=1 - p)
    factor = 1 / (1 - p) if scaled_in_training and p < 1 else 1.0
    mask = geon.cast(kept * factor, given.dtype)
    return array(given.tensor * mask, given.dims), array(mask, given.dims)


def dropout_gradient(Mask: Value, Out_grad: Value) -> dict[str, Value]:
    """Return the gradient of X: that of Out where elements were kept, scaled like them."""
    return {"X": elementwise(geon.multiply, Out_grad, Mask)}


def eye(*, num_rows: int = INT, num_columns: int = -1, dtype: str = "float32") -> Value:
    """Return a matrix with 1 on its diagonal; square by default."""
    columns = num_rows if num_columns < 0 else num_columns
    rows = numbers(num_rows, 2, 0)
    return cast(elementwise(geon.equal, rows, numbers(columns, 2, 1)), dtype)


DRAWS = (uniform_random, gaussian_random, truncated_gaussian_random)
LIKE = "Return it in a shape, of which one length is that of Input: "
ROWS = [
    Row("sum", added, "Return the sum of X; that of selected rows alone stays selected.", "X*",
        takes_rows=True),
    Row("assign", lambda x: x, "Return X.", takes_rows=True),
    Row("cast", lambda x, *, dtype="float32": cast(x, dtype), "Return X in another dtype."),
    Row("fill_constant", fill, "", "", gradient=False),
    Row("fill_any_like", lambda x, *, value=0.0: constant(value, x.shape, x.dtype),
        "Return a number in the shape and dtype of X.", gradient=False),
    *[Row(f.__name__, f, "", "", gradient=False) for f in DRAWS],
    *[Row(f"{f.__name__}_batch_size_like", batch_size_like(f), f"{LIKE}{f.__name__}.", "Input",
          gradient=False) for f in DRAWS],
    Row("fill_constant_batch_size_like", batch_size_like(fill), f"{LIKE}a number.", "Input",
        gradient=False),
    Row("fill_zeros_like", lambda x: constant(0, x.shape, x.dtype),
        "Return zeros of the shape and dtype of X.", gradient=False),
    Row("assign_value", lambda *, shape=INTS, values=FLOATS, dtype="float32": cast(host(
        np.reshape([v for v, in matched(math.prod(shape), values=values)], shape)), dtype),
        "Return these values in a shape.", "", gradient=False),
    Row("dropout", dropout, "", "X", "Out Mask~", gradient=dropout_gradient),
    Row("range", lambda *, start=0, end=INT, step=1, dtype="int64": cast(elementwise(
        lambda t: t * step + start, numbers(len(range(start, end, step)))), dtype),
        "Return the numbers from start on in steps up to, without, end.", "", gradient=False),
    Row("linspace", lambda *, start=FLOAT, stop=FLOAT, num=INT, dtype="float32": elementwise(
        lambda t: t * ((stop - start) / max(num - 1, 1)) + start, cast(numbers(num), dtype)),
        "Return num numbers from start to stop, equally far apart.", "", gradient=False),
    Row("eye", eye, "", "", gradient=False),
]  # fmt: skip
