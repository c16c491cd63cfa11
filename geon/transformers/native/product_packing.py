"""How a product's operands come into packed blocks: copied, transposed, or computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...op_graph.affine import Size
from ...op_graph.lengths import product
from ..kernels.contraction import as_one, merged
from ..kernels.types import Loop
from .product_borders import Border, Run, Windows, bordered, of_windows
from .product_shape import GROUP, SHALLOW, Shape
from .product_walk import Walker, at, indent, size

Loops = tuple[tuple[Loop, ...], dict[str, Size]]  # merged ones, and their strides


@dataclass(frozen=True)
class Operand:
    """One operand of a product.

    `element` makes C statements and a C value expression of type `type` from the C texts of the
    loops' indices. An element that is no more than `pointer[offset]` also says so with `pointer`
    and the stride in elements of each loop (0 for none), and with `border` where it is 0 instead.
    `unit` is the loop best walked innermost. `joined` are pairs of loops of which the inner one may
    run on instead of the outer one.
    """

    type: str
    element: Callable[[Mapping[str, str]], tuple[list[str], str]]
    pointer: str | None
    strides: Mapping[str, Size]
    unit: str | None
    border: Border | None = None
    joined: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class View:
    """An operand in memory over merged loops: `lines` are rows or columns, `summed` the rest."""

    pointer: str
    lines: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    strides: Mapping[str, Size]
    batch: tuple[str, ...]
    border: Border | None = None
    windows: Windows | None = None

    @property
    def line_step(self) -> Size:
        """The stride of the innermost row or column loop."""
        return self.strides[self.lines[-1].name] if self.lines else 0

    @property
    def summed_step(self) -> Size:
        """The stride of the innermost summed loop."""
        return self.strides[self.summed[-1].name] if self.summed else 0

    @property
    def is_plain(self) -> bool:
        """Whether lines are one stride apart, and summed indices too."""
        return self.border is None and len(self.lines) <= 1 and len(self.summed) <= 1

    @property
    def whole(self) -> bool:
        """Whether rows or columns and summed indices are one run of memory."""
        orders = ((*self.lines, *self.summed), (*self.summed, *self.lines))
        runs = (merged(loops, self.strides) for loops in orders)
        return any(
            len(loops) <= 1 and all(steps[loop.name] == 1 for loop in loops)
            for loops, steps in runs
        )

    @property
    def loops(self) -> list[str]:
        """The names of all loops."""
        return [*self.batch, *(loop.name for loop in (*self.lines, *self.summed))]


def view(
    operand: Operand,
    type: str,
    batch: Sequence[Loop],
    lines: Sequence[Loop],
    summed: Sequence[Loop],
) -> View | None:
    """The operand as a view whose rows or columns can be moved whole; None if it has no such."""
    if operand.pointer is None or operand.type != type:
        return None
    border = operand.border
    apart = border.loops if border is not None else frozenset[str]()
    sides = [merged(loops, operand.strides, apart) for loops in (lines, summed)]
    windows = None
    if border is not None:
        for k, loops in ((1, summed), (0, lines)):
            led = merged(loops, operand.strides, apart, True)
            windows = led_windows(border, loops, led, sides[1 - k][0], k == 1)
            if windows is not None:
                sides[k] = _with_last(sides[k], led)
                break
    (line_loops, line_steps), (summed_loops, summed_steps) = sides
    outer = {loop.name: operand.strides.get(loop.name, 0) for loop in batch}
    found = View(
        operand.pointer,
        line_loops,
        summed_loops,
        {**outer, **line_steps, **summed_steps},
        tuple(outer),
        border,
        windows,
    )
    return found if 1 in (found.line_step, found.summed_step) else None


def _with_last(apart: Loops, led: Loops) -> Loops:
    """Loops that stay apart, but for those that the last of ``led`` takes together."""
    last = led[0][-1]
    kept = tuple([loop for loop in apart[0] if not set(loop.axes) <= set(last.axes)])
    steps = {loop.name: apart[1][loop.name] for loop in kept}
    return (*kept, last), {**steps, last.name: led[1][last.name]}


def led_windows(
    border: Border,
    loops: Sequence[Loop],
    led: Loops,
    across: Sequence[Loop],
    of_lines: bool,
) -> Windows | None:
    """Windows whose positions lead the innermost of ``led`` loops; None where there are none.

    They lie along the innermost loop of ``across``, on which no other guard may be.
    """
    if not led[0] or not across or led[1][led[0][-1].name] != 1:
        return None
    short, along = led[0][-1], across[-1].name
    inner = [loop for loop in loops if loop.extent != 1 and set(loop.axes) <= set(short.axes)]
    guards = [guard for guard in border.guards if along in guard.index.terms]
    if not inner or len(guards) != 1:
        return None
    positions, step = inner[0].name, guards[0].index.terms[along]
    on = [guard for guard in border.guards if positions in guard.index.terms]
    if on != guards or not isinstance(step, int) or step < 1:
        return None
    each = product(loop.extent for loop in inner[1:])
    return Windows(guards[0], along, of_lines, positions, each, short.name)


@dataclass(frozen=True)
class Packing:
    """The text that packs one operand's block; indices of the batch are in scope.

    The left operand's block is `height` rows from `row_start`, at most a group, in `left`; the
    right operand's `width` columns from `column_start`, in `panels`; both of `depth_run` summed
    indices from `depth_start`.
    """

    operand: Operand
    of: Shape
    batch: tuple[Loop, ...]
    lines: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    walker: Walker

    @property
    def view(self) -> View | None:
        """The operand as memory that is moved whole, if it is."""
        return view(self.operand, self.of.type, self.batch, self.lines, self.summed)

    @property
    def plain(self) -> View | None:
        """The operand as memory with one stride for its lines and one for the summed indices."""
        found = self.view
        return found if found is not None and found.is_plain else None

    @property
    def along_lines(self) -> bool:
        """Whether elements are best computed along rows or columns."""
        return any(d.name == self.operand.unit for d in self.lines[-1:])

    @property
    def along_summed(self) -> bool:
        """Whether elements are best computed along the summed index."""
        return any(d.name == self.operand.unit for d in self.summed[-1:])

    @property
    def own_lines(self) -> tuple[Loop, ...]:
        """The loops over rows or columns, as few as elements can be computed along."""
        return as_one(self.lines, self.operand.joined)[0]

    @property
    def own_summed(self) -> tuple[Loop, ...]:
        """The loops over what is summed, as few as elements can be computed along."""
        return as_one(self.summed, self.operand.joined)[0]

    def is_run(self, outer: Sequence[Loop], inner: Sequence[Loop], most: int) -> bool:
        """Whether a block of all turns of `inner`, `most` at most, is computed as one run."""
        count = size(inner)
        if not (isinstance(count, int) and count <= most and len(outer) == len(inner) == 1):
            return False
        return (outer[0].name, inner[0].name) in self.operand.joined

    def runs_along_lines(self, left: bool) -> bool:
        """Whether elements are computed as one run, the rows or columns of an index adjoining."""
        most = GROUP if left else self.of.panel
        return self.along_lines and self.is_run(self.own_summed, self.own_lines, most)

    @property
    def runs_along_summed(self) -> bool:
        """Whether elements are computed as one run, what is summed for a row adjoining."""
        return self.is_run(self.own_lines, self.own_summed, SHALLOW)

    def staged(self, left: bool) -> int:
        """How many elements for each summed index the packing works in, at most."""
        if self.view is not None:
            return 0
        if left:
            return GROUP if self.along_lines else 0
        return self.of.panel if self.along_summed or self.runs_along_lines(False) else 0

    def left(self) -> list[str]:
        """Rows packed side by side."""
        found, tag = self.view, self.of.tag
        if found is not None:
            lines = self.moved(found, "row_start", "height", "left", "left_step", True)
        elif self.runs_along_lines(True):
            lines = [
                *self.run("height * depth_run", "staged"),
                f"geon_transpose_{tag}(left, left_step, staged, height, depth_run, height);",
            ]
        elif self.along_lines:
            lines = [
                *self.computed_along_lines(
                    "row_start", "height", lambda k, r: f"staged[({k}) * height + {r}]"
                ),
                f"geon_transpose_{tag}(left, left_step, staged, height, depth_run, height);",
            ]
        elif self.runs_along_summed:
            lines = self.run("height * depth_run", "left", "row_start")
        else:
            lines = self.computed_along_summed("row_start", "height", "left", "left_step")
        return lines

    def right(self) -> list[str]:
        """Columns packed into panels, the last one filled up with zeros."""
        found, tag, panel = self.view, self.of.tag, self.of.panel
        if found is None and self.runs_along_lines(False):
            return [
                *self.run("width * depth_run", "staged"),
                f"memset(panels, 0, (size_t)depth_run * {panel} * sizeof *panels);",
                f"geon_copy_{tag}(panels, {panel}, staged, width, depth_run, width);",
            ]
        if found is None and not self.along_summed:
            step = f"{panel} * depth_run"
            return [
                f"for (int64_t c = width; c % {panel}; ++c) staged[c] = 0;",
                *self.computed_along_lines(
                    "column_start",
                    "width",
                    lambda k, c: f"staged[{c}]",
                    lambda k: [
                        f"geon_spread_{tag}(panels + ({k}) * {panel}, {step}, staged, width);"
                    ],
                ),
            ]
        if found is not None:
            lines = self.moved(found, "first_column", "some", "panel", str(panel), False)
        elif self.runs_along_summed:
            lines = [
                *self.run("some * depth_run", "staged", "first_column"),
                f"geon_transpose_{tag}(panel, {panel}, staged, depth_run, some, depth_run);",
            ]
        else:
            lines = [
                *self.computed_along_summed("first_column", "some", "staged", "depth_block"),
                f"geon_transpose_{tag}(panel, {panel}, staged, depth_block, some, depth_run);",
            ]
        return [
            f"for (int64_t c = 0; c < width; c += {panel}) {{",
            *indent(
                [
                    "const int64_t first_column = column_start + c;",
                    f"const int64_t some = width - c < {panel} ? width - c : {panel};",
                    f"{self.of.type} *panel = panels + c * depth_run;",
                    f"if (some < {panel})",
                    f"  memset(panel, 0, (size_t)depth_run * {panel} * sizeof *panel);",
                    *lines,
                ]
            ),
            "}",
        ]

    def run(self, count: str, to: str, first_line: str | None = None) -> list[str]:
        """One run of elements: of whole lines from the first one on, or of what is summed from
        `depth_start` on, with all lines of each.
        """
        outer, inner = self.own_summed, self.own_lines
        start = "depth_start"
        if first_line is not None:
            outer, inner, start = inner, outer, first_line
        return [
            "{",
            *indent(
                [
                    *self.walker.decompose(outer, start),
                    *self.walker.decompose(inner, "0"),
                    *self.loop(inner, count, {}, f"{to}[e]"),
                ]
            ),
            "}",
        ]

    def moved(
        self, found: View, start: str, length: str, to: str, step: str, lines_first: bool
    ) -> list[str]:
        """Copies or transposes of blocks whose lines and summed indices are one stride apart."""
        tag = self.of.tag
        line_steps = found.summed_step == 1
        if found.summed_step == found.line_step == 1:
            line_steps = lines_first
        across = self.walker.length(found.line_step if line_steps else found.summed_step)
        kind = "copy" if line_steps == lines_first else "transpose"
        source = self.walker.address(found.pointer, found.strides, found.loops)
        of_lines = found.windows is not None and found.windows.of_lines
        inner = [loops[-1].name if loops else None for loops in (found.lines, found.summed)]

        def target(run: Run) -> str:
            major, minor = (run.line, run.deep) if lines_first else (run.deep, run.line)
            return f"{to} + ({major}) * {step} + {minor}, {step}"

        def move(run: Run, source: str) -> str:
            """The copy or transpose of one run."""
            sizes = (run.lines, run.run) if line_steps else (run.run, run.lines)
            return f"geon_{kind}_{tag}({target(run)}, {source}, {across}, {', '.join(sizes)});"

        def clear(run: Run) -> str:
            sizes = (run.lines, run.run) if lines_first else (run.run, run.lines)
            return f"geon_clear_{tag}({target(run)}, {', '.join(sizes)});"

        def inside(run: Run) -> str:
            steps = [("line_low", found.line_step), ("deep_low", found.summed_step)]
            offsets = [f"{name} * {self.walker.factor(each)}" for name, each in steps if each != 0]
            return move(run, " + ".join([source, *offsets]) + ")")

        def shown(run: Run, given: str) -> str:
            """The call that knows windows: of their places, and of positions inside them."""
            far = found.line_step if of_lines else found.summed_step
            counts = (run.lines, run.run) if of_lines else (run.run, run.lines)
            sizes = (
                f"{self.walker.length(far)}, {', '.join(counts)}, {int(of_lines != lines_first)}"
            )
            return f"geon_windows_{tag}({target(run)}, {source}), {sizes}, {given});"

        def moves(run: Run) -> list[str]:
            if found.border is None:
                return [move(run, source)]
            if found.windows is not None:
                return of_windows(
                    found.border,
                    found.windows,
                    run,
                    self.walker.length,
                    clear,
                    lambda given: shown(run, given),
                )
            return bordered(
                found.border, (inner[0], inner[1]), run, self.walker.length, clear, inside
            )

        if found.border is not None:
            source = self.walker.address(found.border.start, found.strides, found.loops)
            source = f"{found.pointer} + ({source}"
        return self.walker.walk(
            found.lines,
            start,
            length,
            lambda line, lines: self.walker.walk(
                found.summed,
                "depth_start",
                "depth_run",
                lambda k, ks: moves(Run(line, lines, k, ks)),
            ),
        )

    def computed_along_summed(self, start: str, length: str, to: str, step: str) -> list[str]:
        """One row or column after the other, each computed along the summed index."""
        inner = self.own_summed[-1:]
        loops = self.walker.walk(
            self.own_summed,
            "depth_start",
            "depth_run",
            lambda k, ks: self.loop(inner, ks, {}, f"{to}[l * {step} + {k} + e]"),
        )
        return [
            f"for (int64_t l = 0; l < {length}; ++l) {{",
            *indent([*self.walker.decompose(self.own_lines, f"{start} + l"), *loops]),
            "}",
        ]

    def computed_along_lines(
        self,
        start: str,
        length: str,
        place: Callable[[str, str], str],
        after: Callable[[str], list[str]] = lambda k: [],
    ) -> list[str]:
        """One summed index after the other, each computed along rows or columns."""

        def one(k: str, ks: str) -> list[str]:
            deep = self.own_summed[-1].name if self.summed else None
            outer = {deep: "deep"} if deep is not None else {}
            here = [f"const int64_t deep = {at(deep)} + d;", "(void)deep;"] if deep else []
            loops = self.walker.walk(
                self.own_lines,
                start,
                length,
                lambda line, lines: self.loop(
                    self.own_lines[-1:], lines, outer, place(f"{k} + d", f"{line} + e")
                ),
            )
            return [
                f"for (int64_t d = 0; d < {ks}; ++d) {{",
                *indent([*here, *loops, *after(f"{k} + d")]),
                "}",
            ]

        return self.walker.walk(self.own_summed, "depth_start", "depth_run", one)

    def loop(
        self, inner: tuple[Loop, ...], count: str, others: Mapping[str, str], place: str
    ) -> list[str]:
        """A loop that computes elements along a run of the loop `inner`."""
        indices = {d.name: at(d.name) for d in (*self.batch, *self.own_lines, *self.own_summed)}
        for loops in (self.lines, self.summed):
            indices.update(dict.fromkeys(as_one(loops, self.operand.joined)[1], "0"))
        indices.update(others)
        here = []
        for loop in inner:
            here = [f"const int64_t here = {at(loop.name)} + e;", "(void)here;"]
            indices[loop.name] = "here"
        statements, value = self.operand.element(indices)
        return [
            "#pragma omp simd",
            f"for (int64_t e = 0; e < {count}; ++e) {{",
            *indent([*here, *statements, f"{place} = ({self.of.type})({value});"]),
            "}",
        ]
