"""Compilation of symbolic graphs: tensors in one arena, and the concrete graph on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....errors import ArgumentError
from ....transformers.runtime.arena import place
from ..commands import cmd
from ..commands.facts import allows_inplace, enforces_inplace
from ..concrete import Exec, Graph
from ..lowering import all_slots, root
from ..tensors import ALIGNMENT, Resident, Tensor, memory
from .graph import ExecSymbol, SymbolicGraph, TensorSymbol

Compiled = tuple[Graph, "TensorArena", dict[ExecSymbol, Exec]]


class TensorArena:
    """The memory of the symbols of a compiled graph.

    Symbols whose values are not needed at one time share memory, and then may have one address.
    Outputs, symbols that nothing writes, states and bound symbols keep their values after a run.
    ``size`` is the bytes of the arena, without bound tensors.
    """

    def __init__(self, tensors: dict[TensorSymbol, Tensor], lasting: set[Any], size: int) -> None:
        self._tensors, self._lasting, self.size = tensors, lasting, size

    def tensor(self, symbol: TensorSymbol) -> Tensor:
        """Return the tensor of a symbol; a part of a symbol is a view of its tensor.

        A symbol that is no output may share its memory: read it where its value is needed only.
        """
        if symbol in self._tensors:
            return self._tensors[symbol]
        if symbol.base is None:
            raise ArgumentError(
                f"{symbol} is in no node of the compiled graph; compile with it as an output"
            )
        whole = self.tensor(symbol.base)
        assert symbol.part is not None
        view = self._tensors[symbol] = whole.part_view(symbol.part)
        return view

    def bind(self, symbol: TensorSymbol, tensor: Tensor) -> None:
        """Let a symbol live in the memory of a tensor from now on."""
        check_bind(symbol, tensor)
        if symbol not in self._lasting:
            raise ArgumentError(
                f"{symbol} shares its memory with others; give it to compile as an output or bound"
            )
        previous = self.tensor(symbol).memory
        for each in self._tensors.values():
            if each.base is None and each.memory is previous:
                each.move_to(tensor)
        for each in self._tensors.values():
            if each.base is not None and root(each).memory is tensor.memory:
                each.move_to(each.base.part_view(each.part))


def check_bind(symbol: TensorSymbol, tensor: Tensor) -> None:
    """Raise ``ArgumentError`` if a tensor cannot be the memory of a symbol."""
    if symbol.base is not None:
        raise ArgumentError(f"{symbol} is a part of {root(symbol)}; bind that one")
    if (tensor.shape, tensor.dtype.name) != (symbol.shape, symbol.param.dtype):
        raise ArgumentError(
            f"{symbol} is bound to {tensor}; shape and dtype must be equal: give a tensor of "
            f"{symbol.param}"
        )


class _Groups(dict[Any, Any]):
    """Symbols that are in the same memory: a union of sets, by the parent of each symbol."""

    def of(self, slot: Any) -> Any:
        """Return the symbol that stands for the set of a symbol."""
        while slot in self:
            slot = self[slot]
        return slot

    def join(self, a: Any, b: Any) -> None:
        """Put ``b`` into the memory of ``a``."""
        if self.of(a) is not self.of(b):
            self[self.of(b)] = self.of(a)


def compile_graph(
    graph: SymbolicGraph, outputs: Sequence[TensorSymbol], binds: dict[TensorSymbol, Tensor],
    sources: Sequence[ExecSymbol] | None, destinations: Sequence[ExecSymbol] | None,
    budget: int | str | None, allocate: Callable[[int], Any] | None,
) -> Compiled:  # fmt: skip
    """Return the concrete graph, the tensor arena and the nodes of a symbolic graph."""
    order = graph.topsort(sources, destinations)
    order = graph.topsort(sources, destinations, _before_overwriting(order))
    for symbol, tensor in binds.items():
        check_bind(symbol, tensor)
    known = {*all_slots(order), *binds}
    for symbol in outputs:
        if root(symbol) not in known:
            raise ArgumentError(
                f"the output {symbol} is in no node of {graph.name} that runs; give symbols that "
                "the graph computes"
            )
    slots = list(dict.fromkeys([*all_slots(order), *map(root, outputs), *binds]))
    first, last = _lifetimes(order)
    written = set(first)
    lasting = {s for s in slots if s not in written or s.is_state or s in binds}
    lasting |= {root(s) for s in outputs}
    groups, overwrites = _shared(order, slots, lasting, binds, last)
    arrays, size, intervals = _memory(
        slots, groups, lasting, binds, first, last, len(order), allocate
    )
    tensors = _tensors(slots, groups, lasting, binds, arrays)
    arena = TensorArena(tensors, lasting, size)
    made = Graph(graph.name, memory=budget)
    made.is_planned = True
    nodes, fills = _concrete_nodes(made, order, arena, slots, written)
    _add_edges(graph, order, nodes, fills, intervals, groups, overwrites)
    for symbol in slots:  # memory that has a value before the first run
        if symbol not in written and symbol not in binds:
            arena.tensor(symbol).array[...] = symbol.fill or 0
    kept = {groups.of(s) for s in lasting}
    newest = {groups.of(s): s for s in sorted(first, key=first.__getitem__)}
    made.results = [arena.tensor(s) for key, s in newest.items() if key in kept]
    return made, arena, nodes


def _before_overwriting(order: Sequence[ExecSymbol]) -> list[tuple[ExecSymbol, ExecSymbol]]:
    """Return pairs of a reader of a symbol, and the node that must write its new value in place."""
    return [
        (reader, node)
        for node in order
        for i, _ in enforces_inplace(node.command)
        if i < len(node.inputs) and node.inputs[i] is not None
        for reader in order
        if reader is not node
        and any(x is not None and root(x) is root(node.inputs[i]) for x in reader.inputs)
    ]


def _lifetimes(order: Sequence[ExecSymbol]) -> tuple[dict[Any, int], dict[Any, int]]:
    """Return the positions in order of the first write and the last use of each whole."""
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    for k, node in enumerate(order):
        for y in node.outputs:
            if y is not None:
                first.setdefault(root(y), k)
                last[root(y)] = k
        for x in node.inputs:
            if x is not None:
                last[root(x)] = max(k, last.get(root(x), k))
    return first, last


def _shared(
    order: Sequence[ExecSymbol], slots: Sequence[Any], lasting: set[Any],
    binds: dict[TensorSymbol, Tensor], last: dict[Any, int],
) -> tuple[_Groups, list[tuple[int, Any]]]:  # fmt: skip
    """Return the symbols in one memory, and the nodes that overwrite a value, with it."""
    groups = _Groups()
    overwrites: list[tuple[int, Any]] = []
    for k, node in enumerate(order):
        for i, j in enforces_inplace(node.command):
            if i < len(node.inputs) and j < len(node.outputs):
                x, y = node.inputs[i], node.outputs[j]
                if x is not None and y is not None:
                    groups.join(root(x), root(y))
                    overwrites.append((k, root(x)))
    updated = {id(groups.of(x)) for _, x in overwrites}
    for k, node in enumerate(order):
        if node.command.row.name in ("graph", "custom"):
            continue
        taken: set[int] = set()
        for i, j in sorted(allows_inplace(node.command, node.params)):
            x = node.inputs[i] if i < len(node.inputs) else None
            y = node.outputs[j] if j < len(node.outputs) else None
            free = (
                x is not None and y is not None and x.base is None and y.base is None
                and x not in lasting and last[x] == k and y.fill is None
                and not {id(groups.of(x)), id(groups.of(y))} & updated
                and not {i, ~j} & taken
                and (y not in lasting or y not in binds and not y.is_state)
                and sum(each is x for each in node.inputs) == 1
            )  # fmt: skip
            if free:
                groups.join(x, y)
                overwrites.append((k, x))
                taken |= {i, ~j}
    return groups, overwrites


def _memory(
    slots: Sequence[Any], groups: _Groups, lasting: set[Any], binds: dict[TensorSymbol, Tensor],
    first: dict[Any, int], last: dict[Any, int], steps: int,
    allocate: Callable[[int], Any] | None,
) -> tuple[dict[Any, Any], int, dict[Any, tuple[int, int, int, int]]]:  # fmt: skip
    """Return the array of each set of symbols, the arena's bytes, and where and when each lives."""
    members: dict[Any, list[Any]] = {}
    for slot in slots:
        members.setdefault(groups.of(slot), []).append(slot)
    arrays: dict[Any, Any] = {}
    planned, sizes, lives = [], [], []
    for key, each in members.items():
        bound = [binds[s].memory for s in each if s in binds]
        if bound:
            arrays[key] = bound[0]
            continue
        # An output lives from its first write to the end; what nothing writes, for all runs.
        keeps = any(s in lasting for s in each)
        begins = min([first.get(s, -1) for s in each])
        if any(s.is_state or (s in lasting and s not in first) for s in each):
            begins = -1
        planned.append(key)
        sizes.append(key.param.bytes)
        lives.append((begins, steps if keeps else max([last.get(s, steps) for s in each])))
    offsets, size = place(sizes, lives, ALIGNMENT)
    whole = memory(size, allocate)
    intervals = {}
    for key, offset, (begin, end), length in zip(planned, offsets, lives, sizes, strict=True):
        flat = whole[offset : offset + length]
        arrays[key] = flat.view(key.param.dtype).reshape(key.shape)
        intervals[key] = (begin, end, offset, offset + length)
    return arrays, size, intervals


def _tensors(
    slots: Sequence[Any], groups: _Groups, lasting: set[Any], binds: dict[TensorSymbol, Tensor],
    arrays: dict[Any, Any],
) -> dict[TensorSymbol, Tensor]:  # fmt: skip
    """Return the tensor of each whole; on a GPU, those that last may stay there between runs."""
    residents = {groups.of(s): tensor.resident for s, tensor in binds.items()}
    for s in lasting:
        if s.param.device.startswith("gpu"):
            residents.setdefault(groups.of(s), Resident(arrays[groups.of(s)]))
    tensors = {}
    for s in slots:
        key, param = groups.of(s), s.param
        tensors[s] = Tensor(arrays[key], format=param.format, device=param.device)
        tensors[s].resident = residents.get(key)
    return tensors


def _concrete_nodes(
    made: Graph, order: Sequence[ExecSymbol], arena: TensorArena, slots: Sequence[Any],
    written: set[Any],
) -> tuple[dict[ExecSymbol, Exec], dict[Any, Exec]]:  # fmt: skip
    """Add nodes to the concrete graph; a whole that is written in parts is filled before."""
    tensor: Callable[[Any], Any] = lambda s: None if s is None else arena.tensor(s)  # noqa: E731
    parts = {
        root(y) for node in order for y in node.outputs if y is not None and y.base is not None
    }
    fills: dict[Any, Exec] = {}
    for s in slots:
        if s in written and (s in parts or s.fill is not None):
            value = cmd.set(value=s.fill or 0.0, shape=s.shape, dtype=s.param.dtype)
            fills[s] = made.exec(value, [], [arena.tensor(s)], f"fill_{s.name}")
    nodes: dict[ExecSymbol, Exec] = {}
    for node in order:
        new = made.exec(
            node.command, list(map(tensor, node.inputs)), list(map(tensor, node.outputs)), node.name
        )
        new.params = list(node.params)
        nodes[node] = new
        for s in [*node.inputs, *node.outputs]:
            if s is not None and root(s) in fills:
                made.concat(fills[root(s)], new)
    return nodes, fills


def _add_edges(
    graph: SymbolicGraph, order: Sequence[ExecSymbol], nodes: dict[ExecSymbol, Exec],
    fills: dict[Any, Exec], intervals: dict[Any, tuple[int, int, int, int]], groups: _Groups,
    overwrites: Sequence[tuple[int, Any]],
) -> None:  # fmt: skip
    """Add the edges of the symbolic graph, and those by which memory is free when it is reused."""
    made = next(iter(nodes.values())).graph if nodes else graph
    following = graph.followers()
    for node in order:
        for each in following[node]:
            if each in nodes:
                made.concat(nodes[node], nodes[each])
    users: dict[Any, list[int]] = {}
    for k, node in enumerate(order):
        for s in [*node.inputs, *node.outputs]:
            if s is not None:
                users.setdefault(groups.of(root(s)), []).append(k)
    for k, x in overwrites:  # all that read the old value run before
        for j, node in enumerate(order):
            if j != k and any(s is not None and root(s) is x for s in node.inputs):
                made.concat(nodes[node], nodes[order[k]])
    keys = sorted(intervals, key=lambda key: intervals[key][0])
    for a in keys:
        for b in keys:
            early, late = intervals[a], intervals[b]
            if early[1] < late[0] and early[2] < late[3] and late[2] < early[3]:
                targets = [nodes[order[late[0]]]]
                targets += [fill for s, fill in fills.items() if groups.of(s) is b]
                for k in dict.fromkeys(users.get(a, ())):
                    for target in targets:
                        made.concat(nodes[order[k]], target)
