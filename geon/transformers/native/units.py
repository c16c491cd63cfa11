"""How the kernels of a module are divided among units, which are compiled side by side.

A compiler takes about as long for a kernel as for ``KERNEL`` characters more than its text has.
"""

from __future__ import annotations

from collections.abc import Sequence

KERNEL = 2_000
CALL = 80  # what one call in ``geon_run`` has
# What is less costs more to divide, by what each unit reads first and by linking, than it saves.
LEAST = 8_000
# Where units are larger, one that was judged wrongly is waited for too long: there are more then.
MOST = 96_000


def cost(text: str) -> int:
    """What a compiler takes for a kernel, in characters."""
    return len(text) + KERNEL


def divided(costs: Sequence[int], first: int, cores: int) -> list[list[int]]:
    """The numbers of the kernels of each unit, so that units take about as long as each other.

    ``first`` is what the first unit takes besides; there are as many units as ``cores``, or fewer
    for little work and, with several cores, multiples for much. The longest come first, each to the
    least loaded unit.
    """
    total = first + sum(costs)
    rounds = -(-total // (MOST * cores)) if cores > 1 else 1
    count = max(1, min(cores * rounds, total // LEAST))
    loads = [first, *[0] * (count - 1)]
    units: list[list[int]] = [[] for _ in loads]
    for number in sorted(range(len(costs)), key=lambda number: (-costs[number], number)):
        least = loads.index(min(loads))
        loads[least] += costs[number]
        units[least].append(number)
    return [sorted(unit) for unit in units if unit or unit is units[0]]
