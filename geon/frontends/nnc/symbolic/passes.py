"""Passes over symbolic graphs: simplification, recomputation in the backward part, replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....errors import ArgumentError
from ..checks import checked
from ..commands import cmd
from ..commands.command import Command
from ..tensors import TensorParam, root

if TYPE_CHECKING:
    from .graph import ExecSymbol, SymbolicGraph, TensorSymbol

Replaced = dict["TensorSymbol", "TensorSymbol"]
UNSHARED = ("random_normal", "random_uniform", "dropout", "lstm", "custom")
"""Commands that may give another result for the same inputs, so that no two are one."""
FUSED = {  # an activation and the loss of it, and the command of both
    ("softmax", "categorical_crossentropy"): "softmax_crossentropy",
    ("sigmoid", "binary_crossentropy"): "sigmoid_binary_crossentropy",
}


def simplify(
    graph: SymbolicGraph, outputs: Sequence[TensorSymbol], passes: Sequence[str] | None = None
) -> Replaced:
    """Apply passes by name, all by default; return the symbols that replace others."""
    for name in passes or ():
        if name not in PASSES:
            raise ArgumentError(
                f"there is no pass {name!r}; the passes are {', '.join(PASSES)}: give a list of "
                "some"
            )
    replaced: Replaced = {}
    for name in passes or PASSES:
        kept = [replaced_by(replaced, s) for s in outputs]
        replaced.update(PASSES[name](graph, kept))
    graph.version += 1
    return {old: replaced_by(replaced, old) for old in replaced}


def replaced_by(replaced: Replaced, symbol: TensorSymbol) -> TensorSymbol:
    """Return the symbol that stands for another; a part of one that was replaced is a new part."""
    if symbol in replaced:
        return replaced_by(replaced, replaced[symbol])
    if symbol.base is None:
        return symbol
    base = replaced_by(replaced, symbol.base)
    if base is symbol.base:
        return symbol
    assert symbol.part is not None
    replaced[symbol] = base.part_symbol(symbol.part, symbol.name)
    return replaced[symbol]


def _redirect(nodes: Iterable[ExecSymbol], replaced: Replaced) -> None:
    for node in nodes:
        node.inputs = [None if x is None else replaced_by(replaced, x) for x in node.inputs]


def _eliminate_common(graph: SymbolicGraph, outputs: Sequence[TensorSymbol]) -> Replaced:
    """Keep the first of nodes with one command and the same inputs."""
    replaced: Replaced = {}
    known: dict[Any, ExecSymbol] = {}
    for node in graph.topsort():
        _redirect([node], replaced)
        whole = all(y is None or (y.base is None and y.fill is None) for y in node.outputs)
        if node.command.row.name in UNSHARED or not whole:
            continue
        key = (node.command, tuple(map(_key, node.inputs)), tuple(node.params))
        first = known.setdefault(key, node)
        if first is not node:
            pairs = list(zip(node.outputs, first.outputs, strict=True))
            for k, (old, new) in enumerate(pairs):
                if old is not None and new is None:
                    first.outputs[k] = old
                elif old is not None and new is not None:
                    replaced[old] = new
            graph.remove_node(node, first)
    return replaced


def _key(symbol: TensorSymbol | None) -> Any:
    """Return what equal symbols have in common: parts of one whole may be different objects."""
    if symbol is None or symbol.base is None:
        return symbol
    return (_key(symbol.base), symbol.shape, str(symbol.part))


def _prune(graph: SymbolicGraph, outputs: Sequence[TensorSymbol]) -> Replaced:
    """Remove nodes that no output needs."""
    needed = {root(s) for s in outputs}
    for node in reversed(graph.topsort()):
        if needed.intersection(node.writes):
            needed.update(node.reads)
        else:
            graph.remove_node(node)
    return {}


def _skip_transfers(graph: SymbolicGraph, outputs: Sequence[TensorSymbol]) -> Replaced:
    """Remove copies within a device, and conversions to the dtype that a tensor has."""
    replaced: Replaced = {}
    kept = {root(s) for s in outputs}
    for node in graph.topsort():
        _redirect([node], replaced)
        if node.command.name not in ("data_transfer", "datatype_conversion"):
            continue
        pairs = list(zip(node.inputs, node.outputs, strict=True))
        if all(
            x is not None and y is not None and x.param == y.param
            and y.base is None and y.fill is None and root(y) not in kept
            for x, y in pairs
        ):  # fmt: skip
            replaced.update({y: x for x, y in pairs if x is not None and y is not None})
            graph.remove_node(node)
    return replaced


def _fuse(graph: SymbolicGraph, outputs: Sequence[TensorSymbol]) -> Replaced:
    """Replace an activation and its loss by the command of both."""
    writer = {y: node for node in graph.nodes for y in node.outputs if y is not None}
    for node in list(graph.nodes):
        before = writer.get(node.inputs[0]) if node.inputs else None
        name = FUSED.get((before.command.name, node.command.name)) if before else None
        if before is None or name is None:
            continue
        last = len(before.outputs[0].shape) - 1
        if before.command.attributes.get("axis", last) not in (-1, last):
            continue
        command: Command = cmd(name, **dict(node.command.given))
        y, loss = before.outputs[0], node.outputs[0]
        before.outputs[0] = node.outputs[0] = None  # written by the new node
        new = graph.add(
            command, [before.inputs[0], node.inputs[1]], [before.params[0], node.params[1]],
            [loss, y], name,
        )  # fmt: skip
        graph.remove_node(before, new)
        graph.remove_node(node, new)
    return {}


PASSES: dict[str, Callable[[SymbolicGraph, Sequence[TensorSymbol]], Replaced]] = {
    "common_subexpressions": _eliminate_common,
    "data_transfers": _skip_transfers,
    "ops_fusion": _fuse,
    "graph_pruning": _prune,
}


# Recomputation ------------------------------------------------------------------------------------


def _read_again(
    graph: SymbolicGraph, symbol: TensorSymbol, again: Callable[[], TensorSymbol]
) -> bool:
    """Let backward nodes read a symbol as ``again`` computes it, once for all of them."""
    readers = [n for n in graph.nodes if n.command.order and any(x is symbol for x in n.inputs)]
    if readers:
        new = again()
        for node in readers:
            node.inputs = [new if x is symbol else x for x in node.inputs]
    return bool(readers)


@checked
def memory_reduction(graph: SymbolicGraph) -> int:
    """Keep tensors in the dtype before a conversion, and convert again for the backward nodes.

    Returns the number of conversions that are computed again.
    """
    found = 0
    for node in [n for n in graph.nodes if n.command.name == "datatype_conversion"]:
        (x,), (y,) = node.inputs, node.outputs
        if x is not None and y is not None and x.param.bytes < y.param.bytes:
            found += _read_again(
                graph, y, lambda n=node, x=x: graph.exec(n.command, [x], None, f"{n.name}_again")[0]  # type: ignore[misc]  # bound now
            )  # fmt: skip
    return found


@checked
def memory_compression(graph: SymbolicGraph) -> int:
    """Keep float16 inputs of convolutions compressed for the backward nodes; values are rounded.

    Returns the number of inputs that are compressed.
    """
    found = 0
    for node in [n for n in graph.nodes if n.command.name == "convolution"]:
        x = node.inputs[0]
        if x is None or x.param.dtype != "float16" or len(x.shape) < 2:
            continue

        def again(x: TensorSymbol = x) -> TensorSymbol:
            packing = cmd.compression_lssc(shape=x.shape)
            packed = graph.exec(packing, [x], None, f"{x.name}_packed")[0]
            opened: TensorSymbol = graph.exec(
                packing.backward, [packed, None, None], None, f"{x.name}_again"
            )[0]
            return opened

        found += _read_again(graph, x, again)
    return found


# Copies -------------------------------------------------------------------------------------------


def _mover(
    graph: SymbolicGraph, known: Replaced, suffix: str = "", device: str | None = None,
    moves: Callable[[TensorSymbol], bool] = lambda whole: True,
) -> Callable[[Any], Any]:  # fmt: skip
    """Return a function that copies a symbol of a whole that moves into a graph, once."""

    def moved(s: TensorSymbol | None) -> TensorSymbol | None:
        if s is None or not moves(root(s)):
            return s
        if s not in known:
            param = s.param if device is None else replace(s.param, device=device)
            name, base = s.name + suffix, moved(s.base)
            known[s] = type(s)(graph, param, name, base, s.part, s.fill, s.is_state)
        return known[s]

    return moved


def _copied(
    graph: SymbolicGraph, node: ExecSymbol, moved: Callable[[Any], Any], suffix: str = "",
    command: Command | None = None,
) -> ExecSymbol:  # fmt: skip
    """Add a copy of a node on moved symbols to a graph."""
    inputs, outputs = list(map(moved, node.inputs)), list(map(moved, node.outputs))
    made = type(node)(graph, command or node.command, inputs, outputs, node.name + suffix)
    made.params = list(node.params)
    graph.add_node(made)
    return made


def duplicate(
    graph: SymbolicGraph, substitute: Callable[[ExecSymbol], Command | None] = lambda node: None
) -> tuple[SymbolicGraph, Replaced]:
    """Return a copy of the graph, and the symbols of the copy by those of this graph.

    Where ``substitute`` returns a command for a node, the copy of the node has that one.
    """
    made, known = type(graph)(graph.name), Replaced()
    moved = _mover(made, known)
    nodes = {n: _copied(made, n, moved, command=substitute(n)) for n in graph.nodes}
    for node, following in graph.edges.items():
        made.edges[nodes[node]] = {nodes[each]: None for each in following}
    made.set_sources([nodes[node] for node in graph.sources])
    made.set_destinations([nodes[node] for node in graph.destinations])
    made.gradients = {moved(x): moved(d) for x, d in graph.gradients.items()}
    return made, known


# Replicas -----------------------------------------------------------------------------------------


@checked
def data_parallel(
    graph: SymbolicGraph, inputs: Sequence[TensorSymbol], gradients: Sequence[TensorSymbol],
    devices: Sequence[str],
) -> list[dict[TensorSymbol, TensorSymbol]]:  # fmt: skip
    """Compute what depends on ``inputs`` once for each device, and sum the gradients.

    The first replica are the nodes that there are. Each further one has symbols of its own for
    ``inputs`` and all that is computed of them, up to ``gradients``; what reads a gradient reads
    the sum of those of all replicas. Returns the symbols of each replica by those of the first.
    """
    params = [TensorParam((), device=device) for device in devices]
    if len(params) < 2 or not inputs:
        raise ArgumentError(
            f"devices={devices} for {len(inputs)} inputs; give two or more, such as ['cpu', "
            "'cpu'], and the inputs that differ between them"
        )
    order = graph.topsort()
    per_replica = {root(s) for s in inputs}
    ends = {root(g) for g in gradients}
    copied: list[ExecSymbol] = []
    summed: set[TensorSymbol] = set()
    for node in order:
        reads, writes = set(node.reads), set(node.writes)
        if not (reads & summed) and (reads & per_replica or not reads):
            copied.append(node)
            per_replica |= writes
            summed |= writes & ends
        elif reads & summed:
            summed |= writes
    written = {y for node in copied for y in node.outputs}
    for g in gradients:
        if g not in written or root(g) not in summed:
            raise ArgumentError(
                f"{g} is no gradient that nodes compute of the inputs "
                f"{', '.join([s.name for s in inputs])}; give what backward returns for a whole "
                "symbol"
            )
    maps: list[Replaced] = [{}]
    for k, device in enumerate(devices[1:], 1):
        new, suffix = Replaced(), f"_{k}"
        moved = _mover(graph, new, suffix, device, per_replica.__contains__)
        for node in copied:
            _copied(graph, node, moved, suffix)
        maps.append(new)
    for g in gradients:
        parts = [g, *[new[g] for new in maps[1:]]]
        total = graph.exec(cmd.comm_allreduce(), parts, None, f"sum_{g.name}")
        for node in order:
            if node not in copied:
                node.inputs = [total[0] if x is g else x for x in node.inputs]
        graph.gradients = {s: total[0] if d is g else d for s, d in graph.gradients.items()}
    graph.version += 1
    return maps
