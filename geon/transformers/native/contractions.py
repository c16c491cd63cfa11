"""A contraction as a product of strided operands with work fused into its loads and stores."""

from __future__ import annotations

from collections.abc import Mapping

from ...op_graph.dtypes import name_of
from ...op_graph.op_graph import Op
from ..c_expressions import C_TYPES
from ..forms import Form, strides, variable
from ..scalars import Block, Scalars
from ..schedule import Kernel
from .naming import NAME, Function, KernelNames
from .product import Dimension, Operand, Product, product_text
from .product_kernels import product_header, product_unit


def product_function(kernel: Kernel, names: KernelNames, vector_bytes: int) -> Function:
    """The C function of a contraction kernel."""
    product = Contraction(kernel, names).product(NAME)
    text, header = product_text(product, vector_bytes), product_header(product.type)
    units = (product_unit(product.type, vector_bytes),)
    return Function(text, tuple(names.parameters), (header,), units=units)


class Contraction:
    """The product that a kernel computes, in the terms of ``product``."""

    def __init__(self, kernel: Kernel, names: KernelNames) -> None:
        dot = kernel.form.dot
        assert dot is not None
        self.kernel, self.names, self.dot = kernel, names, dot
        self.scalars = Scalars(names)
        x, y = dot.args
        extents = {axis.name: axis.expression for arg in dot.args for axis in arg.axes}
        self.dimensions = {
            name: Dimension(f"d{k}", names.length(length))
            for k, (name, length) in enumerate(extents.items())
        }
        self.axes = {d.name: name for name, d in self.dimensions.items()}
        self.named = {new: old for old, new in kernel.form.names}  # as the results call them
        self.type = C_TYPES[name_of(dot.dtype)]

    def product(self, name: str) -> Product:
        """The product, with the axes of its operands by their part."""
        x, y = self.dot.args
        scratch = self.names.scratch()  # a parameter, so before they are declared
        unit = self.store_unit()
        summed = self.dot.attrs[0]
        made = (self.operand(x), self.operand(y))
        self.store({d: d for d in self.axes}, "v")
        return Product(
            name,
            self.type,
            self.only(n for n in x.axes.names if n in y.axes and n not in summed),
            self.only(n for n in x.axes.names if n not in y.axes),
            self.only(n for n in y.axes.names if n not in x.axes),
            self.only(summed),
            *made,
            self.store,
            None if unit is None else self.dimensions[unit].name,
            self.names.declared(),
            ", ".join(p.name for p in self.names.parameters),
            self.result(),
            self.names.kept is not None,
            scratch is not None,
        )

    def only(self, names: object) -> tuple[Dimension, ...]:
        return tuple(self.dimensions[n] for n in names)  # type: ignore[attr-defined]

    def store_unit(self) -> str | None:
        """The axis along which neighbouring stores adjoin; None for a single element."""
        order = self.names.order(self.kernel.results[0])
        return self.named.get(order[-1], order[-1]) if order else None

    def index(self, op: Op, texts: Mapping[str, str]) -> dict[str, Form]:
        """The indices of ``op`` from the C text of each dimension's index."""
        return {n: variable(texts[self.dimensions[n].name]) for n in op.axes.names}

    def operand(self, op: Op) -> Operand:
        """How the product reads an operand: a strided load, or any element computed."""

        def element(texts: Mapping[str, str]) -> tuple[list[str], str]:
            block = Block()
            value = self.scalars.value(block, op, self.index(op, texts))
            return block.lines, value

        self.scalars.offsets.clear()
        lines, _ = element({d: d for d in self.axes})
        offsets = list(self.scalars.offsets)
        widest = max(offsets, key=lambda form: len(form.terms), default=Form())
        unit = next((d for d, step in widest.terms.items() if step == 1 and d in self.axes), None)
        pointer, strides = None, {}
        if len(lines) == 1 and len(offsets) == 1 and set(widest.terms) <= self.axes.keys():
            pointer = f"({lines[0].split(' = ')[1].split('[')[0]} + {self.length(widest.constant)})"
            strides = {
                self.dimensions[n].name: self.length(widest.terms.get(self.dimensions[n].name, 0))
                for n in op.axes.names
            }
        return Operand(self.type, element, pointer, strides, unit)

    def result(self) -> Operand | None:
        """The memory of the product where it is the kernel's one result."""
        if len(self.kernel.results) != 1 or self.kernel.results[0] is not self.dot:
            return None
        order = self.names.order(self.dot)
        steps = strides(tuple(self.dot.axes[n].expression for n in order))
        return Operand(
            self.type,
            lambda indices: ([], ""),
            self.names.pointer(self.dot),
            {self.dimensions[n].name: self.length(s) for n, s in zip(order, steps, strict=True)},
            self.dimensions[order[-1]].name if order else None,
        )

    def length(self, length: object) -> str:
        return self.names.length(length)  # type: ignore[arg-type]

    def store(self, texts: Mapping[str, str], value: str) -> list[str]:
        """The statements that store all results at one element of the product."""
        block = Block()
        self.scalars.known[self.dot] = lambda index: value
        stores = []
        for op in self.kernel.results:
            own = (self.dimensions[self.named.get(n, n)] for n in op.axes.names)
            index = {n: variable(texts[d.name]) for n, d in zip(op.axes.names, own, strict=True)}
            text = self.scalars.value(block, op, index)
            offset = self.scalars.offset(block, op, index)
            stores.append(f"{self.names.pointer(op)}[{offset}] = {text};")
        return [*block.lines, *stores]
