"""Convert between a product's loops and one flat index, and iterate over innermost runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop


def size(loops: Sequence[Loop]) -> Size:
    """Return the product of the loops' extents."""
    return product(loop.extent for loop in loops)


def last(loops: Sequence[Loop], *units: str | None) -> tuple[Loop, ...]:
    """Return the loops with the first of ``units`` that is among them moved innermost."""
    for unit in units:
        for loop in loops:
            if loop.name == unit:
                return (*(d for d in loops if d is not loop), loop)
    return tuple(loops)


def indent(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Return the lines, indented."""
    return ["  " * depth + line for line in lines]


def index_name(loop: str) -> str:
    """Return the C variable of a loop's index."""
    return f"at_{loop}"


@dataclass(frozen=True)
class Walker:
    """Emits iterations over multi-dimensional loops; ``length`` returns a length as C."""

    length: Callable[[Size], str]

    def factor(self, length: Size) -> str:
        """Return a length as a factor in a C expression."""
        text = self.length(length)
        return text if text.isalnum() else f"({text})"

    def decompose(self, loops: Sequence[Loop], flat: str) -> list[str]:
        """Return statements that compute each loop's index from a row-major flat index."""
        if len(loops) == 1:
            name = index_name(loops[0].name)
            return [f"const int64_t {name} = {flat}; (void){name};"]
        if not loops:
            return []
        rest = f"rest_{loops[-1].name}"
        lines = [f"int64_t {rest} = {flat};"]
        for loop in reversed(loops[1:]):
            name, extent = index_name(loop.name), f"({self.length(loop.extent)})"
            lines.append(f"const int64_t {name} = {rest} % {extent}; (void){name};")
            lines.append(f"{rest} /= {extent};")
        name = index_name(loops[0].name)
        return [*lines, f"const int64_t {name} = {rest}; (void){name};"]

    def walk(
        self,
        loops: Sequence[Loop],
        start: str,
        count: str,
        body: Callable[[str, str], list[str]],
    ) -> list[str]:
        """Return statements that run ``body`` on runs of the innermost loop.

        ``start`` and ``count`` delimit the flat indices. ``body`` takes a run's offset from
        ``start`` and its length as C; in it each index has the value at the start of the run.
        """
        if len(loops) <= 1:
            return ["{", *indent([*self.decompose(loops, start), *body("0", count)]), "}"]
        inner = loops[-1]
        done, run = f"done_{inner.name}", f"run_{inner.name}"
        return [
            f"for (int64_t {done} = 0, {run}; {done} < {count}; {done} += {run}) {{",
            *indent(
                [
                    *self.decompose(loops, f"{start} + {done}"),
                    f"{run} = ({self.length(inner.extent)}) - {index_name(inner.name)};",
                    f"if ({run} > {count} - {done}) {run} = {count} - {done};",
                    *body(done, run),
                ]
            ),
            "}",
        ]

    def address(self, pointer: str, strides: Mapping[str, Size], loops: Sequence[str]) -> str:
        """Return a pointer to an operand's element at the current indices."""
        terms = [
            index_name(name)
            if strides[name] == 1
            else f"{index_name(name)} * {self.factor(strides[name])}"
            for name in loops
            if strides.get(name, 0) != 0
        ]
        return " + ".join([pointer, *terms])
