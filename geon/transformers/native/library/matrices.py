"""C library kernels for matrices, which call LAPACK and BLAS as external functions.

The C is in ``c/linalg``. Matrices are contiguous in the order of their axes, those of the matrix
innermost. A batch is divided among threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ...sizes.limits import MIN_TASK_WORK
from ...sizes.scratch import PerThread, lines
from ..names.c_files import FileFunction, file_function
from ..names.external_names import external_name
from ..names.naming import KernelNames

# Operations of a task: about 20 microseconds.
MIN_TASK_OPERATIONS = 2 * MIN_TASK_WORK
TRIANGLES = ("blas.trsm", "blas.trsv")
# The routines that each kernel calls, without the letter of their dtype.
ROUTINES = {
    "cholesky": ("lapack.potrf",),
    "lu": ("lapack.getrf",),
    "lu_solve": TRIANGLES,
    "triangular_solve": TRIANGLES,
    "eigh": ("lapack.syevd",),
    "eigvalsh": ("lapack.syevd",),
    "qr": ("lapack.geqrf", "lapack.orgqr"),
    "svd": ("lapack.gesdd",),
}


def matrix_text(name: str, dtype: str) -> FileFunction:
    """Return the C function of a matrix kernel; its header documents its parameters."""
    letter = "s" if dtype == "float32" else "d"
    keys = {}
    for routine in ROUTINES[name]:
        provider, _, short = routine.partition(".")
        keys[short.upper()] = f"{provider}.{letter}{short}"
    macros = {short: external_name(key) for short, key in keys.items()}
    return file_function(
        f"linalg/{name}",
        f"geon_{name}_{SUFFIXES[dtype]}",
        {"TYPE": C_TYPES[dtype]},
        {
            "GRAIN": MIN_TASK_OPERATIONS,
            "SQRT": "__builtin_sqrtf" if letter == "s" else "__builtin_sqrt",
            "ABS": "__builtin_fabsf" if letter == "s" else "__builtin_fabs",
            **macros,
        },
        "linalg/packed" if name in WORKSPACES else None,
        external=tuple(keys.values()),
    )


# Arguments of the calls ---------------------------------------------------------------------------


def _factorisation(op: Op, names: KernelNames) -> list[str]:
    """Return the batch size and the number of rows."""
    lengths = op.args[0].axes.lengths
    return [names.length(product(lengths[:-2])), names.length(lengths[-1])]


def _system(op: Op, names: KernelNames) -> list[str]:
    """Return the batch size, the number of rows, and the number of right-hand sides."""
    batch, columns = op.args[0].axes.lengths[:-2], op.args[0].axes.lengths[-1]
    further = op.axes.lengths[len(batch) + 1 :]
    return [names.length(size) for size in (product(batch), columns, product(further))]


def _lu_solve(op: Op, names: KernelNames) -> list[str]:
    return [*_system(op, names), str(int(op.attrs.transposed))]


def _triangular_solve(op: Op, names: KernelNames) -> list[str]:
    exchanged = op.args[0].axes.names[-1] == op.attrs.rows
    flags = (exchanged, op.attrs.lower, op.attrs.unit)
    return [*_system(op, names), *(str(int(flag)) for flag in flags)]


def _packed(op: Op, names: KernelNames) -> list[str]:
    """Return the batch size, the numbers of rows and columns, and the scratch bytes of a thread."""
    *batch, n, m = op.args[0].axes.lengths
    return [names.length(size) for size in (product(batch), m, n, scratch_bytes(op))]


ARGUMENTS: dict[str, Callable[[Op, KernelNames], list[str]]] = {
    "cholesky": _factorisation,
    "lu": _factorisation,
    "lu_solve": _lu_solve,
    "triangular_solve": _triangular_solve,
    "eigh": _packed,
    "eigvalsh": _packed,
    "qr": _packed,
    "svd": _packed,
}


# Scratch memory -----------------------------------------------------------------------------------


def scratch_bytes(op: Op) -> Size:
    """Return the bytes of scratch memory that each thread of a factorisation needs: LAPACK's."""
    *_, n, m = op.args[0].axes.lengths
    elements, integers = WORKSPACES[op.primitive.name](m, n)
    return lines(elements * op.dtype.itemsize + 4 * integers)


# Elements and integers that LAPACK works in, with room for blocks of 64 columns.
WORKSPACES: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "eigh": lambda m, n: (1 + 71 * n + 2 * n * n, 3 + 5 * n),
    "eigvalsh": lambda m, n: (1 + 66 * n + n * n, 1),
    "qr": lambda m, n: (65 * n, 0),
    "svd": lambda m, n: (m * n + 6 * n * n + 200 * n + 64 * m, 8 * n),
}


def matrix_scratch(op: Op) -> PerThread | None:
    """Return the scratch memory of a matrix kernel, or None if it has none."""
    if op.primitive.name not in WORKSPACES:
        return None
    return PerThread(scratch_bytes(op), product(op.args[0].axes.lengths[:-2]))


def matrix_call(op: Op, names: KernelNames) -> tuple[FileFunction, str]:
    """Return the C function of a matrix kernel, and its call."""
    function = matrix_text(op.primitive.name, name_of(op.dtype))
    pointers = [names.memory(each) for each in (*op.args, op)]
    if op.primitive.name in WORKSPACES:
        pointers.append(names.scratch() or "NULL")
    arguments = ["threads", *pointers, *ARGUMENTS[op.primitive.name](op, names)]
    return function, f"{function.name}({', '.join(arguments)});"
