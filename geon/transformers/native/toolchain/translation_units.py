"""Divide the kernels of a module into translation units that are compiled in parallel.

The compile cost of a kernel is the length of its text plus ``KERNEL_COST_CHARACTERS`` characters.
While one
processor emits kernels, the others compile the first units.
"""

from __future__ import annotations

from collections.abc import Sequence

KERNEL_COST_CHARACTERS = 2_000  # characters: fixed compile cost of a kernel
VECTOR_TEXT_COST_RATIO = 0.4  # relative compile cost of text that is vectorised already
CALL_COST_CHARACTERS = 80  # characters of one call in ``geon_run``
# Minimum cost of a unit in characters: below it, headers and linking cost more than is saved.
MIN_UNIT_CHARACTERS = 4 * KERNEL_COST_CHARACTERS
# Maximum cost of a unit in characters: with larger units a wrong estimate delays the end too much.
MAX_UNIT_CHARACTERS = 48 * KERNEL_COST_CHARACTERS


def cost(text: str, of_vectors: bool = False) -> int:
    """Return the estimated compile cost of a kernel, in characters."""
    every = len(text) + KERNEL_COST_CHARACTERS
    return round(every * VECTOR_TEXT_COST_RATIO) if of_vectors else every


def is_unit_ready(
    waiting: int, printed: int, expected: float, cores: int, first: bool = False
) -> bool:
    """Return True if the waiting kernels should be compiled as a unit while others are emitted.

    ``waiting``, ``printed`` and ``expected`` are the costs of the waiting, of the emitted and of
    all expected kernels. The ``first`` unit is short, as a processor is idle until then. Later
    units have at least the maximum cost divided by the number of cores. Compiling the unit must end
    before the cores have compiled their shares of the rest.
    """
    least = (
        2 * MIN_UNIT_CHARACTERS
        if first
        else max(2 * MIN_UNIT_CHARACTERS, MAX_UNIT_CHARACTERS // cores)
    )
    return waiting >= least and expected - printed >= cores * waiting


def sizes(total: int, cores: int, others: bool = False) -> list[int]:
    """Return the costs of the units for kernels of cost ``total``.

    They are equal if one unit per core suffices and there are no ``others``. Otherwise they
    decrease, so that all cores end at about the same time.
    """
    if (
        cores == 1
        or total < 2 * MIN_UNIT_CHARACTERS
        or (total <= MAX_UNIT_CHARACTERS * cores and not others)
    ):
        count = max(1, min(cores, total // MIN_UNIT_CHARACTERS))
        return [-(-total // count)] * count
    found, rest = [], total
    while rest > 0:
        size = min(MAX_UNIT_CHARACTERS, max(2 * MIN_UNIT_CHARACTERS, 2 * rest // (3 * cores)))
        found.append(size if rest - size >= MIN_UNIT_CHARACTERS else rest)
        rest -= found[-1]
    return found


def divide_units(
    costs: Sequence[int], first: int, cores: int, others: bool = False
) -> list[list[int]]:
    """Return the numbers of the kernels of each unit; the first unit has an extra cost of
    ``first``.

    ``others`` is True if units of another kind are compiled too. Kernels are assigned by decreasing
    cost, each to the unit with the most room.
    """
    room = sizes(first + sum(costs), cores, others)
    units: list[list[int]] = [[] for _ in room]
    room[0] -= first
    for number in sorted(range(len(costs)), key=lambda number: (-costs[number], number)):
        most = room.index(max(room))
        room[most] -= costs[number]
        units[most].append(number)
    return [sorted(unit) for unit in units if unit or unit is units[0]]
