"""Matrix factorisations of NumPy programs, by LAPACK through NumPy and SciPy.

Matrices are the last two dimensions of their arrays. A matrix that cannot be factorised becomes
NaN. This file imports NumPy and geon's errors alone: its text is part of the modules that
``Transformer.write`` makes.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import UnavailableError

Array = np.ndarray[Any, np.dtype[Any]]


def linear_algebra(module: str, routine: str, dtype: Any) -> Any:
    """Return a routine of SciPy's BLAS or LAPACK for float32 or float64."""
    try:
        found = importlib.import_module(f"scipy.linalg.{module}")
    except ImportError as error:
        raise UnavailableError(
            f"{routine} needs SciPy, which cannot be imported ({error}): install it with "
            "`pip install scipy`"
        ) from error
    return getattr(found, f"{'s' if dtype == np.float32 else 'd'}{routine}")


def _write(function: Callable[[Array, Array], None], x: Array, out: Array) -> None:
    """Call ``function(x, out)`` for all matrices, or for each if one fails, which becomes NaN."""
    try:
        function(x, out)
    except np.linalg.LinAlgError:
        for at in np.ndindex(x.shape[:-2]):
            try:
                function(x[at], out[at])
            except np.linalg.LinAlgError:
                out[at] = np.nan


def cholesky(x: Array, out: Array) -> None:
    """Write the lower Cholesky factors of ``x``."""

    def write(x: Array, out: Array) -> None:
        out[...] = np.linalg.cholesky(x)

    _write(write, x, out)


def eigh(x: Array, out: Array) -> None:
    """Write eigenvectors, and behind each its eigenvalue; ``x`` has columns before rows."""

    def write(x: Array, out: Array) -> None:
        values, vectors = np.linalg.eigh(x, UPLO="U")
        out[..., :-1], out[..., -1] = vectors.swapaxes(-1, -2), values

    _write(write, x, out)


def eigvalsh(x: Array, out: Array) -> None:
    """Write eigenvalues."""

    def write(x: Array, out: Array) -> None:
        out[...] = np.linalg.eigvalsh(x, UPLO="U")

    _write(write, x, out)


def qr(x: Array, out: Array) -> None:
    """Write the columns of Q, and behind each the row of R; ``x`` has columns before rows."""
    m = x.shape[-1]
    q, r = np.linalg.qr(x.swapaxes(-1, -2))
    out[..., :m], out[..., m:] = q.swapaxes(-1, -2), r


def svd(x: Array, out: Array) -> None:
    """Write left singular vectors, and behind each its singular value and the right one.

    ``x`` has columns before rows.
    """
    m = x.shape[-1]

    def write(x: Array, out: Array) -> None:
        u, s, v = np.linalg.svd(x.swapaxes(-1, -2), full_matrices=False)
        out[..., :m], out[..., m], out[..., m + 1 :] = u.swapaxes(-1, -2), s, v

    _write(write, x, out)


def lu(x: Array, out: Array) -> None:
    """Write the packed factors of ``x``: those of each transpose, transposed, and its exchanges."""
    factorise = linear_algebra("lapack", "getrf", x.dtype)
    n = x.shape[-1]
    for at in np.ndindex(x.shape[:-2]):
        if n:
            factors, exchanges, _ = factorise(x[at].T)
            out[at][:n], out[at][n] = factors.T, exchanges


def _with_sides(x: Array, batch: int) -> Array:
    """Return right-hand sides as an array with one dimension behind that of the rows."""
    return x.reshape(*x.shape[: batch + 1], math.prod(x.shape[batch + 1 :]), copy=False)


def lu_solve(f: Array, b: Array, transposed: bool, out: Array) -> None:
    """Write the solutions of systems whose matrices have the packed factors ``f``."""
    solve = linear_algebra("lapack", "getrs", f.dtype)
    n, batch = f.shape[-1], f.shape[:-2]
    sides, found = (_with_sides(x, len(batch)) for x in (b, out))
    for at in np.ndindex(batch):
        if found[at].size:
            exchanges = f[at][n].astype(np.int32)
            # The factors are those of the transpose.
            found[at][...], _ = solve(f[at][:n].T, exchanges, sides[at], trans=int(not transposed))


def triangular_solve(
    a: Array, b: Array, exchanged: bool, lower: bool, unit: bool, out: Array
) -> None:
    """Write the solutions of triangular systems; ``exchanged`` if a has its columns before its
    rows.
    """
    solve = linear_algebra("blas", "trsm", a.dtype)
    batch = a.shape[:-2]
    sides, found = (_with_sides(x, len(batch)) for x in (b, out))
    for at in np.ndindex(batch):
        if found[at].size:
            given = a[at] if exchanged else a[at].T  # the transpose of the matrix
            found[at][...] = solve(1, given, sides[at], lower=not lower, trans_a=1, diag=unit)
