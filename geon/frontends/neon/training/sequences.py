"""``Buckets``: batches of sequences with similar lengths, padded and masked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ArgumentError
from ....op_graph.core.source_info import user_call
from ....op_graph.values.arrays import array_of
from .data import check_seed, checked_division, checked_padding

if TYPE_CHECKING:
    from .data import Batch


class Buckets:
    """Sequences in batches of at most ``size``, each from one bucket of lengths.

    A column is a list with a sequence for each example, an array whose first dimension is time, or
    an array with a row for each example. All sequences of an example have one length. ``edges`` are
    lengths where a new bucket begins. A batch has the first column, then a mask over examples and
    time, then the other columns. Sequences are padded with ``pad``, and the mask with False, to the
    longest of the batch. With a ``seed``, examples are shuffled within their buckets, and then
    batches, by the seed and the number of the epoch. ``last="drop"`` omits a last batch of a bucket
    that is shorter, and ``shard=(k, n)`` is part k of n of each bucket, as in ``Batches``: all
    parts have equally many batches. Raises ``ArgumentError`` for lengths that do not fit, for
    columns that are no sequences, and for a ``pad`` that their dtype cannot represent;
    ``FeedError`` for masked elements.
    """

    def __init__(
        self,
        *columns: Any,
        size: int,
        edges: Sequence[int] = (),
        seed: int | None = None,
        pad: float = 0,
        last: str = "keep",
        shard: tuple[int, int] = (0, 1),
    ) -> None:
        checked_division("Buckets", size, last, shard)
        if not isinstance(edges, Iterable):
            raise ArgumentError(f"{user_call('Buckets')}: edges={edges!r}; give a list of lengths")
        if not columns or isinstance(columns[0], np.ndarray):
            raise ArgumentError(
                f"{user_call('Buckets')}: the first column is a list of sequences; give one"
            )
        check_seed("Buckets", seed)
        for number, column in enumerate(columns):
            if not isinstance(column, Iterable):
                raise ArgumentError(
                    f"{user_call('Buckets')}: column {number} is {column!r}; give a list with a "
                    "sequence for each "
                    "example, or an array with a row for each"
                )
        # By position: indexing a table's column would look up labels.
        columns = tuple([c if isinstance(c, np.ndarray) else list(c) for c in columns])
        self.columns, self.size, self.seed, self.pad = columns, size, seed, pad
        self.last, self.shard = last, shard
        for k, each in enumerate(columns[0]):
            if isinstance(each, str) or not hasattr(each, "__len__"):
                raise ArgumentError(
                    f"{user_call('Buckets')}: example {k} is {each!r}, and no sequence of "
                    "numbers; give lists or "
                    "arrays"
                )
        self.lengths = np.array([len(each) for each in columns[0]], "int64")
        for number, column in enumerate(columns):
            self._check(number, column)
        self.kinds = [self._kind(number, column) for number, column in enumerate(columns)]
        self.bucket = np.searchsorted(np.sort(np.asarray(edges)), self.lengths, side="right")

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return len(self._places(0))

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, from number ``start`` on."""
        for place in self._places(number)[start:]:
            longest = int(self.lengths[place].max())
            mask = np.arange(longest) < self.lengths[place, None]
            pairs = zip(self.columns, self.kinds, strict=True)
            first, *others = [self._taken(column, kind, place, mask) for column, kind in pairs]
            yield (first, mask, *others)

    def _places(self, number: int) -> list[Any]:
        """Return the numbers of the examples of each batch."""
        random = None if self.seed is None else np.random.default_rng([self.seed, number])
        part, parts = self.shard
        found = []
        for bucket in np.unique(self.bucket):
            examples = np.flatnonzero(self.bucket == bucket)
            if random is not None:
                examples = random.permutation(examples)
            examples = examples[part : len(examples) // parts * parts : parts]
            end = len(examples)
            if self.last == "drop":
                end -= end % self.size
            found += [examples[k : k + self.size] for k in range(0, end, self.size)]
        return found if random is None else [found[k] for k in random.permutation(len(found))]

    def _taken(self, column: Any, kind: Any, place: Any, mask: Any) -> Any:
        if isinstance(column, np.ndarray):
            return column[place]
        dtype, inner = kind
        parts = [np.asarray(column[k], dtype) for k in place]
        made = np.full((*mask.shape, *inner), self.pad, dtype)
        if mask.any():
            made[mask] = np.concatenate([part for part in parts if part.size])
        return made

    def _kind(self, number: int, column: Any) -> Any:
        """Return the dtype and the element shape of a column, for all batches.

        Empty sequences do not count.
        """
        if isinstance(column, np.ndarray):
            return column.dtype, column.shape[1:]
        where = f"Buckets: a sequence of column {number}"
        found = [array_of(each, where) for each in column]
        known = [x for x in found if x.size] or [x for x in found if x.ndim > 1] or found
        inner = {part.shape[1:] for part in known} or {()}
        if len(inner) > 1:
            raise ArgumentError(
                f"{user_call('Buckets')}: sequences of column {number} have elements of the shapes "
                f"{sorted(inner)}; give elements of one shape"
            )
        dtype = np.result_type(*known) if known else np.dtype("float64")
        checked_padding("Buckets", "pad", self.pad, dtype, f"column {number}")
        return dtype, inner.pop()

    def _check(self, number: int, column: Any) -> None:
        count = len(self.lengths)
        if len(column) != count:
            raise ArgumentError(
                f"{user_call('Buckets')}: column {number} has {len(column)} examples and column 0 "
                f"has {count}; "
                "give as many"
            )
        for k, each in enumerate([] if isinstance(column, np.ndarray) else column):
            if not hasattr(each, "__len__"):
                raise ArgumentError(
                    f"{user_call('Buckets')}: example {k} of column {number} is {each!r}, and no "
                    "sequence; give "
                    "an array where a column has a row for each example"
                )
            if len(each) != self.lengths[k]:
                raise ArgumentError(
                    f"{user_call('Buckets')}: example {k} has length {len(each)} in column "
                    f"{number} and "
                    f"{self.lengths[k]} in column 0; give sequences of one length"
                )
