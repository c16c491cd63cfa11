"""Tensors: memory with a shape, a dtype, a layout and a device, and views of it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...op_graph.values.dtypes import ALL_DTYPES
from .checks import checked

FORMATS = ("NHWC", "NCHW", "CHWN")
MAX_DIMS = 8  # dimensions of a tensor, as in the original
DEVICES = {"cpu": None, "numpy": "numpy", "native": "native", "gpu": "pycuda"}
"""Device by name: the transformer that computes there; None is that of ``geon.make_transformer``.

A GPU has a number after a colon, such as ``gpu:1``.
"""
ALIGNMENT = 64  # bytes, a cache line: addresses of tensors that own memory are multiples of it

Array = np.ndarray[Any, Any]


@checked
@dataclass(frozen=True)
class TensorParam:
    """The shape, dtype, layout and device of a tensor, without memory."""

    shape: tuple[int, ...]
    dtype: Any = "float32"
    format: str = "NHWC"
    device: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", lengths_of(self.shape))
        try:
            object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        except TypeError:  # named in the check below
            pass
        known = {"dtype": ALL_DTYPES, "format": FORMATS, "device": DEVICES}
        for what, names in known.items():
            if str(getattr(self, what)).partition(":")[0] not in names:
                raise ArgumentError(
                    f"{what}={getattr(self, what)!r} is none of {', '.join(names)}; give one of "
                    "them"
                )
        number = self.device.partition(":")
        if number[1] and not (number[0] == "gpu" and number[2].isdigit()):
            raise ArgumentError(
                f"device={self.device!r}, and only a GPU has a number; give one such as gpu:0"
            )
        if len(self.shape) > MAX_DIMS:
            raise ArgumentError(f"shape={self.shape}; give at most {MAX_DIMS} lengths")

    @property
    def bytes(self) -> int:
        """The bytes of the elements."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(map(str, self.shape))})"


def lengths_of(given: Any, name: str = "shape") -> tuple[int, ...]:
    """Return an argument as a tuple; raise ``ArgumentError`` unless it is of integers from 0 on."""
    try:
        found = tuple([operator.index(n) for n in given])
    except TypeError:
        found = (-1,)
    if min(found, default=0) < 0:
        raise ArgumentError(
            f"{name}={given!r:.80}; give a tuple of lengths or places, each an integer of at least "
            "0"
        )
    return found


@cache
def _param(shape: tuple[int, ...], dtype: Any, format: str, device: str) -> TensorParam:
    return TensorParam(shape, dtype.name, format, device)


@dataclass(frozen=True)
class Part:
    """A part of a tensor: a box of slices, or with ``slices`` None a reshape."""

    shape: tuple[int, ...]
    slices: tuple[slice, ...] | None = None

    def of(self, whole: Array) -> Array:
        """Return the part of an array, a view, or a copy where a reshape can be no view."""
        return whole.reshape(self.shape) if self.slices is None else whole[self.slices]

    def fits(self, whole: Sequence[int]) -> bool:
        """Return True if a tensor of shape ``whole`` has the part."""
        if self.slices is None:
            return math.prod(self.shape) == math.prod(whole)
        pairs = zip(self.slices, whole, strict=False)
        return len(self.slices) == len(whole) and all(s.stop <= n for s, n in pairs)


class Resident:
    """Elements that commands leave on a device, until the host reads or writes their memory there.

    All tensors over one memory have the same.
    """

    __slots__ = ("_held", "host")

    def __init__(self, host: Array) -> None:
        self.host = host
        self._held: tuple[Any, Any] | None = None  # the array, and its started call or None

    @property
    def array(self) -> Any:
        """The array on the device, which may not be computed yet; None if ``host`` has them."""
        held = self._held
        return None if held is None else held[0]

    def put(self, array: Any, call: Any = None) -> None:
        """Take an array as the elements: the result of a started call, or one that is computed."""
        self._held = array, call

    def fetch(self) -> None:
        """Copy the elements back to the host, if they are on the device.

        Raises the error of the call that computes them.
        """
        held = self._held  # streams may fetch at one time
        if held is not None:
            array, call = held
            if call is not None:
                call.result()
            self.host[...] = np.asarray(array).reshape(self.host.shape)
            self._held = None


@checked
class Tensor:
    """A tensor over memory, of its own or of an array that the caller gives.

    ``base`` is the tensor that a view is a part of. ``places`` are the positions of the elements in
    the whole, for the reshape of a part that is not contiguous: it is no view, but a copy, which
    ``array`` and commands read from the whole, and commands write there. What commands write to a
    tensor of device ``gpu`` that has its own memory stays on the device, where further commands
    read it, until the host reads it; it is then in host memory, as are tensors over arrays of the
    caller.
    """

    __slots__ = ("base", "device", "format", "memory", "part", "places", "resident")

    def __init__(
        self, data: Any = None, *, shape: Sequence[int] | None = None, dtype: Any = None,
        format: str = "NHWC", device: str = "cpu", base: Tensor | None = None, part: Any = None,
    ) -> None:  # fmt: skip
        if (data is None) == (shape is None):
            raise ArgumentError("it is made of data or of shape=; give one of them")
        if data is None:
            param = TensorParam(shape, dtype or "float32", format, device)  # type: ignore[arg-type]  # not None
            self.memory = buffer(param.bytes).view(param.dtype).reshape(param.shape)
        else:
            weak = dtype is None and not hasattr(data, "dtype")
            found = array_of(data, dtype)
            is_double = weak and found.dtype == np.float64
            self.memory = found.astype(np.float32) if is_double else found
            _param(found.shape, found.dtype, format, device)  # raises for wrong ones
        self.format, self.device, self.base, self.part = format, device, base, part
        self.places: Array | None = None
        source = base if base is not None else data
        self.resident: Resident | None = None
        if isinstance(source, Tensor) and np.may_share_memory(self.memory, source.memory):
            self.resident = source.resident
        elif data is None and device.startswith("gpu"):
            self.resident = Resident(self.memory)

    @classmethod
    def of(cls, param: TensorParam) -> Tensor:
        """Return a tensor with memory of its own, whose elements are undefined."""
        return cls(shape=param.shape, dtype=param.dtype, format=param.format, device=param.device)

    @property
    def may_stay(self) -> bool:
        """True if what a command writes may stay on a device: for a whole, in memory of its own."""
        return self.resident is not None and self.resident.host is self.memory

    @property
    def array(self) -> Array:
        """The elements as a NumPy array without a copy: a write to one is seen by the other.

        What a device has written since is copied to it by the next read of this attribute.
        """
        if self.resident is not None:
            self.resident.fetch()
        if self.places is not None:
            self.memory[...] = root(self).array.flat[self.places]
        return self.memory

    def written(self) -> None:
        """Write the elements to the whole, after ``memory`` was written."""
        if self.places is not None:
            root(self).array.flat[self.places] = self.memory

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return self.memory.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.memory.dtype

    @property
    def param(self) -> TensorParam:
        """The shape, dtype, layout and device."""
        return _param(self.memory.shape, self.memory.dtype, self.format, self.device)

    @property
    def address(self) -> int:
        """The address of the first element in the host's memory."""
        return int(self.memory.__array_interface__["data"][0])

    def numpy(self) -> Array:
        """Return the elements as a NumPy array, without a copy."""
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        is_same = dtype is None or dtype == self.dtype
        return self.array if is_same and not copy else np.array(self.array, dtype)

    def view(
        self, shape: Sequence[int], offset: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> Tensor:  # fmt: skip
        """Return a tensor over a part of the memory.

        Without ``offset`` and ``stride`` it is a reshape of contiguous memory. With ``offset``, the
        index of the first element, it is the box of lengths ``shape`` there, in steps of ``stride``
        elements of each dimension (1 by default). Raises ``ArgumentError`` for a part that is not
        inside.
        """
        part = part_of(self.shape, shape, offset, stride)
        if part.slices is None and not self.memory.flags.c_contiguous:
            raise ArgumentError(
                f"{self} is reshaped to {tuple(shape)}, and its memory is not contiguous; copy it "
                "first, or give offset= for a part"
            )
        return self.part_view(part)

    def part_view(self, part: Part) -> Tensor:
        """Return a tensor over a part of the memory, or with a copy where that can be no view."""
        held = part.of(self.memory)
        made = Tensor(held, format=self.format, device=self.device, base=self, part=part)
        if self.places is not None or not np.may_share_memory(held, self.memory):
            made.places = part.of(self._numbers())
        return made

    def _numbers(self) -> Array:
        """Return the positions of the elements in the whole."""
        if self.base is None:
            return np.arange(self.memory.size).reshape(self.shape)
        return self.places if self.places is not None else self.part.of(self.base._numbers())

    def move_to(self, other: Tensor) -> None:
        """Use the memory of another tensor of the same shape and dtype from now on."""
        self.memory, self.resident = other.memory, other.resident

    def resize(self, shape: Sequence[int]) -> None:
        """Give the tensor another shape and, if it grows, memory of its own; elements are lost."""
        param = TensorParam(lengths_of(shape), self.dtype.name, self.format, self.device)
        if param.bytes <= self.memory.nbytes and self.memory.flags.c_contiguous:
            self.memory = self.memory.reshape(-1)[: math.prod(param.shape)].reshape(param.shape)
            self.resident = None if self.resident is None else Resident(self.memory)
        else:
            self.move_to(Tensor.of(param))

    def zero(self) -> None:
        """Set all elements to 0."""
        self.array[...] = 0

    def equals(self, other: Any, tolerance: float = 0.0) -> bool:
        """Return True if shape, dtype and all elements are equal, up to ``tolerance``."""
        rhs = np.asarray(other)
        if rhs.shape != self.shape or rhs.dtype != self.dtype:
            return False
        if tolerance and self.dtype.kind in "fc":
            return bool(np.allclose(self.array, rhs, tolerance, tolerance, equal_nan=True))
        return bool(np.array_equal(self.array, rhs))

    def __repr__(self) -> str:
        return f"<Tensor {self.param} {self.format} on {self.device}>"


def root(slot: Any) -> Any:
    """Return the whole that a tensor, or the symbol of one, is a part of."""
    while slot.base is not None:
        slot = slot.base
    return slot


def array_of(data: Any, dtype: Any = None) -> Array:
    """Return data as an array of numbers; raise ``ArgumentError`` for rows of different shapes."""
    try:
        found = np.asarray(getattr(data, "array", data), dtype)
    except (ValueError, TypeError):
        found = np.array(None)
    if found.dtype.kind in "OSU":
        raise ArgumentError(
            f"{data!r:.80} is no array of {dtype or 'numbers'}: texts, objects or rows of "
            "different shapes; give numbers in one shape"
        )
    return found


def buffer(size: int, allocate: Callable[[int], Any] | None = None) -> Array:
    """Return so many uninitialised bytes at an address that is a multiple of ``ALIGNMENT``.

    They are in what ``allocate`` returns for a number of bytes. Raises ``ArgumentError`` for a
    buffer that is shorter or read-only.
    """
    wanted = size + ALIGNMENT
    if allocate is None:
        raw = np.empty(wanted, np.uint8)
    else:
        made = allocate(wanted)
        try:
            raw = np.frombuffer(made, np.uint8)
        except (TypeError, ValueError, BufferError):
            raise ArgumentError(
                f"allocate returned {made!r} for {wanted} bytes; let it return a buffer"
            ) from None
        if raw.size < wanted or not raw.flags.writeable:
            kind = "writable" if raw.flags.writeable else "read-only"
            raise ArgumentError(
                f"allocate returned {raw.size} {kind} bytes; let it return {wanted} writable ones"
            )
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[start : start + size]


def part_of(
    whole: Sequence[int], shape: Sequence[int], offset: Sequence[int] | None,
    stride: Sequence[int] | None,
) -> Part:  # fmt: skip
    """Return the part that ``Tensor.view`` describes of a tensor of shape ``whole``."""
    shape = lengths_of(shape)
    given = f"a view of shape {shape} of a tensor of shape {tuple(whole)}"
    if offset is None and stride is None:
        if math.prod(shape) != math.prod(whole):
            raise ArgumentError(
                f"{given}: a reshape keeps the number of elements; give offset= for a part"
            )
        return Part(shape)
    starts = (0,) * len(whole) if offset is None else lengths_of(offset, "offset")
    steps = (1,) * len(whole) if stride is None else lengths_of(stride, "stride")
    fits = len(shape) == len(starts) == len(steps) == len(whole) and all(
        step >= 1 and (n == 0 or first + (n - 1) * step < length)
        for first, step, n, length in zip(starts, steps, shape, whole, strict=True)
    )
    if not fits:
        raise ArgumentError(
            f"{given} at offset {starts} in steps of {steps} is not inside of a "
            "tensor of that shape; give one number for each dimension, within its length"
        )
    ends = [f + (n - 1) * s + 1 if n else f for f, s, n in zip(starts, steps, shape, strict=True)]
    return Part(shape, tuple(map(slice, starts, ends, steps)))
