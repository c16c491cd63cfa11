"""Data augmentation: random flips, crops, padding and noise.

A change is a function of a random generator and an array, whose first dimension is that of the
examples; other dimensions are given by number. ``Augmented`` has a generator for each batch, which
depends on a seed, the epoch and the number of the batch, so a resumed run draws the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ....errors import ArgumentError
from ....op_graph.core.source_info import user_call
from ....op_graph.values.arrays import array_of
from ....op_graph.values.tree import is_mapping
from ..checks import a_number, at_least_zero, finite, is_integer, not_negative
from .data import MadeOf, check_seed, checked_padding

if TYPE_CHECKING:
    from .data import Batch

Array: TypeAlias = np.ndarray[Any, Any]
Change: TypeAlias = Callable[[np.random.Generator, Array], Array]


class Augmented(MadeOf):
    """``data`` with ``changes`` applied to an array of each batch, one after another.

    ``part`` is the number of the array, the first one by default. Raises ``ArgumentError`` unless
    ``changes`` is a list of functions, and for a batch without that part; ``FeedError`` for masked
    elements.
    """

    def __init__(self, data: Any, changes: Sequence[Change], seed: int, part: int = 0) -> None:
        super().__init__(data)
        if not isinstance(changes, Iterable) or not all(map(callable, changes)):
            raise ArgumentError(
                f"{user_call('Augmented')}: changes={changes!r} is no list of functions of a "
                "random generator and "
                "an array; give one such as [neon.augment.Flip(1)]"
            )
        check_seed("Augmented", seed)
        self.changes, self.seed, self.part = list(changes), seed, part

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, from number ``start`` on."""
        for place, batch in enumerate(self.data.epoch(number, start), start):
            random = np.random.default_rng([self.seed, number, place])
            if not -len(batch) <= self.part < len(batch):
                raise ArgumentError(
                    f"{user_call('Augmented')}: part={self.part} of a batch of {len(batch)} "
                    "arrays; give the "
                    "number of one"
                )
            # A copy, as a change may write to it, and data may return the same array again.
            array = np.array(array_of(batch[self.part], f"Augmented: part {self.part} of a batch"))
            for change in self.changes:
                array = change(random, array)
            yield (*batch[: self.part], array, *batch[self.part :][1:])


@dataclass(frozen=True)
class Flip:
    """Flips each example along dimension ``dim``, with probability ``rate``.

    Raises ``ArgumentError`` unless ``rate`` is a probability.
    """

    dim: int
    rate: float = 0.5

    def __post_init__(self) -> None:
        a_dim("Flip", self.dim)
        if not finite(self.rate) or not 0 <= self.rate <= 1:
            raise ArgumentError(
                f"{user_call('Flip')}: rate={self.rate!r} is no chance; give one from 0 to 1"
            )

    def __call__(self, random: np.random.Generator, array: Array) -> Array:
        checked_dims("Flip", [self.dim], array)
        turned = random.random(len(array)) < self.rate
        array = array.copy()
        array[turned] = np.flip(array[turned], self.dim)
        return array


@dataclass(frozen=True)
class Crop:
    """Crops each example to ``sizes`` (a length for each dimension), at a random position.

    With ``middle``, the crop is central, for evaluation. Raises ``ArgumentError`` if the array is
    shorter.
    """

    sizes: Mapping[int, int]
    middle: bool = False

    def __post_init__(self) -> None:
        by_dim("Crop", "sizes", self.sizes)
        for dim, size in self.sizes.items():
            if not is_integer(size):
                raise ArgumentError(f"{user_call('Crop')}: sizes[{dim}]={size!r}; give an integer")

    def __call__(self, random: np.random.Generator, array: Array) -> Array:
        checked_dims("Crop", self.sizes, array)
        for dim, size in self.sizes.items():
            room = array.shape[dim] - size
            if size < 1 or room < 0:
                raise ArgumentError(
                    f"{user_call('Crop')}: dimension {dim} is to have length {size} and has "
                    f"{array.shape[dim]} in "
                    f"an array of shape {array.shape}; give a smaller one, or neon.augment.Pad "
                    "before it"
                )
            begins = np.full(len(array), room // 2)
            if not self.middle:
                begins = random.integers(0, room + 1, len(array))
            # the new last axis has length ``size``
            windows = np.lib.stride_tricks.sliding_window_view(array, size, dim)
            chosen = np.moveaxis(windows, dim, 1)[np.arange(len(array)), begins]
            array = np.moveaxis(chosen, -1, dim)
        return array


@dataclass(frozen=True)
class Pad:
    """Pads each dimension with ``value`` at both ends, as many elements as ``widths`` has for it.

    Raises ``ArgumentError`` unless widths are integers of at least 0, and for a value that the
    dtype of an array cannot represent.
    """

    widths: Mapping[int, int]
    value: float = 0

    def __post_init__(self) -> None:
        by_dim("Pad", "widths", self.widths)
        a_number("Pad", "value", self.value)
        for dim, width in self.widths.items():
            at_least_zero("Pad", f"widths[{dim}]", width)

    def __call__(self, random: np.random.Generator, array: Array) -> Array:
        checked_dims("Pad", self.widths, array)
        checked_padding("Pad", "value", self.value, array.dtype, "an array")
        widths = [(self.widths.get(dim, 0),) * 2 for dim in range(array.ndim)]
        return np.pad(array, widths, constant_values=self.value)


@dataclass(frozen=True)
class Noise:
    """Adds normal noise with this standard deviation, in the unit of the array.

    Raises ``ArgumentError`` for an array that is not of floats, and for a deviation below 0.
    """

    deviation: float

    def __post_init__(self) -> None:
        not_negative("Noise", "deviation", self.deviation)

    def __call__(self, random: np.random.Generator, array: Array) -> Array:
        if array.dtype.kind != "f":
            raise ArgumentError(
                f"{user_call('Noise')}: an array of {array.dtype} has no room for noise; give one "
                "of floats"
            )
        return (array + self.deviation * random.standard_normal(array.shape)).astype(array.dtype)


def a_dim(what: str, dim: Any) -> None:
    """Raise ``ArgumentError`` unless ``dim`` is an integer."""
    if not is_integer(dim):
        raise ArgumentError(
            f"{user_call(what)}: dimension {dim!r}; give an integer from 1 on, since 0 is that of "
            "the examples"
        )


def by_dim(what: str, name: str, given: Any) -> None:
    """Raise ``ArgumentError`` unless ``given`` is a mapping from dimensions."""
    if not is_mapping(given):
        raise ArgumentError(
            f"{user_call(what)}: {name}={given!r} is no mapping; give one from dimensions, such as "
            f"{what}({{1: 4, 2: 4}})"
        )
    for dim in given:
        a_dim(what, dim)


def checked_dims(what: str, dims: Any, array: Array) -> None:
    """Raise ``ArgumentError`` for a dimension that examples do not have."""
    for dim in dims:
        if not 1 <= dim < array.ndim:
            raise ArgumentError(
                f"{user_call(what)}: dimension {dim} of an array of shape {array.shape}; give one "
                "from 1 to "
                f"{array.ndim - 1}, since 0 is that of the examples"
            )
