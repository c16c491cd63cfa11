"""What a product's text is made of: operands, extents, and the ways of reading it may take."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .product_packing import Operand, Packing, View, view
from .product_shape import GROUP, Shape
from .product_tiles import heights
from .product_walk import Dimension, decompose, indent, size, times

FEW = {"stream": 32, "dots": 12}
"""Up to so many rows, a right operand in memory is read in place."""

PARTS = 16384
"""From so many summed indices on, a product of few elements is summed in parts."""

NEAR = 32768
"""An operand's block that spans no more bytes than this is read where it lies by register tiles."""

NARROW = 4
"""Up to so many panels of columns, packing rows that lie close costs more than it saves."""


@dataclass(frozen=True)
class Product:
    """C[batch, rows, columns] = sum over summed of left[batch, rows, summed] * right[...].

    `type` is "float" or "double", the type of the sums. `store` makes the C statements that store
    one element from the indices' texts and the value's; `store_unit` is the dimension along which
    stores adjoin. `arguments` is the C parameter list that all texts refer to and `call` its names,
    none of which may be a name of the product's own functions (a `ValueError` says which).
    `result` is the memory of a result of that type, where `store` does nothing but write there.
    """

    name: str
    type: str
    batch: tuple[Dimension, ...]
    rows: tuple[Dimension, ...]
    columns: tuple[Dimension, ...]
    summed: tuple[Dimension, ...]
    left: Operand
    right: Operand
    store: Callable[[Mapping[str, str], str], list[str]]
    store_unit: str | None
    arguments: str
    call: str
    result: Operand | None = None


class Parts:
    """The parts of one product, and what its text decides once they are known."""

    def __init__(self, product: Product, of: Shape) -> None:
        self.product, self.of = product, of
        self.functions: list[str] = []
        self.left = Packing(product.left, of, product.batch, product.rows, product.summed)
        self.right = Packing(product.right, of, product.batch, product.columns, product.summed)
        self.sizes = {
            "batches": size(product.batch),
            "rows": size(product.rows),
            "columns": size(product.columns),
            "depth": size(product.summed),
        }
        self.parameters = [p.strip() for p in product.arguments.split(",") if p.strip()]
        self.names = [re.findall(r"[A-Za-z_]\w*", p)[-1] for p in self.parameters]
        self.direct = self.direct_function()
        self.few = self.few_test()
        self.in_parts = self.parts_test()
        tiles = self.few != "1"
        self.near = self.near_test() if tiles and self.direct == "stream" else None
        self.near_rows = self.near_rows_test() if tiles else None
        self.result = self.plain_result() if tiles else None

    def direct_function(self) -> str | None:
        """What multiplies few rows by the right operand in place, if it can."""
        found = self.right.view
        if found is None or not found.is_plain:
            return None
        return "stream" if found.line_step == "1" else "dots"

    def few_test(self) -> str:
        """When rows are few enough to read the right operand in place: C text, 0 or 1."""
        limits = []
        if self.direct is None:
            return "0"
        least = 3 * self.of.vector if self.direct == "stream" else 1
        for text, holds, test in (
            (
                self.sizes["rows"],
                lambda n: n <= FEW[self.direct or ""],
                f"rows <= {FEW[self.direct]}",
            ),
            (self.sizes["columns"], lambda n: n >= least, f"columns >= {least}"),
        ):
            if not text.isdigit():
                limits.append(test)
            elif not holds(int(text)):
                return "0"
        return " && ".join(limits) or "1"

    def near_test(self) -> str | None:
        """When tiles read the right operand in place: small, and of whole vectors."""
        found = self.right.view
        assert found is not None
        step, columns = times(found.summed_step, str(self.of.bytes)), self.sizes["columns"]
        if columns.isdigit() and int(columns) % self.of.vector:
            return None
        if step.isdigit() and self.sizes["depth"].isdigit():
            if int(step) * min(int(self.sizes["depth"]), self.of.depth) > NEAR:
                return None
        return f"depth_run * {step} <= {NEAR} && width % {self.of.vector} == 0"

    def near_rows_test(self) -> str | None:
        """When tiles read the left operand in place: few columns, and rows that lie close."""
        found = self.left.view
        if found is None or not found.is_plain or found.summed_step != "1":
            return None
        span = times(found.line_step, str(self.of.bytes * GROUP))
        if span.isdigit() and int(span) > NEAR:
            return None
        tests = [
            f"width <= {NARROW * self.of.panel}",
            f"height % {heights(self.of)[1]} == 0",
            f"{span} <= {NEAR}",
        ]
        return " && ".join(tests if self.few == "0" else ["!direct", *tests])

    def plain_result(self) -> View | None:
        """The result as memory that tiles write themselves, if nothing is done on storing."""
        product = self.product
        if product.result is None:
            return None
        found = view(product.result, self.of.type, product.batch, product.rows, product.columns)
        return found if found is not None and found.is_plain and found.summed_step == "1" else None

    def straight(self) -> str:
        """When tiles write the result: there are whole ones alone, and all sums go through them."""
        tests = [f"height % {heights(self.of)[1]} == 0", f"width % {self.of.vector} == 0"]
        tests += ["!direct"] if self.few != "0" else []
        return " && ".join([*tests, "split->parts <= 1"] if self.in_parts else tests)

    def parts_test(self) -> bool:
        """Whether there may be few elements with long sums, as far as constant extents say."""
        known, depth = 1, self.sizes["depth"]
        for text in (self.sizes[name] for name in ("batches", "rows", "columns")):
            known *= int(text) if text.isdigit() else 1
        return known <= self.of.few_elements and (not depth.isdigit() or int(depth) >= PARTS)

    def extents(self) -> list[str]:
        return [f"const int64_t {name} = {text};" for name, text in self.sizes.items()]

    def unpack(self) -> list[str]:
        """The arguments as variables."""
        return [
            f"{p} = geon_given->{argument}; (void){argument};"
            for p, argument in zip(self.parameters, self.names, strict=True)
        ]

    def function(self, part: str, parameters: str, lines: list[str]) -> list[str]:
        """Moves lines that a compiler should look at closely to a function; gives the call."""
        name = f"{self.product.name}_{part}"
        values = [re.findall(r"\w+", parameter)[-1] for parameter in parameters.split(",")]
        self.functions += [
            f"static __attribute__((noinline)) void {name}(",
            f"    const struct {self.product.name}_arguments *geon_given, int64_t batch,",
            f"    {parameters}) {{",
            "  (void)batch;",
            *(f"  (void){value};" for value in values),
            *indent([*self.unpack(), *decompose(self.product.batch, "batch"), *lines]),
            "}",
        ]
        return [f"{name}(geon_given, batch, {', '.join(values)});"]
