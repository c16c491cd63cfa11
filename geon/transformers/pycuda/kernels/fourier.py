"""Fourier transforms by a library, over (outer, axis, inner) with complex numbers as pairs."""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...lowering.facts.value_sizes import bytes_of
from ...printing.nests.parameters import Place
from ...printing.scalars.c_types import C_TYPES
from ..launches.library_requests import Ask, FourierCall
from ..launches.memory import aligned
from ..launches.naming import CudaFunction, CudaKernelNames, Part


def scratch_bytes(op: Op) -> Size:
    """Return the bytes of a copy of the operand and of the result."""
    return aligned(bytes_of(op.args[0])) + aligned(bytes_of(op))


def fourier_parts(op: Op, names: CudaKernelNames, number: int) -> list[Part]:
    """Return the parts of a transform."""
    return _FourierWriter(op, names).parts()


class _FourierWriter:
    """Writer of the parts of a transform.

    Real lines must begin at a multiple of two elements. So with inner axes, real transforms are of
    copies in scratch memory, with the axis innermost.
    """

    def __init__(self, op: Op, names: CudaKernelNames) -> None:
        self.op, self.names, self.x = op, names, op.args[0]
        self.form, self.n = op.attrs.form, op.attrs.n
        lengths = self.x.axes.lengths if self.form == "r2c" else self.x.axes.lengths[:-1]
        place = self.x.axes.index(op.attrs.axis)
        self.outer, self.inner = product(lengths[:place]), product(lengths[place + 1 :])
        self.is_turned = self.form != "c2c" and self.inner != 1
        self.place = "place" if self.is_turned else "at"
        self.works: Place = ("arena", names.plan.scratch[names.kernel.op])
        self.behind = aligned(bytes_of(self.x))  # offset of the result in scratch memory

    def parts(self) -> list[Part]:
        """Return the parts.

        The library writes to scratch memory, from which a kernel copies, if its call must not
        change a value: after a failure, in a branch that is not taken, or in a variable. It reads a
        copy of a spectrum that becomes real, since it overwrites it, and of lines that are not
        aligned.
        """
        names, base = self.names, self.names.plan.schedule.base
        source: Place = names.place_of(base[self.x])
        target: Place = names.place_of(base[self.op])
        reads_copy = self.is_turned or self.form == "c2r" or source in names.apart
        is_shielded = bool(names.guarded or names.chosen or names.kernel.writes)
        writes_copy = self.is_turned or is_shielded or target in names.apart
        outer, inner = self.outer, self.inner
        if self.is_turned:
            outer, inner = outer * inner, 1
        call = FourierCall(
            self.form, self.op.attrs.inverse, name_of(self.op.dtype), self.op.dtype.itemsize,
            self.n, outer, inner,
        )  # fmt: skip
        offsets = 0, self.behind if writes_copy else 0
        places = self.works if reads_copy else source, self.works if writes_copy else target
        parts: list[Part] = [Ask(call, places, self.works, 0, offsets)]
        if reads_copy:
            parts.insert(0, self.copied())
        if writes_copy:
            parts.append(self.stored())
        return parts

    def copied(self) -> CudaFunction:
        """Return a kernel that copies the operand, a spectrum without what does not count in it.

        Imaginary parts do not at frequency 0, and at half the length if that is even. It runs even
        after a failure, since it writes scratch memory alone.
        """
        names = self.names.unguarded()
        count = self.x.axes[self.op.attrs.axis].expression
        value = f"{names.memory(self.x)}[{self.place}]"
        if self.form == "c2r":
            value = f"part && (k == 0 || 2 * k == {names.length(self.n)}) ? 0 : {value}"
        to = f"(({C_TYPES[name_of(self.x.dtype)]} *){names.scratch()})[at]"
        parts = 1 if self.form == "r2c" else 2
        return self.kernel(names, self.x, count, parts, f"{to} = {value};")

    def stored(self) -> CudaFunction:
        """Return the kernel that copies the result from scratch memory."""
        names = self.names
        count = self.op.axes[self.op.attrs.axis].expression
        ctype = C_TYPES[name_of(self.op.dtype)]
        value = f"((const {ctype} *)({names.scratch()} + {names.length(self.behind)}))[at]"
        to = f"{names.memory(self.op)}[{self.place}]"
        parts = 1 if self.form == "c2r" else 2
        return self.kernel(names, self.op, count, parts, f"{to} = {value};")

    def kernel(
        self, names: CudaKernelNames, value: Op, count: Size, parts: int, statement: str
    ) -> CudaFunction:
        """Return a kernel with a thread for each element ``at`` of scratch memory.

        There, ``count`` elements along the axis, of ``parts`` parts, are innermost. ``place`` is
        the same element where they are not, and ``k`` its index along the axis.
        """
        inner = names.length(self.inner if self.is_turned else 1)
        body = [
            f"const int64_t count = {names.length(count)}, inner = {inner};",
            f"const int64_t part = at % {parts}, k = at / {parts} % count;",
            f"const int64_t line = at / {parts} / count;",
            "const int64_t place = ((line / inner * count + k) * inner + line % inner) "
            f"* {parts} + part;",
            statement,
        ]
        return names.by_elements(value.axes.size, body)
