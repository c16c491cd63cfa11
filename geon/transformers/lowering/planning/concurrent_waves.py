"""Waves of independent kernels, which a target may run concurrently.

No kernel of a wave reads or writes what another one writes. Memory is reused from wave to wave, so
no wave is formed that would keep large values alive together that are otherwise alive in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.op_graph import Leaf, Op
from ...kernels.ir.nest import Nest, Pass
from ...sizes.blocks import L2_BYTES
from ...sizes.limits import MAX_CANDIDATES, MAX_SEARCHED
from ..fusion.kernel import Kernel

MAX_HELD_VALUE_BYTES = L2_BYTES  # maximum bytes of a value that may stay alive longer than needed
# Maximum kernels of a wave with results or scratch memory in the arena.
MAX_ARENA_KERNELS = MAX_CANDIDATES
MAX_WAVE_KERNELS = MAX_SEARCHED  # maximum kernels of a wave
MAX_WAVES_BACK = MAX_CANDIDATES  # maximum waves by which a kernel moves earlier
# Maximum bytes of results that move earlier, over all kernels.
MAX_MOVED_BYTES = MAX_ARENA_KERNELS * MAX_HELD_VALUE_BYTES


def side_by_side(
    kernels: Sequence[Kernel], outputs: Sequence[Op], kinds: Sequence[str]
) -> tuple[list[Kernel], tuple[int, ...]]:
    """Return the kernels ordered by wave, and the wave number of each.

    ``kinds`` are the kinds of kernels that may share a wave. Kernels with small results move
    earlier where possible; kernels that can raise or print stay alone and in order.
    """
    work = _Waves(kernels, outputs, kinds)
    for kernel in kernels:
        work.put(kernel)
    found = [kernel for wave in work.waves for kernel in wave]
    return found, tuple([n for n, wave in enumerate(work.waves) for _ in wave])


class _Waves:
    def __init__(
        self, kernels: Sequence[Kernel], outputs: Sequence[Op], kinds: Sequence[str]
    ) -> None:
        self.kinds, self.outputs = kinds, set(outputs)
        self.waves: list[list[Kernel]] = []
        self.left = MAX_MOVED_BYTES
        self.reads = {kernel: frozenset(kernel.reads) for kernel in kernels}
        self.made = {kernel: {*kernel.results, *kernel.writes.values()} for kernel in kernels}
        self.plain = {kernel for kernel in kernels if is_plain(kernel)}
        self.readers: dict[Op, set[Kernel]] = {}
        for kernel in kernels:
            for value in kernel.reads:
                self.readers.setdefault(value, set()).add(kernel)

    def put(self, kernel: Kernel) -> None:
        """Put a kernel into the earliest wave that can take it, else into a new one."""
        last, found = len(self.waves) - 1, -1
        bytes = self.bytes(kernel)
        for number in range(last, max(last - MAX_WAVES_BACK, -1), -1):
            wave = self.waves[number]
            if number < last and (bytes is None or bytes > self.left):
                break
            if any(self.conflict(kernel, other) for other in wave):
                break
            if self.has_room(wave, kernel) and self.costs_little([*wave, kernel]):
                found = number
        if found < 0:
            self.waves.append([kernel])
            return
        self.waves[found].append(kernel)
        if found < last:
            self.left -= bytes or 0

    def has_room(self, wave: Sequence[Kernel], kernel: Kernel) -> bool:
        """Return True if a wave has room: ``MAX_ARENA_KERNELS`` kernels with arena memory,
        ``MAX_WAVE_KERNELS`` in all.
        """
        if len(wave) >= MAX_WAVE_KERNELS or self.takes_nothing(kernel):
            return len(wave) < MAX_WAVE_KERNELS
        return sum(not self.takes_nothing(other) for other in wave) < MAX_ARENA_KERNELS

    def takes_nothing(self, kernel: Kernel) -> bool:
        """Return True if a kernel only stores elements, none of them in the arena."""
        return kernel in self.plain and not self.held(kernel)

    def conflict(self, a: Kernel, b: Kernel) -> bool:
        """Return True if two kernels must run one after the other."""
        if not (self.movable(a) and self.movable(b)):
            return True
        made = self.made[a]
        others = self.made[b]
        apart = made.isdisjoint(others) and made.isdisjoint(self.reads[b])
        return not (apart and others.isdisjoint(self.reads[a]))

    def movable(self, kernel: Kernel) -> bool:
        """Return True if a kernel may share a wave."""
        return kernel.kind in self.kinds and not kernel.raises and not kernel.has_side_effect

    def held(self, kernel: Kernel) -> list[Op]:
        """Return the results of a kernel that are in the arena."""
        return [op for op in kernel.results if op not in kernel.writes and op not in self.outputs]

    def bytes(self, kernel: Kernel) -> int | None:
        """Return the arena bytes of a kernel's results; None if large or unknown."""
        if not all(map(is_little, self.held(kernel))):
            return None
        return sum(int(op.axes.size) * op.dtype.itemsize for op in self.held(kernel))

    def costs_little(self, wave: Sequence[Kernel]) -> bool:
        """Return False if a large result could otherwise reuse memory that dies in the wave."""
        born = [kernel for kernel in wave for op in self.held(kernel) if not is_little(op)]
        if not born:
            return True
        dying = [
            value
            for kernel in wave
            for value in kernel.reads
            if not (isinstance(value, Leaf) or value in self.outputs or is_little(value))
            and self.readers[value] <= set(wave)
        ]
        return not any(self.readers[value] != {kernel} for value in dying for kernel in born)


def is_plain(kernel: Kernel) -> bool:
    """Return True if a kernel only computes and stores elements independently."""
    if not isinstance(kernel.work, Nest):
        return False
    nests = (kernel.work, *kernel.work.pieces)
    passes = [step for nest in nests for step in (*nest.passes, *nest.ending)]
    return not any(isinstance(step, Pass) and (step.reductions or step.keeps) for step in passes)


def is_little(op: Op) -> bool:
    """Return True if a value is small at all lengths."""
    size = op.axes.size
    return isinstance(size, int) and size * op.dtype.itemsize <= MAX_HELD_VALUE_BYTES
