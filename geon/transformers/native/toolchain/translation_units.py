"""How the kernels of a module are divided among units, which are compiled side by side.

A compiler takes about as long for a kernel as for ``KERNEL`` characters more than its text has.
While kernels are printed, which takes a processor, the others compile first units of them.
"""

from __future__ import annotations

from collections.abc import Sequence

KERNEL = 2_000
VECTORS_COST = 0.4  # of that, for text that is of vectors already
CALL = 80  # what one call in ``geon_run`` has
# What is less costs more to divide, by what each unit reads first and by linking, than it saves.
LEAST = 8_000
# Where units are larger, one that was judged wrongly is waited for too long: there are more then.
MOST = 96_000


def cost(text: str, of_vectors: bool = False) -> int:
    """What a compiler takes for a kernel, in characters."""
    every = len(text) + KERNEL
    return round(every * VECTORS_COST) if of_vectors else every


def enough(waiting: int, printed: int, expected: float, cores: int, first: bool = False) -> bool:
    """Whether kernels that wait for a unit are begun while others are printed, by what they cost,
    what all that are printed do, and all that are expected to be.

    The first one is short, as till then a processor has nothing to do. A unit lasts until all are
    printed, with few cores, and is no longer than other units, with many. It ends before what the
    cores share after that.
    """
    least = 2 * LEAST if first else max(2 * LEAST, MOST // cores)
    return waiting >= least and expected - printed >= cores * waiting


def sizes(total: int, cores: int, others: bool = False) -> list[int]:
    """What the units of kernels of so much cost: as much each where there is no more than one for
    each core and there are no ``others``, else those that are begun last are short, so that cores
    end at about one time.
    """
    if cores == 1 or total < 2 * LEAST or (total <= MOST * cores and not others):
        count = max(1, min(cores, total // LEAST))
        return [-(-total // count)] * count
    found, rest = [], total
    while rest > 0:
        size = min(MOST, max(2 * LEAST, 2 * rest // (3 * cores)))
        found.append(size if rest - size >= LEAST else rest)
        rest -= found[-1]
    return found


def divided(costs: Sequence[int], first: int, cores: int, others: bool = False) -> list[list[int]]:
    """The numbers of the kernels of each unit, of which the first takes ``first`` besides; there
    are ``others``, or not.

    The longest kernels come first, each to the unit that has the most room.
    """
    room = sizes(first + sum(costs), cores, others)
    units: list[list[int]] = [[] for _ in room]
    room[0] -= first
    for number in sorted(range(len(costs)), key=lambda number: (-costs[number], number)):
        most = room.index(max(room))
        room[most] -= costs[number]
        units[most].append(number)
    return [sorted(unit) for unit in units if unit or unit is units[0]]
