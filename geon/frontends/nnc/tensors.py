"""Tensors: memory with a shape, a dtype, a layout and a device; views of it and files."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import ArgumentError, CheckpointError
from ...op_graph.values.dtypes import ALL_DTYPES

FORMATS = ("NHWC", "NCHW", "CHWN")
MAX_DIMS = 8  # dimensions of a tensor, as in the original
DEVICES = {"cpu": None, "numpy": "numpy", "native": "native", "gpu": "pycuda"}
"""Device by name: the transformer that computes there; None is that of ``geon.make_transformer``.

A GPU has a number after a colon, such as ``gpu:1``.
"""
ALIGNMENT = 64  # bytes, a cache line: addresses of tensors that own memory are multiples of it

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TensorParam:
    """The shape, dtype, layout and device of a tensor, without memory."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    format: str = "NHWC"
    device: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple([int(n) for n in self.shape]))
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        for what, given, known in (
            ("dtype", self.dtype, tuple(ALL_DTYPES)),
            ("format", self.format, FORMATS),
            ("device", self.device.partition(":")[0], tuple(DEVICES)),
        ):
            if given not in known:
                raise ArgumentError(f"tensor {what}={given!r} is none of {', '.join(known)}")
        if len(self.shape) > MAX_DIMS or min(self.shape, default=0) < 0:
            raise ArgumentError(
                f"tensor shape {self.shape}: give at most {MAX_DIMS} lengths, each 0 or more"
            )

    @property
    def bytes(self) -> int:
        """The bytes of the elements."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(map(str, self.shape))})"


class Tensor:
    """A tensor over memory, of its own or of an array that the caller gives.

    ``array`` is a NumPy array without a copy: it has the address, the strides and the elements. A
    write to one is seen by the other. A tensor of device ``gpu`` is in host memory too; commands
    copy it to the device and back.
    """

    __slots__ = ("__weakref__", "array", "base", "device", "format", "part")

    def __init__(
        self,
        data: Any = None,
        *,
        shape: Sequence[int] | None = None,
        dtype: Any = None,
        format: str = "NHWC",
        device: str = "cpu",
    ) -> None:
        if (data is None) == (shape is None):
            raise ArgumentError("a Tensor is made of data or of shape=; give one of them")
        if data is None:
            param = TensorParam(tuple(shape or ()), dtype or "float32", format, device)
            self.array = aligned_empty(param)
        else:
            weak = dtype is None and not hasattr(data, "dtype")
            self.array = np.asarray(data, dtype)
            if weak and self.array.dtype == np.float64:
                self.array = self.array.astype(np.float32)
            TensorParam(self.array.shape, self.array.dtype.name, format, device)
        self.format, self.device = format, device
        self.base: Tensor | None = None  # the tensor that this one is a part of
        self.part: Any = None

    @classmethod
    def of(cls, param: TensorParam) -> Tensor:
        """Return a tensor with memory of its own, whose elements are undefined."""
        return cls(shape=param.shape, dtype=param.dtype, format=param.format, device=param.device)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.array.dtype

    @property
    def param(self) -> TensorParam:
        """The shape, dtype, layout and device."""
        return TensorParam(self.shape, self.dtype.name, self.format, self.device)

    @property
    def address(self) -> int:
        """The address of the first element in memory."""
        return int(self.array.__array_interface__["data"][0])

    def numpy(self) -> Array:
        """Return the elements as a NumPy array, without a copy."""
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy or (dtype is not None and dtype != self.dtype):
            return np.array(self.array, dtype)
        return self.array

    def view(
        self,
        shape: Sequence[int],
        offset: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> Tensor:
        """Return a tensor over a part of the memory.

        Without ``offset`` and ``stride`` it is a reshape of contiguous memory. With ``offset``, the
        index of the first element, it is the box of lengths ``shape`` there, in steps of ``stride``
        elements of each dimension (1 by default). Raises ``ArgumentError`` for a part that is not
        inside.
        """
        made = Tensor(self.array, format=self.format, device=self.device)
        made.base = self
        made.part = part_of(self.shape, shape, offset, stride)
        if made.part.slices is None and not self.array.flags.c_contiguous:
            raise ArgumentError(
                f"{self} is reshaped to {tuple(shape)}, and its memory is not contiguous; copy it "
                "first, or give offset= for a part"
            )
        made.array = made.part.of(self.array)
        return made

    def resize(self, shape: Sequence[int]) -> None:
        """Give the tensor another shape and, if it grows, memory of its own; elements are lost."""
        param = replace(self.param, shape=tuple(shape))
        if param.bytes <= self.array.nbytes and self.array.flags.c_contiguous:
            flat = self.array.reshape(-1)[: math.prod(param.shape)]
            self.array = flat.reshape(param.shape)
        else:
            self.array = aligned_empty(param)

    def zero(self) -> None:
        """Set all elements to 0."""
        self.array[...] = 0

    def equals(self, other: Any, tolerance: float = 0.0) -> bool:
        """Return True if shape, dtype and all elements are equal, up to ``tolerance``."""
        rhs = other.array if isinstance(other, Tensor) else np.asarray(other)
        if rhs.shape != self.shape or rhs.dtype != self.dtype:
            return False
        if tolerance and self.dtype.kind in "fc":
            return bool(np.allclose(self.array, rhs, tolerance, tolerance, equal_nan=True))
        return bool(np.array_equal(self.array, rhs))

    def __repr__(self) -> str:
        return f"<Tensor {self.param} {self.format} on {self.device}>"


def aligned_empty(param: TensorParam) -> Array:
    """Return an uninitialised array whose address is a multiple of ``ALIGNMENT``."""
    return memory(param.bytes)[: param.bytes].view(param.dtype).reshape(param.shape)


def memory(size: int) -> Array:
    """Return so many uninitialised bytes at an address that is a multiple of ``ALIGNMENT``."""
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[start : start + size]


@dataclass(frozen=True)
class Part:
    """A part of a tensor: a box of slices, or with ``slices`` None a reshape."""

    shape: tuple[int, ...]
    slices: tuple[slice, ...] | None = None

    def of(self, whole: Any) -> Any:
        """Return the part of an array, without a copy."""
        return whole.reshape(self.shape) if self.slices is None else whole[self.slices]


def part_of(
    whole: Sequence[int],
    shape: Sequence[int],
    offset: Sequence[int] | None,
    stride: Sequence[int] | None,
) -> Part:
    """Return the part that ``Tensor.view`` describes of a tensor of shape ``whole``."""
    if offset is None and stride is None:
        if math.prod(shape) != math.prod(whole):
            raise ArgumentError(
                f"a view of shape {tuple(shape)} of a tensor of shape {tuple(whole)}: a reshape "
                "keeps the number of elements; give offset= for a part"
            )
        return Part(tuple(shape))
    return Part(tuple(shape), box(whole, shape, offset, stride))


def box(
    whole: Sequence[int],
    shape: Sequence[int],
    offset: Sequence[int] | None,
    stride: Sequence[int] | None,
) -> tuple[slice, ...]:
    """Return the slices of a part; raise ``ArgumentError`` if it is not inside of ``whole``."""
    starts = [0] * len(whole) if offset is None else list(offset)
    steps = [1] * len(whole) if stride is None else list(stride)
    fits = len(shape) == len(starts) == len(steps) == len(whole) and all(
        first >= 0 and step >= 1 and (n == 0 or first + (n - 1) * step < length)
        for first, step, n, length in zip(starts, steps, shape, whole, strict=True)
    )
    if not fits:
        raise ArgumentError(
            f"a part of shape {tuple(shape)} at offset {tuple(starts)} in steps of {tuple(steps)} "
            f"is not inside of a tensor of shape {tuple(whole)}; give one number for each "
            "dimension, within its length"
        )
    return tuple(
        [
            slice(first, first + (n - 1) * step + 1 if n else first, step)
            for first, step, n in zip(starts, steps, shape, strict=True)
        ]
    )


# Files --------------------------------------------------------------------------------------------


def write_tensors(path: str | os.PathLike[str], tensors: Mapping[str, Tensor]) -> None:
    """Write tensors by name to a file, which ``read_tensors`` reads: NumPy's format ``.npz``."""
    arrays = {name: tensor.array for name, tensor in tensors.items()}
    with open(path, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # the names are keywords


def read_tensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Return the tensors of a file by name; raise ``CheckpointError`` for a damaged file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: Tensor(file[name]) for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"{os.fspath(path)} is no file of tensors: {error}; write one with write_tensors"
        ) from error


def map_tensor(
    path: str | os.PathLike[str], param: TensorParam, offset: int = 0, mode: str = "r"
) -> Tensor:
    """Return a tensor over the raw bytes of a file, from byte ``offset`` on, mapped into memory.

    With ``mode`` "r+" writes go to the file. Raises ``CheckpointError`` if it is too short.
    """
    try:
        array = np.memmap(path, param.dtype, mode, offset, param.shape)  # type: ignore[call-overload]  # a mode
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{os.fspath(path)} cannot be mapped as {param}: {error}") from error
    return Tensor(array, format=param.format, device=param.device)
