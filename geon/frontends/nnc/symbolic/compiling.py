"""Compilation of symbolic graphs: tensors in one arena, and the concrete graph on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from ....errors import ArgumentError
from ....transformers.runtime.arena import place
from ..checks import checked
from ..commands import cmd
from ..commands.facts import allows_inplace, enforces_inplace
from ..concrete import Exec, Graph
from ..lowering import all_slots
from ..tensors import ALIGNMENT, Resident, Tensor, buffer, root

if TYPE_CHECKING:
    from .graph import ExecSymbol, SymbolicGraph, TensorSymbol

Compiled = tuple[Graph, "TensorArena", "dict[ExecSymbol, Exec]"]


@checked
class TensorArena:
    """The memory of the symbols of a compiled graph.

    Symbols whose values are not needed at one time share memory, and then may have one address.
    Outputs, symbols that nothing writes, states and bound symbols keep their values after a run.
    ``size`` is the bytes of the arena, without bound tensors.
    """

    def __init__(self, tensors: dict[TensorSymbol, Tensor], lasting: set[Any], size: int) -> None:
        self._tensors, self._lasting, self.size = tensors, lasting, size

    def tensor(self, symbol: Any) -> Tensor:
        """Return the tensor of a symbol; a part of a symbol is a view of its tensor.

        A symbol that is no output may share its memory: read it where its value is needed only.
        """
        if symbol in self._tensors:
            return self._tensors[symbol]
        if getattr(symbol, "base", None) is None:
            raise ArgumentError(
                f"{symbol} is in no node of the compiled graph; compile with it as an output"
            )
        whole = self.tensor(symbol.base)
        assert symbol.part is not None
        view = self._tensors[symbol] = whole.part_view(symbol.part)
        return view

    def bind(self, symbol: TensorSymbol, tensor: Any) -> None:
        """Let a symbol live in the memory of a tensor or an array from now on."""
        tensor = bound_tensor(symbol, tensor)
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


def bound_tensor(symbol: TensorSymbol, given: Any) -> Tensor:
    """Return the tensor of a tensor or array; raise ``ArgumentError`` unless it fits a symbol."""
    tensor = given if isinstance(given, Tensor) else Tensor(given)
    if getattr(symbol, "param", None) is None or isinstance(symbol, Tensor):
        raise ArgumentError(f"{symbol!r:.80} is no symbol; give one with its tensor")
    if symbol.base is not None:
        raise ArgumentError(f"{symbol} is a part of {root(symbol)}; bind that one")
    if (tensor.shape, tensor.dtype.name) != (symbol.shape, symbol.param.dtype):
        raise ArgumentError(
            f"{symbol} is bound to {tensor}; shape and dtype must be equal: give a tensor "
            f"of {symbol.param}"
        )
    return tensor


def compile_graph(
    graph: SymbolicGraph, outputs: Sequence[TensorSymbol] = (),
    binds: Mapping[TensorSymbol, Any] | None = None, *,
    sources: Sequence[ExecSymbol] | None = None, destinations: Sequence[ExecSymbol] | None = None,
    memory: int | str | None = None, allocate: Callable[[int], Any] | None = None,
) -> Compiled:  # fmt: skip
    """Return ``(graph, tensor_arena, exec_arena)``: a concrete graph and its memory.

    ``outputs`` keep their values after a run. Symbols in ``binds`` live in the memory of the
    tensors or arrays given. ``memory`` bounds the memory of a run as one computation. The arena is
    in what ``allocate`` returns for a number of bytes, such as a ``bytearray``, a mapped file or
    shared memory: a writable buffer that is alive as long as the arena.
    """
    binds = {symbol: bound_tensor(symbol, tensor) for symbol, tensor in (binds or {}).items()}
    order = graph.topsort(sources, destinations)
    known = dict.fromkeys([*all_slots(order), *binds])
    for symbol in outputs:
        if root(symbol) not in known:
            raise ArgumentError(
                f"the output {symbol} is in no node of {graph.name} that runs; give symbols that "
                "the graph computes"
            )
    for symbol in known:
        if symbol.graph is not graph and symbol not in binds:
            raise ArgumentError(
                f"{symbol} is of {symbol.graph.name}, another graph than {graph.name}; use symbols "
                "of this one, or bind a tensor to it"
            )
    before = [(reader, node) for node in order for x, _ in _updates(node)
              for reader in order if reader is not node and x in reader.reads]  # fmt: skip
    layout = _Layout(graph.topsort(sources, destinations, before), list(map(root, outputs)), binds)
    arena = layout.arena(allocate)
    made = Graph(graph.name, memory=memory)
    made.is_planned = True
    nodes = layout.concrete_nodes(made, arena, graph.followers())
    for symbol in layout.slots:  # memory that has a value before the first run
        if symbol not in layout.first and symbol not in binds:
            arena.tensor(symbol).array[...] = symbol.fill or 0
    newest = {layout.group(s): s for s in sorted(layout.first, key=layout.first.__getitem__)}
    kept = {layout.group(s) for s in layout.lasting}
    made.results = [arena.tensor(s) for key, s in newest.items() if key in kept]
    return made, arena, nodes


def _updates(node: ExecSymbol) -> list[tuple[Any, Any]]:
    """Return the pairs (old value, new value) of wholes that a node must compute in place."""
    pairs = [
        (node.inputs[i], node.outputs[j])
        for i, j in enforces_inplace(node.command)
        if i < len(node.inputs) and j < len(node.outputs)
    ]
    return [(root(x), root(y)) for x, y in pairs if x is not None and y is not None]


class _Layout:
    """The places in memory, and the lifetimes, of the whole tensors of a symbolic graph.

    ``first`` and ``last`` are the positions in ``order`` of the first write and of the last use of
    each whole; those that ``lasting`` has keep their values after a run. ``overwrites`` are
    positions of nodes with the wholes whose old values they overwrite, and ``intervals`` have the
    first and last position, and the first and last byte, of each memory in the arena.
    """

    def __init__(
        self, order: Sequence[ExecSymbol], outputs: Sequence[Any], binds: dict[Any, Tensor]
    ) -> None:
        self.order, self.binds = order, binds
        self.slots = list(dict.fromkeys([*all_slots(order), *outputs, *binds]))
        self.first: dict[Any, int] = {}
        self.last: dict[Any, int] = {}
        for k, node in enumerate(order):
            self.last.update(dict.fromkeys([*node.reads, *node.writes], k))
            for whole in node.writes:
                self.first.setdefault(whole, k)
        lasting = [s for s in self.slots if s not in self.first or s.is_state or s in binds]
        self.lasting = {*lasting, *outputs}
        self.intervals: dict[Any, tuple[int, int, int, int]] = {}
        self._parents: dict[Any, Any] = {}  # a union of sets of symbols in one memory
        self.overwrites: list[tuple[int, Any]] = []
        for k, node in enumerate(order):
            for x, y in _updates(node):
                self._join(k, x, y)
        updated = {self.group(x) for _, x in self.overwrites}
        for k, node in enumerate(order):
            if node.command.row.name not in ("graph", "custom"):
                self._share(k, node, updated)

    def group(self, slot: Any) -> Any:
        """Return the symbol that stands for all that are in one memory with a whole."""
        while slot in self._parents:
            slot = self._parents[slot]
        return slot

    def _join(self, k: int, x: Any, y: Any) -> None:
        """Let node ``k`` write ``y`` over ``x``."""
        if self.group(x) is not self.group(y):
            self._parents[self.group(y)] = self.group(x)
        self.overwrites.append((k, x))

    def _share(self, k: int, node: ExecSymbol, updated: set[Any]) -> None:
        """Let outputs of a node be in the memory of inputs that nothing needs any more."""
        taken: set[int] = set()
        for i, j in sorted(allows_inplace(node.command, node.params)):
            x = node.inputs[i] if i < len(node.inputs) else None
            y = node.outputs[j] if j < len(node.outputs) else None
            free = (
                x is not None and y is not None and x.base is None and y.base is None
                and x not in self.lasting and self.last[x] == k and y.fill is None
                and not {self.group(x), self.group(y)} & updated
                and not {i, ~j} & taken
                and (y not in self.lasting or y not in self.binds and not y.is_state)
                and sum(each is x for each in node.inputs) == 1
            )  # fmt: skip
            if free:
                self._join(k, x, y)
                taken |= {i, ~j}

    def arena(self, allocate: Callable[[int], Any] | None) -> TensorArena:
        """Place what is not bound in one arena, and return the tensors of all wholes."""
        members: dict[Any, list[Any]] = {}
        for slot in self.slots:
            members.setdefault(self.group(slot), []).append(slot)
        bound: dict[Any, Tensor] = {}
        for s, tensor in self.binds.items():
            first = bound.setdefault(self.group(s), tensor)
            if first.address != tensor.address:
                raise ArgumentError(
                    f"{s} is the new value of a symbol in its memory, and the two are bound to "
                    "different tensors; bind one of them"
                )
        planned = [key for key in members if key not in bound]
        sizes, lives = [key.param.bytes for key in planned], []
        for key in planned:
            each, steps = members[key], len(self.order)
            # An output lives from its first write to the end; what nothing writes, for all runs.
            begins = min([self.first.get(s, -1) for s in each])
            if any(s.is_state or (s in self.lasting and s not in self.first) for s in each):
                begins = -1
            keeps = any(s in self.lasting for s in each)
            lives.append((begins, steps if keeps else max([self.last[s] for s in each])))
        offsets, size = place(sizes, lives, ALIGNMENT)
        whole = buffer(size, allocate)
        arrays = {key: tensor.memory for key, tensor in bound.items()}
        residents = {key: tensor.resident for key, tensor in bound.items()}
        for key, offset, length, life in zip(planned, offsets, sizes, lives, strict=True):
            flat = whole[offset : offset + length]
            arrays[key] = flat.view(key.param.dtype).reshape(key.shape)
            self.intervals[key] = (*life, offset, offset + length)
            if any(s in self.lasting and s.param.device.startswith("gpu") for s in members[key]):
                residents[key] = Resident(arrays[key])
        tensors = {}
        for s in self.slots:
            key, param = self.group(s), s.param
            tensors[s] = Tensor(arrays[key], format=param.format, device=param.device)
            tensors[s].resident = residents.get(key)
        return TensorArena(tensors, self.lasting, size)

    def concrete_nodes(
        self, made: Graph, arena: TensorArena, following: dict[Any, list[Any]]
    ) -> dict[ExecSymbol, Exec]:
        """Add nodes and edges to the concrete graph.

        A whole that is written in parts is filled before. Memory that is used again is free then.
        """
        tensors: Callable[[Any], Any] = lambda slots: [s and arena.tensor(s) for s in slots]  # noqa: E731
        parts = {root(y) for n in self.order for y in n.outputs if y is not None and y.base}
        fills: dict[Any, Exec] = {}
        for s in self.first:
            if s in parts or s.fill is not None:
                value = cmd.set(value=s.fill or 0.0, shape=s.shape, dtype=s.param.dtype)
                fills[s] = made.exec(value, [], [arena.tensor(s)], f"fill_{s.name}")
        nodes: dict[ExecSymbol, Exec] = {}
        users: dict[Any, dict[ExecSymbol, None]] = {}
        for node in self.order:
            new = made.exec(node.command, tensors(node.inputs), tensors(node.outputs), node.name)
            new.params, nodes[node] = list(node.params), new
            for whole in [*node.reads, *node.writes]:
                users.setdefault(self.group(whole), {})[node] = None
                if whole in fills:
                    made.concat(fills[whole], new)
        for node in self.order:
            for each in following[node]:
                if each in nodes:
                    made.concat(nodes[node], nodes[each])
        for k, x in self.overwrites:  # all that read the old value run before
            for node in self.order:
                if node is not self.order[k] and x in node.reads:
                    made.concat(nodes[node], nodes[self.order[k]])
        keys = sorted(self.intervals, key=lambda key: self.intervals[key][0])
        for a, b in product(keys, keys):
            early, late = self.intervals[a], self.intervals[b]
            if early[1] < late[0] and early[2] < late[3] and late[2] < early[3]:
                targets = [nodes[self.order[late[0]]]]
                targets += [fill for s, fill in fills.items() if self.group(s) is b]
                for user, target in product(users.get(a, ()), targets):
                    made.concat(nodes[user], target)
        return nodes
