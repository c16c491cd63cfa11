"""Facts of the standard about operators: attributes, counts of inputs, function bodies."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import onnx
from onnx import AttributeProto, defs

from .errors import ModelError

MAX_VERSION = 2**31 - 1  # of an operator set: an int of C


class DeclaredAttribute(NamedTuple):
    """An attribute in a schema; ``default`` is None where a node without it has no value."""

    type: int
    required: bool
    default: AttributeProto | None


@cache
def attributes_of(schema: Any) -> dict[str, DeclaredAttribute]:
    """Return the attributes of a schema by name; cached, as ``onnx`` converts them at each use."""
    found = {}
    for name, each in schema.attributes.items():
        default = each.default_value
        has_default = default.type != AttributeProto.UNDEFINED
        found[name] = DeclaredAttribute(
            int(each.type), each.required, default if has_default else None
        )
    return found


@cache
def schema_of(domain: str, name: str, version: int) -> Any:
    """Return the schema of an operator in a version of its domain; None if there is none."""
    try:
        return defs.get_schema(name, min(max(version, 0), MAX_VERSION), domain)
    except defs.SchemaError:
        return None


def function_of(schema: Any, version: int) -> onnx.FunctionProto | None:
    """Return the function that defines an operator by others, for any types; None if none does."""
    versions = [v for v in schema.function_opset_versions if v <= version]
    if not versions:
        return None
    body = schema.get_function_with_opset_version(max(versions))
    return onnx.FunctionProto.FromString(
        body if isinstance(body, bytes) else body.SerializeToString()
    )


def typed_function_of(
    schema: Any, version: int, node: onnx.NodeProto, types: list[onnx.TypeProto]
) -> onnx.FunctionProto | None:
    """Return the function that defines an operator for inputs of these types; None if none does."""
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
    if not versions:
        return None
    body = schema.get_context_dependent_function_with_opset_version(
        max(versions), node.SerializeToString(), [each.SerializeToString() for each in types]
    )
    function = onnx.FunctionProto.FromString(body)
    return function if function.node else None


def has_function(schema: Any, version: int) -> bool:
    """Return True if the standard defines an operator by others."""
    typed = schema.context_dependent_function_opset_versions
    return any(v <= version for v in (*schema.function_opset_versions, *typed))


def checked_attributes(node: onnx.NodeProto, schema: Any) -> dict[str, AttributeProto]:
    """Return the attributes of a node by name, with the defaults of its schema.

    Raises ``ModelError`` for an attribute that is missing, unknown or of another type, and for a
    wrong number of inputs or outputs.
    """
    given: dict[str, AttributeProto] = {}
    for attribute in node.attribute:
        if attribute.name in given:
            raise ModelError(f"the attribute {attribute.name!r} is there twice")
        given[attribute.name] = attribute
    if schema is None:
        return given
    for count, least, most, what in (
        (len(node.input), schema.min_input, schema.max_input, "inputs"),
        (len(node.output), schema.min_output, schema.max_output, "outputs"),
    ):
        if not least <= count <= most:
            raise ModelError(f"it has {count} {what}; the operator has {least} to {most}")
    attributes = attributes_of(schema)
    for name, attribute in given.items():
        declared = attributes.get(name)
        if declared is None:
            raise ModelError(
                f"it has no attribute {name!r} in version {schema.since_version}; it has "
                f"{', '.join(attributes) or 'none'}"
            )
        if declared.type != attribute.type:
            names = AttributeProto.AttributeType
            raise ModelError(
                f"the attribute {name!r} is {names.Name(attribute.type)}, not "
                f"{names.Name(declared.type)}"
            )
    for name, declared in attributes.items():
        if name in given:
            continue
        if declared.required:
            raise ModelError(f"the attribute {name!r} is missing")
        if declared.default is not None:
            given[name] = declared.default
    return given
