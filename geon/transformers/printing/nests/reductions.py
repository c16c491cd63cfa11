"""Statements of a pass's reductions: the step per element, and the merging of states."""

from __future__ import annotations

from typing import Protocol

from ....op_graph.values.dtypes import INT32, kind, name_of
from ...kernels.analysis.integer_ranges import before_widening, is_whole
from ...kernels.ir.nest import Reduction
from ...kernels.ir.scalar_code import IndexNumber, Load, Running, ScalarBuilder, walk
from ..scalars import c_expressions
from ..scalars.dialect import Lanes
from .pass_text import (
    Accumulator,
    NarrowPosition,
    StateAccumulator,
    lanes_start,
)
from .scalar_statements import MemoryNames, ScalarPrinter
from .statement_blocks import StatementBlock
from .transposed_passes import is_direct


def truth_word(reduction: Reduction) -> str:
    """Return the C type that a fold of bools accumulates in.

    It is as wide as the widest loaded value: compilers fold no ``_Bool`` in vectors, and narrowing
    a mask has a cost.
    """
    loads = [value for value in walk(*reduction.elements) if isinstance(value, Load)]
    return f"uint{8 * max([load.dtype.itemsize for load in loads], default=1)}_t"


class NestNames(MemoryNames, Protocol):
    """Protocol of the names of a kernel whose rows may be in lanes."""

    @property
    def lanes(self) -> Lanes:
        """Return the representation of rows in lanes."""


class ReductionPrinter:
    """Prints the steps of reductions with a nest's scalars."""

    def __init__(self, scalars: ScalarPrinter, names: NestNames) -> None:
        self.scalars, self.names = scalars, names

    def element(self, body: StatementBlock, reduction: Reduction, dtype: str) -> str:
        """Return the text of the element that a fold accumulates."""
        texts = [self.scalars.value(body, element) for element in reduction.elements]
        self.scalars.name(*texts)
        if len(texts) == 2:
            return self.scalars.expression(body, "multiply", [dtype] * 2, dtype, texts)
        return self.scalars.cast(body, name_of(reduction.elements[0].dtype), dtype, texts[0])

    def accumulator(
        self, body: StatementBlock, reduction: Reduction, lanes: Lanes | None
    ) -> Accumulator:
        """Return the step of a reduction that folds a primitive."""
        dtype, row = name_of(reduction.states[0]), str(reduction.folds)
        text = self.element(body, reduction, dtype)
        self.names.calls(c_expressions.calls(row, [dtype] * 2, dtype))  # helpers of the fold
        name = self.scalars.fresh("s")
        nan = row in ("maximum", "minimum") and kind(reduction.states[0]) == "f"
        first = c_expressions.literal(reduction.reducer.identity(reduction.states)[0], dtype)
        spoiled = f"{name}_nan" if nan else None
        ctype = truth_word(reduction) if dtype == "bool" else c_expressions.C_TYPES[dtype]
        held = name if lanes is None else lanes.held(name, ctype)
        self.scalars.reduced[reduction.number, 0] = held
        narrow = self.narrow_term(body, reduction) if row == "add" else None
        return Accumulator(name, ctype, row, dtype, text, first, spoiled, narrow)

    def narrow_term(self, body: StatementBlock, reduction: Reduction) -> str | None:
        """Return the term of a 64-bit integer sum as int32 if it has at most 16 bits, else None."""
        value, *others = reduction.elements
        value = before_widening(value)
        if others or value.dtype.itemsize > 2 or not is_whole(value):
            return None
        if kind(reduction.states[0]) != "i" or reduction.states[0].itemsize < 8:
            return None
        return self.scalars.cast(
            body, name_of(value.dtype), "int32", self.scalars.value(body, value)
        )

    def narrow_position(self, body: StatementBlock, reduction: Reduction, inner: str) -> None:
        """Name the position of a reduction's element if it is a 32-bit index of unit stride."""
        at = reduction.position
        if not isinstance(at, IndexNumber) or at.dtype is not INT32 or at.index.step(inner) != 1:
            return
        if not is_direct(at.index):
            return
        name, spelled = self.scalars.fresh(), self.scalars.spelled
        text = self.scalars.index(body, at.index)
        self.scalars.spelled = {**spelled, inner: lanes_start(inner)}
        start = self.scalars.index(body, at.index)
        self.scalars.spelled = spelled
        body.lines.append(NarrowPosition(name, text, start))
        body.names[at] = name

    def state(
        self, body: StatementBlock, reduction: Reduction, row: StatementBlock
    ) -> StateAccumulator:
        """Return the step of any other reduction, which its reducer gives as scalar code."""
        states, reducer, code = reduction.states, reduction.reducer, ScalarBuilder()
        lanes = self.names.lanes
        dtypes = [name_of(dtype) for dtype in states]
        stem = self.scalars.fresh("s")
        ctypes = tuple([c_expressions.C_TYPES[dtype] for dtype in dtypes])
        names = tuple([f"{stem}_{k}" for k in range(len(states))])
        held = [lanes.held(name, ctype) for name, ctype in zip(names, ctypes, strict=True)]
        for k, name in enumerate(names):
            self.scalars.running[k, False] = held[k]
            reduced = lanes.alone(name) if row.lanes is None else held[k]
            self.scalars.reduced[reduction.number, k] = reduced

        def running(other: bool) -> tuple[Running, ...]:
            return tuple([code(Running, k, other, dtype) for k, dtype in enumerate(states)])

        def combine(into: str, other: str) -> list[str]:
            """Return the statements that merge two states, given the suffixes of their names."""
            block = StatementBlock()
            for k, name in enumerate(names):
                self.scalars.running[k, False] = name + into
                self.scalars.running[k, True] = name + other
            new = reducer.combine(code, running(False), running(True))
            texts = [self.scalars.value(block, each) for each in new]
            puts = [f"{name}{into} = {text};" for name, text in zip(names, texts, strict=True)]
            return [*block.lines, *puts]

        new = reducer.step(code, running(False), reduction.elements[0], reduction.position)
        texts = [self.scalars.value(body, each) for each in new]
        identity = reducer.identity(states)
        return StateAccumulator(
            names,
            ctypes,
            tuple([c_expressions.literal(v, d) for v, d in zip(identity, dtypes, strict=True)]),
            [f"{name} = {text};" for name, text in zip(held, texts, strict=True)],
            combine,
        )
