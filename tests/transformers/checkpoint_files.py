"""Entries, arrays and damaged files for the tests of checkpoints."""

import json
import struct

import ml_dtypes
import numpy as np
import pytest

from geon.errors import CheckpointError
from geon.transformers.runtime import checkpoint
from geon.transformers.runtime.checkpoint import CheckpointEntry, save
from geon.transformers.runtime.checkpoint_selection import Choice

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"
    " float8_e4m3fn float8_e5m2"
).split()


def load(path, entries):
    """The arrays of a file all of whose entries are expected."""
    return checkpoint.load(path, entries, Choice())[0]


def entry(key="w", axes=(("C", 2), ("N", 3)), dtype="float32", automatic=False, kind="variable"):
    return CheckpointEntry(key, automatic, kind, tuple(axes), dtype, f"{key} made at model.py:7")


def as_dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def values(shape=(2, 3), dtype="float32", first=0):
    return (np.arange(np.prod(shape)) + first).reshape(shape).astype(as_dtype(dtype))


def same(found, expected):
    return (found.dtype, found.shape, found.tobytes()) == (
        expected.dtype.newbyteorder("="),
        expected.shape,
        np.asarray(expected, expected.dtype.newbyteorder("="), order="C").tobytes(),
    )


def written(path, entries=None, arrays=None):
    """A checkpoint of two small variables, or of those given."""
    entries = entries or [entry(), entry("b", (("C", 2),), "int64")]
    arrays = arrays or [values(), values((2,), "int64")]
    save(path, entries, arrays)
    return entries, arrays


def refused(path, entries, *words):
    """The message of the refusal, which has all the words."""
    with pytest.raises(CheckpointError) as caught:
        load(path, entries)
    message = str(caught.value)
    for word in (str(path), *words):
        assert word in message, message
    return message


def header_of(path):
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def write_header(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_metadata(path, **changes):
    """Rewrites the file with other metadata; a change to ``None`` removes the field."""
    header, data = header_of(path)
    header["__metadata__"].update(changes)
    header["__metadata__"] = {k: v for k, v in header["__metadata__"].items() if v is not None}
    write_header(path, header, data)


def unnamed(number, axes=(("C", 2), ("N", 3)), **rest):
    return entry(f"variable(C,N).{number}", axes, automatic=True, **rest)


def only_file(folder):
    (path,) = folder.iterdir()
    return path.name
