"""``Buckets``: sequences of various lengths in batches of like lengths, padded and masked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ArgumentError
from ..checks import at_least_one

if TYPE_CHECKING:
    from .data import Batch


class Buckets:
    """Sequences in batches of at most ``size``, each batch of sequences of one bucket.

    A column is a list with a sequence for each example, an array whose first dimension is time, or
    an array with a row for each example. All sequences of an example have one length. ``edges`` are
    lengths where a new bucket begins. A batch has the first column, then a mask over examples and
    time, then the other columns; sequences end in ``pad`` and the mask in False, as long as the
    longest of the batch. With a ``seed`` examples are shuffled in their buckets, and then batches,
    by the seed and the number of the epoch. Raises ``ArgumentError`` for lengths that do not fit.
    """

    def __init__(
        self,
        *columns: Any,
        size: int,
        edges: Sequence[int] = (),
        seed: int | None = None,
        pad: float = 0,
    ) -> None:
        at_least_one("Buckets", "size", size)
        if not columns or isinstance(columns[0], np.ndarray):
            raise ArgumentError("Buckets: the first column is a list of sequences; give one")
        self.columns, self.size, self.seed, self.pad = columns, size, seed, pad
        self.lengths = np.array([len(each) for each in columns[0]], "int64")
        for number, column in enumerate(columns):
            self._check(number, column)
        self.bucket = np.searchsorted(np.sort(np.asarray(edges)), self.lengths, side="right")

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return len(self._places(0))

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from the one of number ``start`` on."""
        for place in self._places(number)[start:]:
            longest = int(self.lengths[place].max())
            mask = np.arange(longest) < self.lengths[place, None]
            first, *others = [self._taken(column, place, mask) for column in self.columns]
            yield (first, mask, *others)

    def _places(self, number: int) -> list[Any]:
        """The numbers of the examples of each batch."""
        random = None if self.seed is None else np.random.default_rng([self.seed, number])
        found = []
        for bucket in np.unique(self.bucket):
            examples = np.flatnonzero(self.bucket == bucket)
            if random is not None:
                examples = random.permutation(examples)
            found += [examples[k : k + self.size] for k in range(0, len(examples), self.size)]
        return found if random is None else [found[k] for k in random.permutation(len(found))]

    def _taken(self, column: Any, place: Any, mask: Any) -> Any:
        if isinstance(column, np.ndarray):
            return column[place]
        parts = [np.asarray(column[k]) for k in place]
        shape = (*mask.shape, *parts[0].shape[1:])
        made = np.full(shape, self.pad, np.result_type(*parts))
        made[mask] = np.concatenate(parts)
        return made

    def _check(self, number: int, column: Any) -> None:
        count = len(self.lengths)
        if len(column) != count:
            raise ArgumentError(
                f"Buckets: column {number} has {len(column)} examples and column 0 has {count}; "
                "give as many"
            )
        for k, each in enumerate([] if isinstance(column, np.ndarray) else column):
            if len(each) != self.lengths[k]:
                raise ArgumentError(
                    f"Buckets: example {k} has length {len(each)} in column {number} and "
                    f"{self.lengths[k]} in column 0; give sequences of one length"
                )
