"""Emit one product: the descriptor for the generic driver, and its own pack and store functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from ....op_graph.axes.lengths import least_unless_zero
from ...kernels.ir.nest import Loop
from ...printing.trees.buffer_names import buffer_name
from ...sizes.product_blocks import (
    MAX_WINDOW_RUNS,
    PACKING_CYCLES_PER_ELEMENT,
    ROWS_PER_GROUP,
    Shape,
)
from ...sizes.product_plan import ProductPlan, is_thin, may_read_in_place, plan_product
from .epilogue import Storing
from .im2col_text import BandText, PlacesText, array
from .implicit_im2col import are_known, find_band, has_long_runs, overlap, vector_elements
from .multi_index import Walker, indent, size
from .operand_views import Operand, View, view
from .packing import Packing
from .packing_text import packing_text
from .packing_trees import PARAMETERS, STAGED, TO, PackingTree
from .product_ir import MatrixProduct


class ProductText:
    """The C text of one product.

    ``loops`` is True if its functions have loops over elements that the compiler should vectorise.
    """

    def __init__(self, product: MatrixProduct, of: Shape) -> None:
        self.product, self.of = product, of
        self.functions: list[str] = []
        self.loops = False
        self.walker = Walker(product.length)
        batch, summed = product.batch, product.summed
        self.left = Packing(product.left, of, batch, product.rows, summed)
        self.right = Packing(product.right, of, batch, product.columns, summed)
        self.result = self.plain_result()

    def plain_result(self) -> View | None:
        """Return the result's view if sums are stored to plain memory in vectors, or None.

        Tiles store vectors directly if columns are contiguous, transposed ones if rows are.
        """
        product = self.product
        if product.result is None:
            return None
        found = view(product.result, self.of.type, product.batch, product.rows, product.columns)
        return found if found is not None and found.is_plain else None

    def may_read_in_place(self) -> bool:
        """Return True if few rows may be multiplied by the right operand where it lies."""
        found, product = self.right.plain, self.product
        rows, columns, depth = map(size, (product.rows, product.columns, product.summed))
        return found is not None and may_read_in_place(
            rows, columns, depth, self.of, found.line_step == 1
        )

    @cached_property
    def plan(self) -> ProductPlan | None:
        """Return the plan, None if lengths are open or if the product is a block of another."""
        product = self.product
        sizes = [size(loops) for loops in (product.rows, product.columns, product.summed)]
        plain = [found for found in (self.left.plain, self.right.plain) if found is not None]
        steps = [step for found in plain for step in (found.line_step, found.summed_step)]
        if product.whole or not all(isinstance(each, int) for each in (*sizes, *steps)):
            return None
        rows, columns, depth = map(int, sizes)
        sides = (self.left.plain, self.right.plain)
        left, right = (None if found is None else found.line_step == 1 for found in sides)
        return plan_product(rows, columns, depth, self.of, left, right, self.result is not None)

    def make(self) -> list[str]:
        """Return the lines of the product's C text."""
        name, product, tag = self.product.name, self.product, self.of.tag
        self.check()
        fields = self.fields()
        declared = ", ".join(["int32_t threads", *product.parameters.values()])
        names = ", ".join(product.parameters)
        given = [f"const struct {name}_arguments geon_args = {{{names}}};"]
        if not self.told():
            unused = ", ".join([f"(void){each}" for each in product.parameters])
            given = [f"{unused};"] if unused else []
        return [
            *(self.struct() if self.told() else []),
            *self.functions,
            f"static void {name}({declared}) {{",
            *indent(given),
            f"  const struct geon_product_{tag} geon_problem = {{",
            *indent(fields, 2),
            "  };",
            f"  geon_product_{tag}(&geon_problem, threads);",
            "}",
        ]

    def struct(self) -> list[str]:
        fields = indent([f"{p};" for p in self.product.parameters.values()])
        return [f"struct {self.product.name}_arguments {{", *fields, "};"]

    def check(self) -> None:
        """Raise ``ValueError`` if a parameter's name is reserved for local variables."""
        clash = _OWN.intersection(self.product.parameters)
        if clash:
            raise ValueError(
                f"a product's argument is named {sorted(clash)[0]!r}, a name of its own"
            )

    def fields(self) -> list[str]:
        """Return the initialisers of the descriptor that the driver takes."""
        product = self.product
        extents = zip(
            ("batches", "rows", "columns", "depth"),
            (product.batch, product.rows, product.columns, product.summed),
            strict=True,
        )
        lines = [f".{name} = {product.length(size(loops))}," for name, loops in extents]
        lines += [f".left = {self.operand(True)},", f".right = {self.operand(False)},"]
        if self.result is None:
            lines.append(f".store = {self.store()},")
            lines += [".across = 1,"] * self.storing.across
        else:
            lines.append(f".result = {self.result.pointer},")
            across = self.result.summed_step != 1
            line = self.result.summed_step if across else self.result.line_step
            lines.append(f".result_line = {product.length(line)},")
            lines += [".across = 1,"] * across
        if product.whole:
            whole = ", ".join(map(product.length, product.whole))
            lines.append(f".whole = {{{whole}}},")
        if product.batch:
            lines.append(f".place = {self.place()},")
        if self.plan is not None:
            lines.append(f".way = {self.plan.way},")
            lines += [".exchanged = 1,"] * self.plan.exchanged
        if product.scratch:
            lines.append(".scratch = scratch,")
        if product.kept:
            lines.append(".kept = kept,")
        return [*lines, ".arguments = &geon_args,"] if self.told() else lines

    def told(self) -> bool:
        """Return True if functions of the product take its arguments."""
        return bool(self.functions and self.product.parameters)

    def operand(self, left: bool) -> str:
        """Return the initialiser of one operand in the descriptor."""
        packing = self.left if left else self.right
        found = packing.plain
        if found is None:
            staged = f".staged = {packing.staged(left)}"
            packs = self.left_packs() if left else self.right_packs()
            shown = self.shown(self.windows) if left else self.shown_columns()
            return f"{{{', '.join([staged, *packs, *shown])}}}"
        moves = left or any(found.strides[name] != 0 for name in found.batch)
        whole = int(found.whole and moves)
        line, summed = map(self.product.length, (found.line_step, found.summed_step))
        steps = f".line = {line}, .summed = {summed}, .whole = {whole}"
        return f"{{.at = {found.pointer}, {steps}}}"

    def left_packs(self) -> list[str]:
        """Return the initialiser of the function that packs rows.

        There is none if the rows are windows of few elements that are always read in place.
        """
        rows, depth = least_unless_zero(size(self.product.rows)), size(self.product.summed)
        shallow = isinstance(depth, int) and depth <= self.of.depth
        if (
            shallow
            and rows > ROWS_PER_GROUP
            and not self.product.whole
            and self.windows is not None
        ):
            return []
        return [f".pack = {self.pack('left')}"]

    def right_packs(self) -> list[str]:
        """Return the initialisers of the functions that pack columns as panels or as lines.

        There are none if the columns are windows that are always read in place.
        """
        thin, always = self.thin(), not self.product.kept and not self.product.whole
        if thin is False and always and self.places is not None:
            return []
        lines = None if thin is False else self.pack("lines")
        panels = lines if thin else self.pack("panels")
        own = [] if lines is None else [f".pack_lines = {lines}"]
        return [f".pack = {panels}", *own]

    def shown_columns(self) -> list[str]:
        """Return the initialisers of the right operand's windows, if any."""
        places = self.places
        return [] if places is None else self.shown(places, self.beyond(places))

    def shown(self, windows: PlacesText | None, beyond: int = 0) -> list[str]:
        """Return the initialisers of an operand that tiles can read as windows, or none.

        Tiles may read up to ``beyond`` elements past the end of a band.
        """
        if windows is None:
            return []
        offsets, run = windows.runs()
        view = f"&(const struct geon_view_{self.of.tag}){windows.view()}"
        elements = windows.elements + beyond
        return [
            f".view = {view}, .band_rows = {windows.most}, .band_size = {elements}",
            f".run = {run}, .runs = {array(offsets)}",
        ]

    @cached_property
    def windows(self) -> PlacesText | None:
        """Return the left operand as overlapping windows that tiles read in place, or None."""
        product = self.product
        if self.left.view is None or not product.rows or not are_known(product.summed):
            return None
        found = self.windows_of(product.left, product.rows, product.summed)
        served = found is not None and has_long_runs(product.summed, found.steps)
        return found if served else None

    @cached_property
    def places(self) -> PlacesText | None:
        """Return the right operand as windows at the offset of each summed index, or None.

        The left operand must be plain memory with contiguous rows.
        """
        product, operand = self.product, self.product.right
        places, columns, rows = product.summed, product.columns, self.left.plain
        if self.right.view is None or self.right.plain is not None or not are_known(columns):
            return None
        if rows is None or rows.line_step != 1 or not places or not columns:
            return None
        if operand.border is None and not overlap(operand.strides, places, columns):
            return None
        found = self.windows_of(operand, places, columns, self.of.depth)
        return found if found is not None and self.are_placed(found) else None

    def windows_of(
        self,
        operand: Operand,
        rows: tuple[Loop, ...],
        summed: tuple[Loop, ...],
        most: int | None = None,
    ) -> PlacesText | None:
        """Return an operand as windows of ``rows``, at most ``most`` at a time; None if a band is
        too large.
        """
        terms = (operand, self.product.batch, rows, summed, self.walker, self.of)
        if operand.border is None:
            return PlacesText(*terms)
        band = find_band(operand.strides, operand.border.guards, rows, summed, self.of, most)
        return None if band is None else BandText(*terms, band)

    def beyond(self, found: PlacesText) -> int:
        """Return the elements past the end of a band that vectors may read."""
        run = found.runs()[1]
        return vector_elements(run, self.of) - run if found.elements else 0

    def are_placed(self, found: PlacesText) -> bool:
        """Return True if reading columns as windows is better than packing them.

        Vectors that read past the ends of runs compute unused products in each row. Past the end of
        a band there is memory to read, past the end of an operand there may be none.
        """
        offsets, run = found.runs()
        columns, vector, rows = len(offsets) * run, self.of.vector, size(self.product.rows)
        more = len(offsets) * vector_elements(run, self.of) - vector_elements(columns, self.of)
        if (
            columns < vector
            or len(offsets) > MAX_WINDOW_RUNS
            or (run % vector and not found.elements)
        ):
            return False
        return more == 0 or (
            isinstance(rows, int)
            and more * rows <= PACKING_CYCLES_PER_ELEMENT * columns * 2 * vector
        )

    def thin(self) -> bool | None:
        """Return True if the product is a few dot products, None if that is open."""
        product = self.product
        own = (product.batch, product.rows, product.columns)
        _, rows, columns = product.whole or map(size, own)
        return is_thin(rows, columns, size(product.summed), self.of)

    def pack(self, to: str) -> str:
        """Add the function that packs a block of an operand, and return its name.

        ``to`` is "left" for rows, "panels" for columns, or "lines" for columns packed like rows.
        """
        packing, names = (self.left if to == "left" else self.right), self.product.names
        assert names is not None, "the names of the kernel are unknown"
        builder = PackingTree(packing, names.operands)
        tree = builder.panels() if to == "panels" else builder.left()
        self.loops |= packing.view is None
        start, count, depth_start, depth_run, step = PARAMETERS.values()
        pointer, integer = f"{self.of.type} *restrict ", "int64_t "
        return self.function(
            to,
            {
                **dict.fromkeys((start, count, depth_start, depth_run), integer),
                buffer_name(TO): pointer,
                step: integer,
                buffer_name(STAGED): pointer,
            },
            packing_text(tree, names, self.product.batch, self.of.type, self.of.tag),
            packing.operand.memory,
        )

    def place(self) -> str:
        """Add the function that computes the offsets of a batch, and return its name."""
        views = (self.left.plain, self.right.plain, self.result)
        lines = []
        for number, found in enumerate(views):
            if found is not None:
                offset = self.walker.address("0", found.strides, found.batch)
                lines.append(f"geon_offsets[{number}] = {offset};")
        return self.function("place", {"geon_offsets": "int64_t *"}, lines)

    def function(
        self,
        part: str,
        parameters: Mapping[str, str],
        lines: list[str],
        memory: frozenset[str] | None = frozenset(),
    ) -> str:
        """Add a C function called ``part`` and return its full name.

        It unpacks the product's lengths, the pointers in ``memory`` (None: all) and the indices of
        a batch. ``parameters`` are the types of its own parameters by name.
        """
        name = f"{self.product.name}_{part}"
        unpacked = [
            f"{declared} = geon_args->{argument};"
            + ("" if memory is not None and argument in memory else f" (void){argument};")
            for argument, declared in self.product.parameters.items()
            if memory is None or argument in memory or "*" not in declared
        ]
        given = f"const struct {self.product.name}_arguments *geon_args = geon_arguments;"
        unused = ", ".join([f"(void){each}" for each in ("geon_arguments", "batch", *parameters)])
        self.functions += [
            f"static void {name}(",
            "    const void *geon_arguments, int64_t batch,",
            f"    {', '.join(f'{ctype}{name}' for name, ctype in parameters.items())}) {{",
            f"  {unused};",
            *indent([given, *unpacked] if unpacked else []),
            *indent([*self.walker.decompose(self.product.batch, "batch"), *lines]),
            "}",
        ]
        return name

    def store(self) -> str:
        """Add the function that stores a block of sums, and return its name."""
        self.loops |= self.storing.loops
        block = dict.fromkeys(("row_start", "height", "column_start", "width"), "int64_t ")
        sums = {"out": f"const {self.of.type} *restrict ", "sums_step": "int64_t "}
        return self.function("store", {**block, **sums}, self.storing.lines(), self.product.stored)

    @cached_property
    def storing(self) -> Storing:
        """Return the epilogue of the product."""
        run = None if self.places is None else self.places.runs()[1]
        return Storing(self.product, self.of, self.walker, self.windows is not None, run)


_OWN = frozenset(
    """threads batch row_start height column_start width start count depth_start depth_run step b0
    b1 out sums_step line row value here e turns
    """.split()
)
