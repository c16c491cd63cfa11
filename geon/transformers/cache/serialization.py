"""JSON serialisation of compiled programs: immutable values of known classes, without ops.

A process that requests a program that was compiled before reads it, and runs no stage.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...op_graph.axes.lengths import Length
from ...op_graph.text.encoding import read_length, write_length
from ...op_graph.values.dtypes import named_dtype
from . import disk

EXPRESSIONS = "geon.transformers.printing.scalars.c_expressions"
COMPILER = ("op_graph", "transformers")  # folders; all others only build graphs
SOURCES = (".py", ".c", ".h", ".cuh", ".hpp", ".cpp")


def to_json(value: Any, parts: Mapping[str, str]) -> Any:
    """Convert a value to JSON values; ``parts`` maps names of allowed classes to modules."""
    if isinstance(value, Length):
        return {"length": write_length(value)}
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    if isinstance(value, np.ndarray):
        return {"array": value.tobytes().hex(), "of": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, tuple):
        return [to_json(each, parts) for each in value]
    if isinstance(value, frozenset):
        # By text, since the order in which sets are shown differs from process to process.
        return {"set": sorted([to_json(each, parts) for each in value], key=json.dumps)}
    if isinstance(value, dict):
        return {"table": [[key, to_json(each, parts)] for key, each in value.items()]}
    if parts.get(type(value).__name__) == type(value).__module__:
        fields = [field.name for field in dataclasses.fields(value) if field.init]
        found = {name: to_json(getattr(value, name), parts) for name in fields}
        return {"is": type(value).__name__, **found}
    assert value is None or type(value) in (int, bool, str), f"{value!r} in a record"
    return value


def from_json(value: Any, parts: Mapping[str, str]) -> Any:
    """Convert JSON values from ``to_json`` back."""
    if isinstance(value, list):
        return tuple([from_json(each, parts) for each in value])
    if not isinstance(value, dict):
        return value
    if "is" in value:
        kind = getattr(importlib.import_module(parts[value["is"]]), value["is"])
        return kind(
            **{name: from_json(each, parts) for name, each in value.items() if name != "is"}
        )
    if "length" in value:
        return read_length(value["length"])
    if "dtype" in value:
        return named_dtype(value["dtype"])
    if "array" in value:
        flat = np.frombuffer(bytes.fromhex(value["array"]), named_dtype(value["of"]))
        return flat.reshape(value["shape"])
    if "set" in value:
        return frozenset([from_json(each, parts) for each in value["set"]])
    return {key: from_json(each, parts) for key, each in value["table"]}


class RecordStore:
    """The records of a target's programs in the disk cache.

    ``kind`` begins the digest of their names. ``parts`` maps the names of the classes that a record
    may contain to their modules.
    """

    def __init__(self, kind: str, parts: Mapping[str, str]) -> None:
        self.kind, self.parts = kind, parts

    def load(self, key: str, *machine: str) -> Any:
        """Return the record under a program's key and a description of the machine, or None."""
        content = disk.load(self._name(key, machine))
        return None if content is None else from_json(json.loads(content), self.parts)

    def save(self, record: Any, key: str, *machine: str) -> None:
        """Store a record under a program's key and a description of the machine."""
        text = json.dumps(to_json(record, self.parts))
        disk.keep_bytes(self._name(key, machine), text.encode("ascii"))

    def _name(self, key: str, machine: tuple[str, ...]) -> str:
        parts = (self.kind, key, made_by(), changed_texts(), *machine)
        return f"program-{disk.digest(*parts)}"


@functools.cache
def made_by() -> str:
    """Return a digest of the paths, sizes and times of geon's files that programs depend on."""
    root = Path(__file__).parents[2]
    return disk.digest(*sorted(s for each in COMPILER for s in _stats(str(root / each), each)))


def changed_texts() -> str:
    """Return the table entries of C expressions that a user added or changed, as text; "" for none.

    The text of geon's own entries is part of ``made_by``. A program that changes entries has
    imported the module that has them: if it is not imported, none was changed.
    """
    if EXPRESSIONS not in sys.modules:
        return ""
    changed = importlib.import_module(EXPRESSIONS).changed_rows()
    return repr(sorted(changed.items())) if changed else ""


def _stats(folder: str, within: str) -> Iterator[str]:
    """Yield the path, size and time of each source file in a folder that can be read."""
    try:
        entries = os.scandir(folder)
    except PermissionError:
        return
    with entries:
        for entry in entries:
            name = f"{within}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from _stats(entry.path, name)
            elif entry.name.endswith(SOURCES):
                status = entry.stat()
                yield f"{name} {status.st_size} {status.st_mtime_ns}"
