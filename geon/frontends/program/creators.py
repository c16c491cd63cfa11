"""Operator creators, generated from the prototypes: ``program.op.tanh(X="x", Out="y")``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...errors import ArgumentError
from ...op_graph.core.source_info import user_call
from .program import NEW, Block, Var, default_main_program
from .registry import REQUIRED, OpProto, operator_info, operator_types


class OperatorCreators:
    """A function for each registered operator, found by its type as an attribute.

    A creator adds an operator to the current block of the default main program. It takes the input
    slots by position or name, and attributes and output slots by name. Variables are given by
    ``Var`` or by name. It declares new variables for outputs that are left out, and returns the
    outputs: one variable, or a tuple without those that only gradients read.
    """

    def __getattr__(self, type: str) -> Callable[..., Any]:
        try:
            proto = operator_info(type).proto
        except KeyError as error:
            raise AttributeError(str(error)) from None
        created = creator(proto)
        self.__dict__[type] = created
        return created

    def __dir__(self) -> list[str]:
        return operator_types()


def creator(proto: OpProto) -> Callable[..., Any]:
    """Return the function that adds operators of a prototype, with signature and docstring."""

    def create(*args: Any, **named: Any) -> Any:
        try:
            given = signature.bind(*args, **named).arguments
        except TypeError as error:
            raise ArgumentError(
                f"{user_call(proto.type)}: {error}; its signature is {proto.type}{signature}"
            ) from None
        return add_operator(default_main_program().current_block(), proto.type, given)

    signature = signature_of(proto)
    create.__name__ = create.__qualname__ = proto.type
    create.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    create.__doc__ = document(proto)
    return create


def add_operator(block: Block, type: str, given: dict[str, Any]) -> Any:
    """Add an operator with arguments by the name of a slot or attribute; return its outputs."""
    proto = operator_info(type).proto
    roles = [
        {slot.name: given[slot.name] for slot in slots if given.get(slot.name) is not None}
        for slots in (proto.inputs, proto.outputs)
    ]
    inputs, outputs = roles
    outputs = {slot.name: outputs.get(slot.name, NEW) for slot in proto.outputs}
    names = [attribute.name for attribute in proto.attributes]
    attributes = {name: given[name] for name in names if name in given}
    made = block.append_op(type, inputs, outputs, attributes)
    found: list[Any] = []
    for slot in proto.outputs:
        ids = made.outputs[slot.name]
        if slot.intermediate and slot.name not in given:
            continue
        listed = [block.var(block.program.values[k].name) for k in ids or ()]
        found.append(listed if slot.duplicable else listed[0] if listed else None)
    return found[0] if len(found) == 1 else tuple(found)


def signature_of(proto: OpProto) -> inspect.Signature:
    """Return the signature of a creator: inputs, then by keyword attributes and outputs."""
    kind = inspect.Parameter
    parameters, optional = [], False
    for slot in proto.inputs:  # a required slot after one that may be left out has a default too
        optional = optional or slot.dispensable
        default = None if optional else kind.empty
        annotation = "list[Var | str]" if slot.duplicable else Var | str
        parameters.append(
            kind(slot.name, kind.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)
        )
    for attribute in proto.attributes:
        value = kind.empty if attribute.default is REQUIRED else attribute.default
        parameters.append(
            kind(attribute.name, kind.KEYWORD_ONLY, default=value, annotation=attribute.type)
        )
    for slot in proto.outputs:
        parameters.append(kind(slot.name, kind.KEYWORD_ONLY, default=None))
    return inspect.Signature(parameters)


def document(proto: OpProto) -> str:
    """Return the docstring of a creator: the comments of the prototype, slots and attributes."""
    lines = [proto.comment or f"Add an operator {proto.type}.", ""]
    for title, slots in (("Inputs", proto.inputs), ("Outputs", proto.outputs)):
        lines += [f"{title}:"] if slots else []
        for slot in slots:
            flags = [f for f in ("duplicable", "dispensable", "intermediate") if getattr(slot, f)]
            noted = f" ({', '.join(flags)})" if flags else ""
            lines.append(f"    {slot.name}{noted}: {slot.comment}".rstrip(": "))
    lines += ["Attributes:"] if proto.attributes else []
    for each in proto.attributes:
        words = f", {each.check.words}" if each.check else ""
        default = "required" if each.default is REQUIRED else f"default {each.default!r}"
        lines.append(
            f"    {each.name} ({each.type}{words}; {default}): {each.comment}".rstrip(": ")
        )
    return "\n".join(lines)


op = OperatorCreators()
