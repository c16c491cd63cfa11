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

Matcher = Callable[[Sequence[RecordedNode]], list[Any] | None]
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


def tape_of(
    roots: Sequence[RecordedNode], cut: Sequence[RecordedNode] = (), *, pending: bool = False
) -> Tape:
    """Return the graph behind nodes as a tape, with inputs in order of use.

    It ends at ``cut``, at data, and at versions of variables; if ``pending``, at all nodes that
    have values. Raises ``DerivativeError`` where another graph was freed or forgotten.
    """
    seen, order, found = {*cut}, [], [*roots]
    for node in found:  # it grows
        if node in seen:
            continue
        seen.add(node)
        if pending:
            ends = node.value is not None
        elif node.mark in GONE:
            raise DerivativeError(
                f"{user_call('the derivative')} needs the graph of the array made at "
                f"{describe(node.site)}, {GONE[node.mark]}"
            )
        else:
            ends = node.mark is not None or node.result is None
        if not ends:
            order.append(node)
            found += node.args
    order.sort(key=serial)
    inner = {*order}
    used = [*(arg for node in order for arg in node.args), *roots, *cut]
    inputs = dict.fromkeys([node for node in used if node not in inner])
    return Tape(order, inputs, None if pending else cut)


def matcher(tape: Tape, wanted: Sequence[RecordedNode]) -> Matcher:
    """Return a function that recognises the ``tape`` of the pending graph behind ``wanted`` nodes.

    It takes other nodes, and returns the values of the inputs of their tape; None if their graph
    has another structure. It is code without loops and tables, which takes a tenth of the time of
    making the tape.
    """
    names = {node: f"n{k}" for node, k in tape.numbers.items()}
    known, calls, space = {*wanted}, dict[int, str](), dict[str, Any]()
    targets = [names[node] for node in wanted]
    lines = [f"if len(wanted) != {len(targets)}: return", f"{', '.join(targets)}, = wanted"]
    for node in reversed(tape.order):
        own = names[node]
        space[f"{own}r"] = node.result
        lines.append(f"if {own}.value is not None or {own}.result is not {own}r: return")
        if id(node.args) in calls:  # another result of one call
            lines.append(f"if {own}.args is not {calls[id(node.args)]}.args: return")
        elif node.args:
            calls[id(node.args)] = own
            targets, checks = list[str](), list[str]()
            for arg in node.args:
                targets.append(f"a{len(targets)}" if arg in known else names[arg])
                if arg in known:
                    checks.append(f"if {targets[-1]} is not {names[arg]}: return")
                known.add(arg)
            lines += [f"{', '.join(targets)}, = {own}.args", *checks]
    values = [f"{names[node]}.value" for node in tape.inputs]
    lines += [f"if {value} is None: return" for value in values]
    body = "\n ".join([*lines, f"return [{', '.join(values)}]"])
    exec(f"def match(wanted):\n {body}", space)
    match: Matcher = space["match"]
    return match
