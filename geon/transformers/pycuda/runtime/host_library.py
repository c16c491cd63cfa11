"""NumPy emulation of GPU library calls: matrix products and convolutions."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np

from ....op_graph.values.dtypes import named_dtype
from ..launches.device import Array, Convolving, Multiplication


def multiply(product: Multiplication) -> None:
    """Compute a matrix product in place."""
    p = product
    wide = np.float64 if p.dtype == "float64" else np.float32
    left = matrices(p.left, p.dtype, (p.batch, p.rows, p.deep), p.left_strides)
    right = matrices(p.right, p.dtype, (p.batch, p.deep, p.columns), p.right_strides)
    out = matrices(p.out, p.result, (p.batch, p.rows, p.columns), p.out_strides)
    sums = np.matmul(left.astype(wide), right.astype(wide))
    if p.bias:
        sums += matrices(p.bias, p.result, (p.columns,), (1,)).astype(wide)
    np.copyto(out, sums.astype(out.dtype))


def matrices(address: int, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Return a view of memory at an address; strides are in elements."""
    found = named_dtype(dtype)
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    raw = (ctypes.c_uint8 * ((last + 1) * found.itemsize)).from_address(address)
    flat = np.frombuffer(memoryview(raw), np.uint8).view(found)
    return np.lib.stride_tricks.as_strided(flat, shape, [n * found.itemsize for n in strides])


def convolve(call: Convolving) -> None:
    """Compute a convolution in place, one filter element after another."""
    c = call
    wide = np.float64 if c.dtype == "float64" else np.float32
    dtypes = [c.result if part == c.made else c.dtype for part in ("image", "filter", "response")]
    image, window, response = (
        matrices(address, dtype, shape, steps)
        for address, dtype, shape, steps in zip(c.addresses, dtypes, c.shapes, c.steps, strict=True)
    )
    widths = [(0, 0), (0, 0), *zip(c.before, c.after, strict=True)]
    padded: Array = np.pad(image.astype(wide), widths)
    # Shape: images, groups, channels or filters per group, then spatial axes.
    seen: Array = padded.reshape(len(padded), c.groups, -1, *padded.shape[2:])
    taps: Array = window.astype(wide).reshape(c.groups, -1, *window.shape[1:])
    answer: Array = response.astype(wide).reshape(len(response), c.groups, -1, *response.shape[2:])
    made = {"image": seen, "filter": taps, "response": answer}[c.made]
    made[:] = 0
    along = "xyz"[: len(c.strides)]
    for place in itertools.product(*map(range, window.shape[2:])):
        ranges = zip(place, c.dilations, c.strides, response.shape[2:], strict=True)
        where: Any = (..., *(slice(r * d, r * d + s * (n - 1) + 1, s) for r, d, s, n in ranges))
        here: Any = (..., *place)
        if c.made == "response":
            answer += np.einsum(f"ngc{along},gkc->ngk{along}", seen[where], taps[here])
        elif c.made == "filter":
            taps[here] += np.einsum(f"ngc{along},ngk{along}->gkc", seen[where], answer)
        else:
            seen[where] += np.einsum(f"ngk{along},gkc->ngc{along}", answer, taps[here])
    if c.made == "image":
        cut: Any = tuple(slice(b, b + n) for b, n in zip(c.before, image.shape[2:], strict=True))
        made = padded[(..., *cut)]
    out = {"image": image, "filter": window, "response": response}[c.made]
    np.copyto(out, made.reshape(out.shape).astype(out.dtype))
