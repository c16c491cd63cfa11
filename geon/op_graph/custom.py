"""``custom_deriv``: a derivative rule of the user's own for a composite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from ..errors import DerivativeError
from .constants import as_tensor
from .dtypes import kind
from .elementwise import add, cast
from .keywords import explained
from .leaves import placeholder
from .movement import broadcast
from .op_graph import NO_AXES, ComputationOp, Op, Tensor, intern, post_order
from .registry import Primitive
from .sweeps import reverse_mode
from .weak import strengthen

Backward = Callable[..., Sequence[Any]]


class CustomDeriv:
    """A function of tensors whose derivative is a rule of the user's; see ``custom_deriv``.

    ``function`` is what it computes and ``rule`` what says its derivative.
    """

    def __init__(self, function: Callable[..., Tensor], rule: Backward) -> None:
        self.function = function
        self.rule = rule
        update_wrapper(self, function, updated=())

    def __repr__(self) -> str:
        return f"<{self} with the derivative rule {_called(self.rule)}>"

    def __str__(self) -> str:
        return _called(self.function)

    def __call__(self, *inputs: Any) -> Tensor:
        """The value of the function for tensors, numbers and arrays.

        Raises ``DerivativeError`` when the function returns no tensor.
        """
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


def _called(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


@explained
def custom_deriv(rule: Backward) -> Callable[[Callable[..., Tensor]], CustomDeriv]:
    """A decorator that gives a function of tensors the derivative that ``rule`` says.

    ``rule(g, out, *inputs)`` returns a list with the cotangent of each input, over that input's
    axes, from the cotangent ``g`` of the result ``out``; None stands for zero. Reverse mode calls
    it; forward mode transposes it, for which it must be linear in ``g``. The inputs are the
    positional arguments: tensors that the function reads otherwise are constants to derivatives.
    A rule that returns anything else raises ``DerivativeError`` when a derivative is taken::

        @geon.custom_deriv(lambda g, out, x: [g])
        def rounded(x):
            return geon.round(x)
    """
    return lambda function: CustomDeriv(function, rule)


def _vjp(g: Tensor, op: Op) -> list[Tensor | None]:
    call: CustomDeriv = op.attrs[0]
    inputs = op.args[1:]
    returned = call.rule(g, op, *inputs)
    if not isinstance(returned, (list, tuple)) or len(returned) != len(inputs):
        shown = f"{len(returned)}" if isinstance(returned, (list, tuple)) else repr(returned)
        raise _wrong(op, f"returned {shown}, not a list of {len(inputs)} cotangents")
    parts: list[Tensor | None] = [None]
    for i, (x, part) in enumerate(zip(inputs, returned, strict=True)):
        parts.append(None if part is None else _checked(op, i, x, part))
    return parts


def _checked(op: Op, i: int, x: Op, part: Any) -> Tensor:
    """One cotangent that a rule returned, over the axes of its input."""
    where = f"for input {i}, {x} {x.dtype.name} (made at {x.file_info}),"
    if kind(x.dtype) != "f":
        raise _wrong(op, f"returned {part!r} {where} which has no derivative; return None for it")
    part = as_tensor(part, near=x)
    if part.weak and part.axes is NO_AXES:
        return broadcast(strengthen(part, x.dtype), x.axes)
    if not part.axes.same_set(x.axes):
        raise _wrong(
            op, f"returned {part} over the axes {part.axes} {where} whose axes are {x.axes}"
        )
    if x.weak:  # what was built of it has the dtype it met
        part = cast(part, x.dtype)
    if part.dtype is not x.dtype:
        raise _wrong(op, f"returned {part} of dtype {part.dtype.name} {where} of another dtype")
    return broadcast(part, x.axes)


def _wrong(op: Op, what: str) -> DerivativeError:
    rule = _called(op.attrs[0].rule)
    return DerivativeError(
        f"custom_deriv: the rule {rule} of {op.attrs[0]}, called at {op.file_info}, {what}"
    )


def _jvp(op: Op, moving: list[int], found: dict[Op, Tensor]) -> Tensor | None:
    """The tangent of the result: the transpose of the rule, which is linear in its cotangent."""
    g = placeholder(op.axes, op.dtype)
    parts = _vjp(g, op)
    known = {op, *op.args}
    total: Tensor | None = None
    for i in moving:
        part = parts[i]
        if part is not None:
            t = reverse_mode(part, found[op.args[i]], [g], known).get(g)
            if t is not None:
                total = t if total is None else add.apply(total, t)
    linear = {*known, *(found[op.args[i]] for i in moving)}
    if total is not None and g in set(post_order([total], linear)):
        raise _wrong(
            op,
            "is not linear in its cotangent, so forward mode cannot be derived from it; "
            "use reverse mode (deriv, vjp)",
        )
    return total


CUSTOM = Primitive(
    "custom",
    "call",
    "The value of a function whose derivative is a rule of the user's.",
    reference=lambda op, value, *inputs: value,
    vjp=_vjp,
    jvp=_jvp,
    attributes=("rule",),
    carriers=(0,),
    alike=None,
)
