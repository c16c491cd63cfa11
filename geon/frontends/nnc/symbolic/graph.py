"""``SymbolicGraph``: commands on symbols of tensors, in single-assignment form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ....errors import ArgumentError, OrderError
from ....op_graph.core.source_info import describe, user_site
from ..checks import checked
from ..commands.command import Command
from ..commands.facts import infer_params
from ..graph_base import GraphBase, GraphNode
from ..tensors import Part, TensorParam, lengths_of, part_of, root
from . import compiling, derivatives, files, passes

HOOKED = ("tensor", "alias", "exec")


class TensorSymbol:
    """A tensor of a symbolic graph, without memory; ``base`` is what an alias is a part of.

    ``fill`` is the value that its memory begins with, None for any. A symbol with ``is_state``
    keeps its memory from run to run.
    """

    def __init__(
        self, graph: SymbolicGraph, param: TensorParam, name: str,
        base: TensorSymbol | None = None, part: Part | None = None, fill: float | None = None,
        is_state: bool = False,
    ) -> None:  # fmt: skip
        self.graph, self.param, self.name, self.site = graph, param, name, user_site()
        self.base, self.part = base, part
        self.fill, self.is_state = fill, is_state
        graph.created("tensor" if base is None else "alias", self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return self.param.shape

    @checked
    def alias(
        self, shape: Sequence[int], offset: Sequence[int] | None = None,
        stride: Sequence[int] | None = None, name: str | None = None,
    ) -> TensorSymbol:  # fmt: skip
        """Return a symbol of a part, as ``Tensor.view``: a box, or without ``offset`` a reshape."""
        return self.part_symbol(part_of(self.shape, shape, offset, stride), name)

    def part_symbol(self, part: Part, name: str | None = None) -> TensorSymbol:
        """Return a symbol of a part."""
        param = replace(self.param, shape=part.shape)
        return TensorSymbol(self.graph, param, name or f"{self.name}_part", self, part)

    def __repr__(self) -> str:
        return f"<symbol {self.name} {self.param}> (made at {describe(self.site)})"


class ExecSymbol(GraphNode):
    """A node of a symbolic graph: a command on symbols."""


@checked
class SymbolicGraph(GraphBase):
    """Commands on symbols. Edges follow from who writes what others read; ``concat`` adds more.

    A symbol is written once; parts of one may be written by several nodes if they do not overlap,
    and what none writes is 0.
    """

    def __init__(self, name: str = "graph") -> None:
        super().__init__(name)
        self.gradients: dict[TensorSymbol, TensorSymbol] = {}
        self.hooks: dict[str, Callable[[Any], Any]] = {}

    def set_hook(self, kind: str, hook: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
        """Call ``hook`` with each new symbol or node of a kind; return the hook that it replaces.

        The kinds are "tensor", "alias" and "exec". None ends it.
        """
        if kind not in HOOKED:
            raise ArgumentError(
                f"{kind!r} is nothing that is created; give one of {', '.join(HOOKED)}"
            )
        before = self.hooks.pop(kind, None)
        if hook is not None:
            self.hooks[kind] = hook
        return before

    def created(self, kind: str, made: Any) -> None:
        """Call the hook of a kind with a new symbol or node."""
        if kind in self.hooks:
            self.hooks[kind](made)

    def add_node(self, node: Any) -> Any:
        """Add a node of this graph."""
        super().add_node(node)
        self.created("exec", node)
        return node

    def tensor(
        self, shape: Sequence[int] | TensorParam, dtype: Any = "float32", *,
        name: str | None = None, format: str = "NHWC", device: str = "cpu",
        fill: float | None = None, is_state: bool = False,
    ) -> TensorSymbol:  # fmt: skip
        """Return a new symbol of a tensor."""
        if not isinstance(shape, TensorParam):
            shape = TensorParam(lengths_of(shape), dtype, format, device)
        return TensorSymbol(self, shape, name or "tensor", None, None, fill, is_state)

    def exec(
        self, command: Command, inputs: Sequence[TensorSymbol | None],
        outputs: Sequence[TensorSymbol | None] | None = None, name: str | None = None,
    ) -> list[Any]:  # fmt: skip
        """Add a node, and return its outputs: those given, or new symbols of the inferred shapes.

        Raises ``GeonError`` that names the command where inputs or outputs do not fit, and
        ``OrderError`` for a symbol that is written twice.
        """
        params = [None if x is None else x.param for x in inputs]
        return self.add(command, inputs, params, outputs, name).outputs

    def add(
        self, command: Command, inputs: Sequence[TensorSymbol | None],
        params: Sequence[TensorParam | None], outputs: Sequence[TensorSymbol | None] | None,
        name: str | None = None,
    ) -> ExecSymbol:  # fmt: skip
        """Add a node and return it, as ``exec``; ``params`` are also of inputs that are None."""
        name = name or f"{command.name}{len(self.nodes)}"
        command = command.filled([None if y is None else y.param for y in outputs or ()])
        found = infer_params(command, params)
        if outputs is None:
            outputs = [
                None if p is None else self.tensor(p, name=f"{name}_{k}" if k else name)
                for k, p in enumerate(found)
            ]
        for k, y in enumerate(outputs):
            p = found[k] if k < len(found) else None
            if y is not None and (p is None or (p.shape, p.dtype) != (y.shape, y.param.dtype)):
                raise ArgumentError(
                    f"output {k} is {y}, and {command.name} gives {p}; give a symbol of that shape "
                    "and dtype, or None"
                )
            if y is not None:
                self._refuse_second_write(name, y)
        node = ExecSymbol(self, command, inputs, outputs, name)
        node.params = list(params)
        return self.add_node(node)

    def _refuse_second_write(self, name: str, symbol: TensorSymbol) -> None:
        whole = root(symbol)
        for node in self.nodes:
            for y in node.outputs:
                if y is not None and root(y) is whole and _overlap(symbol, y):
                    raise OrderError(
                        f"{name} writes {symbol}, which {node.name} writes too (at "
                        f"{describe(node.site)}); write each symbol once, and parts that do not "
                        "overlap"
                    )

    def followers(self) -> dict[Any, list[Any]]:
        """Return the nodes after each: those that read what it writes, and those of edges."""
        writers: dict[Any, list[Any]] = {}
        for node in self.nodes:
            for y in node.outputs:
                if y is not None:
                    writers.setdefault(root(y), []).append((node, y))
        found = {node: dict(after) for node, after in self.edges.items()}
        for node in self.nodes:
            for x in node.inputs:
                for writer, y in writers.get(root(x), ()) if x is not None else ():
                    if writer is not node and _overlap(x, y):
                        found[writer][node] = None
        return {node: list(after) for node, after in found.items()}

    def autogen(self) -> None:
        """Add the edges that follow from who writes what others read."""
        for node, following in self.followers().items():
            self.edges[node].update(dict.fromkeys(following))

    def tensor_auto(self) -> None:
        """Infer the params of all outputs again, after those of inputs were changed.

        Raises ``ArgumentError`` for a part that is not inside of its whole any more.
        """
        for node in self.topsort():
            for slot in [s for s in (*node.inputs, *node.outputs) if s is not None and s.base]:
                if not slot.part.fits(slot.base.shape):
                    raise ArgumentError(
                        f"{node.name} has {slot}, which is no part of {slot.base} any more; give "
                        "another one to set_io"
                    )
            node.params = [p if x is None else x.param for x, p in
                           zip(node.inputs, node.params, strict=True)]  # fmt: skip
            found = infer_params(node.command, node.params)
            for y, param in zip(node.outputs, found, strict=False):
                if y is not None and param is not None and y.base is None:
                    y.param = param
        self.version += 1

    # Derivatives, passes, compilation, files ------------------------------------------------------

    backward = derivatives.add_gradients
    minimize = derivatives.add_optimiser
    simplify = passes.simplify
    dup = passes.duplicate
    compile = compiling.compile_graph
    write = files.write_graph
    read = classmethod(files.read_graph)

    def gradient(self, symbol: TensorSymbol) -> TensorSymbol:
        """Return the gradient of a symbol that the last ``backward`` went through."""
        if symbol not in self.gradients:
            raise ArgumentError(f"{symbol} has no gradient; give it to backward(losses, wrt=[...])")
        return self.gradients[symbol]


def _overlap(a: TensorSymbol, b: TensorSymbol) -> bool:
    """Return True if two symbols of one whole may have an element in common."""
    chains = [[], []]  # type: list[list[Any]]
    for chain, slot in zip(chains, (a, b), strict=True):
        while slot.base is not None:
            chain.insert(0, slot.part)
            slot = slot.base
    for p, q in zip(*chains, strict=False):
        if p == q:
            continue
        if p.slices is None or q.slices is None:
            return True
        return all(
            range(max(s.start, t.start), min(s.stop, t.stop)) and _meets(s, t)
            for s, t in zip(p.slices, q.slices, strict=True)
        )
    return True


def _meets(s: slice, t: slice) -> bool:
    return bool({*range(s.start, s.stop, s.step)} & {*range(t.start, t.stop, t.step)})
