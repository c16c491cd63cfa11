"""``DebugHandler``: a handler that checks the arguments and the results of each operation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..describable import create_from_description
from ..errors import ValidationError
from .base_handler import Handler


class DebugArray(np.ndarray):
    """An array that a ``DebugHandler`` made."""


class DebugHandler(Handler):
    """A handler that checks each operation before and after another handler computes it.

    Arguments are arrays that the handler made, and numbers, as the operation's name says; matrices
    and vectors have two dimensions; arrays are finite after they were written. A fault raises
    ``ValidationError`` with the operation, the argument and the shapes.
    """

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        super().__init__(handler.dtype, handler.rnd.get_seed())
        self._prepare()

    def _prepare(self) -> None:
        self.array_type = DebugArray
        self.rnd = self.handler.rnd
        for name in OPERATIONS:
            setattr(self, name, self._checking(name))
        for table in ("act_func", "act_func_deriv"):
            for name in getattr(self, table):
                if name != "linear":
                    method = name if table == "act_func" else f"{name}_deriv"
                    getattr(self, table)[name] = getattr(self, method)

    def __describe__(self) -> dict[str, Any]:
        return {"@type": "DebugHandler", "handler": self.handler.__describe__()}

    @classmethod
    def __new_from_description__(cls, description: dict[str, Any]) -> DebugHandler:
        return cls(create_from_description(description["handler"]))

    @property
    def transformer(self) -> Any:
        """Return the transformer of the handler that computes."""
        return self.handler.transformer

    def allocate(self, shape: Sequence[int]) -> Any:
        """Return an array of NaN, so that values that were never written are found."""
        return np.full(tuple(shape), np.nan, self.dtype).view(DebugArray)

    def zeros(self, shape: Sequence[int]) -> Any:
        """Return an array of zeros."""
        return self.handler.zeros(shape).view(DebugArray)

    def ones(self, shape: Sequence[int]) -> Any:
        """Return an array of ones."""
        return self.handler.ones(shape).view(DebugArray)

    def create_from_numpy(self, arr: Any) -> Any:
        """Return a copy of a NumPy array."""
        return self.handler.create_from_numpy(arr).view(DebugArray)

    def _checking(self, name: str) -> Callable[..., Any]:
        method = getattr(self.handler, name)
        signature = inspect.signature(method)
        results = [p for p in signature.parameters if p in RESULTS]

        def operation(*args: Any, **keywords: Any) -> Any:
            try:
                given = signature.bind(*args, **keywords).arguments
            except TypeError as error:
                raise ValidationError(f"{name}: {error}; it takes {signature}") from None
            for argument, value in given.items():
                _check(name, argument, value)
            found = method(*args, **keywords)
            for argument in results:
                value = given.get(argument)
                if isinstance(value, np.ndarray) and not np.isfinite(value).all():
                    place = tuple(int(k) for k in np.argwhere(~np.isfinite(value))[0])
                    raise ValidationError(
                        f"{name}: {argument} of the shape {value.shape} is {value[place]} at "
                        f"{place}; look at what its arguments were"
                    )
            return found

        return operation


OPERATIONS = [
    name
    for name, member in vars(Handler).items()
    if inspect.isfunction(member)
    and name[0] != "_"
    and name not in ("allocate", "zeros", "ones", "create_from_numpy", "is_fully_finite",
                     "get_numpy_copy")
]  # fmt: skip
NUMBERS = {"s", "val", "a_min", "a_max", "mean", "std", "probability", "padding", "axis"}
OTHERS = {"transa", "transb", "window", "stride", "arr", "argmax"}
MATRICES = {"m", "v"}
RESULTS = {
    "out", "dest", "mem", "out_a", "out_b", "outputs", "in_deltas", "params_deltas", "bias_deltas",
    "y", "dx", "mask",
}  # fmt: skip


def _check(operation: str, argument: str, value: Any) -> None:
    if argument in OTHERS or value is None:
        return
    if argument in NUMBERS:
        if not isinstance(value, (int, float, np.number)):
            raise ValidationError(
                f"{operation}: {argument} is a {type(value).__name__}; give a number"
            )
        return
    if not isinstance(value, DebugArray):
        raise ValidationError(
            f"{operation}: {argument} is a {type(value).__name__}; give an array that this "
            "DebugHandler made, for example with create_from_numpy"
        )
    if (argument in MATRICES or "_mm" in operation) and value.ndim != 2:
        raise ValidationError(f"{operation}: {argument} has the shape {value.shape}; give a matrix")
