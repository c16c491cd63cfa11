"""Evaluation of operators on geon tensors: of values for a computation, of shapes for inference."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, GeonError
from ...op_graph.core.source_info import building
from .registry import OperatorError, OpInfo, Slot
from .values import ProgramValue, as_value, by_dimension

if TYPE_CHECKING:
    from .program import Operator, Program

Values = dict[str, Any]  # by slot: a list of values, None for a slot that was left out


class Inference(threading.local):
    """True while operators are evaluated for the shapes of their outputs."""

    is_running = False


inference = Inference()
EMPTY = -1  # the id that stands for no variable in a list of a duplicable slot


def infer(program: Program, op: Operator) -> Values:
    """Return placeholders for the outputs of an operator, from the specifications of its inputs."""
    inference.is_running = True
    try:
        return apply(program, op, {k: program.abstract(k) for k in op.reads})
    finally:
        inference.is_running = False


def evaluate(
    program: Program,
    index: int,
    values: dict[int, ProgramValue],
    ops: Sequence[Operator] | None = None,
) -> dict[int, ProgramValue]:
    """Add to ``values`` those that the operators of a block write, in order; return ``values``.

    ``values`` begins with those of the parameters of the block; ``ops`` are all by default.
    """
    for op in program.blocks[index].ops if ops is None else ops:
        found = apply(program, op, values)
        for slot, ids in op.outputs.items():
            for number, value in zip(ids or (), found[slot] if ids else (), strict=True):
                if number != EMPTY:
                    values[number] = value
    return values


def region(program: Program, index: int) -> Callable[[Sequence[ProgramValue]], list[Any]]:
    """Return a function from the values of a block's parameters, in order, to its results."""
    block = program.blocks[index]

    def run(arguments: Sequence[ProgramValue]) -> list[ProgramValue]:
        given = zip(block.parameters.values(), arguments, strict=True)
        values = evaluate(program, index, dict(given))
        return [values[number] for number in block.results]

    return run


def apply(program: Program, op: Operator, values: Mapping[int, ProgramValue]) -> Values:
    """Return the values of an operator's outputs by slot.

    Errors name the operator, its inputs with their shapes and writers, and the user's line.
    """
    given = {
        slot: None if ids is None else [None if k == EMPTY else values[k] for k in ids]
        for slot, ids in op.inputs.items()
    }
    with building() as current:
        current.site = op.site
        try:
            return compute(op.info, given, bound(program, op.attributes, op.info))
        except GeonError as error:
            if not getattr(error, "operator", None):
                error.args = (_explained(program, op, str(error)),)
                error.operator = op  # type: ignore[attr-defined]  # explained once
            raise
        except (ValueError, TypeError, ArithmeticError, LookupError) as error:
            text = f"{type(error).__name__}: {error}"
            failure = OperatorError(_explained(program, op, text))
            failure.operator = op  # type: ignore[attr-defined]  # explained once
            raise failure from error


def _explained(program: Program, op: Operator, text: str) -> str:
    lines = [f"{op}: {text}"]
    for slot, ids in op.inputs.items():
        lines += [f"  {slot} is {program.values[k]}" for k in ids or () if k != EMPTY]
    return "\n".join(lines)


def bound(program: Program, attributes: Mapping[str, Any], info: OpInfo) -> dict[str, Any]:
    """Return attributes for a function: a block's number is replaced by a function of values."""
    found = dict(attributes)
    for attribute in info.proto.attributes:
        if attribute.type == "block":
            found[attribute.name] = region(program, found[attribute.name])
    return found


def compute(info: OpInfo, given: Mapping[str, Any], attributes: Mapping[str, Any]) -> Values:
    """Return the outputs by slot that the function of an operator computes."""
    args = [single(slot, given[slot.name], info.positional) for slot in info.proto.inputs]
    result = info.function(*args, **attributes)
    slots = info.proto.outputs
    listed = (result,) if len(slots) == 1 else result
    if not isinstance(listed, tuple) or len(listed) != len(slots):
        raise ArgumentError(
            f"the function of {info.type} returned {listed!r}; it returns a tuple of "
            f"{len(slots)} values, for {', '.join(slot.name for slot in slots)}"
        )
    return {
        name: None if values is None else [None if v is None else as_value(v) for v in values]
        for name, values in by_slot(slots, listed).items()
    }


def by_slot(slots: Sequence[Slot], values: Sequence[Any]) -> Values:
    """Return a list of values for each slot, None for one left out."""
    return {
        slot.name: None if value is None else list(value) if slot.duplicable else [value]
        for slot, value in zip(slots, values, strict=True)
    }


def single(slot: Slot, values: Sequence[Any] | None, positional: bool = True) -> Any:
    """Return the values of a slot as a function takes them: a list if the slot is duplicable.

    Functions that are not positional take geon tensors with axes by dimension.
    """
    if values is None:
        return None
    found = values if positional else [None if v is None else by_dimension(v) for v in values]
    return list(found) if slot.duplicable else found[0]
