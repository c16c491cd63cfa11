"""Data: batches of an epoch, which depend on its number and a seed, so that a run can go on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ....errors import ArgumentError

if TYPE_CHECKING:
    Batch = tuple[Any, ...]


class Data(Protocol):
    """What a model is trained on and looked at with."""

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from the one of number ``start`` on."""
        ...


class Batches:
    """Arrays in batches of ``size`` along their first dimensions.

    With a ``seed`` each epoch has an order of its own, which depends on the seed and the number of
    the epoch. ``last="drop"`` leaves out a last batch that is shorter. Arrays may be what NumPy
    indexes by lists of numbers, such as memory-mapped files.
    """

    def __init__(
        self, *arrays: Any, size: int, seed: int | None = None, last: str = "keep"
    ) -> None:
        lengths = {len(array) for array in arrays}
        if len(lengths) != 1:
            raise ArgumentError(
                f"Batches: arrays of lengths {sorted(lengths)}; give at least one, all with a row "
                "for each example"
            )
        if type(size) is not int or size < 1:
            raise ArgumentError(f"Batches: size={size!r}; give an integer of at least 1")
        if last not in ("keep", "drop"):
            raise ArgumentError(f"Batches: there is no last={last!r}; give 'keep' or 'drop'")
        self.arrays, self.size, self.seed, self.last = arrays, size, seed, last
        (self.length,) = lengths

    def __len__(self) -> int:
        """How many batches an epoch has."""
        whole, rest = divmod(self.length, self.size)
        return whole + bool(rest and self.last == "keep")

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from the one of number ``start`` on."""
        order = None
        if self.seed is not None:
            order = np.random.default_rng([self.seed, number]).permutation(self.length)
        for begin in range(start * self.size, len(self) * self.size, self.size):
            place: Any = slice(begin, begin + self.size)
            if order is not None:
                place = order[place]
            yield tuple([array[place] for array in self.arrays])


class Stream:
    """Batches that a function makes: ``make(number)`` is an iterable of those of an epoch."""

    def __init__(self, make: Callable[[int], Iterable[Batch]]) -> None:
        self.make = make

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from the one of number ``start`` on."""
        return itertools.islice(iter(self.make(number)), start, None)
