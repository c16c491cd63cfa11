"""Threads that share a row: how they divide its passes and put their parts together.

The threads of a team take the elements of a pass in turns. Each adds at most ``CHAIN`` terms one
after another in a sum's own dtype and such sums in float64, and parts are put together in the order
of threads, so bits follow from lengths alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop
from ...printing.nests.pass_text import Accumulator, PrintedPass
from ..launches.naming import indented

CHAIN = 32  # terms of a sum that one thread adds in its own dtype
WARP = 32
THREADS = 256  # of a block
SCALAR = 8  # bytes that one takes, at most
SHORT = 1024  # elements of a row that a warp takes
Lines = list[str]


@dataclass(frozen=True, slots=True)
class Team:
    """``size`` threads of a block that share a row; with ``beside`` rows that adjoin, one for each
    of so many neighbouring threads.

    Rows are taken by whole warps, by the block, or by threads that lie ``beside`` apart.
    """

    size: int
    threads: int
    beside: int = 0

    @property
    def rows(self) -> int:
        """How many rows a block has."""
        return self.threads // self.size

    @property
    def meets(self) -> bool:
        """Whether its threads meet."""
        return self.size > 1

    def shared(self, scalars: int) -> int:
        """The bytes of shared memory by which so many scalars are put together."""
        members = self.size * self.beside if self.beside else self.size // WARP
        return scalars * members * SCALAR if self.size > WARP or self.beside else 0

    def start(self) -> Lines:
        """The statements that say which thread this is."""
        if self.size == 1:
            return ["const int rank = 0;"]
        if self.beside:
            return [f"const int rank = threadIdx.x / {self.beside};"]
        if self.size == self.threads:
            return ["const int rank = threadIdx.x;"]
        return [f"const int rank = threadIdx.x % {self.size};"]

    def meet(self) -> Lines:
        """The statement at which the threads of a team wait for each other."""
        if self.size == 1:
            return []
        alone = self.size == WARP and not self.beside
        return ["__syncwarp(0xffffffffu);" if alone else "__syncthreads();"]

    def joined(self, values: Sequence[Value]) -> Lines:
        """The statements that give each thread what all of its team have found."""
        if self.size == 1 or not values:
            return []
        if self.beside:
            place = f"[threadIdx.x % {self.beside}]"
            return self.through_memory(values, self.size, f"[{self.beside}]", "rank", place)
        lines: Lines = []
        for value in values:
            if value.adds:
                ((name, _),) = value.parts
                lines.append(f"{name} = geon_sum_of_warp({name});")
                continue
            body = [f"const {t} {n}_other = geon_exchanged({n}, bits);" for n, t in value.parts]
            body += value.combine("_other")
            lines += [f"for (int bits = {WARP // 2}; bits > 0; bits /= 2) {{", *indented(body), "}"]
        if self.size == WARP:
            return lines
        warp = f"rank / {WARP}"
        put = f"rank % {WARP} == 0"
        return lines + self.through_memory(values, self.size // WARP, "", warp, "", put)

    def through_memory(
        self, values: Sequence[Value], count: int, shape: str, who: str, place: str, put: str = ""
    ) -> Lines:
        """Values of ``count`` members put together in their order, by way of shared memory."""
        parts = [part for value in values for part in value.parts]
        lines = [f"__shared__ {t} {n}_shared[{count}]{shape};" for n, t in parts]
        condition = f"if ({put}) " if put else ""
        lines += [f"{condition}{n}_shared[{who}]{place} = {n};" for n, t in parts]
        lines.append("__syncthreads();")
        for value in values:
            if value.adds:
                ((name, _),) = value.parts
                at = f", {place[1:-1]}" if place else ""
                lines.append(f"{name} = geon_sum_of({name}_shared{at});")
                continue
            lines += [f"{n} = {n}_shared[0]{place};" for n, _ in value.parts]
            body = [f"const {t} {n}_other = {n}_shared[member]{place};" for n, t in value.parts]
            body += value.combine("_other")
            head = f"for (int member = 1; member < {count}; member++) {{"
            lines += [head, *indented(body), "}"]
        return [*lines, "__syncthreads();"]


@dataclass(frozen=True, slots=True)
class Value:
    """Variables, by name and type, that are one state; ``combine(ending)`` puts in another one,
    whose names end so. One that just ``adds`` has functions for that."""

    parts: tuple[tuple[str, str], ...]
    combine: Callable[[str], Lines]
    first: tuple[str, ...]
    adds: bool = False

    def begun(self) -> Lines:
        """The variables as they are when nothing was seen."""
        pairs = zip(self.parts, self.first, strict=True)
        return [f"{ctype} {name} = {first};" for (name, ctype), first in pairs]


def is_float_sum(total: Accumulator) -> bool:
    """Whether rounding makes the result of a reduction depend on how its terms are grouped."""
    return total.row == "add" and total.dtype in ("float32", "float64")


def values_of(made: PrintedPass) -> list[Value]:
    """What a pass has found, as threads hold it."""
    found = []
    for total in made.sums:
        if is_float_sum(total):
            name = f"{total.name}_wide"
            found.append(Value(((name, "double"),), _adding(name), ("0",), adds=True))
        else:
            found.append(Value(((total.name, total.ctype),), _folding(total), (total.first,)))
    for state in made.states:
        parts = tuple(zip(state.names, state.ctypes, strict=True))
        found.append(Value(parts, lambda ending, s=state: s.combine("", ending), state.first))  # type: ignore[misc]
    return found


def _adding(name: str) -> Callable[[str], Lines]:
    return lambda ending: [f"{name} = {name} + {name}{ending};"]


def _folding(total: Accumulator) -> Callable[[str], Lines]:
    return lambda e: [f"{total.name} = {total.step(total.name, total.name + e)};"]


def ended(made: PrintedPass) -> Lines:
    """Sums of floats in their own dtype, when all parts were put together."""
    return [
        f"const {t.ctype} {t.name} = ({t.ctype}){t.name}_wide;"
        for t in made.sums
        if is_float_sum(t)
    ]


def turns(
    made: PrintedPass,
    extent: Callable[[Size], str],
    bounds: tuple[str, str],
    step: int,
    few: bool,
    unrolled: bool = False,
) -> Lines:
    """The loop over a pass's elements from one bound to the other, every ``step``-th of them.

    Its variables were begun before. ``few`` says that a thread has no more than ``CHAIN`` turns.
    Those of known number are ``unrolled`` where asked for, so that arrays lie in registers.
    """
    low, high = bounds
    body = [*places(made.loops, "at", extent), *element(made, list(map(str, made.stores)))]
    count = product(loop.extent for loop in made.loops)
    if unrolled and few and isinstance(count, int):
        body = [f"const int64_t at = {low} + turn * {step};", *body]
        if count % step:
            body.insert(1, f"if (at >= {high}) break;")
        head = f"for (int turn = 0; turn < {-(-count // step)}; turn++) {{"
        loop = ["#pragma unroll", head, *indented(body), "}"]
    else:
        loop = [
            f"for (int64_t at = {low}; at < {high}; at += {step}) {{", *indented(body), "}"
        ]  # fmt: skip
    if few or not any(map(is_float_sum, made.sums)):
        return chains(made, loop)
    head = f"for (int turn = 0; turn < {CHAIN} && at < {high}; turn++, at += {step}) {{"
    inner = chains(made, [head, *indented(body), "}"])
    return [f"for (int64_t at = {low}; at < {high};) {{", *indented(inner), "}"]


def is_few(count: Size, step: int) -> bool:
    """Whether each of so many threads has no more than ``CHAIN`` of so many elements."""
    return isinstance(count, int) and count <= CHAIN * step


def element(made: PrintedPass, stores: Lines) -> Lines:
    """What a pass does with one element, its ``stores`` before what it reduces."""
    body = [*map(str, made.body.lines), *stores]
    for total in made.sums:
        body.append(f"{_held(total)} = {total.step(_held(total), total.text)};")
    for state in made.states:
        body += state.step
    return body


def chains(made: PrintedPass, loop: Lines) -> Lines:
    """A loop of few turns, with sums of floats that are begun before it and added up after it."""
    chained = [t for t in made.sums if is_float_sum(t)]
    begun = [f"{t.ctype} {_held(t)} = 0;" for t in chained]
    return [*begun, *loop, *[f"{t.name}_wide += {_held(t)};" for t in chained]]


def _held(total: Accumulator) -> str:
    """The variable to which a thread adds."""
    return f"{total.name}_chain" if is_float_sum(total) else total.name


def places(loops: Sequence[Loop], at: str, extent: Callable[[Size], str]) -> Lines:
    """Loops' variables of element number ``at``, the innermost ones first."""
    size = product(loop.extent for loop in loops)
    small = isinstance(size, int) and size < 1 << 31 and len(loops) > 1
    type = "(uint32_t)" if small else ""  # divided sooner
    lines, rest = [], f"{type}{at}"
    for loop in reversed(loops[1:]):
        length = extent(loop.extent) if loop.extent != 0 else "1"  # never run, but compiled
        lines.append(f"const int64_t {loop.name} = {rest} % {type}({length});")
        rest = f"({rest} / {type}({length}))"
    return [*lines, *(f"const int64_t {loop.name} = {rest};" for loop in loops[:1])]
