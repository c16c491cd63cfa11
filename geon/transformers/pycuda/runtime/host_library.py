"""Emulation of GPU libraries on the memory of the host.

NumPy computes matrix products and convolutions. For nvmath-python's bindings of cuSOLVER, cuBLAS
and cuFFT, functions have the names and the arguments of ``nvmath.bindings``; those for one dtype
are found by its letter. SciPy's LAPACK and NumPy compute. What the libraries destroy or leave
undefined becomes NaN or a number out of range, and arguments that they would refuse raise
``HostLibraryError``.
"""

from __future__ import annotations

import ctypes
import enum
import importlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....op_graph.values.dtypes import named_dtype
from ..launches.device import Array
from ..launches.library_requests import Convolving, ProductCall


def multiply(product: ProductCall[int], addresses: Sequence[int]) -> None:
    """Compute a matrix product in place."""
    p, (x, y, sums_at, bias) = product, addresses
    wide = np.float64 if p.dtype == "float64" else np.float32
    left = matrices(x, p.dtype, (p.batch, p.rows, p.deep), p.left_strides)
    right = matrices(y, p.dtype, (p.batch, p.deep, p.columns), p.right_strides)
    out = matrices(sums_at, p.result, (p.batch, p.rows, p.columns), p.out_strides)
    sums = np.matmul(left.astype(wide), right.astype(wide))
    if p.bias is not None:
        sums += matrices(bias, p.result, (p.columns,), (1,)).astype(wide)
    np.copyto(out, sums.astype(out.dtype))


def matrices(address: int, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Return a view of memory at an address; strides are in elements."""
    found = named_dtype(dtype)
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    raw = (ctypes.c_uint8 * ((last + 1) * found.itemsize)).from_address(address)
    flat = np.frombuffer(memoryview(raw), np.uint8).view(found)
    return np.lib.stride_tricks.as_strided(flat, shape, [n * found.itemsize for n in strides])


def convolve(call: Convolving, addresses: Sequence[int]) -> None:
    """Compute a convolution in place, one filter element after another."""
    c = call
    wide = np.float64 if c.dtype == "float64" else np.float32
    dtypes = [c.result if part == c.made else c.dtype for part in ("image", "filter", "response")]
    image, window, response = (
        matrices(address, dtype, shape, steps)
        for address, dtype, shape, steps in zip(addresses, dtypes, c.shapes, c.steps, strict=True)
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


# Handles that the emulated libraries give out.
Handle = enum.IntEnum("Handle", {"SOLVER": 301, "BLAS": 302, "SYEVJ": 303, "GESVDJ": 304})
UNDEFINED = -7  # a pivot that a library leaves undefined


class HostLibraryError(Exception):
    """A call that a library refuses."""


def _require(condition: object, what: str) -> None:
    if not condition:
        raise HostLibraryError(what)


def _lapack(module: str, dtype: str, name: str) -> Any:
    found = importlib.import_module(f"scipy.linalg.{module}")
    return getattr(found, f"{'s' if dtype == 'float32' else 'd'}{name}")


def _matrix(address: int, dtype: str, rows: int, columns: int, ld: int) -> Array:
    """Return a view of a column-major matrix."""
    _require(rows > 0 and columns > 0, f"a matrix of {rows} by {columns}")
    _require(ld >= rows, f"a leading dimension of {ld} for {rows} rows")
    _require(address % np.dtype(dtype).itemsize == 0, f"a matrix at {address}")
    return matrices(address, dtype, (rows, columns), (1, ld))


def _vector(address: int, dtype: str, count: int) -> Array:
    return matrices(address, dtype, (count,), (1,))


def _put(address: int, value: int) -> None:
    _vector(address, "int32", 1)[0] = value


class _ByDtype:
    """A module whose functions for a dtype are methods without its letter, which take the dtype."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        dtype = {"s": "float32", "d": "float64"}.get(name[:1])
        if dtype is None or name.startswith("_") or not hasattr(type(self), f"_{name[1:]}"):
            raise AttributeError(name)
        return partial(getattr(self, f"_{name[1:]}"), dtype)


class HostSolver(_ByDtype):
    """``nvmath.bindings.cusolverDn`` on the host."""

    def create(self) -> int:
        """Return the handle."""
        return Handle.SOLVER

    def create_syevj_info(self) -> int:
        """Return the parameters of Jacobi's method for eigenvalues."""
        return Handle.SYEVJ

    def create_gesvdj_info(self) -> int:
        """Return the parameters of Jacobi's method for singular values."""
        return Handle.GESVDJ

    def set_stream(self, handle: int, stream_id: int) -> None:
        """Check the handle."""
        _require(handle == Handle.SOLVER, f"handle {handle}")

    def _begin(self, dtype: str, handle: int, workspace: int, lwork: int, needed: int) -> None:
        """Check the handle and the size of the workspace, and write to all of it."""
        _require(handle == Handle.SOLVER, f"handle {handle}")
        _require(lwork >= needed, f"a workspace of {lwork} elements, which needs {needed}")
        if lwork:
            _vector(workspace, dtype, lwork)[:] = np.nan

    def _potrf_buffer_size(
        self, dtype: str, handle: int, uplo: int, n: int, a: int, lda: int
    ) -> int:
        _require((handle, uplo, lda) == (Handle.SOLVER, 1, n), "arguments of potrf_buffer_size")
        return 2 * n

    def _potrf(
        self, dtype: str, handle: int, uplo: int, n: int, a: int, lda: int, workspace: int,
        lwork: int, dev_info: int,
    ) -> None:  # fmt: skip
        self._begin(dtype, handle, workspace, lwork, 2 * n)
        _decompose(dtype, uplo, n, a, lda, dev_info)

    def _potrf_batched(
        self, dtype: str, handle: int, uplo: int, n: int, aarray: int, lda: int, info_array: int,
        batch_size: int,
    ) -> None:  # fmt: skip
        self.set_stream(handle, 0)
        for k, a in enumerate(_pointers(aarray, batch_size)):
            _decompose(dtype, uplo, n, a, lda, info_array + 4 * k)

    def _getrf_buffer_size(self, dtype: str, handle: int, m: int, n: int, a: int, lda: int) -> int:
        _require((handle, m, lda) == (Handle.SOLVER, n, n), "arguments of getrf_buffer_size")
        return 3 * n

    def _getrf(
        self, dtype: str, handle: int, m: int, n: int, a: int, lda: int, workspace: int,
        dev_ipiv: int, dev_info: int,
    ) -> None:  # fmt: skip
        self._begin(dtype, handle, workspace, 3 * n, 3 * n)
        _factorise(dtype, n, a, lda, dev_ipiv, dev_info)

    def _getrs(
        self, dtype: str, handle: int, trans: int, n: int, nrhs: int, a: int, lda: int,
        dev_ipiv: int, b: int, ldb: int, dev_info: int,
    ) -> None:  # fmt: skip
        self._begin(dtype, handle, 0, 0, 0)
        _solve(dtype, trans, n, nrhs, a, lda, dev_ipiv, b, ldb)
        _put(dev_info, 0)

    def _geqrf_buffer_size(self, dtype: str, handle: int, m: int, n: int, a: int, lda: int) -> int:
        _require((handle, lda) == (Handle.SOLVER, m), "arguments of geqrf_buffer_size")
        return 4 * n

    def _geqrf(
        self, dtype: str, handle: int, m: int, n: int, a: int, lda: int, tau: int, workspace: int,
        lwork: int, dev_info: int,
    ) -> None:  # fmt: skip
        self._begin(dtype, handle, workspace, lwork, 4 * n)
        x = _matrix(a, dtype, m, n, lda)
        x[...], _vector(tau, dtype, n)[:], _, info = _lapack("lapack", dtype, "geqrf")(x)
        _put(dev_info, info)

    def _orgqr_buffer_size(
        self, dtype: str, handle: int, m: int, n: int, k: int, a: int, lda: int, tau: int
    ) -> int:
        _require((handle, n, lda) == (Handle.SOLVER, k, m), "arguments of orgqr_buffer_size")
        return 5 * n

    def _orgqr(
        self, dtype: str, handle: int, m: int, n: int, k: int, a: int, lda: int, tau: int,
        work: int, lwork: int, info: int,
    ) -> None:  # fmt: skip
        self._begin(dtype, handle, work, lwork, 5 * n)
        x = _matrix(a, dtype, m, n, lda)
        x[...], _, status = _lapack("lapack", dtype, "orgqr")(x, _vector(tau, dtype, k))
        _put(info, status)

    def _syevd_buffer_size(
        self, dtype: str, handle: int, jobz: int, uplo: int, n: int, a: int, lda: int, w: int
    ) -> int:
        _require((handle, uplo, lda) == (Handle.SOLVER, 0, n), "arguments of syevd_buffer_size")
        return 6 * n + jobz * n * n

    def _syevd(
        self, dtype: str, handle: int, jobz: int, uplo: int, n: int, a: int, lda: int, w: int,
        work: int, lwork: int, info: int,
    ) -> None:  # fmt: skip
        self._begin(dtype, handle, work, lwork, 6 * n + jobz * n * n)
        _require(uplo == 0, f"uplo {uplo}")
        x = _matrix(a, dtype, n, n, lda)
        _require(np.isfinite(x).all(), "a matrix that is not finite, on which it may not end")
        values, vectors, status = _lapack("lapack", dtype, "syevd")(x, compute_v=jobz, lower=1)
        x[...], _vector(w, dtype, n)[:] = vectors if jobz else np.nan, values
        _put(info, status)

    def _syevj_batched_buffer_size(
        self, dtype: str, handle: int, jobz: int, uplo: int, n: int, a: int, lda: int, w: int,
        params: int, batch_size: int,
    ) -> int:  # fmt: skip
        _require(params == Handle.SYEVJ and n <= 32, f"a batch of {n} rows, parameters {params}")
        return 7 * n * batch_size

    def _syevj_batched(
        self, dtype: str, handle: int, jobz: int, uplo: int, n: int, a: int, lda: int, w: int,
        work: int, lwork: int, info: int, params: int, batch_size: int,
    ) -> None:  # fmt: skip
        self._begin(dtype, handle, work, lwork, 7 * n * batch_size)
        item, works = np.dtype(dtype).itemsize, np.empty(6 * n + n * n, dtype)
        for k in range(batch_size):
            self._syevd(
                dtype, handle, jobz, uplo, n, a + k * n * lda * item, lda, w + k * n * item,
                works.ctypes.data, works.size, info + 4 * k,
            )  # fmt: skip

    def _gesvdj_buffer_size(
        self, dtype: str, handle: int, jobz: int, econ: int, m: int, n: int, a: int, lda: int,
        s: int, u: int, ldu: int, v: int, ldv: int, params: int,
    ) -> int:  # fmt: skip
        _require((jobz, econ, params) == (1, 1, Handle.GESVDJ), "arguments of gesvdj_buffer_size")
        _require((lda, ldu, ldv) == (m, m, n), "leading dimensions of gesvdj_buffer_size")
        return 8 * m

    def _gesvdj(
        self, dtype: str, handle: int, jobz: int, econ: int, m: int, n: int, a: int, lda: int,
        s: int, u: int, ldu: int, v: int, ldv: int, work: int, lwork: int, info: int, params: int,
    ) -> None:  # fmt: skip
        self._begin(dtype, handle, work, lwork, 8 * m)
        _require(params == Handle.GESVDJ and jobz == 1, f"parameters {params}")
        x, count = _matrix(a, dtype, m, n, lda), min(m, n) if econ else m
        _require(np.isfinite(x).all(), "a matrix that is not finite, on which it may not end")
        left, values, right, status = _lapack("lapack", dtype, "gesdd")(x, full_matrices=not econ)
        _matrix(u, dtype, m, count, ldu)[...] = left
        _vector(s, dtype, min(m, n))[:] = values
        _matrix(v, dtype, n, min(m, n), ldv)[...] = right[: min(m, n)].T
        x[...] = np.nan
        _put(info, status)

    def _gesvdj_batched_buffer_size(
        self, dtype: str, handle: int, jobz: int, m: int, n: int, a: int, lda: int, s: int, u: int,
        ldu: int, v: int, ldv: int, params: int, batch_size: int,
    ) -> int:  # fmt: skip
        _require(params == Handle.GESVDJ, f"parameters {params}")
        _require(max(m, n) <= 32, f"a batch of matrices of {m} by {n}")
        return 9 * m * batch_size

    def _gesvdj_batched(
        self, dtype: str, handle: int, jobz: int, m: int, n: int, a: int, lda: int, s: int, u: int,
        ldu: int, v: int, ldv: int, work: int, lwork: int, info: int, params: int, batch_size: int,
    ) -> None:  # fmt: skip
        self._begin(dtype, handle, work, lwork, 9 * m * batch_size)
        item, works = np.dtype(dtype).itemsize, np.empty(8 * m, dtype)
        for k in range(batch_size):
            self._gesvdj(
                dtype, handle, jobz, 0, m, n, a + k * n * lda * item, lda,
                s + k * min(m, n) * item, u + k * m * ldu * item, ldu, v + k * n * ldv * item, ldv,
                works.ctypes.data, works.size, info + 4 * k, params,
            )  # fmt: skip


class HostBlas(_ByDtype):
    """The functions of ``nvmath.bindings.cublas`` for matrices that geon calls, on the host."""

    def create(self) -> int:
        """Return the handle."""
        return Handle.BLAS

    def set_stream(self, handle: int, stream_id: int) -> None:
        """Check the handle."""
        _require(handle == Handle.BLAS, f"handle {handle}")

    def _getrf_batched(
        self, dtype: str, handle: int, n: int, a: int, lda: int, p: int, info: int, batch_size: int
    ) -> None:
        self.set_stream(handle, 0)
        for k, each in enumerate(_pointers(a, batch_size)):
            _factorise(dtype, n, each, lda, p + 4 * k * n, info + 4 * k)

    def _getrs_batched(
        self, dtype: str, handle: int, trans: int, n: int, nrhs: int, aarray: int, lda: int,
        dev_ipiv: int, barray: int, ldb: int, info: int, batch_size: int,
    ) -> None:  # fmt: skip
        self.set_stream(handle, 0)
        both = zip(_pointers(aarray, batch_size), _pointers(barray, batch_size), strict=True)
        for k, (a, b) in enumerate(both):
            _solve(dtype, trans, n, nrhs, a, lda, dev_ipiv + 4 * k * n, b, ldb)

    def _trsm(
        self, dtype: str, handle: int, side: int, uplo: int, trans: int, diag: int, m: int, n: int,
        alpha: int, a: int, lda: int, b: int, ldb: int,
    ) -> None:  # fmt: skip
        self.set_stream(handle, 0)
        _require(side == 1 and _vector(alpha, dtype, 1)[0] == 1, f"side {side}")
        x = _matrix(b, dtype, m, n, ldb)
        triangle = _matrix(a, dtype, n, n, lda)
        x[...] = _lapack("blas", dtype, "trsm")(
            1, triangle, x, side=side, lower=1 - uplo, trans_a=trans, diag=diag
        )

    def _trsm_batched(
        self, dtype: str, handle: int, side: int, uplo: int, trans: int, diag: int, m: int, n: int,
        alpha: int, a: int, lda: int, b: int, ldb: int, batch_count: int,
    ) -> None:  # fmt: skip
        given = handle, side, uplo, trans, diag, m, n, alpha
        for each, to in zip(_pointers(a, batch_count), _pointers(b, batch_count), strict=True):
            self._trsm(dtype, *given, each, lda, to, ldb)


def _pointers(address: int, count: int) -> Iterator[int]:
    """Yield the addresses of an array of pointers."""
    _require(count > 1, f"a batch of {count}")
    yield from (ctypes.c_uint64 * count).from_address(address)


def _decompose(dtype: str, uplo: int, n: int, a: int, lda: int, info: int) -> None:
    """Compute the Cholesky factor of one matrix; the other triangle is undefined."""
    _require(uplo == 1, f"uplo {uplo}")
    x = _matrix(a, dtype, n, n, lda)
    factor, status = _lapack("lapack", dtype, "potrf")(x, lower=0, clean=0)
    x[...] = np.where(np.tri(n, k=-1), np.nan, factor)
    _put(info, status)


def _factorise(dtype: str, n: int, a: int, lda: int, pivots: int, info: int) -> None:
    """Factorise one matrix; pivots behind the first that is 0 are undefined."""
    x = _matrix(a, dtype, n, n, lda)
    x[...], exchanged, status = _lapack("lapack", dtype, "getrf")(x)
    exchanged = exchanged + 1
    if status > 0:
        exchanged[status:] = UNDEFINED
    _vector(pivots, "int32", n)[:] = exchanged
    _put(info, status)


def _solve(
    dtype: str, trans: int, n: int, sides: int, a: int, lda: int, pivots: int, b: int, ldb: int
) -> None:
    """Solve one system by packed factors."""
    exchanged = _vector(pivots, "int32", n) - 1
    _require(((exchanged >= 0) & (exchanged < n)).all(), f"exchanges {exchanged}")
    x = _matrix(b, dtype, n, sides, ldb)
    x[...], _ = _lapack("lapack", dtype, "getrs")(
        _matrix(a, dtype, n, n, lda), exchanged, x, trans=trans
    )


class HostFourier:
    """``nvmath.bindings.cufft`` on the host."""

    cuFFTError = HostLibraryError
    Type = enum.IntEnum(
        "Type", {"R2C": 42, "C2R": 44, "C2C": 41, "D2Z": 106, "Z2D": 108, "Z2Z": 105}
    )

    def __init__(self) -> None:
        self.plans: dict[int, tuple[Any, ...]] = {}
        self.made = 0

    def get_version(self) -> int:
        """Return a version."""
        return 12000

    def create(self) -> int:
        """Return a plan without lengths."""
        self.made += 1
        self.plans[self.made] = ()
        return self.made

    def destroy(self, plan: int) -> None:
        """Forget a plan."""
        del self.plans[plan]

    def set_auto_allocation(self, plan: int, auto_allocate: int) -> None:
        """Check that plans do not allocate the memory they work in."""
        _require(auto_allocate == 0 and not self.plans[plan], "it is set before lengths are")

    def make_plan_many64(
        self, plan: int, rank: int, n: Any, inembed: Any, istride: int, idist: int, onembed: Any,
        ostride: int, odist: int, type: int, batch: int,
    ) -> int:  # fmt: skip
        """Set the lengths of a plan; return the bytes that it works in."""
        _require(rank == len(n) == len(inembed) == len(onembed) == 1, f"a plan of {rank} axes")
        _require(n[0] > 0 and batch > 0, f"{batch} transforms of {n[0]}")
        self.plans[plan] = (
            n[0], (inembed[0], onembed[0]), (istride, ostride), (idist, odist), type, batch,
        )  # fmt: skip
        return 16 * n[0]

    def set_work_area(self, plan: int, work_area: int) -> None:
        """Write to all of the memory that a plan works in."""
        _vector(work_area, "uint8", 16 * self.plans[plan][0])[:] = 255

    def set_stream(self, plan: int, stream: int) -> None:
        """Check the plan."""
        _require(self.plans.get(plan), f"plan {plan}")

    def _exec(self, name: str, plan: int, idata: int, odata: int, direction: int = -1) -> None:
        n, counts, strides, apart, type, batch = self.plans[plan]
        _require(type == self.Type[name.upper()], f"a plan of type {type}")
        real = {"r": "float32", "d": "float64", "c": "complex64", "z": "complex128"}
        kinds = "dz" if name in ("d2z", "z2d", "z2z") else "rc"
        source, target = (
            _lines(address, real[letter], batch, count, step, between, real[kinds[1]])
            for address, letter, count, step, between in zip(
                (idata, odata), (name[0], name[2]), counts, strides, apart, strict=True
            )
        )
        found: Array
        if name in ("c2c", "z2z"):
            _require(direction in (-1, 1), f"direction {direction}")
            found = np.fft.fft(source) if direction < 0 else np.fft.ifft(source, norm="forward")
        elif name in ("r2c", "d2z"):
            found = np.fft.rfft(source)
        else:
            ends = source[:, [0, n // 2]] if n % 2 == 0 else source[:, :1]
            _require((ends.imag == 0).all(), "a spectrum of real numbers")
            found = np.fft.irfft(source, n, norm="forward")
            source[...] = np.nan
        target[...] = found

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name[:5] != "exec_" or name[5:].upper() not in self.Type.__members__:
            raise AttributeError(name)
        return partial(self._exec, name[5:])


def _lines(
    address: int, dtype: str, lines: int, count: int, step: int, apart: int, wide: str
) -> Array:
    """Return a view of lines of real or complex numbers, which are aligned to complex ones."""
    _require(address % np.dtype(wide).itemsize == 0, f"lines at {address}, which are not aligned")
    size = np.dtype(dtype).itemsize
    numbers = ((lines - 1) * apart + (count - 1) * step + 1) * size
    raw = (ctypes.c_uint8 * numbers).from_address(address)
    flat: Array = np.frombuffer(memoryview(raw), dtype)
    return np.lib.stride_tricks.as_strided(flat, (lines, count), (apart * size, step * size))
