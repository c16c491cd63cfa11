"""Tapes: the graph behind nodes as data, of which programs and derivatives are built."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import DerivativeError
from ..op_graph.core.source_info import describe, user_call
from ..op_graph.op_graph import Leaf
from ..op_graph.rows.leaves import input_leaf
from .nodes import GONE, CallResult, RecordedNode, serial

if TYPE_CHECKING:
    from ..op_graph.core.source_info import Site

Step = tuple[CallResult, tuple[int, ...]]  # a result of a call, and the numbers of its arguments


class Tape:
    """The graph behind nodes as data: ``steps`` in order, after the ``inputs`` it starts from.

    ``numbers`` has the number of each input and step. ``leaves`` has the variable of each input
    that stands for one; None for others, which are ``free``.
    """

    def __init__(
        self,
        order: Sequence[RecordedNode],
        inputs: Iterable[RecordedNode],
        cut: Sequence[RecordedNode] | None = None,
    ) -> None:
        self.order, self.inputs = order, [*inputs]
        self.numbers = numbers = {node: k for k, node in enumerate((*self.inputs, *order))}
        self.steps: list[Step] = [
            (node.result, tuple(map(numbers.__getitem__, node.args))) for node in order
        ]
        self.leaves: list[Leaf | None] = [None] * len(self.inputs)
        if cut is not None:
            self.leaves = [None if node in cut else node.variable() for node in self.inputs]
        every = zip(self.inputs, self.leaves, strict=True)
        self.free = [node for node, leaf in every if leaf is None]

    @property
    def sites(self) -> list[Site]:
        """The lines of the steps."""
        return [node.site for node in self.order]

    @property
    def opens(self) -> bool:
        """True if all calls can be made again with tensors of other lengths."""
        return all(result.call.again is not None for result, _ in self.steps)

    def generic(self) -> tuple[Any, ...]:
        """Return a key that is equal for tapes that differ in lengths alone."""
        kinds = [(node.type.declared, node.type.dtype) for node in self.inputs]
        steps = [(result.call.generic, result.number, at) for result, at in self.steps]
        return (tuple(kinds), tuple(steps), *map(id, self.leaves))

    def placeholders(self, open: bool) -> list[Leaf]:
        """Return placeholders for the values of free inputs, with their lines."""
        kinds = [(node.type, node.site) for node in self.free]
        return [input_leaf(t.declared if open else t.axes, t.dtype, site=s) for t, s in kinds]


def built(
    steps: Iterable[Step],
    leaves: Iterable[Leaf | None],
    given: Iterable[Any],
    open: bool,
    sites: Sequence[Any] = (),
) -> list[Any]:
    """Return the tensors of a tape: its inputs, of which the free ones are ``given``, and steps."""
    rest, calls = iter(given), dict[Any, Any]()
    made = [next(rest) if leaf is None else leaf for leaf in leaves]
    for (result, at), site in itertools.zip_longest(steps, sites):
        if (result.call, at) not in calls:
            calls[result.call, at] = result.call.build([made[k] for k in at], open, site)
        made.append(calls[result.call, at][result.number])
    return made


def tape_of(roots: Iterable[RecordedNode], cut: Sequence[RecordedNode] = ()) -> Tape:
    """Return the graph behind nodes as a tape, with inputs in order of use.

    It ends at ``cut``, at data, and at versions of variables. Raises ``DerivativeError`` where it
    was freed or forgotten.
    """
    starts, seen, stack, order = {*cut}, set(), [*roots], []
    roots = [*stack]
    while stack:
        node = stack.pop()
        if node in seen or node in starts:
            continue
        seen.add(node)
        if node.mark in GONE:
            raise DerivativeError(
                f"{user_call('the derivative')} needs the graph of the array made at "
                f"{describe(node.site)}, {GONE[node.mark]}"
            )
        if node.mark is not None or node.result is None:
            starts.add(node)
        else:
            order.append(node)
            stack += node.args
    order.sort(key=serial)
    used = [*(arg for node in order for arg in node.args), *roots]
    return Tape(order, dict.fromkeys([*(node for node in used if node in starts), *cut]), cut)


def matcher(wanted: Sequence[RecordedNode]) -> Callable[[Sequence[RecordedNode]], Any]:
    """Return a function that recognises the graph behind pending nodes, up to those with values.

    It takes other nodes, and returns the values that their graph starts from, in order of
    discovery; None if the graph has another structure. It is code without loops or tables, which
    takes a tenth of the time of a key of the structure.
    """
    names = {node: f"n{k}" for k, node in enumerate(wanted)}
    order, values, results, calls = [*wanted], [], dict[str, Any](), dict[int, str]()
    lines = [f"if len(wanted) != {len(wanted)}: return", f"{', '.join(names.values())}, = wanted"]
    for node in order:  # it grows
        own = names[node]
        results[f"{own}r"] = node.result
        lines.append(f"if {own}.value is not None or {own}.result is not {own}r: return")
        if id(node.args) in calls:  # another result of one call
            lines.append(f"if {own}.args is not {calls[id(node.args)]}.args: return")
            continue
        calls[id(node.args)] = own
        targets, checks = list[str](), list[str]()
        for arg in node.args:
            known = names.get(arg)
            if known is not None:
                targets.append(f"a{len(targets)}")
                checks.append(f"if {targets[-1]} is not {known}: return")
                continue
            names[arg] = new = f"n{len(names)}"
            targets.append(new)
            if arg.value is None:
                order.append(arg)
            else:
                values.append(f"{new}v")
                checks += [f"{new}v = {new}.value", f"if {new}v is None: return"]
        if targets:
            lines += [f"{', '.join(targets)}, = {own}.args", *checks]
    body = "\n ".join([*lines, f"return [{', '.join(values)}]"])
    exec(f"def match(wanted):\n {body}", results)
    match: Callable[[Sequence[RecordedNode]], Any] = results["match"]
    return match
