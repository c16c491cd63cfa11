"""Parsing of a model in which the bytes of large initializers stay where they are.

protobuf would copy them when it parses, and again when they are read. The fields of the model, its
graph and its initializers are therefore found here, by the encoding of protobuf
(https://protobuf.dev/programming-guides/encoding), and all other bytes are left to it.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from google.protobuf.message import DecodeError

MIN_LEFT_BYTES = 4096  # of an initializer that is not copied; finding its data takes 5 µs
VARINT, EIGHT_BYTES, SIZED, FOUR_BYTES = 0, 1, 2, 5  # kinds of fields
MAX_VARINT_BITS = 64
GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number


def parsed(data: memoryview) -> tuple[onnx.ModelProto, dict[str, memoryview]]:
    """Return a model whose large initializers lack ``raw_data``, and their data by name.

    The data are parts of ``data``. Raises ``DecodeError`` for what is no model.
    """
    model = onnx.ModelProto()
    raw: dict[str, memoryview] = {}
    for is_graph, whole in _split(data, GRAPH):
        if not is_graph:
            model.MergeFromString(whole)
            continue
        model.graph.SetInParent()
        for is_tensor, part in _split(whole, INITIALIZER):
            if not is_tensor:
                model.graph.MergeFromString(part)
                continue
            tensor = model.graph.initializer.add()
            pieces = [*_split(part, RAW_DATA)] if len(part) >= MIN_LEFT_BYTES else []
            if sum(is_raw for is_raw, _ in pieces) != 1:
                tensor.MergeFromString(part)
                continue
            for is_raw, piece in pieces:
                if not is_raw:
                    tensor.MergeFromString(piece)
            raw[tensor.name] = next(piece for is_raw, piece in pieces if is_raw)
    return model, raw


def _split(message: memoryview, number: int) -> Iterator[tuple[bool, memoryview]]:
    """Yield in order: True and the value of each field of this number, False and what is between.

    Only fields with a size count.
    """
    at = kept = 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        kind = tag & 7
        size = 8 if kind == EIGHT_BYTES else 4
        if kind in (VARINT, SIZED):
            size, at = _varint(message, at)
            size = size if kind == SIZED else 0
        elif kind not in (EIGHT_BYTES, FOUR_BYTES):
            raise DecodeError(f"a field has the kind {kind}")
        at += size
        if at > len(message):
            raise DecodeError("a field ends after its message")
        if tag == number << 3 | SIZED:
            if kept < start:
                yield False, message[kept:start]
            yield True, message[at - size : at]
            kept = at
    if kept < at:
        yield False, message[kept:]


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return a number in groups of 7 bits, the lowest first, and the position after it."""
    found = 0
    for shift in range(0, MAX_VARINT_BITS, 7):
        if at == len(message):
            break
        byte = message[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
    raise DecodeError("a number has no end")
