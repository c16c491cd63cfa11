"""Thread teams: threads that share a row, and the statements that combine their partial values.

Partial values are combined in thread order, so the result's bits depend on lengths alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...printing.nests.loop_lines import indent

WARP_SIZE = 32
SCALAR_BYTES = 8  # max. bytes of a scalar
WARP_GROUP_THREADS = 4 * WARP_SIZE  # threads that multiply together, or load for those that do
# Max. elements of a row that one warp handles, each thread with as many as one chain of a sum has;
# longer rows take a block.
MAX_WARP_ROW_ELEMENTS = WARP_SIZE * MAX_SERIAL_TERMS
Lines = list[str]


@dataclass(frozen=True, slots=True)
class Team:
    """A team of ``size`` threads that share a row, in a block of ``threads``.

    If ``beside`` is not 0, a block has ``beside`` adjacent rows, and neighbouring threads belong to
    neighbouring rows. Otherwise a team is a warp or the block.
    """

    size: int
    threads: int
    beside: int = 0

    @property
    def rows(self) -> int:
        """Return the number of rows per block."""
        return self.threads // self.size

    def shared(self, scalars: int) -> int:
        """Return a block's bytes of shared memory for combining this many scalars per team."""
        members = self.size * self.beside if self.beside else self.size // WARP_SIZE
        return scalars * members * SCALAR_BYTES if self.size > WARP_SIZE or self.beside else 0

    def start(self) -> Lines:
        """Return the statement that defines ``rank``, the thread's index in its team."""
        if self.beside:
            return [f"const int rank = threadIdx.x / {self.beside};"]
        if self.size == self.threads:
            return ["const int rank = threadIdx.x;"]
        return [f"const int rank = threadIdx.x % {self.size};"]

    def meet(self) -> Lines:
        """Return the statement of the team's barrier."""
        alone = self.size == WARP_SIZE and not self.beside
        return ["__syncwarp(0xffffffffu);" if alone else "__syncthreads();"]

    def joined(self, values: Sequence[Value]) -> Lines:
        """Return the statements that combine a team's values and give all threads the result."""
        if not values:
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
            lines += [
                f"for (int bits = {WARP_SIZE // 2}; bits > 0; bits /= 2) {{",
                *indent(body),
                "}",
            ]
        if self.size == WARP_SIZE:
            return lines
        warp = f"rank / {WARP_SIZE}"
        put = f"rank % {WARP_SIZE} == 0"
        return lines + self.through_memory(values, self.size // WARP_SIZE, "", warp, "", put)

    def through_memory(
        self, values: Sequence[Value], count: int, shape: str, who: str, place: str, put: str = ""
    ) -> Lines:
        """Return statements that combine ``count`` members' values in order through shared
        memory.
        """
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
            lines += [head, *indent(body), "}"]
        return [*lines, "__syncthreads();"]


@dataclass(frozen=True, slots=True)
class Value:
    """The C variables (name, type) of one reduction state.

    ``combine(ending)`` returns the statements that merge a second state, whose names have that
    suffix. ``adds`` is True for a plain sum, which has helpers.
    """

    parts: tuple[tuple[str, str], ...]
    combine: Callable[[str], Lines]
    adds: bool = False


def places(loops: Sequence[Loop], at: str, extent: Callable[[Size], str]) -> Lines:
    """Return the declarations of the loop variables of element number ``at``, innermost first."""
    size = product(loop.extent for loop in loops)
    small = isinstance(size, int) and size < 1 << 31 and len(loops) > 1
    type = "(uint32_t)" if small else ""  # 32-bit division is faster
    lines, rest = [], f"{type}{at}"
    for loop in reversed(loops[1:]):
        length = extent(loop.extent) if loop.extent != 0 else "1"  # never runs, but must compile
        lines.append(f"const int64_t {loop.name} = {rest} % {type}({length});")
        rest = f"({rest} / {type}({length}))"
    return [*lines, *(f"const int64_t {loop.name} = {rest};" for loop in loops[:1])]
