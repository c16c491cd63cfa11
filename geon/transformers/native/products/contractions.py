"""Emit a contraction as a product of strided operands with fused loads and stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....op_graph.axes.affine import Size
from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, ROW_DEPTH, Depths
from ...kernels.ir.nest import Loop
from ...kernels.ir.scalar_code import Load, Scalar, walk
from ...kernels.products.contraction import Contraction, StridedAccess, padded_access, result_access
from ...printing.nests.contractions import ContractionPrinter
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_expressions import C_TYPES
from ..names.naming import NAME, KernelNames, NativeFunction
from ..vectors.lanes import Vectors
from ..vectors.vector_scalar_code import VectorScalars
from .described_product import describe_operand
from .operand_views import Operand
from .product_form import ProductForm
from .product_ir import MatrixProduct, StoreText
from .product_text import product_header, product_text, product_units


def contraction_function(
    work: Contraction,
    forms: Sequence[ProductForm],
    names: KernelNames,
    name: str = NAME,
    whole: tuple[Size, ...] = (),
) -> NativeFunction:
    """Return the C function of a contraction whose pieces, or which itself, has these forms.

    ``whole`` are the sizes of the full contraction of which ``work`` is a block.
    """
    for size in whole:
        names.length(size)  # adds the parameter before the product's text needs it
    parts = work.pieces or (work,)
    for part in work.pieces:
        _ProductPrinter(part, names).product(name)  # adds all parameters, before a text is used
    called = [name] if not work.pieces else [f"{name}_{k}" for k in range(len(parts))]
    products = [
        replace(_ProductPrinter(part, names).product(each), whole=whole)
        for part, each in zip(parts, called, strict=True)
    ]
    texts = [product_text(made, form) for made, form in zip(products, forms, strict=True)]
    text, loops = "".join([text for text, _ in texts]), any(loops for _, loops in texts)
    if work.pieces:
        given = ", ".join(["threads", *(p.name for p in names.parameters)])
        lines = [f"    {each}({given});" for each in called]
        head = f"static void {name}(int32_t threads, {names.declared()})"
        text += "\n".join([head, "{", *lines, "}"]) + "\n"
    needed = dict.fromkeys([form.of for form in forms])
    headers = tuple([product_header(of) for of in needed])
    units = tuple([unit for of in needed for unit in product_units(of)])
    return NativeFunction(text, tuple(names.parameters), headers, units=units, of_vectors=not loops)


class _ProductPrinter(ContractionPrinter):
    """Converts a contraction to a ``Product``."""

    def __init__(self, made: Contraction, names: KernelNames) -> None:
        super().__init__(made, names)
        self.parameters = names
        self.type = C_TYPES[name_of(made.dtype)]

    def product(self, name: str) -> MatrixProduct:
        """Return the contraction as a ``Product`` called ``name``."""
        made, names = self.made, self.parameters
        scratch = names.scratch()
        for loop in self.loops:
            names.length(loop.extent)
        left, right = self.operand(made.left), self.operand(made.right)
        self.store({}, "v")  # adds all parameters that the store needs
        result = result_access(made)
        return MatrixProduct(
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
            vector_store=self.vector_store,
            names=names,
            stored=self.memory_of([x.value for x in made.stores], [x.operand for x in made.stores]),
        )

    def memory_of(self, values: Sequence[Scalar], operands: Sequence[int] = ()) -> frozenset[str]:
        """Return the pointers of operands and of the loads in ``values``."""
        loads = [node.operand for node in walk(*values) if isinstance(node, Load)]
        return frozenset([self.names.operand(number) for number in (*operands, *loads)])

    def vector_store(self, texts: Mapping[str, str], inner: Loop, count: int) -> StoreText:
        """Return the statements that store a vector ``value`` of ``count`` elements along loop
        ``inner``.
        """
        made = self.made
        depths = Depths(
            {each.name: ROW_DEPTH for each in self.loops} | {inner.name: ELEMENT_DEPTH}, 0
        )
        vectors = Vectors(count, made.dtype.itemsize, (inner.name,))
        scalars = VectorScalars(self.parameters, depths, vectors)
        scalars.spelled, scalars.contracted = texts, scalars.vector("value")
        top = StatementBlock()
        row = StatementBlock(top)
        element = StatementBlock(row)
        self.parameters.calls(["geon_vectors"])
        stores = [self.put(scalars, element, store) for store in made.stores]
        lines = [str(line) for line in (*element.lines, *stores)]
        return StoreText(top.lines, row.lines, lines, vectors)

    def operand(self, value: Scalar) -> Operand:
        """Return a product operand: a strided load, or a computed element."""
        self.scalars.value(self.block({}), value)  # adds all parameters that packing needs
        found = padded_access(value, self.loops)
        made = describe_operand(value, self.loops, self.type)
        made = replace(made, memory=self.memory_of([value]))
        if found is None:
            return made
        pointer = self.names.operand(found.operand)
        if made.border is None:
            pointer = f"({pointer} + {self.names.length(found.start)})"
            return replace(made, pointer=pointer)
        for guard in found.guards:
            for size in (guard.index.constant, guard.low, guard.high):
                self.names.length(size)
        border = replace(made.border, start=self.names.length(found.start))
        return replace(made, pointer=pointer, border=border)

    def memory(self, found: StridedAccess, unit: str | None) -> Operand:
        """Return the memory of the result as an operand."""
        pointer = self.names.operand(found.operand)
        if found.start != 0:
            pointer = f"({pointer} + {self.names.length(found.start)})"
        return Operand(self.type, None, pointer, found.strides, unit)
