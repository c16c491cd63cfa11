"""``CustomDeriv``: a function of tensors with a user's derivative rule, and the row of its calls.

The rule is used by ``autodiff.custom_deriv``, which a graph without derivatives does not import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, NamedTuple

from ...errors import DerivativeError
from ..building.constants import as_tensor
from ..core.argument_hints import Dispatch
from ..core.primitive import Inferred, Primitive
from ..op_graph import ComputationOp, Tensor, intern
from ..syntax.operators import late

Backward = Callable[..., Sequence[Any]]


class CustomDeriv:
    """A function of tensors with a user's derivative rule; see ``custom_deriv``.

    ``function`` computes the value and ``rule`` the cotangents of its inputs.
    """

    def __init__(self, function: Callable[..., Tensor], rule: Backward) -> None:
        self.function = function
        self.rule = rule
        update_wrapper(self, function, updated=())

    def __repr__(self) -> str:
        return f"<{self} with the derivative rule {called(self.rule)}>"

    def __str__(self) -> str:
        return called(self.function)

    def __call__(self, *inputs: Any) -> Tensor:
        """Return the value of the function for tensors, numbers and arrays.

        Raises ``DerivativeError`` if the function returns no tensor.
        """
        if Dispatch.hook is not None:
            result = Dispatch.hook(self, inputs, {})
            if result is not NotImplemented:
                return result  # type: ignore[no-any-return]  # an array is a tensor
        tensors = tuple(as_tensor(x) for x in inputs)
        value = self.function(*tensors)
        if not isinstance(value, Tensor):
            raise DerivativeError(
                f"custom_deriv: {self} returned {value!r} of type {type(value).__name__}; it must "
                "return one tensor"
            )
        args = (value, *tensors)
        return intern(
            ComputationOp, CUSTOM, args, (self,), value.axes, value.dtype, weak=value.weak
        )


class CustomAttributes(NamedTuple):
    """The function with its derivative rule."""

    rule: CustomDeriv


def _infer(args: tuple[Any, ...], attrs: CustomAttributes) -> Inferred:
    return args[0].axes, args[0].dtype, ()


def called(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


CUSTOM = Primitive(
    "custom",
    "call",
    "The value of a function with a user's derivative rule.",
    reference=lambda op, value, *inputs: value,
    vjp=late("custom_vjp"),
    jvp=late("custom_jvp"),
    attributes=CustomAttributes,
    infer=_infer,
    dtype_operands=(0,),
    batched_together=None,
)
