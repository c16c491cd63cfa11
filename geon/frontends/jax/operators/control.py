"""Calls, loops and branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...positional.control import branch, outside, repeat_while, scan_rows
from ...positional.values import Size, Value

Builder = Callable[..., list[Value]]


def inlined(parameter: str) -> Callable[..., tuple[Any, ...]]:
    """Return the builder of a call: the equations of the jaxpr in a parameter."""

    def build(*operands: Any, builder: Builder, parameters: Any) -> tuple[Any, ...]:
        return tuple(builder(parameters[parameter], operands))

    return build


def scanned(
    *operands: Any,
    builder: Builder,
    jaxpr: Any,
    length: Size,
    reverse: bool,
    num_consts: int,
    num_carry: int,
) -> tuple[Any, ...]:
    """Return the last carries and the stacked values of a loop over the first position."""
    given = outside(operands)
    constants, init = given[:num_consts], given[num_consts : num_consts + num_carry]

    def step(carries: list[Value], slices: list[Value]) -> tuple[list[Value], list[Value]]:
        found = builder(jaxpr, [*constants, *carries, *slices])
        return found[:num_carry], found[num_carry:]

    last, values = scan_rows(step, init, given[num_consts + num_carry :], length, reverse)
    return (*last, *values)


def repeated(
    *operands: Any,
    builder: Builder,
    cond_jaxpr: Any,
    body_jaxpr: Any,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[Any, ...]:
    """Return the carries after a loop that ends by a condition."""
    given = outside(operands)
    of_condition = given[:cond_nconsts]
    of_body = given[cond_nconsts : cond_nconsts + body_nconsts]
    return tuple(
        repeat_while(
            lambda carries: builder(cond_jaxpr, [*of_condition, *carries])[0],
            lambda carries: builder(body_jaxpr, [*of_body, *carries]),
            given[cond_nconsts + body_nconsts :],
        )
    )


def branched(
    number: Value, *operands: Any, builder: Builder, branches: Any, results: Any
) -> tuple[Any, ...]:
    """Return the results of one of several jaxprs."""
    given = outside(operands)
    makes = [lambda each=each: builder(each, given) for each in branches]
    return tuple(branch(number, makes, [each.shape for each in results]))


ROWS: dict[str, Callable[..., Any]] = {
    **{name: inlined("jaxpr") for name in ("jit", "pjit", "remat2")},
    **{
        name: inlined("call_jaxpr")
        for name in ("closed_call", "custom_jvp_call", "custom_vjp_call")
    },
    "scan": scanned,
    "while": repeated,
    "cond": branched,
}
