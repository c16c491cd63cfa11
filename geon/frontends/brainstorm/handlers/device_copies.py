"""``DeviceCopies``: arrays of a network whose values lie in the memory of a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import geon

AXES = [geon.Axis(f"d{k}") for k in range(8)]  # of arrays, in order: their lengths are open


class DeviceCopies:
    """Values of host arrays on a device, from the pass that computed them until the host reads one.

    A copy is of a whole array: a view by its address, shape and strides. It is ``newer`` than its
    array from the pass that computed it until it is written back. A newer copy overlaps no other.
    """

    def __init__(self, handler: Any) -> None:
        self.handler = handler
        self.copies: dict[Any, tuple[Any, Any]] = {}  # the array and its value on the device
        self.newer: set[Any] = set()
        self.uploads: dict[tuple[int, Any], Any] = {}

    def run(self, computation: Any, read: Sequence[Any], written: Sequence[Any]) -> None:
        """Compute arrays from others; the results stay on the device."""
        for array, value in zip(written, computation(*map(self._value, read)), strict=True):
            self.release([array])
            self.copies[_key(array)] = array, value
            self.newer.add(_key(array))

    def write_back(self, arrays: Sequence[Any]) -> None:
        """Write newer values back, of arrays that share memory with one of these."""
        for key in [key for key in self.newer if self._overlaps(key, arrays)]:
            array, value = self.copies[key]
            np.copyto(array, np.asarray(value))
            self.newer.remove(key)

    def release(self, arrays: Sequence[Any]) -> None:
        """Write newer values back, and forget all copies, before the host writes these arrays."""
        if self.copies:
            self.write_back(arrays)
            for key in [key for key in self.copies if self._overlaps(key, arrays)]:
                del self.copies[key]

    def release_all(self) -> None:
        """Do so for all arrays."""
        if self.copies:
            self.release([array for array, _ in self.copies.values()])

    def forget_read(self) -> None:
        """Forget the copies of arrays that the host may have written since."""
        self.copies = {key: copy for key, copy in self.copies.items() if key in self.newer}

    def _overlaps(self, key: Any, arrays: Sequence[Any]) -> bool:
        array = self.copies[key][0]
        return any(np.may_share_memory(array, each) for each in arrays)

    def _value(self, array: Any) -> Any:
        key = _key(array)
        if key not in self.copies:
            self.write_back([array])
            kind = array.ndim, array.dtype
            if kind not in self.uploads:
                x = geon.placeholder(AXES[: array.ndim], array.dtype)
                self.uploads[kind] = self.handler.transformer.computation(x, x, on_device=True)
            self.copies[key] = array, self.uploads[kind](array)
        return self.copies[key][1]


def _key(array: Any) -> Any:
    return array.__array_interface__["data"][0], array.shape, array.strides
