"""A contraction as a product of strided operands with work fused into its loads and stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...op_graph.affine import Size
from ...op_graph.dtypes import name_of
from ..kernels.contraction import Access, Contraction, access, stored, unit_of
from ..kernels.depths import Depths
from ..kernels.scalar import Scalar
from ..printing.c_expressions import C_TYPES
from ..printing.scalars import Block, ScalarPrinter
from .naming import NAME, Function, KernelNames
from .product import Operand, Product, product_text
from .product_kernels import product_header, product_unit


def contraction_function(
    work: Contraction,
    names: KernelNames,
    vector_bytes: int,
    name: str = NAME,
    whole: tuple[Size, ...] = (),
) -> Function:
    """The C function of a contraction; ``whole`` are the sizes of what it is a block of."""
    for size in whole:
        names.length(size)  # a parameter before the product is told of them
    made = replace(_Printer(work, names).product(name), whole=whole)
    text, header = product_text(made, vector_bytes), product_header(made.type)
    units = (product_unit(made.type, vector_bytes),)
    return Function(text, tuple(names.parameters), (header,), units=units)


class _Printer:
    """Writes the elements and stores of a contraction."""

    def __init__(self, made: Contraction, names: KernelNames) -> None:
        self.made, self.names = made, names
        self.scalars = ScalarPrinter(names, Depths({}, 0))
        self.loops = (*made.batch, *made.rows, *made.columns, *made.summed)
        self.type = C_TYPES[name_of(made.dtype)]

    def product(self, name: str) -> Product:
        """The product in the terms of ``product``."""
        made, names = self.made, self.names
        scratch = names.scratch()
        for loop in self.loops:
            names.length(loop.extent)
        left, right = self.operand(made.left), self.operand(made.right)
        self.store({}, "v")  # whatever the text needs is a parameter now
        result = stored(made)
        return Product(
            name,
            self.type,
            made.batch,
            made.rows,
            made.columns,
            made.summed,
            left,
            right,
            self.store,
            made.unit,
            {p.name: p.declared() for p in names.parameters},
            names.length,
            None if result is None else self.memory(result, made.unit),
            names.kept is not None,
            scratch is not None,
        )

    def operand(self, value: Scalar) -> Operand:
        """How the product reads an operand: a strided load, or any element computed."""

        def element(texts: Mapping[str, str]) -> tuple[list[str], str]:
            block = self.block(texts)
            text = self.scalars.value(block, value)
            return block.lines, text

        element({})
        found, unit = access(value, self.loops), unit_of(value, self.loops)
        if found is None:
            return Operand(self.type, element, None, {}, unit)
        pointer = f"({self.names.operand(found.operand)} + {self.names.length(found.start)})"
        return Operand(self.type, element, pointer, found.strides, unit)

    def memory(self, found: Access, unit: str | None) -> Operand:
        """The memory of the result."""
        pointer = self.names.operand(found.operand)
        if found.start != 0:
            pointer = f"({pointer} + {self.names.length(found.start)})"
        return Operand(self.type, lambda texts: ([], ""), pointer, found.strides, unit)

    def block(self, texts: Mapping[str, str]) -> Block:
        """A block in which loops' indices are these texts."""
        self.scalars.spelled = texts
        return Block()

    def store(self, texts: Mapping[str, str], value: str) -> list[str]:
        """The statements that store all results at one element of the product."""
        block = self.block(texts)
        self.scalars.contracted = value
        stores = []
        for store in self.made.stores:
            text = self.scalars.value(block, store.value)
            offset = self.scalars.index(block, store.offset)
            stores.append(f"{self.names.operand(store.operand)}[{offset}] = {text};")
        return [*block.lines, *stores]
