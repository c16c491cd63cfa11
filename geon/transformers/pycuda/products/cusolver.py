"""Factorisations and solutions by cuSOLVER and cuBLAS, through nvmath-python's bindings.

Matrices are column-major, and so are those of the bindings. A batch is one call for each matrix, or
one call of a routine for batches where these are faster. A routine leaves its status in the int32
array ``info``, 0 for success; the kernel that follows reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..launches.library_requests import MAX_JACOBI_ROWS, MatrixCall
from .nvmath_bindings import SharedWorkspace, starting

# Max. rows of matrices of which a batch is one call. More rows occupy a device by themselves, and
# the routines for batches are made for small matrices.
MAX_BATCHED_ROWS = 512
LOWER, UPPER, RIGHT, NO_TRANSPOSE, TRANSPOSE = 0, 1, 1, 0, 1  # enumerations of cuBLAS
VALUES, VECTORS, ECONOMICAL = 0, 1, 1  # cusolverEigMode_t, and ``econ`` of gesvdj
Addresses = Sequence[int]


def load_cusolver(name: str, allocate: Callable[[int], int], free: Callable[[int], None]) -> Any:
    """Return cuSOLVER on the device ``name``; raise ``DeviceError`` if it is unavailable."""
    with starting("matrices", CuSolver.title, name):
        from nvmath.bindings import cublas, cusolver, cusolverDn

        cusolver.get_version()  # loads the library
        errors = cusolver.cuSOLVERError, cublas.cuBLASError
        return CuSolver(cusolverDn, cublas, errors, SharedWorkspace(allocate, free))


class CuSolver:
    """cuSOLVER and cuBLAS on one device; callers must have entered the device's context."""

    title = "cuSOLVER"
    calling = "cuSOLVER factorises a matrix or solves a system"

    def __init__(
        self,
        solver: Any,
        blas: Any,
        errors: tuple[type[Exception], ...],
        workspace: SharedWorkspace,
    ) -> None:
        self.solver, self.blas, self.errors, self.workspace = solver, blas, errors, workspace
        # On the host: the factor of right-hand sides, and the number of a wrong argument.
        self.ones = {dtype: np.ones(1, dtype) for dtype in ("float32", "float64")}
        self.wrong = np.zeros(1, np.int32)
        self.elements: dict[tuple[Any, ...], int] = {}

    @cached_property
    def handle(self) -> int:
        """Return the handle of cuSOLVER, made at first use: that takes long and much memory."""
        return int(self.solver.create())

    @cached_property
    def blas_handle(self) -> int:
        """Return the handle of cuBLAS, made at first use."""
        return int(self.blas.create())

    @cached_property
    def syevj(self) -> int:
        """Return the parameters of Jacobi's method for eigenvalues."""
        return int(self.solver.create_syevj_info())

    @cached_property
    def gesvdj(self) -> int:
        """Return the parameters of Jacobi's method for singular values."""
        return int(self.solver.create_gesvdj_info())

    def takes(self, call: MatrixCall[int]) -> bool:
        """Return True, after allocating the memory that a call works in."""
        self.workspace.at_least(self.elements_of(call) * itemsize(call))
        return True

    def call(self, call: MatrixCall[int], addresses: Addresses, works: int, stream: int) -> None:
        """Submit a routine for all matrices of a batch to a stream."""
        if is_empty(call):
            return
        self.solver.set_stream(self.handle, stream)
        self.blas.set_stream(self.blas_handle, stream)
        elements = self.elements_of(call)
        own = self.workspace.at_least(elements * itemsize(call))
        routine = ROUTINES[call.routine]
        if is_batched(call):
            assert routine.batched is not None
            routine.batched(self, call, addresses, own, elements)
            return
        for k in range(call.batch):
            pairs = zip(addresses, call.strides, strict=True)
            routine.each(self, call, [first + k * step for first, step in pairs], own, elements)

    def elements_of(self, call: MatrixCall[int]) -> int:
        """Return the elements of the workspace that a call needs, which the library tells."""
        batch = call.batch if is_batched(call) else 1
        key = (call.routine, batch, call.rows, call.columns, call.flags, call.dtype)
        if key not in self.elements:
            found = 0 if is_empty(call) else ROUTINES[call.routine].elements(self, call)
            self.elements[key] = found
        return self.elements[key]

    def function(self, module: Any, call: MatrixCall[int], name: str) -> Any:
        """Return a function of a binding for the dtype of a call."""
        return getattr(module, f"{'s' if call.dtype == 'float32' else 'd'}{name}")


def itemsize(call: MatrixCall[int]) -> int:
    """Return the bytes of an element."""
    return 4 if call.dtype == "float32" else 8


def is_empty(call: MatrixCall[int]) -> bool:
    """Return True if a call has no elements."""
    return 0 in (call.batch, call.rows, call.columns)


def is_batched(call: MatrixCall[int]) -> bool:
    """Return True if one call of the library computes the whole batch."""
    routine = ROUTINES[call.routine]
    most = max(call.rows, call.columns) if routine.most == MAX_JACOBI_ROWS else call.rows
    return routine.batched is not None and call.batch > 1 and most <= routine.most


# Routines: their addresses are those of ``MatrixCall``, of one matrix or of a batch ------------


def _potrf(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    a, info, _ = at
    potrf = lib.function(lib.solver, c, "potrf")
    potrf(lib.handle, UPPER, c.rows, a, c.rows, works, size, info)


def _potrf_size(lib: CuSolver, c: MatrixCall[int]) -> int:
    if is_batched(c):
        return 0
    found: int = lib.function(lib.solver, c, "potrf_buffer_size")(
        lib.handle, UPPER, c.rows, 0, c.rows
    )
    return found


def _potrf_batched(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    _, info, pointers = at
    potrf = lib.function(lib.solver, c, "potrf_batched")
    potrf(lib.handle, UPPER, c.rows, pointers, c.rows, info, c.batch)


def _getrf(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    a, pivots, info, _ = at
    getrf = lib.function(lib.solver, c, "getrf")
    getrf(lib.handle, c.rows, c.rows, a, c.rows, works, pivots, info)


def _getrf_size(lib: CuSolver, c: MatrixCall[int]) -> int:
    if is_batched(c):
        return 0
    found: int = lib.function(lib.solver, c, "getrf_buffer_size")(
        lib.handle, c.rows, c.rows, 0, c.rows
    )
    return found


def _getrf_batched(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    _, pivots, info, pointers = at
    getrf = lib.function(lib.blas, c, "getrf_batched")
    getrf(lib.blas_handle, c.rows, pointers, c.rows, pivots, info, c.batch)


def _getrs(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    factors, pivots, sides, info, _, _ = at
    (transposed,) = c.flags
    lib.function(lib.solver, c, "getrs")(
        lib.handle, TRANSPOSE if transposed else NO_TRANSPOSE, c.rows, c.columns, factors, c.rows,
        pivots, sides, c.rows, info,
    )  # fmt: skip


def _getrs_batched(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    _, pivots, _, _, of_factors, of_sides = at
    (transposed,) = c.flags
    lib.function(lib.blas, c, "getrs_batched")(
        lib.blas_handle, TRANSPOSE if transposed else NO_TRANSPOSE, c.rows, c.columns, of_factors,
        c.rows, pivots, of_sides, c.rows, lib.wrong.ctypes.data, c.batch,
    )  # fmt: skip


def _trsm(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    triangle, sides, _, _ = at
    _solve_triangles(lib, c, "trsm", triangle, sides)


def _trsm_batched(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    _, _, of_triangles, of_sides = at
    _solve_triangles(lib, c, "trsm_batched", of_triangles, of_sides, c.batch)


def _solve_triangles(lib: CuSolver, c: MatrixCall[int], name: str, *at: int) -> None:
    """Solve X op(T) = B in place, for ``columns`` rows X."""
    upper, transposed, unit = c.flags
    triangles, sides, *batch = at
    lib.function(lib.blas, c, name)(
        lib.blas_handle, RIGHT, upper, transposed, unit, c.columns, c.rows,
        lib.ones[c.dtype].ctypes.data, triangles, c.rows, sides, c.columns, *batch,
    )  # fmt: skip


def _geqrf(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    a, tau, info = at
    geqrf = lib.function(lib.solver, c, "geqrf")
    geqrf(lib.handle, c.rows, c.columns, a, c.rows, tau, works, size, info)


def _geqrf_size(lib: CuSolver, c: MatrixCall[int]) -> int:
    found: int = lib.function(lib.solver, c, "geqrf_buffer_size")(
        lib.handle, c.rows, c.columns, 0, c.rows
    )
    return found


def _orgqr(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    a, tau, info = at
    orgqr = lib.function(lib.solver, c, "orgqr")
    orgqr(lib.handle, c.rows, c.columns, c.columns, a, c.rows, tau, works, size, info)


def _orgqr_size(lib: CuSolver, c: MatrixCall[int]) -> int:
    found: int = lib.function(lib.solver, c, "orgqr_buffer_size")(
        lib.handle, c.rows, c.columns, c.columns, 0, c.rows, 0
    )
    return found


def _syevd(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    a, values, info = at
    syevd = lib.function(lib.solver, c, "syevd")
    syevd(lib.handle, *c.flags, LOWER, c.rows, a, c.rows, values, works, size, info)


def _syevd_size(lib: CuSolver, c: MatrixCall[int]) -> int:
    given = (lib.handle, *c.flags, LOWER, c.rows, 0, c.rows, 0)
    found: int
    if is_batched(c):
        size = lib.function(lib.solver, c, "syevj_batched_buffer_size")
        found = size(*given, lib.syevj, c.batch)
    else:
        found = lib.function(lib.solver, c, "syevd_buffer_size")(*given)
    return found


def _syevj_batched(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    a, values, info = at
    lib.function(lib.solver, c, "syevj_batched")(
        lib.handle, *c.flags, LOWER, c.rows, a, c.rows, values, works, size, info, lib.syevj,
        c.batch,
    )  # fmt: skip


def _gesvdj(lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int) -> None:
    a, values, left, right, info = at
    lib.function(lib.solver, c, "gesvdj")(
        lib.handle, VECTORS, ECONOMICAL, c.rows, c.columns, a, c.rows, values, left, c.rows, right,
        c.columns, works, size, info, lib.gesvdj,
    )  # fmt: skip


def _gesvdj_size(lib: CuSolver, c: MatrixCall[int]) -> int:
    given = (c.rows, c.columns, 0, c.rows, 0, 0, c.rows, 0, c.columns, lib.gesvdj)
    found: int
    if is_batched(c):
        size = lib.function(lib.solver, c, "gesvdj_batched_buffer_size")
        found = size(lib.handle, VECTORS, *given, c.batch)
    else:
        size = lib.function(lib.solver, c, "gesvdj_buffer_size")
        found = size(lib.handle, VECTORS, ECONOMICAL, *given)
    return found


def _gesvdj_batched(
    lib: CuSolver, c: MatrixCall[int], at: Addresses, works: int, size: int
) -> None:
    a, values, left, right, info = at
    lib.function(lib.solver, c, "gesvdj_batched")(
        lib.handle, VECTORS, c.rows, c.columns, a, c.rows, values, left, c.rows, right, c.columns,
        works, size, info, lib.gesvdj, c.batch,
    )  # fmt: skip


def _no_elements(lib: CuSolver, c: MatrixCall[int]) -> int:
    return 0


Routine = Callable[[CuSolver, MatrixCall[int], Addresses, int, int], None]


@dataclass(frozen=True, slots=True)
class RoutineCalls:
    """The calls of a routine: for each matrix, and for a batch of at most ``most`` rows.

    ``elements`` returns the number of elements of their workspace.
    """

    each: Routine
    elements: Callable[[CuSolver, MatrixCall[int]], int]
    batched: Routine | None = None
    most: int = MAX_BATCHED_ROWS


ROUTINES = {
    "potrf": RoutineCalls(_potrf, _potrf_size, _potrf_batched),
    "getrf": RoutineCalls(_getrf, _getrf_size, _getrf_batched),
    "getrs": RoutineCalls(_getrs, _no_elements, _getrs_batched),
    "trsm": RoutineCalls(_trsm, _no_elements, _trsm_batched),
    "geqrf": RoutineCalls(_geqrf, _geqrf_size),
    "orgqr": RoutineCalls(_orgqr, _orgqr_size),
    "syevd": RoutineCalls(_syevd, _syevd_size, _syevj_batched, MAX_JACOBI_ROWS),
    "gesvdj": RoutineCalls(_gesvdj, _gesvdj_size, _gesvdj_batched, MAX_JACOBI_ROWS),
}
