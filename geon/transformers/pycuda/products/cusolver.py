"""Factorisations and solutions by cuSOLVER and cuBLAS, through nvmath-python's bindings.

Matrices are column-major, and so are those of the bindings. A batch is one call for each matrix, or
one call of a routine for batches where these are faster. A routine leaves its status in the int32
array ``info``, 0 for success; the kernel that follows reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..launches.library_requests import MAX_JACOBI_ROWS, MatrixCall
from .nvmath_bindings import SharedWorkspace, starting

# Max. rows of matrices of which a batch is one call. More rows occupy a device by themselves, and
# the routines for batches are made for small matrices.
MAX_BATCHED_ROWS = 512
PARAMETERS = ("syevj", "gesvdj")  # made at first use
LETTERS = {"float32": "s", "float64": "d"}
# Enumerations of cuBLAS and cuSOLVER: of triangles, sides, eigenvectors, and ``econ`` of gesvdj.
CONSTANTS = {"LOWER": 0, "UPPER": 1, "RIGHT": 1, "VECTORS": 1, "ECONOMICAL": 1}


class BindingCall(NamedTuple):
    """A function of a binding ("solver" or "blas"), without the letter of its dtype.

    ``arguments`` behind the handle are names of operands, flags, ``CONSTANTS``, and of: ``rows``,
    ``columns`` and ``batch`` of a call, ``works`` and its ``elements``, the factor ``one``,
    parameters ``syevj`` and ``gesvdj``, and ``wrong``, the number of a wrong argument. ``sizes``
    are those of the function that tells the elements of ``works``, empty if it needs none.
    """

    binding: str
    name: str
    arguments: str
    sizes: str = ""


class Routine(NamedTuple):
    """The calls of a routine: for each matrix, and for a batch of at most ``most`` rows.

    ``operands`` and ``flags`` are the names of those of a ``MatrixCall``.
    """

    operands: str
    each: BindingCall
    batched: BindingCall | None = None
    flags: str = ""
    most: int = MAX_BATCHED_ROWS


ROUTINES = {
    "potrf": Routine(
        "a info pointers",
        BindingCall(
            "solver", "potrf", "UPPER rows a rows works elements info", "UPPER rows a rows"
        ),
        BindingCall("solver", "potrf_batched", "UPPER rows pointers rows info batch"),
    ),
    "getrf": Routine(
        "a pivots info pointers",
        BindingCall("solver", "getrf", "rows rows a rows works pivots info", "rows rows a rows"),
        BindingCall("blas", "getrf_batched", "rows pointers rows pivots info batch"),
    ),
    "getrs": Routine(
        "factors pivots sides info pointers pointers_to_sides",
        BindingCall(
            "solver", "getrs", "transposed rows columns factors rows pivots sides rows info"
        ),
        BindingCall(
            "blas", "getrs_batched",
            "transposed rows columns pointers rows pivots pointers_to_sides rows wrong batch",
        ),
        "transposed",
    ),
    "trsm": Routine(
        "triangle sides pointers pointers_to_sides",
        BindingCall(
            "blas", "trsm",
            "RIGHT upper transposed unit columns rows one triangle rows sides columns",
        ),
        BindingCall(
            "blas", "trsm_batched",
            "RIGHT upper transposed unit columns rows one pointers rows pointers_to_sides columns "
            "batch",
        ),
        "upper transposed unit",
    ),
    "geqrf": Routine(
        "a tau info",
        BindingCall(
            "solver", "geqrf", "rows columns a rows tau works elements info", "rows columns a rows"
        ),
    ),
    "orgqr": Routine(
        "a tau info",
        BindingCall(
            "solver", "orgqr", "rows columns columns a rows tau works elements info",
            "rows columns columns a rows tau",
        ),
    ),
    "syevd": Routine(
        "a values info",
        BindingCall(
            "solver", "syevd", "vectors LOWER rows a rows values works elements info",
            "vectors LOWER rows a rows values",
        ),
        BindingCall(
            "solver", "syevj_batched",
            "vectors LOWER rows a rows values works elements info syevj batch",
            "vectors LOWER rows a rows values syevj batch",
        ),
        "vectors",
        MAX_JACOBI_ROWS,
    ),
    "gesvdj": Routine(
        "a values left right info",
        BindingCall(
            "solver", "gesvdj",
            "VECTORS ECONOMICAL rows columns a rows values left rows right columns works elements "
            "info gesvdj",
            "VECTORS ECONOMICAL rows columns a rows values left rows right columns gesvdj",
        ),
        BindingCall(
            "solver", "gesvdj_batched",
            "VECTORS rows columns a rows values left rows right columns works elements info gesvdj "
            "batch",
            "VECTORS rows columns a rows values left rows right columns gesvdj batch",
        ),
        "",
        MAX_JACOBI_ROWS,
    ),
}  # fmt: skip


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

    def call(
        self, call: MatrixCall[int], addresses: Sequence[int], works: int, stream: int
    ) -> None:
        """Submit a routine for all matrices of a batch to a stream."""
        if is_empty(call):
            return
        self.solver.set_stream(self.handle, stream)
        self.blas.set_stream(self.blas_handle, stream)
        elements = self.elements_of(call)
        own = {"works": self.workspace.at_least(elements * itemsize(call)), "elements": elements}
        routine, made = ROUTINES[call.routine], binding_call(call)
        for k in range(1 if made is routine.batched else call.batch):
            pairs = zip(routine.operands.split(), addresses, call.strides, strict=True)
            operands = {name: first + k * step for name, first, step in pairs}
            self.run(made, made.name, made.arguments, call, {**own, **operands})

    def elements_of(self, call: MatrixCall[int]) -> int:
        """Return the elements of the workspace that a call needs, which the library tells."""
        made = binding_call(call)
        if is_empty(call) or not made.sizes:
            return 0
        batch = call.batch if made is ROUTINES[call.routine].batched else 1
        key = (call.routine, batch, call.rows, call.columns, call.flags, call.dtype)
        if key not in self.elements:
            nowhere = dict.fromkeys(ROUTINES[call.routine].operands.split(), 0)
            name = f"{made.name}_buffer_size"
            self.elements[key] = int(self.run(made, name, made.sizes, call, nowhere))
        return self.elements[key]

    def run(
        self, made: BindingCall, name: str, arguments: str, call: MatrixCall[int],
        values: Mapping[str, int],
    ) -> Any:  # fmt: skip
        """Call a function of a binding for the dtype of a call, with these values of arguments."""
        flags = dict(zip(ROUTINES[call.routine].flags.split(), call.flags, strict=True))
        known = {**CONSTANTS, **flags, **values}
        known |= {"rows": call.rows, "columns": call.columns, "batch": call.batch}
        known |= {"one": self.ones[call.dtype].ctypes.data, "wrong": self.wrong.ctypes.data}
        given = [getattr(self, x) if x in PARAMETERS else known[x] for x in arguments.split()]
        solves = made.binding == "solver"
        binding, handle = (self.solver, self.handle) if solves else (self.blas, self.blas_handle)
        return getattr(binding, f"{LETTERS[call.dtype]}{name}")(handle, *given)


def binding_call(call: MatrixCall[int]) -> BindingCall:
    """Return the call of the library for the whole batch, or for each matrix."""
    routine = ROUTINES[call.routine]
    return routine.batched if routine.batched is not None and is_batched(call) else routine.each


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
