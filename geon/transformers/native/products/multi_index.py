"""A product's loops as one flat index: taking it apart, walking runs of the innermost loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop


def size(loops: Sequence[Loop]) -> Size:
    """How many indices the loops have together."""
    return product(loop.extent for loop in loops)


def last(loops: Sequence[Loop], *units: str | None) -> tuple[Loop, ...]:
    """The loops with the first unit that is among them innermost."""
    for unit in units:
        for loop in loops:
            if loop.name == unit:
                return (*(d for d in loops if d is not loop), loop)
    return tuple(loops)


def indent(lines: Sequence[str], depth: int = 1) -> list[str]:
    """The lines, indented."""
    return ["  " * depth + line for line in lines]


def at(loop: str) -> str:
    """The C variable that holds a loop's index."""
    return f"at_{loop}"


@dataclass(frozen=True)
class Walker:
    """Writes walks over loops; ``length`` writes a length as C."""

    length: Callable[[Size], str]

    def factor(self, length: Size) -> str:
        """A length as a factor of a product."""
        text = self.length(length)
        return text if text.isalnum() else f"({text})"

    def decompose(self, loops: Sequence[Loop], flat: str) -> list[str]:
        """Statements that declare every loop's index from one flat index, row-major."""
        if len(loops) == 1:
            name = at(loops[0].name)
            return [f"const int64_t {name} = {flat}; (void){name};"]
        if not loops:
            return []
        rest = f"rest_{loops[-1].name}"
        lines = [f"int64_t {rest} = {flat};"]
        for loop in reversed(loops[1:]):
            name, extent = at(loop.name), f"({self.length(loop.extent)})"
            lines.append(f"const int64_t {name} = {rest} % {extent}; (void){name};")
            lines.append(f"{rest} /= {extent};")
        name = at(loops[0].name)
        return [*lines, f"const int64_t {name} = {rest}; (void){name};"]

    def walk(
        self,
        loops: Sequence[Loop],
        start: str,
        count: str,
        body: Callable[[str, str], list[str]],
    ) -> list[str]:
        """Statements that run ``body`` on runs of the innermost loop.

        ``start`` and ``count`` say which part of the flat index is walked. ``body`` gets the text
        of a run's offset from ``start`` and of its length; within it each index is that of the
        run's start.
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
                    f"{run} = ({self.length(inner.extent)}) - {at(inner.name)};",
                    f"if ({run} > {count} - {done}) {run} = {count} - {done};",
                    *body(done, run),
                ]
            ),
            "}",
        ]

    def address(self, pointer: str, strides: Mapping[str, Size], loops: Sequence[str]) -> str:
        """A pointer to an operand's element at the current indices."""
        terms = [
            at(name) if strides[name] == 1 else f"{at(name)} * {self.factor(strides[name])}"
            for name in loops
            if strides.get(name, 0) != 0
        ]
        return " + ".join([pointer, *terms])
