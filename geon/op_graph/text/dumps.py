"""``dumps`` writes a graph as JSON lines, which ``loads`` reads back without running code.

The first line has the version. Each further line is an op, after the ops that it uses:
``[primitive, [lines of its arguments], axes, dtype, {everything else}]``, where line 1 is the first
line of the text. Fed arrays and lengths follow, and the last line names the results::

    {"geon": "graph", "version": 1}
    ["placeholder", [], [["N", "N"]], "float32", {"name": "x", "at": ["train.py", 3, ""]}]
    ["tanh", [2], [["N", "N"]], "float32", {"at": ["train.py", 4, ""]}]
    {"results": [3]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import DumpError
from ..autodiff.custom_deriv import DumpedRule, dumped_rule
from ..axes.axes import Axes, Axis
from ..building.unused_effects import take
from ..core.argument_hints import public
from ..core.source_info import resolve
from ..op_graph import Leaf, Op, Tensor, post_order, same_ops
from ..rows.custom_calls import CUSTOM
from ..values.arrays import array_of
from ..values.attribute_types import as_int
from ..values.labels import by_name
from .encoding import FORMAT, integer, write_array, write_axes, write_length
from .fingerprint import GraphWriter
from .loads import Case, loads, loads_case

if TYPE_CHECKING:
    from ..building.typing import FeedLike, Lengths


__all__ = ["FORMAT", "Case", "dumps", "loads", "loads_case"]


@public
def dumps(
    *results: Op | Sequence[Op],
    feeds: Mapping[Any, FeedLike] | None = None,
    lengths: Lengths | None = None,
    notes: bool = True,
) -> str:
    """Return the graph of ``results`` (ops, or a list of them) as text that ``loads`` reads.

    ``feeds`` are arrays for placeholders and variables of the graph, and ``lengths`` integers for
    open axes; with both, one text holds everything needed to run the computation again. Names, tags
    and the source line of each op are written too, unless ``notes`` is False. A callable initial
    value of a variable is not written. A derivative rule of ``custom_deriv`` is written as the
    graph that it builds. Raises ``DumpError`` for a feed that the graph does not use.
    """
    first: Any = results[0] if len(results) == 1 else None
    ops: Sequence[Any] = first if isinstance(first, (list, tuple)) else results
    for op in ops:
        if not isinstance(op, Op):
            raise DumpError(f"dumps takes ops, not {op!r} of type {type(op).__name__}")
    take(post_order(ops))
    writer = _DumpWriter(notes)
    writer.write(ops)
    for leaf, array in _fed(feeds or {}, writer.number):
        what = f"dumps: {leaf}"
        given = array_of(by_name(array, leaf.axes.names, what), what)
        writer.put({"feed": writer.number[leaf], "array": write_array(given)})
    if lengths:
        writer.put({"lengths": _open_lengths(lengths)})
    writer.put({"results": [writer.number[op] for op in ops]})
    return "\n".join([*writer.lines, ""])


def _fed(feeds: Mapping[Any, Any], lines_of: Mapping[Op, int]) -> list[tuple[Leaf, Any]]:
    if not isinstance(feeds, Mapping):
        raise DumpError(f"feeds={feeds!r} is no dict; give one from placeholders to arrays")
    for leaf in feeds:
        if not isinstance(leaf, Leaf) or leaf not in lines_of:
            known = [str(op) for op in lines_of if isinstance(op, Leaf)]
            raise DumpError(
                f"feeds: {leaf!r} is no placeholder or variable of the graph; leave it out, or "
                f"give arrays for those that are: {', '.join(known) or 'there are none'}"
            )
    return sorted(feeds.items(), key=lambda item: lines_of[item[0]])


def _open_lengths(lengths: Mapping[Any, int]) -> dict[str, int]:
    named: dict[str, int] = {}
    if not isinstance(lengths, Mapping):
        raise DumpError(f"lengths={lengths!r} is no dict; give one from open axes to integers")
    for axis, length in lengths.items():
        name = axis.open_name if isinstance(axis, Axis) else axis
        if not isinstance(name, str) or not name:
            raise DumpError(f"lengths: {axis!r} is no open axis or name")
        named[name] = integer(as_int(length), 0)
    return dict(sorted(named.items()))


class _DumpWriter(GraphWriter):
    """Writer of JSON lines, which are numbered from 1, the line of the version."""

    def __init__(self, notes: bool) -> None:
        self._encode = json.JSONEncoder(check_circular=False).encode
        super().__init__(self._encode({"geon": "graph", "version": FORMAT}))
        self.notes = notes
        self._entered: set[Op] = set()
        self._axes: dict[Axes, Any] = {}
        self._sites: dict[Any, Any] = {}
        self._rules: dict[Op, tuple[DumpedRule, Sequence[Tensor]]] = {}

    def put(self, line: Any) -> None:
        """Append one line."""
        self.lines.append(self._encode(line))

    def below(self, op: Op) -> tuple[Op, ...]:
        """Return the arguments of an op, and what its bodies, rule or initializers need.

        Raises ``DumpError`` for an op that is asked for again before its line is written.
        """
        if op in self._entered:
            raise DumpError(f"{op} (made at {op.line_info}) is needed to initialize itself")
        self._entered.add(op)
        if isinstance(op, Leaf):
            return _first_values(op)
        if op.primitive is not CUSTOM:
            return super().below(op)
        body = self._rule_of(op)[0].body
        return (*self._arguments(op), *(() if body is None else (*body.parameters, *body.results)))

    def write_op(self, op: Op) -> None:
        """Write the line of an op, with its leaf's properties and its notes."""
        axes = self._axes.get(op.axes)
        if axes is None:
            axes = self._axes[op.axes] = write_axes(op.axes)
        extra: dict[str, Any] = {}
        if op.attrs:
            extra["attrs"] = self._attributes(op)
        if op.weak:
            extra["weak"] = True
        if op.guards:
            extra["guards"] = [
                [g.relation, write_length(g.left), write_length(g.right), g.meaning]
                for g in op.guards
            ]
        if isinstance(op, Leaf):
            self._leaf(op, extra)
        if self.notes:
            self._notes(op, extra)
        args = [self.number[arg] for arg in self._arguments(op)]
        self.put([op.primitive.name, args, axes, op.dtype.name, extra])
        self.number[op] = len(self.lines)

    def _attributes(self, op: Op) -> list[Any]:
        if op.primitive is CUSTOM:
            return [self._rule(self._rule_of(op)[0])]
        try:
            return [self.attribute(value) for value in op.attrs]
        except DumpError as error:
            raise DumpError(f"{op} (made at {op.line_info}): {error}") from None

    def _rule(self, rule: DumpedRule) -> list[Any]:
        """Return ``["rule", name, body, [places]]``; without a graph ``["rule", name, reason]``."""
        if rule.body is None:
            return ["rule", rule.name, rule.reason]
        return ["rule", rule.name, self.body(rule.body), list(rule.places)]

    def _rule_of(self, op: Op) -> tuple[DumpedRule, Sequence[Tensor]]:
        """Return the graph of an op's ``custom_deriv`` rule, and the other values that it reads."""
        if op not in self._rules:
            self._rules[op] = dumped_rule(op)
        return self._rules[op]

    def _arguments(self, op: Op) -> tuple[Op, ...]:
        """Return the arguments of an op, and the captures of a ``custom_deriv`` rule."""
        return (*op.args, *self._rule_of(op)[1]) if op.primitive is CUSTOM else op.args

    def _leaf(self, leaf: Leaf, extra: dict[str, Any]) -> None:
        info = leaf.info
        if info.trainable:
            extra["trainable"] = True
        if info.persistent:
            extra["persistent"] = True
        if isinstance(info.initial_value, Tensor):
            extra["initial"] = self.number[info.initial_value]
        initializers = [self.number[op] for op in _further_initializers(leaf)]
        if initializers:
            extra["initializers"] = initializers

    def _notes(self, op: Op, extra: dict[str, Any]) -> None:
        notes = op._notes
        if notes is not None:
            shown = [] if notes.name is None else [notes.name]
            if not all(isinstance(text, str) for text in (*shown, *notes.names, *notes.tags)):
                raise DumpError(f"{op} (made at {op.line_info}): names and tags must be strings")
            if shown:
                extra["name"] = notes.name
            if notes.names != shown:
                extra["names"] = notes.names
            if notes.tags:
                extra["tags"] = sorted(notes.tags)
        site = op._site
        known = self._sites.get(site)
        if known is None:
            known = self._sites[site] = [*resolve(site), site[2]]
        extra["at"] = known


def _first_values(leaf: Leaf) -> tuple[Op, ...]:
    """Return the ops that a leaf's line refers to."""
    first = leaf.info.initial_value
    return (*((first,) if isinstance(first, Tensor) else ()), *_further_initializers(leaf))


def _further_initializers(leaf: Leaf) -> list[Op]:
    """Return the initializers of a leaf without the implied assignment of its initial value."""
    first, listed = leaf.info.initial_value, list(leaf.info.initializers)
    if not isinstance(first, Tensor):
        return listed
    return [op for op in listed if not same_ops(op.args, (leaf, first))]
