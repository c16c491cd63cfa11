"""Operator creators, generated from the prototypes: ``program.op.tanh(X="x", Out="y")``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter as Argument
from inspect import Signature
from typing import Any

from ...errors import ArgumentError
from ...op_graph.core.source_info import user_call
from .program import NEW, Block, default_main_program
from .registry import REQUIRED, OpProto, RegistryError, operator_info, operator_types


class OperatorCreators:
    """A function for each registered operator, found by its type as an attribute.

    A creator adds an operator to the current block of the default main program. It takes the input
    slots by position or name, and attributes and output slots by name. Variables are given by
    ``Var`` or by name. It declares new variables for outputs that are left out, and returns the
    outputs: one variable, or a tuple without those that only gradients read.
    """

    def __getattr__(self, type: str) -> Callable[..., Any]:
        try:
            created = creator(operator_info(type).proto)
        except RegistryError as error:
            raise AttributeError(str(error)) from None
        self.__dict__[type] = created
        return created

    def __dir__(self) -> list[str]:
        return operator_types()


def creator(proto: OpProto) -> Callable[..., Any]:
    """Return the function that adds operators of a prototype, with signature and docstring."""

    def create(*args: Any, **named: Any) -> Any:
        try:
            given = signature.bind_partial(*args, **named).arguments
        except TypeError as error:
            raise ArgumentError(
                f"{user_call(proto.type)}: {error}; its signature is {proto.type}{signature}"
            ) from None
        return add_operator(default_main_program().current_block(), proto, given)

    signature = signature_of(proto)
    create.__name__ = create.__qualname__ = proto.type
    create.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    create.__doc__ = document(proto)
    return create


def add_operator(block: Block, proto: OpProto, given: Mapping[str, Any]) -> Any:
    """Add an operator with arguments by the name of a slot or attribute; return its outputs."""
    inputs = {slot.name: given.get(slot.name) for slot in proto.inputs}
    written = {slot.name: given.get(slot.name) for slot in proto.outputs}
    outputs = {name: NEW if value is None else value for name, value in written.items()}
    attributes = {a.name: given[a.name] for a in proto.attributes if a.name in given}
    made = block.append_op(proto.type, inputs, outputs, attributes)
    found: list[Any] = []
    for slot in proto.outputs:
        ids = made.outputs[slot.name] or ()
        if not slot.intermediate or slot.name in given:
            listed = [block.var(block.program.values[k].name) for k in ids]
            found.append(listed if slot.duplicable else listed[0] if listed else None)
    return found[0] if len(found) == 1 else tuple(found)


def signature_of(proto: OpProto) -> Signature:
    """Return the signature of a creator: inputs, then by keyword attributes and outputs."""
    positional, keyword = Argument.POSITIONAL_OR_KEYWORD, Argument.KEYWORD_ONLY
    parameters: list[Argument] = []
    for slot in proto.inputs:  # a required slot after one that may be left out has a default too
        optional = slot.dispensable or any(p.default is None for p in parameters)
        parameters.append(
            Argument(slot.name, positional, default=None if optional else Argument.empty)
        )
    for each in proto.attributes:
        default = Argument.empty if each.default is REQUIRED else each.default
        parameters.append(Argument(each.name, keyword, default=default, annotation=each.type))
    parameters += [Argument(slot.name, keyword, default=None) for slot in proto.outputs]
    return Signature(parameters)


def document(proto: OpProto) -> str:
    """Return the docstring of a creator: the comments of the prototype, slots and attributes."""
    lines = [proto.comment or f"Add an operator {proto.type}.", ""]
    for title, slots in (("Inputs", proto.inputs), ("Outputs", proto.outputs)):
        lines += [f"{title}:"] if slots else []
        for slot in slots:
            flags = [f for f in ("duplicable", "dispensable", "intermediate") if getattr(slot, f)]
            flags += [f"{slot.rank} dimensions"] if slot.rank else []
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
