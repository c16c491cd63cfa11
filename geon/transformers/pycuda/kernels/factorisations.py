"""Factorisations and solutions of matrices by a library, between kernels that pack and unpack.

The library works in scratch memory alone, so a call of it after a failure, or in a branch that is
not taken, changes no value. Kernels before it copy operands there, whether or not one has failed: a
library that is given addresses must find them. The kernel behind it writes the result; it is NaN
where the library has failed, and for the iterative methods where a matrix is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...printing.nests.parameters import Place
from ...printing.scalars.c_types import C_TYPES
from ...printing.scalars.nan_test import finite
from ..launches.library_requests import MAX_JACOBI_ROWS, Ask, MatrixCall
from ..launches.memory import aligned
from ..launches.naming import CudaFunction, CudaKernelNames, Part

Bytes = dict[str, Size]  # parts of scratch memory, by name


class MatrixKernel:
    """One matrix op of a program, over (batch, matrix), and the scratch memory of its calls.

    ``rows`` and ``columns`` are those of the matrix for the library; ``sides`` is the number of
    right-hand sides of a system.
    """

    def __init__(self, op: Op) -> None:
        self.op, self.name = op, op.primitive.name
        lengths = op.args[0].axes.lengths
        self.batch = product(lengths[:-2])
        self.columns, self.rows = lengths[-2:]
        self.sides: Size = 1
        if self.name in ("lu_solve", "triangular_solve"):
            self.columns = self.rows
            self.sides = product(op.axes.lengths[len(lengths) - 1 :])
        self.item = op.dtype.itemsize
        self.matrix = self.rows * self.columns  # elements

    @property
    def parts(self) -> Bytes:
        """Return the bytes of each part of scratch memory, for all matrices."""
        elements, numbers = PARTS[self.name](self)
        sizes: Bytes = {name: self.batch * size * self.item for name, size in elements.items()}
        sizes |= {name: self.batch * size * 4 for name, size in numbers.items()}
        for name in POINTERS.get(self.name, ()):
            sizes[f"pointers to {name}"] = self.batch * 8
        return sizes

    @property
    def offsets(self) -> Bytes:
        """Return the byte offset of each part, and with the key "" that of the end."""
        found: Bytes = {}
        end: Size = 0
        for name, size in self.parts.items():
            found[name] = end
            end = end + aligned(size)
        return found | {"": end}


# Elements, and int32 numbers, of each matrix in scratch memory. Names are those of operands of the
# routines; "wrong" is an int64 that is not 0 where a matrix is not finite.
PARTS: dict[str, Callable[[MatrixKernel], tuple[Bytes, Bytes]]] = {
    "cholesky": lambda k: ({"a": k.matrix}, {"info": 1}),
    "lu": lambda k: ({"a": k.matrix}, {"pivots": k.rows, "info": 1}),
    "lu_solve": lambda k: ({"sides": k.rows * k.sides}, {"pivots": k.rows, "info": 1}),
    "triangular_solve": lambda k: ({"sides": k.rows * k.sides}, {}),
    "qr": lambda k: ({"a": k.matrix, "tau": k.columns}, {"info": 1}),
    "eigh": lambda k: ({"a": k.matrix, "values": k.rows}, {"info": 1, "wrong": 2}),
    "eigvalsh": lambda k: ({"a": k.matrix, "values": k.rows}, {"info": 1, "wrong": 2}),
    "svd": lambda k: (
        {
            "a": k.matrix,
            "values": k.columns,
            "left": k.rows * (k.columns + MAX_JACOBI_ROWS),
            "right": k.columns * k.columns,
        },
        {"info": 1, "wrong": 2},
    ),
}
# Operands whose addresses, matrix by matrix, routines for batches take; "" is the first operand of
# a system, which is read where it is.
POINTERS = {
    "cholesky": ("a",),
    "lu": ("a",),
    "lu_solve": ("", "sides"),
    "triangular_solve": ("", "sides"),
}


def scratch_bytes(op: Op) -> Size:
    """Return the bytes of scratch memory of a matrix op."""
    return MatrixKernel(op).offsets[""]


def matrix_parts(op: Op, names: CudaKernelNames, number: int) -> list[Part]:
    """Return the parts of a matrix op."""
    return WRITERS[op.primitive.name](_MatrixWriter(op, names))


class _MatrixWriter(MatrixKernel):
    """Writer of kernels and requests; ``names`` has the guards of the kernel that unpacks."""

    def __init__(self, op: Op, names: CudaKernelNames) -> None:
        super().__init__(op)
        self.names, self.ctype, self.at = names, C_TYPES[name_of(op.dtype)], self.offsets
        self.works: Place = ("arena", names.plan.scratch[names.kernel.op])

    def request(
        self, routine: str, operands: Sequence[str], columns: Size = 0, flags: Sequence[bool] = ()
    ) -> Ask[Place]:
        """Return a library request; operands are parts of scratch memory, "" the first operand."""
        offsets, strides, places = list[Size](), list[Size](), list[Place]()
        base = self.names.plan.schedule.base
        for name in operands:
            is_read = name == ""
            places.append(self.names.place_of(base[self.op.args[0]]) if is_read else self.works)
            offsets.append(0 if is_read else self.at[name])
            strides.append(self.stride(name) * self.item if is_read else self.step(name))
        call = MatrixCall(
            routine, self.batch, self.rows, columns, tuple(strides),
            tuple([int(flag) for flag in flags]), name_of(self.op.dtype),
        )  # fmt: skip
        return Ask(call, tuple(places), self.works, self.at[""], tuple(offsets))

    def stride(self, name: str) -> Size:
        """Return the elements from one matrix to the next of an operand, for pointers to it."""
        if name == "":
            return self.rows * (self.rows + (1 if self.name == "lu_solve" else 0))
        return self.rows * self.sides if name == "sides" else self.matrix

    def step(self, name: str) -> Size:
        """Return the bytes from one matrix to the next in a part of scratch memory."""
        if name.startswith("pointers"):
            return 0
        if name == "left":
            return self.matrix * self.item
        elements, numbers = PARTS[self.name](self)
        return elements[name] * self.item if name in elements else numbers[name] * 4

    # Kernels ------------------------------------------------------------------------------------

    def array(self, names: CudaKernelNames, name: str, ctype: str = "") -> str:
        """Return the C text of a part of scratch memory as an array."""
        return f"(({ctype or self.ctype} *)({names.scratch()} + {names.length(self.at[name])}))"

    def kernel(self, names: CudaKernelNames, count: Size, lines: Sequence[str]) -> CudaFunction:
        """Return a kernel with a thread for each ``at`` of ``count``."""
        body = [
            f"const int64_t m = {names.length(self.rows)}, n = {names.length(self.columns)};",
            *lines,
        ]
        return names.by_elements(count, body)

    def copied(self, to: str, argument: int, count: Size) -> CudaFunction:
        """Return a kernel that copies an operand to scratch memory, for each of all elements."""
        names = self.names.unguarded()
        source = names.memory(self.op.args[argument])
        return self.kernel(
            names, self.batch * count, [f"{self.array(names, to)}[at] = {source}[at];"]
        )

    def pointers(self) -> CudaFunction:
        """Return a kernel that writes the addresses of the matrices of a batch."""
        names, lines = self.names.unguarded(), list[str]()
        for name in POINTERS[self.name]:
            first = names.memory(self.op.args[0]) if name == "" else self.array(names, name)
            step = names.length(self.stride(name) * self.item)
            target = self.array(names, f"pointers to {name}", "uint64_t")
            lines.append(f"{target}[at] = (uint64_t)({first}) + at * (uint64_t)({step});")
        return self.kernel(names, self.batch, lines)

    def finite_copy(self) -> list[Part]:
        """Return kernels that copy finite matrices, and write 0 in the place of others."""
        clearing, marking, names = (
            self.names.unguarded(),
            self.names.unguarded(),
            self.names.unguarded(),
        )
        wrong = "unsigned long long"
        cleared = self.kernel(
            clearing, self.batch, [f"{self.array(clearing, 'wrong', wrong)}[at] = 0;"]
        )
        condition = finite(name_of(self.op.dtype), infinite=False)
        marked = [
            f"const {self.ctype} x = {marking.memory(self.op.args[0])}[at];",
            f"if (!({condition}))",
            f"    atomicMax({self.array(marking, 'wrong', wrong)} + at / (m * n), 1ull);",
        ]
        copied = [
            f"const bool is_wrong = {self.array(names, 'wrong', wrong)}[at / (m * n)] != 0;",
            f"{self.array(names, 'a')}[at] = is_wrong ? 0 : {names.memory(self.op.args[0])}[at];",
        ]
        count = self.batch * self.matrix
        return [cleared, self.kernel(marking, count, marked), self.kernel(names, count, copied)]

    def unpacked(
        self, count: Size, lines: Sequence[str], value: str, fails: str = ""
    ) -> CudaFunction:
        """Return the kernel that writes ``count`` elements of the result for each matrix.

        ``lines`` define what ``value`` needs from ``matrix``, the number of the matrix, and
        ``place``, that of the element. The value is NaN if ``fails`` holds.
        """
        names = self.names
        each = names.length(count)
        stored = f"{fails} ? ({self.ctype})NAN : ({self.ctype})({value})" if fails else value
        body = [
            f"const int64_t matrix = at / ({each}), place = at % ({each});",
            *lines,
            f"{names.memory(self.op)}[at] = {stored};",
        ]
        return self.kernel(names, self.batch * count, body)

    @property
    def failed(self) -> str:
        """Return the C condition that the library could not factorise a matrix."""
        found = f"{self.array(self.names, 'info', 'const int')}[matrix] != 0"
        if "wrong" in self.at:
            found += f" || {self.array(self.names, 'wrong', 'const unsigned long long')}[matrix]"
        return f"({found})"


# Ops ----------------------------------------------------------------------------------------------


def _cholesky(w: _MatrixWriter) -> list[Part]:
    """The lower triangle of rows is the upper one of columns."""
    lines = ["const int64_t row = place / n, column = place % n;"]
    value = f"column > row ? 0 : {w.array(w.names, 'a')}[at]"
    return [
        w.pointers(),
        w.copied("a", 0, w.matrix),
        w.request("potrf", ("a", "info", "pointers to a"), w.rows),
        w.unpacked(w.matrix, lines, value, w.failed),
    ]


def _lu(w: _MatrixWriter) -> list[Part]:
    """The library factorises the transpose, and so exchanges columns.

    It counts exchanges from 1; behind a pivot of 0 there are none, whatever it leaves there.
    """
    pivots, info = (w.array(w.names, name, "const int") for name in ("pivots", "info"))
    lines = [
        "const int64_t row = place / n, column = place % n;",
        f"const int zero = {info}[matrix], pivot = {pivots}[matrix * n + column];",
        "const int64_t exchanged = zero > 0 && column >= zero ? column : pivot - 1;",
    ]
    value = f"row < n ? {w.array(w.names, 'a')}[matrix * n * n + place] : ({w.ctype})exchanged"
    return [
        w.pointers(),
        w.copied("a", 0, w.matrix),
        w.request("getrf", ("a", "pivots", "info", "pointers to a"), w.rows),
        w.unpacked(w.rows * (w.rows + 1), lines, value),
    ]


def _lu_solve(w: _MatrixWriter) -> list[Part]:
    """Right-hand sides become columns, and exchanges integers of a valid range."""
    names, turning = w.names.unguarded(), w.names.unguarded()
    exchanged = [
        "const int64_t matrix = at / n, column = at % n;",
        f"const {w.ctype} number = {names.memory(w.op.args[0])}"
        "[(matrix * (n + 1) + n) * n + column];",
        f"const bool is_valid = number >= 0 && number < ({w.ctype})n;",
        f"{w.array(names, 'pivots', 'int')}[at] = (int)(is_valid ? number : column) + 1;",
    ]
    count = w.rows * w.sides
    sides = turning.length(w.sides)
    turned = [
        f"const int64_t sides = {sides}, matrix = at / (n * sides), place = at % (n * sides);",
        "const int64_t row = place / sides, side = place % sides;",
        f"{w.array(turning, 'sides')}[(matrix * sides + side) * n + row] = "
        f"{turning.memory(w.op.args[1])}[at];",
    ]
    operands = ("", "pivots", "sides", "info", "pointers to ", "pointers to sides")
    back = [
        f"const int64_t sides = {w.names.length(w.sides)};",
        "const int64_t row = place / sides, side = place % sides;",
    ]
    value = f"{w.array(w.names, 'sides')}[(matrix * sides + side) * n + row]"
    return [
        w.pointers(),
        w.kernel(names, w.batch * w.rows, exchanged),
        w.kernel(turning, w.batch * count, turned),
        w.request("getrs", operands, w.sides, [not w.op.attrs.transposed]),
        w.unpacked(count, back, value),
    ]


def _triangular_solve(w: _MatrixWriter) -> list[Part]:
    """T x = b is X Tᵀ = B with columns, where rows of the sides are columns."""
    a = w.op.attrs
    exchanged = w.op.args[0].axes.names[-1] == a.rows
    operands = ("", "sides", "pointers to ", "pointers to sides")
    return [
        w.pointers(),
        w.copied("sides", 1, w.rows * w.sides),
        w.request("trsm", operands, w.sides, [a.lower != exchanged, exchanged, a.unit]),
        w.unpacked(w.rows * w.sides, [], f"{w.array(w.names, 'sides')}[at]"),
    ]


def _qr(w: _MatrixWriter) -> list[Part]:
    """Each column of the result has one of Q, and behind it the row of R."""
    operands = ("a", "tau", "info")
    factors = [
        "const int64_t row = place / n, column = place % n;",
        f"{w.names.memory(w.op)}[(matrix * n + row) * (m + n) + m + column] = "
        f"column < row ? 0 : {w.array(w.names, 'a')}[(matrix * n + column) * m + row];",
    ]
    names = w.names
    split = "const int64_t matrix = at / (n * n), place = at % (n * n);"
    upper = w.kernel(names, w.batch * w.columns * w.columns, [split, *factors])
    columns = [
        "const int64_t column = at / m, row = at % m;",
        f"{names.memory(w.op)}[column * (m + n) + row] = {w.array(names, 'a')}[at];",
    ]
    return [
        w.copied("a", 0, w.matrix),
        w.request("geqrf", operands, w.columns),
        upper,
        w.request("orgqr", operands, w.columns),
        w.kernel(names, w.batch * w.matrix, columns),
    ]


def _eigh(w: _MatrixWriter) -> list[Part]:
    """Each column of the result has an eigenvector, and behind it its eigenvalue."""
    values = w.array(w.names, "values")
    lines = ["const int64_t column = at / (n + 1), row = at % (n + 1);"]
    value = f"row < n ? {w.array(w.names, 'a')}[column * n + row] : {values}[column]"
    return [
        *w.finite_copy(),
        w.request("syevd", ("a", "values", "info"), w.columns, [True]),
        w.unpacked(w.columns * (w.columns + 1), lines, value, w.failed),
    ]


def _eigvalsh(w: _MatrixWriter) -> list[Part]:
    return [
        *w.finite_copy(),
        w.request("syevd", ("a", "values", "info"), w.columns, [False]),
        w.unpacked(w.columns, [], f"{w.array(w.names, 'values')}[at]", w.failed),
    ]


def _svd(w: _MatrixWriter) -> list[Part]:
    """Each column of the result has a left vector, its singular value, and the right vector."""
    batch = w.names.length(w.batch)
    left, values, right = (w.array(w.names, name) for name in ("left", "values", "right"))
    lines = [
        "const int64_t column = place / (m + 1 + n), row = place % (m + 1 + n);",
        f"const bool is_square = {batch} > 1 && m <= {MAX_JACOBI_ROWS};",
        "const int64_t first = matrix * m * (is_square ? m : n) + column * m;",
    ]
    value = (
        f"row < m ? {left}[first + row] : row == m ? {values}[matrix * n + column] : "
        f"{right}[(matrix * n + column) * n + row - m - 1]"
    )
    return [
        *w.finite_copy(),
        w.request("gesvdj", ("a", "values", "left", "right", "info"), w.columns),
        w.unpacked(w.columns * (w.rows + 1 + w.columns), lines, value, w.failed),
    ]


WRITERS: dict[str, Callable[[_MatrixWriter], list[Part]]] = {
    "cholesky": _cholesky,
    "lu": _lu,
    "lu_solve": _lu_solve,
    "triangular_solve": _triangular_solve,
    "qr": _qr,
    "eigh": _eigh,
    "eigvalsh": _eigvalsh,
    "svd": _svd,
}
