"""``ProgramDesc`` as a protobuf message, whose descriptors are made from ``MESSAGES``.

``program.proto`` is the same schema as a file for other languages.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from ...errors import UnavailableError
from .description import MESSAGES, Desc, ProgramFileError, converted

PACKAGE = "geon.program"
SCALARS = {"int": "int64", "float": "double", "bool": "bool", "string": "string", "json": "string"}


def schema_text() -> str:
    """Return the text of ``program.proto``."""
    lines = ['syntax = "proto3";', "", f"package {PACKAGE};"]
    for message, fields in MESSAGES.items():
        lines += ["", f"message {message} {{"]
        for number, (name, type) in enumerate(fields.items(), 1):
            kind = type.rstrip("*")
            many = "repeated " if type != kind else ""
            lines.append(f"  {many}{SCALARS.get(kind, kind)} {name} = {number};")
        lines.append("}")
    return "\n".join([*lines, ""])


@functools.cache
def message_class() -> Any:
    """Return the class of ``ProgramDesc`` messages; raise ``UnavailableError`` without protobuf."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise UnavailableError(
            "programs as protobuf need the package protobuf: pip install protobuf; or save as JSON"
        ) from None
    types = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="geon/program.proto", package=PACKAGE, syntax="proto3"
    )
    for message, fields in MESSAGES.items():
        made = file.message_type.add(name=message)
        for number, (name, type) in enumerate(fields.items(), 1):
            kind = type.rstrip("*")
            label = types.LABEL_OPTIONAL if type == kind else types.LABEL_REPEATED
            field = made.field.add(name=name, number=number, label=label)
            if kind in MESSAGES:
                field.type, field.type_name = types.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
            else:
                field.type = getattr(types, f"TYPE_{SCALARS[kind].upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.ProgramDesc"))


def to_bytes(desc: Desc) -> bytes:
    """Return a description as a serialised message."""
    plain = converted(
        "ProgramDesc", desc, dict.__getitem__, lambda v, t: json.dumps(v) if t == "json" else v
    )
    data: bytes = message_class()(**plain).SerializeToString(deterministic=True)
    return data


def from_bytes(data: bytes) -> Desc:
    """Return the description in a serialised message; raise ``ProgramFileError``."""
    from google.protobuf.message import DecodeError

    message = message_class()()
    try:
        message.ParseFromString(data)
        return converted(
            "ProgramDesc", message, getattr, lambda v, t: json.loads(v) if t == "json" else v
        )
    except (DecodeError, RecursionError, ValueError) as error:
        raise ProgramFileError(
            f"these {len(data)} bytes are no program, or are damaged: {error}; save it again"
        ) from None
