"""Emit one product: the descriptor for the generic driver, and its own pack and store functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from ...kernels.ir.nest import Loop
from ...loops.tree import Tree
from ...printing.trees.buffer_names import buffer_name
from .epilogue import Storing
from .im2col_text import BandText, WindowsText
from .multi_index import Walker, indent, size
from .operand_views import Operand
from .packing_text import packing_text
from .packing_trees import PARAMETERS, STAGED, TO
from .product_form import OperandForm, ProductForm
from .product_ir import MatrixProduct


class ProductText:
    """The C text of one product.

    ``loops`` is True if its functions have loops over elements that the compiler should vectorise.
    """

    def __init__(self, product: MatrixProduct, form: ProductForm) -> None:
        self.product, self.form, self.of = form.oriented(product), form, form.of
        self.functions: list[str] = []
        self.loops = False
        self.walker = Walker(product.length)

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
        product, result, plan = self.product, self.form.result, self.form.plan
        extents = zip(
            ("batches", "rows", "columns", "depth"),
            (product.batch, product.rows, product.columns, product.summed),
            strict=True,
        )
        lines = [f".{name} = {product.length(size(loops))}," for name, loops in extents]
        lines += [f".left = {self.left()},", f".right = {self.right()},"]
        if result is None:
            lines.append(f".store = {self.store()},")
            lines += [".across = 1,"] * self.storing.form.across
        else:
            assert product.result is not None
            lines.append(f".result = {product.result.pointer},")
            across = result.summed_step != 1
            line = result.summed_step if across else result.line_step
            lines.append(f".result_line = {product.length(line)},")
            lines += [".across = 1,"] * across
        if product.whole:
            whole = ", ".join(map(product.length, product.whole))
            lines.append(f".whole = {{{whole}}},")
        if product.batch:
            lines.append(f".place = {self.place()},")
        if plan is not None:
            lines.append(f".way = {plan.way},")
            lines += [".exchanged = 1,"] * plan.exchanged
        if product.scratch:
            lines.append(".scratch = scratch,")
        if product.kept:
            lines.append(".kept = kept,")
        return [*lines, ".arguments = &geon_args,"] if self.told() else lines

    def told(self) -> bool:
        """Return True if functions of the product take its arguments."""
        return bool(self.functions and self.product.parameters)

    def left(self) -> str:
        """Return the initialiser of the left operand in the descriptor."""
        form, product = self.form.left, self.product
        if form.plain is not None:
            return self.plain(form, product.left, whole=form.plain.whole)
        packs = [] if form.lines is None else [self.pack("left", form.lines, form, product.left)]
        fields = [f".pack = {each}" for each in packs]
        return self.packed(form, fields, product.left, product.rows, product.summed)

    def right(self) -> str:
        """Return the initialiser of the right operand in the descriptor."""
        form, product = self.form.right, self.product
        if form.plain is not None:
            moves = any(form.plain.strides[name] != 0 for name in form.plain.batch)
            return self.plain(form, product.right, whole=form.plain.whole and moves)
        lines, panels = (
            None if tree is None else self.pack(to, tree, form, product.right)
            for to, tree in (("lines", form.lines), ("panels", form.panels))
        )
        packs = lines if panels is None else panels
        fields = [] if packs is None else [f".pack = {packs}"]
        fields += [] if lines is None else [f".pack_lines = {lines}"]
        return self.packed(form, fields, product.right, product.summed, product.columns)

    def plain(self, form: OperandForm, operand: Operand, *, whole: bool) -> str:
        """Return the initialiser of an operand that is read where it lies."""
        found = form.plain
        assert found is not None
        line, summed = map(self.product.length, (found.line_step, found.summed_step))
        steps = f".line = {line}, .summed = {summed}, .whole = {int(whole)}"
        return f"{{.at = {operand.pointer}, {steps}}}"

    def packed(
        self,
        form: OperandForm,
        packs: list[str],
        operand: Operand,
        rows: tuple[Loop, ...],
        inside: tuple[Loop, ...],
    ) -> str:
        """Return the initialiser of an operand that functions pack, or that tiles read as windows.

        Windows begin at the indices of ``rows`` and have those of the loops ``inside``.
        """
        fields, found = [f".staged = {form.staged}", *packs], form.windows
        if found is not None:
            terms = (operand, self.product.batch, rows, inside, self.walker)
            text = WindowsText(*terms) if found.band is None else BandText(*terms, found.band)
            view = f"&(const struct geon_view_{self.of.tag}){text.view()}"
            fields += [
                f".view = {view}, .band_rows = {found.most}, .band_size = {found.elements}",
                f".run = {found.run}, .runs = {text.runs(found.run)}",
            ]
        return f"{{{', '.join(fields)}}}"

    def pack(self, to: str, tree: Tree, form: OperandForm, operand: Operand) -> str:
        """Add the function that packs a block of an operand, and return its name.

        ``to`` is "left" for rows, "panels" for columns, or "lines" for columns packed like rows.
        """
        names = self.product.names
        assert names is not None, "the names of the kernel are unknown"
        self.loops |= form.view is None
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
            operand.memory,
        )

    def place(self) -> str:
        """Add the function that computes the offsets of a batch, and return its name."""
        views = (self.form.left.plain, self.form.right.plain, self.form.result)
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
        assert self.form.epilogue is not None
        return Storing(self.product, self.form.epilogue, self.of, self.walker)


_OWN = frozenset(
    """threads batch row_start height column_start width start count depth_start depth_run step b0
    b1 out sums_step line row value here e turns
    """.split()
)
