"""Data as batches of an epoch, determined by its number and a seed, for resumable runs."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ....errors import ArgumentError
from ....op_graph.core.source_info import user_call
from ....op_graph.syntax.operators import is_function
from ..axis import N
from ..checks import at_least_one, at_least_zero, is_integer
from .examples import Examples, count_of_examples

if TYPE_CHECKING:
    from ....op_graph.op_graph import Leaf

    Batch = tuple[Any, ...]


class Data(Protocol):
    """Data for training and evaluation of a model."""

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, from number ``start`` on."""
        ...


class Batches:
    """Arrays in batches of ``size`` along their first dimensions.

    With a ``seed``, each epoch has an order of its own, which depends on the seed and the number of
    the epoch. ``last="drop"`` omits a last batch that is shorter. Arrays may be of any type that
    supports indexing by lists of increasing numbers, such as memory-mapped files and HDF5 datasets:
    only the rows of a batch are read. Examples of labelled data lie along their dimension N,
    wherever it is, and tables are indexed by position. Without a seed, batches of NumPy arrays are
    read-only views.

    ``shard=(k, n)`` is part k, from 0 on, of n disjoint parts of each epoch, which have equally
    many examples; up to n - 1 examples are omitted. Lists are converted to arrays. Raises
    ``ArgumentError`` for invalid arguments.
    """

    def __init__(
        self,
        *arrays: Any,
        size: int,
        seed: int | None = None,
        last: str = "keep",
        shard: tuple[int, int] = (0, 1),
    ) -> None:
        self.examples = [Examples("Batches", array) for array in arrays]
        self.length = count_of_examples("Batches", self.examples)
        checked_division("Batches", size, last, shard)
        check_seed("Batches", seed)
        self.size, self.seed, self.last, self.shard = size, seed, last, shard

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        full, rest = divmod(self.length // self.shard[1], self.size)
        return full + bool(rest and self.last == "keep")

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, from number ``start`` on."""
        part, parts = self.shard
        taken = slice(part, self.length // parts * parts, parts)
        order: Any = range(self.length)[taken]
        if self.seed is not None:
            order = np.random.default_rng([self.seed, number]).permutation(self.length)[taken]
        for begin in range(start * self.size, len(self) * self.size, self.size):
            place = order[begin : begin + self.size]
            if isinstance(place, range):
                place = slice(place.start, place.stop, place.step)
            yield tuple([each.at(place) for each in self.examples])


class Stream:
    """Batches made by a function: ``make(number)`` is an iterable of those of an epoch."""

    def __init__(self, make: Callable[[int], Iterable[Batch]]) -> None:
        if not is_function(make):
            raise ArgumentError(
                f"{user_call('Stream')}: make is {type(make).__name__} and no function of the "
                "number of an epoch; "
                "give one, such as lambda number: batches"
            )
        self.make = make

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, from number ``start`` on."""
        batches = self.make(number)
        if not isinstance(batches, Iterable):
            raise ArgumentError(
                f"{user_call('Stream')}: make({number}) gave {type(batches).__name__}; give an "
                "iterable of the "
                "batches of an epoch"
            )
        return itertools.islice(iter(batches), start, None)


def along_examples(leaves: Sequence[Leaf], arrays: Sequence[Any], size: int) -> Iterator[Batch]:
    """Yield arguments of placeholders in batches of ``size`` examples along N, wherever that is.

    Arguments without N are passed with each batch unchanged.
    """
    at_least_one("predict", "size", size)
    parts = [
        Examples("predict", array, leaf.axes.index(N)) if N in leaf.axes else None
        for leaf, array in zip(leaves, arrays, strict=True)
    ]
    count = count_of_examples("predict", [part for part in parts if part is not None])
    for begin in range(0, count, size):
        place = slice(begin, begin + size)
        yield tuple([
            array if part is None else part.at(place)
            for part, array in zip(parts, arrays, strict=True)
        ])  # fmt: skip


def check_seed(what: str, seed: Any) -> None:
    """Raise ``ArgumentError`` unless ``seed`` is None or an integer of at least 0."""
    if seed is not None:
        at_least_zero(what, "seed", seed)


def checked_division(what: str, size: Any, last: Any, shard: Any) -> None:
    """Raise ``ArgumentError`` for an invalid division of examples into batches."""
    at_least_one(what, "size", size)
    if last not in ("keep", "drop"):
        raise ArgumentError(f"{user_call(what)}: there is no last={last!r}; give 'keep' or 'drop'")
    pair = isinstance(shard, (tuple, list)) and len(shard) == 2 and all(map(is_integer, shard))
    if not pair or not 0 <= shard[0] < shard[1]:
        raise ArgumentError(f"{user_call(what)}: shard={shard!r}; give (k, n) with 0 <= k < n")


def checked_padding(what: str, name: str, value: float, dtype: Any, where: str) -> None:
    """Raise ``ArgumentError`` for padding that a dtype cannot represent."""
    with np.errstate(invalid="ignore"):
        padded = np.array(value).astype(dtype)
    if dtype.kind in "biu" and padded != value:
        raise ArgumentError(
            f"{user_call(what)}: {name}={value!r} is {padded.item()!r} in {where}, of {dtype}; "
            "give a number "
            "that it holds, or data of another dtype"
        )


def as_data(data: Any) -> Data:
    """Return data, or an iterable of batches as data with equal epochs.

    Raises ``ArgumentError`` for an iterator, which can be used only once, for other types, and for
    data whose ``epoch`` cannot start in the middle.
    """
    if hasattr(data, "epoch"):
        made: Data = data
        if not begins_anywhere(made):
            raise ArgumentError(
                f"the epoch of {data!r} does not take where to begin; give it as epoch(self, "
                "number, start=0): the batches of an epoch, from the one of number start on"
            )
        return made
    if not isinstance(data, Iterable) or isinstance(data, Iterator):
        raise ArgumentError(
            f"{data!r} is no data that can be gone through again and again; give "
            "neon.Stream(make), where make(number) is an iterable of the batches of an epoch"
        )
    return Stream(lambda number: data)


def begins_anywhere(data: Data) -> bool:
    """Return True if the ``epoch`` of data takes the number of an epoch and that of a batch."""
    function = getattr(data.epoch, "__func__", None)
    if isinstance(function, FunctionType):
        return takes_known(function, 3)
    return takes(data.epoch, 2)


def takes(function: Callable[..., Any], count: int) -> bool:
    """Return True if a function can be called with ``count`` positional arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    return True


# The inspection takes longer than all else that fit does before it trains.
takes_known = lru_cache(maxsize=64)(takes)


def checked_batch(batch: Any, wanted: Sequence[Leaf]) -> Batch:
    """Return a batch as a tuple; raise ``ArgumentError`` if it is neither a tuple nor a list."""
    if not isinstance(batch, (tuple, list)):
        raise ArgumentError(
            f"a batch is {type(batch).__name__} and no tuple of arrays; give one for each of "
            f"{', '.join(map(str, wanted))}, in this order"
        )
    return tuple(batch)


def count_of(data: Data) -> int | None:
    """Return the number of batches of an epoch, or None if unknown."""
    try:
        return len(data)  # type: ignore[arg-type]  # some have no length
    except TypeError:  # also raised by data made from data without a length
        return None


class MadeOf:
    """Data that have a batch for each batch of other ``data``."""

    def __init__(self, data: Any) -> None:
        self.data: Data = as_data(data)

    def __len__(self) -> int:
        """The number of batches of an epoch; raises ``TypeError`` if the data do not have it."""
        count = count_of(self.data)
        if count is None:
            raise TypeError(f"{self.data!r} does not say how many batches an epoch has")
        return count


class ClosingBatches:
    """Closes batches at the end of a ``with`` block, if they can be closed.

    As a generator, it would take twice as long, in each epoch.
    """

    __slots__ = ("batches",)

    def __init__(self, batches: Iterator[Batch]) -> None:
        self.batches = batches

    def __enter__(self) -> Iterator[Batch]:
        return self.batches

    def __exit__(self, *failed: object) -> None:
        close = getattr(self.batches, "close", None)
        if close is not None:
            close()
