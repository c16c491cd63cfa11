"""Evaluation of operators on geon tensors: of values for a computation, of shapes for inference."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, GeonError
from ...op_graph.core.source_info import building
from ...op_graph.rows.custom_calls import CustomDeriv
from ...op_graph.values.dtypes import is_continuous
from ..positional.regions import fitted, ordered
from ..positional.values import PositionalArray, array
from .registry import GRAD_OP, OperatorError, OpInfo, Slot
from .values import ProgramValue, as_table, as_value, by_dimension

if TYPE_CHECKING:
    from .program import Block, Operator, Program

Values = dict[str, Any]  # by slot: a list of values, None for a slot that was left out
Functions = Mapping["Operator", Callable[..., Values]]
EMPTY = -1  # the id that stands for no variable in a list of a duplicable slot


class Inference(threading.local):
    """``is_running`` while operators are evaluated for the shapes of their outputs."""

    is_running = False


inference = Inference()


def infer(program: Program, op: Operator) -> Values:
    """Return placeholders for the outputs of an operator, from the specifications of its inputs."""
    inference.is_running = True
    try:
        return apply(program, op, {k: program.abstract(k) for k in op.reads})
    finally:
        inference.is_running = False


def evaluate(
    program: Program, index: int, values: dict[int, ProgramValue],
    ops: Sequence[Operator] | None = None, functions: Functions | None = None,
) -> dict[int, ProgramValue]:  # fmt: skip
    """Add to ``values`` those that the operators of a block write, in order; return ``values``.

    ``values`` begins with those of the parameters of the block; ``ops`` are all by default.
    ``functions`` compute the outputs of operators in place of their own functions.
    """
    for op in program.blocks[index].ops if ops is None else ops:
        found = apply(program, op, values, index > 0, (functions or {}).get(op))
        for slot, ids in op.outputs.items():
            values.update(zip(ids or (), found[slot] if ids else (), strict=True))
    values.pop(EMPTY, None)
    return values


def apply(
    program: Program, op: Operator, values: Mapping[int, ProgramValue], is_inner: bool = False,
    function: Callable[..., Values] | None = None,
) -> Values:  # fmt: skip
    """Return the values of an operator's outputs by slot; ``is_inner`` if it is in an inner block.

    ``function`` of inputs and attributes computes them in place of the operator's own. Errors name
    the operator, its inputs with their shapes and writers, and the user's line.
    """
    given = {
        slot: None if ids is None else [None if k == EMPTY else values[k] for k in ids]
        for slot, ids in op.inputs.items()
    }
    attributes = dict(op.attributes)
    for each in op.info.proto.attributes:
        if each.type == "block":  # a function from the values of its parameters to its results
            attributes[each.name] = BlockFunction(program, attributes[each.name])
    with building() as current:
        current.site = op.site
        try:
            if function is not None:
                return function(given, attributes)
            found = compute(op.info, given, attributes)
            is_ruled = is_inner and op.info.gradient is not None
            return with_rule(op.info, given, found, attributes) if is_ruled else found
        except Exception as error:
            if hasattr(error, "operator"):  # that of a block, which is explained
                raise
            is_own = isinstance(error, GeonError)
            text = str(error)
            if not is_own:
                settings = ", ".join([f"{k}={v!r}" for k, v in op.attributes.items()])
                text = (
                    f"its function raised {type(error).__name__}: {error}; check the shapes and "
                    f"dtypes of its inputs and the attributes {settings or '(none)'}"
                )
            lines = [f"{op}: {text}"]
            for slot, ids in op.inputs.items():
                lines += [f"  {slot} is {program.values[k]}" for k in ids or () if k != EMPTY]
            failure: Any = error if is_own else OperatorError()
            failure.args, failure.operator = ("\n".join(lines),), op
            raise failure from error.__cause__ if is_own else error


@dataclass(frozen=True, eq=False)
class BlockFunction:
    """The function of a block, from the values of its parameters to its results, in order."""

    program: Program
    index: int

    @property
    def block(self) -> Block:
        """The block."""
        return self.program.blocks[self.index]

    def __call__(self, arguments: Sequence[ProgramValue]) -> list[ProgramValue]:
        return self.results(arguments)

    def results(
        self, arguments: Sequence[ProgramValue], functions: Functions | None = None
    ) -> list[ProgramValue]:
        """Return the results of the block; ``functions`` are as in ``evaluate``."""
        given = dict(zip(self.block.parameters.values(), arguments, strict=True))
        values = evaluate(self.program, self.index, given, functions=functions)
        return [values[number] for number in self.block.results]


def compute(info: OpInfo, given: Mapping[str, Any], attributes: Mapping[str, Any]) -> Values:
    """Return the outputs by slot that the function of an operator computes."""
    if not info.takes_rows:
        given = {name: vs and [as_table(v) for v in vs] for name, vs in given.items()}
    for slot in info.proto.inputs:
        for value in given[slot.name] or ():
            if value is not None:
                slot.check_rank(len(value.shape))
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


def with_rule(info: OpInfo, given: Values, found: Values, attributes: Mapping[str, Any]) -> Values:
    """Return the outputs ``found`` with the gradient that was registered as their derivative.

    So loops and branches, whose bodies geon derives, use it, too; selected rows become tables. An
    operator on other values than tensors keeps the derivative of its function.
    """
    every = {**given, **found}
    places = [
        (name, k) for name, vs in every.items() for k, v in enumerate(vs or ()) if v is not None
    ]
    if not all(isinstance(every[name][k], PositionalArray) for name, k in places):
        return found
    held = {(name, k): ordered(every[name][k]) for name, k in places}

    def ruled(place: tuple[str, int]) -> PositionalArray:
        value = held[place]

        def rule(g: Any, _: Any, *tensors: Any) -> list[Any]:
            from .gradients import by_rule  # imported for training only

            now: Values = {name: vs and [None] * len(vs) for name, vs in every.items()}
            now |= {slot.name + GRAD_OP: now[slot.name] and [*now[slot.name]] for slot in outputs}
            now[place[0] + GRAD_OP][place[1]] = array(g, value.dims)
            for (name, k), tensor in zip(places, tensors, strict=True):
                now[name][k] = array(tensor, held[name, k].dims)
            gradients = by_rule(info, now, attributes)
            parts = [gradients[name][k] if name in gradients else None for name, k in places]
            what = f"a gradient of {info.type}"
            pairs = zip(map(as_table, parts), held.values(), strict=True)
            return [part and fitted(part, like, what) for part, like in pairs]

        made = CustomDeriv(lambda *_: value.tensor, rule)(*[v.tensor for v in held.values()])
        return array(made, value.dims)

    outputs = info.proto.outputs
    for name, k in places:
        if name in found and is_continuous(found[name][k].dtype):
            found[name][k] = ruled((name, k))
    return found


def by_slot(slots: Sequence[Slot], values: Sequence[Any]) -> Values:
    """Return a list of values for each slot, None for one left out."""
    return {
        slot.name: value if value is None else list(value) if slot.duplicable else [value]
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
