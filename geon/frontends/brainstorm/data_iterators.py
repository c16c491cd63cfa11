"""Data iterators: batches of named arrays, and changes of the batches of other iterators.

Arrays are over (T, B, ...): time, batch and features, with at least 3 axes. An iterator is called
with a handler and yields a dictionary for each batch. No iterator changes the arrays or
dictionaries that it was given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from .errors import IteratorValidationError
from .randomness import Seedable
from .utils import Array

__all__ = [
    "AddGaussianNoise", "AddSaltNPepper", "DataIterator", "Flip", "Minibatches", "MultiHot",
    "OneHot", "Pad", "RandomCrop", "Undivided",
]  # fmt: skip

Shape: TypeAlias = "tuple[int, ...]"
Batch: TypeAlias = "dict[str, Array]"


class DataIterator(Seedable):
    """Base of data iterators: ``data_shapes`` by name, and ``length``, the number of batches."""

    def __init__(self, data_shapes: Mapping[str, Shape], length: int | None) -> None:
        super().__init__()
        self.data_shapes = dict(data_shapes)
        self.length = length

    def __call__(self, handler: Any = None) -> Iterator[Batch]:
        """Yield the batches of one pass through the data."""
        raise NotImplementedError


class Undivided(DataIterator):
    """All data in one batch."""

    def __init__(self, **named_data: Array) -> None:
        _assert_correct_data_format(named_data)
        super().__init__({name: data.shape for name, data in named_data.items()}, 1)
        self.data = named_data

    def __call__(self, handler: Any = None) -> Iterator[Batch]:
        yield dict(self.data)


class Minibatches(DataIterator):
    """Batches of ``batch_size`` neighbouring sequences; ``shuffle`` shuffles the order of batches.

    Each batch is cut to its longest sequence. Lengths are given by ``cut_according_to``: the name
    of a mask over (T, B, 1), which is 0 behind the end, or a list of lengths. Without a mask,
    sequences have full length. Which sequences share a batch is the same in each pass.
    """

    def __init__(
        self,
        batch_size: int = 1,
        shuffle: bool = True,
        cut_according_to: Any = "mask",
        **named_data: Array,
    ) -> None:
        nr_sequences, time_steps = _assert_correct_data_format(named_data)
        if batch_size < 1:
            raise IteratorValidationError(f"batch_size={batch_size!r}; give at least 1")
        super().__init__(
            {name: data.shape for name, data in named_data.items()},
            math.ceil(nr_sequences / batch_size),
        )
        self.data = named_data
        self.shuffle = shuffle
        self.batch_size = batch_size
        if cut_according_to is None or (cut_according_to == "mask" and "mask" not in named_data):
            self.seq_lens = np.full(nr_sequences, time_steps)
        elif isinstance(cut_according_to, str):
            _check_names("cut_according_to", [cut_according_to], named_data)
            self.seq_lens = _calculate_lengths_from_mask(named_data[cut_according_to])
        else:
            self.seq_lens = np.asarray(cut_according_to)
        if self.seq_lens.shape != (nr_sequences,):
            raise IteratorValidationError(
                f"cut_according_to has the shape {self.seq_lens.shape} and there are "
                f"{nr_sequences} sequences; give one length for each"
            )

    def __call__(self, handler: Any = None) -> Iterator[Batch]:
        indices = np.arange(self.length or 0)
        if self.shuffle:
            self.rnd.shuffle(indices)
        for index in indices:
            part = slice(index * self.batch_size, (index + 1) * self.batch_size)
            steps = max(1, int(self.seq_lens[part].max()))
            yield {name: data[:steps, part] for name, data in self.data.items()}


class _Changed(DataIterator):
    """Base of iterators that change some of the named data of another iterator.

    ``options`` has the names and what is to be done with each.
    """

    rank: int | None = None  # of the data that it accepts; any by default

    def __init__(self, iter: DataIterator, options: Mapping[str, Any]) -> None:
        _check_names(type(self).__name__, options, iter.data_shapes)
        shapes = dict(iter.data_shapes)
        for name, option in options.items():
            if self.rank not in (None, len(shapes[name])):
                raise IteratorValidationError(
                    f"{type(self).__name__}: {name!r} has the shape {shapes[name]}; it needs data "
                    f"with {self.rank} axes"
                )
            shapes[name] = self.changed_shape(name, option, tuple(shapes[name]))
        super().__init__(shapes, iter.length)
        self.iter = iter
        self.options = dict(options)

    def __call__(self, handler: Any = None) -> Iterator[Batch]:
        for batch in self.iter(handler):
            changed = dict(batch)
            for name, option in self.options.items():
                changed[name] = self.changed(name, option, batch[name])
            yield changed

    def changed_shape(self, name: str, option: Any, shape: Shape) -> Shape:
        """Return the new shape of data; raise for an option that is not valid."""
        return shape

    def changed(self, name: str, option: Any, data: Array) -> Array:
        """Return the new data of a batch, a new array."""
        raise NotImplementedError

    def refuse(self, name: str, option: Any, cure: str) -> IteratorValidationError:
        """Return the error for an option that is not valid."""
        return IteratorValidationError(f"{type(self).__name__}: {option!r} for {name!r}; {cure}")


class AddGaussianNoise(_Changed):
    """Add normal noise of the standard deviations ``std_dict`` and means ``mean_dict`` by name."""

    def __init__(
        self,
        iter: DataIterator,
        std_dict: Mapping[str, float],
        mean_dict: Mapping[str, float] | None = None,
    ) -> None:
        _check_same_names("AddGaussianNoise", "std_dict", std_dict, "mean_dict", mean_dict)
        super().__init__(iter, std_dict)
        self.mean_dict = dict(mean_dict or {})

    def changed(self, name: str, option: Any, data: Array) -> Array:
        """Return the noisy data."""
        noise = option * self.rnd.standard_normal(data.shape)
        return data + noise + self.mean_dict.get(name, 0.0)


class AddSaltNPepper(_Changed):
    """Set elements to 1 (salt) or 0 (pepper) with the probabilities ``prob_dict`` by name.

    ``ratio_dict`` has the share of salt among them, by default one half.
    """

    def __init__(
        self,
        iter: DataIterator,
        prob_dict: Mapping[str, float],
        ratio_dict: Mapping[str, float] | None = None,
    ) -> None:
        _check_same_names("AddSaltNPepper", "prob_dict", prob_dict, "ratio_dict", ratio_dict)
        super().__init__(iter, prob_dict)
        self.ratio_dict = dict(ratio_dict or {})

    def changed(self, name: str, option: Any, data: Array) -> Array:
        """Return the data with salt and pepper."""
        ratio = self.ratio_dict.get(name, 0.5)
        draws = self.rnd.rand(*data.shape)
        new = data.copy()
        new[draws >= 1.0 - option * ratio] = 1
        new[draws < option * (1.0 - ratio)] = 0
        return new


class Flip(_Changed):
    """Flip images over (T, B, H, W, C) along W, each sequence with a probability by name.

    ``prob_dict`` is by default ``{"default": 0.5}``.
    """

    rank = 5

    def __init__(self, iter: DataIterator, prob_dict: Mapping[str, float] | None = None) -> None:
        super().__init__(iter, {"default": 0.5} if prob_dict is None else prob_dict)

    def changed_shape(self, name: str, option: Any, shape: Shape) -> Shape:
        """Return the shape, which stays."""
        if not 0 <= option <= 1:
            raise self.refuse(name, option, "give a probability from 0 to 1")
        return shape

    def changed(self, name: str, option: Any, data: Array) -> Array:
        """Return the data, with some sequences flipped."""
        chosen = self.rnd.random_sample(data.shape[1]) < option
        return np.where(chosen[:, None, None, None], data[..., ::-1, :], data)


class _Hot(_Changed):
    """Base of iterators that replace integers by rows of a unit matrix of a size by name."""

    rank = 3

    def __init__(self, iter: DataIterator, vocab_size_dict: Mapping[str, int]) -> None:
        super().__init__(iter, vocab_size_dict)

    def changed_shape(self, name: str, option: Any, shape: Shape) -> Shape:
        """Return the shape, with the size as its last length."""
        if not isinstance(option, (int, np.integer)) or option < 1:
            raise self.refuse(name, option, "give the size of the vocabulary, an integer")
        return (*shape[:2], int(option))

    def changed(self, name: str, option: Any, data: Array) -> Array:
        """Return True at the places that the integers along the last axis name."""
        indices = data.astype(np.int64)
        if (indices != data).any() or (indices < 0).any() or (indices >= option).any():
            raise IteratorValidationError(
                f"{type(self).__name__}: {name!r} has values from {data.min()} to {data.max()}; it "
                f"needs integers from 0 to {option - 1}, below the size of the vocabulary"
            )
        return np.asarray(np.eye(option, dtype=bool)[indices].any(axis=2))


class OneHot(_Hot):
    """Replace integers over (T, B, 1) by one-hot vectors of the sizes ``vocab_size_dict``."""

    def changed_shape(self, name: str, option: Any, shape: Shape) -> Shape:
        """Return the shape, with the size as its last length."""
        if shape[-1] != 1:
            raise IteratorValidationError(
                f"OneHot: {name!r} has the shape {shape}; it needs one integer for each step, with "
                "a last length of 1; MultiHot takes several"
            )
        return super().changed_shape(name, option, shape)


class MultiHot(_Hot):
    """Replace integers over (T, B, K) by vectors with up to K ones, of ``vocab_size_dict``."""


class Pad(_Changed):
    """Pad images over (T, B, H, W, C) on all four sides by the sizes ``size_dict``.

    ``value_dict`` has the values of the border, by default 0.
    """

    rank = 5

    def __init__(
        self,
        iter: DataIterator,
        size_dict: Mapping[str, int],
        value_dict: Mapping[str, float] | None = None,
    ) -> None:
        _check_same_names("Pad", "size_dict", size_dict, "value_dict", value_dict)
        super().__init__(iter, size_dict)
        self.value_dict = dict(value_dict or {})

    def changed_shape(self, name: str, option: Any, shape: Shape) -> Shape:
        """Return the larger shape."""
        if not isinstance(option, (int, np.integer)) or option < 0:
            raise self.refuse(name, option, "give a number of pixels")
        t, b, h, w, c = shape
        return t, b, h + 2 * option, w + 2 * option, c

    def changed(self, name: str, option: Any, data: Array) -> Array:
        """Return the images with their borders."""
        border = (option, option)
        value = self.value_dict.get(name, 0.0)
        wide = data.astype(np.result_type(data.dtype, value))
        return np.pad(wide, [(0, 0), (0, 0), border, border, (0, 0)], constant_values=value)


class RandomCrop(_Changed):
    """Cut a window of (height, width) of ``shape_dict`` out of images over (T, B, H, W, C).

    Each sequence has a place of its own, the same in all of its time steps.
    """

    rank = 5

    def __init__(self, iter: DataIterator, shape_dict: Mapping[str, tuple[int, int]]) -> None:
        super().__init__(iter, shape_dict)

    def changed_shape(self, name: str, option: Any, shape: Shape) -> Shape:
        """Return the smaller shape."""
        t, b, h, w, c = shape
        if not (
            isinstance(option, (tuple, list))
            and len(option) == 2
            and 0 < option[0] <= h
            and 0 < option[1] <= w
        ):
            raise self.refuse(name, option, f"give a height up to {h} and a width up to {w}")
        return t, b, *option, c

    def changed(self, name: str, option: Any, data: Array) -> Array:
        """Return the windows."""
        _, n, h, w, _ = data.shape
        height, width = option
        rows = self.rnd.randint(0, h - height + 1, n)
        columns = self.rnd.randint(0, w - width + 1, n)
        return np.stack(
            [
                data[:, k, r : r + height, c : c + width]
                for k, (r, c) in enumerate(zip(rows, columns, strict=True))
            ],
            axis=1,
        )


def _assert_correct_data_format(named_data: Mapping[str, Any]) -> tuple[int, int]:
    """Return the numbers of sequences and of time steps; raise unless all data have the same."""
    if not named_data:
        raise IteratorValidationError("no data were given; name arrays, such as default=inputs")
    for name, data in named_data.items():
        if not hasattr(data, "shape"):
            raise IteratorValidationError(
                f"{name!r} is a {type(data).__name__}; give an array over (T, B, ...)"
            )
        if len(data.shape) < 3:
            raise IteratorValidationError(
                f"{name!r} has the shape {data.shape}; give an array over (T, B, ...), with at "
                "least 3 axes: data without time have a first length of 1"
            )
    first, *others = named_data
    shape = named_data[first].shape
    for name in others:
        for axis, what in enumerate(("time steps", "sequences")):
            length = named_data[name].shape[axis]
            if length != shape[axis]:
                raise IteratorValidationError(
                    f"{first!r} has {shape[axis]} {what} and {name!r} has {length}; give arrays "
                    f"with equal lengths along axis {axis}"
                )
    return int(shape[1]), int(shape[0])


def _check_names(what: str, names: Any, known: Mapping[str, Any]) -> None:
    for name in names:
        if name not in known:
            raise IteratorValidationError(
                f"{what}: there are no data called {name!r}; there are "
                f"{', '.join(map(repr, known))}"
            )


def _check_same_names(
    what: str, one: str, first: Mapping[str, Any], two: str, second: Mapping[str, Any] | None
) -> None:
    if second is not None and set(first) != set(second):
        raise IteratorValidationError(
            f"{what}: {one} names {sorted(first)} and {two} names {sorted(second)}; name the same "
            "data in both"
        )


def _calculate_lengths_from_mask(mask: Array) -> Array:
    """Return for each sequence the number of steps up to the last one whose mask is not 0."""
    if mask.ndim != 3 or mask.shape[2] != 1:
        raise IteratorValidationError(
            f"the mask has the shape {mask.shape}; it needs one number for each step, over (T, B, "
            "1)"
        )
    used = mask[:, :, 0] != 0
    lengths = mask.shape[0] - used[::-1].argmax(axis=0)
    lengths[~used.any(axis=0)] = 0
    return lengths
