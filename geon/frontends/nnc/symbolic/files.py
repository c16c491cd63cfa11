"""Files of symbolic graphs: JSON of symbols and nodes, with bound tensors, as safetensors.

The entry ``graph`` of a file is the JSON, whose ``version`` is ``VERSION``; ``bind.0`` and so on
are the elements of bound tensors. A command of the table is written by name. A loop, a branch and
a function of the user are written as geon's ops, as ``geon.dumps`` does, so that a file runs no
code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np

import geon

from ....errors import ArgumentError, CheckpointError, GeonError
from ....op_graph.transforms.functionalize import substitute
from ...positional.values import PositionalArray, Value, array, as_array
from ..commands import cmd, command_table
from ..commands.command import Command, CommandRow, leaf_of, matching
from ..files import read_arrays, store_of
from ..tensors import Part, Tensor, TensorParam
from .compiling import bound_tensor

if TYPE_CHECKING:
    from .graph import SymbolicGraph, TensorSymbol

VERSION = 1
Record = dict[str, Any]
MALFORMED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)
"""What reading a record of another form raises."""
Contents = tuple["SymbolicGraph", "dict[str, TensorSymbol]", "dict[TensorSymbol, Tensor]"]


def write_graph(
    graph: SymbolicGraph, path: str | os.PathLike[str],
    symbols: Mapping[str, TensorSymbol] | None = None,
    binds: Mapping[TensorSymbol, Any] | None = None,
) -> None:  # fmt: skip
    """Write the graph to a file, with the names of ``symbols``, and tensors or arrays of ``binds``.

    Loops, branches and functions of ``cmd.custom`` are written as the ops that they build; a file
    runs no code.
    """
    symbols, binds = symbols or {}, binds or {}
    for name, symbol in symbols.items():
        if getattr(symbol, "graph", None) is not graph:
            raise ArgumentError(
                f"{symbol!r:.80}, for the name {name!r}, is no symbol of {graph.name}; give one of "
                "its symbols"
            )
    tensors = [bound_tensor(s, tensor) for s, tensor in binds.items()]
    numbers: dict[TensorSymbol, int] = {}
    rows: list[Record] = []

    def number(symbol: TensorSymbol | None) -> int | None:
        if symbol is not None and symbol not in numbers:
            base, part = number(symbol.base), None
            if symbol.part is not None and symbol.part.slices is not None:
                part = [[s.start, s.stop, s.step] for s in symbol.part.slices]
            kept = {"name": symbol.name, "base": base, "slices": part, "fill": symbol.fill}
            rows.append({"param": astuple(symbol.param), "is_state": symbol.is_state, **kept})
            numbers[symbol] = len(numbers)
        return None if symbol is None else numbers[symbol]

    place = {node: k for k, node in enumerate(graph.nodes)}
    nodes = [
        {
            "name": node.name, "command": _command_record(node.command, node.params),
            "inputs": list(map(number, node.inputs)), "outputs": list(map(number, node.outputs)),
            "params": [None if p is None else astuple(p) for p in node.params],
        }
        for node in graph.nodes
    ]  # fmt: skip
    record = {
        "version": VERSION, "name": graph.name, "nodes": nodes,
        "edges": [[place[a], place[b]] for a, after in graph.edges.items() for b in after],
        "sources": [place[node] for node in graph.sources],
        "destinations": [place[node] for node in graph.destinations],
        "gradients": [[number(x), number(d)] for x, d in graph.gradients.items()],
        "symbols": {name: number(symbol) for name, symbol in symbols.items()},
        "binds": [[number(s), astuple(t.param)] for s, t in zip(binds, tensors, strict=True)],
        "rows": rows,
    }  # fmt: skip
    text = np.frombuffer(json.dumps(record).encode(), np.uint8)
    held = {f"bind.{k}": tensor.array for k, tensor in enumerate(tensors)}
    store_of({"graph": text, **held})[0].save(path)


def read_graph(kind: type[SymbolicGraph], path: str | os.PathLike[str]) -> Contents:
    """Return the graph in a file, its symbols by name, and the tensors for ``compile``.

    Raises ``CheckpointError`` for a file that is damaged or has no graph.
    """
    held = read_arrays(path)
    if "graph" not in held:
        raise CheckpointError(
            f"{os.fspath(path)} has no symbolic graph, but the entries {', '.join(held)}; write "
            "one with graph.write"
        )
    try:
        record = json.loads(held["graph"].tobytes())
        if record["version"] != VERSION:
            raise CheckpointError(
                f"{os.fspath(path)} has a graph of version {record['version']}, and this geon "
                f"reads {VERSION}; write it again with graph.write"
            )
        graph, rows = _graph_of(kind(record["name"]), record)
        symbols = {name: rows[number] for name, number in record["symbols"].items()}
        binds = {}
        for k, (number, given) in enumerate(record["binds"]):
            param, elements = TensorParam(*given), held[f"bind.{k}"]
            tensor = Tensor(elements, format=param.format, device=param.device)
            binds[rows[number]] = bound_tensor(rows[number], tensor)
    except CheckpointError:
        raise
    except (GeonError, *MALFORMED) as error:
        raise CheckpointError(
            f"{os.fspath(path)} has no symbolic graph that geon can read "
            f"({type(error).__name__}: {error}); write one with graph.write"
        ) from error
    return graph, symbols, binds


def _graph_of(
    graph: SymbolicGraph, record: Record
) -> tuple[SymbolicGraph, dict[int, TensorSymbol]]:
    """Fill the graph of a record, whose nodes are checked as new ones; return symbols by number."""
    rows: dict[int, TensorSymbol] = {}
    for k, row in enumerate(record["rows"]):
        param, name, slices = TensorParam(*row["param"]), row["name"], row["slices"]
        if row["base"] is None:
            rows[k] = graph.tensor(param, name=name, fill=row["fill"], is_state=row["is_state"])
        else:
            part = Part(param.shape, slices and tuple([slice(*each) for each in slices]))
            rows[k] = rows[row["base"]].part_symbol(part, name)
    for node in record["nodes"]:
        params = [None if p is None else TensorParam(*p) for p in node["params"]]
        inputs, outputs = (
            [None if n is None else rows[n] for n in node[what]] for what in ("inputs", "outputs")
        )
        command = _command_of(node["command"], params)
        graph.add(command, inputs, params, outputs, node["name"])
    nodes = dict(enumerate(graph.nodes))
    for before, after in record["edges"]:
        graph.concat(nodes[before], nodes[after])
    graph.set_sources([nodes[k] for k in record["sources"]])
    graph.set_destinations([nodes[k] for k in record["destinations"]])
    graph.gradients = {rows[x]: rows[d] for x, d in record["gradients"]}
    return graph, rows


# Commands -----------------------------------------------------------------------------------------


def _command_record(command: Command, params: Sequence[TensorParam | None]) -> Record:
    """Return a command by name and attributes, or as the ops that it builds for these params."""
    if command.row is command_table().get(command.row.name) and not any(
        callable(value) for _, value in command.given
    ):
        kept = {"name": command.row.name, "order": command.order, "backend": command.backend}
        return {**kept, "attributes": dict(command.given)}
    leaves = [None if p is None else leaf_of(p, f"x{k}") for k, p in enumerate(params)]
    made = [None if y is None else as_array(y) for y in command.apply(leaves, params)]
    text = geon.dumps([y.tensor for y in made if y is not None])
    dims = [y and [None if d is None else d.name for d in y.dims] for y in made]
    return {"ops": text, "dims": dims, "backend": command.backend}


def _command_of(record: Record, params: Sequence[TensorParam | None]) -> Command:
    """Return the command of a record."""
    if "ops" not in record:
        made: Command = cmd(record["name"], **record["attributes"])
        for _ in range(int(record["order"])):
            made = made.backward
        return made.on(record["backend"])
    ops: list[Any] = geon.loads(record["ops"])
    computed = [k for k, dims in enumerate(record["dims"]) if dims is not None]
    results: list[PositionalArray | None] = [None] * len(record["dims"])
    for k, op in zip(computed, ops, strict=True):
        results[k] = array(op, record["dims"][k])
    leaves = {leaf.name: leaf for y in results if y is not None for leaf in y.tensor.placeholders()}
    inputs = {
        k: array(leaves[f"x{k}"], [None if n == 1 else f"x{k}_{d}" for d, n in enumerate(p.shape)])
        for k, p in enumerate(params)
        if p is not None and f"x{k}" in leaves
    }

    def build(*values: Value | None) -> list[Value | None]:
        known: dict[Any, Any] = {}
        for k, leaf in inputs.items():
            value = values[k]
            if value is None:
                raise geon.ArgumentError(f"the input {k} is None; give a tensor")
            known[leaf.tensor] = matching(value, leaf, f"input {k}")
        made: Any = [y and substitute(y.tensor, known) for y in results]
        return [y and array(t, y.dims) for t, y in zip(made, results, strict=True)]

    row = CommandRow("graph", build, lambda *_: len(results))
    return Command(row, backend=record["backend"])
