"""``custom_deriv``: a user's derivative rule for a function of tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ArgumentError, DerivativeError
from ..building.constants import as_tensor
from ..building.weak import strengthen
from ..core.argument_hints import public
from ..core.interning import OwnTable
from ..core.primitive import require
from ..core.region_body import Body
from ..core.source_info import building, user_call, with_remark
from ..op_graph import NO_AXES, Op, Tensor, post_order
from ..regions.closure import close_body
from ..regions.parameters import substitute_ops
from ..rows.custom_calls import Backward, CustomDeriv, called
from ..rows.elementwise import add, cast
from ..rows.leaves import placeholder
from ..rows.movement import broadcast
from ..syntax.operators import is_function
from ..transforms.derivative_sweeps import reverse_mode
from ..transforms.functionalize import substitute
from ..values.dtypes import is_continuous


class DumpedRule(CustomDeriv):
    """A function and its rule read from a dump: the rule is the graph that it built.

    ``body`` computes the cotangents of the inputs at ``places``. Its parameters are the cotangent
    of the result, the result, and the inputs; the last inputs are other values that the rule reads.
    ``body`` is None if there is no graph; ``reason`` says why.
    """

    def __init__(
        self, name: str, body: Body | None, places: Sequence[int] = (), reason: str = ""
    ) -> None:
        self.name, self.body, self.reason = name, body, reason
        self.places = tuple(places)
        self.rule = self._rule

    def __str__(self) -> str:
        return self.name

    def _rule(self, g: Tensor, out: Tensor, *inputs: Tensor) -> list[Tensor | None]:
        if self.body is None:
            raise DerivativeError(f"custom_deriv: the dump of {self} has no rule: {self.reason}")
        known: dict[Op, Op] = dict(zip(self.body.parameters, (g, out, *inputs), strict=True))
        cotangents: list[Any] = [None] * len(inputs)
        for place, result in zip(self.places, self.body.results, strict=True):
            cotangents[place] = substitute(result, known)
        return cotangents

    def check_operands(self, args: Sequence[Op]) -> None:
        """Raise ``ArgumentError`` if the body does not fit these arguments of an op."""
        if self.body is None:
            return
        given = [args[0], *args]
        require(len(self.body.parameters) == len(given), "a rule of {} values", len(given))
        wanted = [args[1 + place] for place in self.places if place + 1 < len(args)]
        require(len(self.places) == len(wanted) == len(self.body.results), "a rule for each place")
        pairs = [*zip(self.body.parameters, given, strict=True)]
        for inner, outer in [*pairs, *zip(self.body.results, wanted, strict=True)]:
            require(inner.axes is outer.axes, "a rule with {} over {}", inner.axes, outer.axes)
            require(inner.dtype is outer.dtype, "a rule with {}", inner.dtype)


def dumped_rule(op: Op) -> tuple[DumpedRule, Sequence[Tensor]]:
    """Return the rule of an op as a graph, and the values that it reads besides the inputs."""
    call: CustomDeriv = op.attrs.rule
    if isinstance(call, DumpedRule):
        return call, ()
    with building(OwnTable(open=True)) as current:
        current.site = with_remark(op._site, "derivative of custom")
        g = placeholder(op.axes, op.dtype)
        try:
            parts = custom_vjp(g, op)[1:]
        except Exception as error:
            reason = f"it raised {type(error).__name__}: {error}"
            return DumpedRule(str(call), None, reason=reason), ()
        places = [k for k, part in enumerate(parts) if part is not None]
        given = [op, *op.args[1:]]
        leaves = [placeholder(each.axes, each.dtype) for each in given]
        known: dict[Op, Op] = {
            each: leaf for each, leaf in zip(given, leaves, strict=True) if not each.weak
        }
        results = substitute_ops([part for part in parts if part is not None], known)
        body, captures = close_body([g, *leaves], results)
        inside = any(each.primitive.name == "parameter" for each in post_order([op]))
    if captures and inside:
        reason = f"in a loop or branch it reads {captures[0]} (made at {captures[0].line_info})"
        return DumpedRule(str(call), None, reason=reason), ()
    return DumpedRule(str(call), body, places), captures


RULE = (
    "write @geon.custom_deriv(lambda g, out, x: [cotangent of x]) above the function, or "
    "geon.custom_deriv(rule)(function)"
)


def _takes_inputs(rule: Any) -> bool:
    """Return True if a rule can be called with a cotangent, a result and an input."""
    try:
        inspect.signature(rule).bind(None, None, None)
    except TypeError:
        # A rule for more inputs has more parameters.
        return len(inspect.signature(rule).parameters) > 3
    except ValueError:  # a C function without a signature
        return True
    return True


@public
def custom_deriv(rule: Backward) -> Callable[[Callable[..., Tensor]], CustomDeriv]:
    """Return a decorator that gives a function of tensors the derivative rule ``rule``.

    ``rule(g, out, *inputs)`` returns a list with the cotangent of each input, over that input's
    axes, from the cotangent ``g`` of the result ``out``; None means zero. Reverse mode calls it;
    forward mode transposes it, for which it must be linear in ``g``. The inputs are the positional
    arguments: other tensors that the function reads are constants for derivatives. A rule that
    returns anything else raises ``DerivativeError`` when a derivative is taken. A ``rule`` that is
    no function raises ``ArgumentError`` at once::

        @geon.custom_deriv(lambda g, out, x: [g])
        def rounded(x):
            return geon.round(x)
    """
    what = user_call("custom_deriv")
    if not is_function(rule):
        raise ArgumentError(f"{what}: the rule {rule!r} is no function; {RULE}")
    if not _takes_inputs(rule):
        raise ArgumentError(
            f"{what}: {called(rule)}{inspect.signature(rule)} is no rule, which takes the "
            f"cotangent, the result and the inputs; {RULE}"
        )

    def decorate(*functions: Callable[..., Tensor]) -> CustomDeriv:
        if len(functions) != 1 or not is_function(functions[0]):
            given = ", ".join(map(repr, functions))
            raise ArgumentError(
                f"{what}: {called(rule)} was given as the rule, and ({given}) where the one "
                f"function of tensors stands; {RULE}"
            )
        return CustomDeriv(functions[0], rule)

    return decorate


def custom_vjp(g: Tensor, op: Op) -> list[Tensor | None]:
    """Return the cotangents of the arguments of a call, by its rule; None for the value itself."""
    call: CustomDeriv = op.attrs.rule
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
    """Return one cotangent that a rule returned, over the axes of its input."""
    where = f"for input {i}, {x} {x.dtype.name} (made at {x.line_info}),"
    if not is_continuous(x.dtype):
        raise _wrong(op, f"returned {part!r} {where} which has no derivative; return None for it")
    part = as_tensor(part, near=x)
    if part.weak and part.axes is NO_AXES:
        return broadcast(strengthen(part, x.dtype), x.axes)
    if not part.axes.same_set(x.axes):
        raise _wrong(
            op, f"returned {part} over the axes {part.axes} {where} whose axes are {x.axes}"
        )
    if x.weak:  # ops on a weak input, and so its cotangent, have the dtype that it met
        part = cast(part, x.dtype)
    if part.dtype is not x.dtype:
        raise _wrong(op, f"returned {part} of dtype {part.dtype.name} {where} of another dtype")
    return broadcast(part, x.axes)


def _wrong(op: Op, what: str) -> DerivativeError:
    rule = called(op.attrs.rule.rule)
    return DerivativeError(
        f"custom_deriv: the rule {rule} of {op.attrs.rule}, called at {op.line_info}, {what}"
    )


def custom_jvp(op: Op, moving: list[int], tangents: dict[Op, Tensor]) -> Tensor | None:
    """Return the tangent of the result: the transpose of the rule, which must be linear in g."""
    g = placeholder(op.axes, op.dtype)
    parts = custom_vjp(g, op)
    known = {op, *op.args}
    total: Tensor | None = None
    for i in moving:
        part = parts[i]
        if part is not None:
            t = reverse_mode(part, tangents[op.args[i]], [g], known).get(g)
            if t is not None:
                total = t if total is None else add.apply(total, t)
    linear = {*known, *(tangents[op.args[i]] for i in moving)}
    if total is not None and g in set(post_order([total], linear)):
        raise _wrong(
            op,
            "is not linear in its cotangent, so forward mode cannot be derived from it; "
            "use reverse mode (deriv, vjp)",
        )
    return total
