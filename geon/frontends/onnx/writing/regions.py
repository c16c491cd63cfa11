"""Rows of loops and branches: Scan, Loop and If, whose sub-graphs see the values around them.

Values that all steps read are not inputs of a sub-graph: it reads them by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....op_graph.axes.axes import Axes
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import BOOL, INT64, DType
from .exporter import Exporter, OnnxValue
from .expressions import Expr
from .movement import END, Row

Known = dict[Op, OnnxValue]


class LoopCarries(NamedTuple):
    """The carries of a loop: parameters of its body, initial values, and types of the inputs."""

    known: Known
    initial: list[str]
    types: list[Any]

    @staticmethod
    def of(e: Exporter, op: Op) -> LoopCarries:
        """Return the first arguments of a loop as its carries."""
        given = op.attrs.body.parameters[: op.attrs.carries]
        known = {p: OnnxValue(e.graph.unique("carry"), p.axes.names) for p in given}
        initial = [e.arranged(arg, p.axes.names) for arg, p in zip(op.args, given, strict=False)]
        return LoopCarries(known, initial, [_type(e, value, p) for p, value in known.items()])


def _type(e: Exporter, value: OnnxValue, op: Op) -> Any:
    return e.graph.described(value.name, op.axes, value.order, op.dtype)


def _scalar(e: Exporter, name: str, dtype: DType = INT64) -> Any:
    return e.graph.described(name, Axes(), (), dtype)


def _captured(e: Exporter, args: Sequence[Op], parameters: Sequence[Op]) -> Known:
    return {parameter: e.values[arg] for arg, parameter in zip(args, parameters, strict=True)}


def _written(e: Exporter, op: Op, known: Mapping[Op, OnnxValue]) -> tuple[list[OnnxValue], Any]:
    """Write the body of a loop; return its results, as values of its own, and their types.

    Carries have the order of the parameters, other results any order.
    """
    body, found = op.attrs.body, []
    with e.binding(known):
        e.write(body.results)
        for k, result in enumerate(body.results):
            order = result.axes.names if k < op.attrs.carries else e.values[result].order
            own = e.graph.node("Identity", [e.arranged(result, order)])
            found.append(OnnxValue(own, order))
    return found, [_type(e, *each) for each in zip(found, body.results, strict=True)]


def _outcomes(op: Op, names: list[str], results: list[OnnxValue]) -> list[OnnxValue]:
    """Return the results of a loop by these names; stacked ones have its axis in front."""
    a = op.attrs
    return [
        OnnxValue(name, value.order if k < a.carries else (a.axis.name, *value.order))
        for k, (name, value) in enumerate(zip(names, results, strict=True))
    ]


# Scans ------------------------------------------------------------------------------------------


def scan(e: Exporter, op: Op) -> list[OnnxValue]:
    """Write a Scan; without a known number of steps a Loop, since a Scan runs at least one."""
    length = op.attrs.axis.expression
    known = isinstance(length, int) and length > 0 and not op.attrs.counted
    return _scan(e, op) if known else _loop(e, op)


def _stacked(e: Exporter, op: Op) -> Iterator[tuple[Op, OnnxValue]]:
    """Yield the parameters for slices of stacked inputs, and the values of the inputs."""
    a = op.attrs
    for k in range(a.carries, a.before_captures):
        yield a.body.parameters[k], e.values[op.args[k]]


def _scan(e: Exporter, op: Op) -> list[OnnxValue]:
    a, graph = op.attrs, e.graph
    given, carries = a.body.parameters, LoopCarries.of(e, op)
    known = {**carries.known, **_captured(e, op.args[a.captures], given[a.captures])}
    steps = OnnxValue(e.range(a.axis.expression).name, (a.axis.name,))
    inputs = []
    for parameter, value in [*_stacked(e, op), (given[-1], steps)]:
        known[parameter] = value
        if a.axis.name in value.order:  # else it is the same in each step
            known[parameter] = OnnxValue(graph.unique("item"), value.with_axes(a.axis.name))
            inputs.append((value, _type(e, known[parameter], parameter)))
    with graph.subgraph() as nodes:
        results, types = _written(e, op, known)
    body = graph.graph(nodes, "scan_step", [*carries.types, *[t for _, t in inputs]], types)
    outward = len(results) - a.carries
    options: dict[str, Any] = {"scan_output_directions": [int(a.reverse)] * outward}
    made = graph.nodes_of(
        "Scan",
        [*carries.initial, *[value.name for value, _ in inputs]],
        len(results),
        body=body,
        num_scan_inputs=len(inputs),
        scan_input_axes=[value.order.index(a.axis.name) for value, _ in inputs],
        scan_input_directions=[int(a.reverse)] * len(inputs),
        **(options if outward else {}),
    )
    return _outcomes(op, made, results)


def _loop(e: Exporter, op: Op) -> list[OnnxValue]:
    """Write a Loop over the first steps of an axis; stacked results are 0 at the others."""
    a, graph = op.attrs, e.graph
    given, carries = a.body.parameters, LoopCarries.of(e, op)
    total = count = e.number(a.axis.expression)
    start = ""
    if a.counted:
        count = e.expr(e.arranged(op.args[-1], ()), op.args[-1].dtype).cast(INT64)
        count = count.run("Min", total)
        start = (count > 0).name
    known = {**carries.known, **_captured(e, op.args[a.captures], given[a.captures])}
    turn, going = graph.unique("turn"), graph.unique("going")
    with graph.subgraph() as nodes:
        step = e.expr(turn, INT64)
        step = (count - 1) - step if a.reverse else step
        known[given[-1]] = OnnxValue(step.name, ())
        for parameter, value in _stacked(e, op):
            sliced = a.axis.name in value.order
            known[parameter] = e.gathered(value, a.axis.name, step.name) if sliced else value
        results, types = _written(e, op, known)
        again = graph.node("Identity", [going])
        if a.counted:
            again = (e.expr(turn, INT64) + 1 < count).name
    inputs = [_scalar(e, turn), _scalar(e, going, BOOL), *carries.types]
    body = graph.graph(nodes, "loop_step", inputs, [_scalar(e, again, BOOL), *types])
    made = graph.nodes_of("Loop", [total.name, start, *carries.initial], len(results), body=body)
    if a.reverse:
        ends = [e.integers([end]) for end in (-1, -END, 0, -1)]
        made[a.carries :] = [graph.node("Slice", [each, *ends]) for each in made[a.carries :]]
    return _filled(e, op, _outcomes(op, made, results), total)


def _filled(e: Exporter, op: Op, found: list[OnnxValue], total: Expr) -> list[OnnxValue]:
    """Return the results of a loop, the stacked ones with zeros up to ``total`` steps.

    A loop without steps may give dimensions of length 0 where they are open: the shape is set.
    """
    graph, carries = e.graph, op.attrs.carries
    for k in range(carries, len(found)):
        (name, order), result = (found[k].name, found[k].order), op.attrs.body.results[k]
        inner = [result.axes[each].expression for each in order[1:]]
        taken = graph.node("Shape", [name], start=0, end=1)
        shape = graph.node("Concat", [taken, e.lengths.listed(inner)], axis=0)
        zero = e.expr(graph.constant(np.zeros((), result.dtype)), result.dtype)
        whole = e.expr(graph.node("Reshape", [name, shape], allowzero=1), result.dtype)
        still = e.integers([0] * len(order)), e.integers([0] * len(inner))
        behind = (total - e.expr(taken, INT64)).name
        pads = graph.node("Concat", [still[0], behind, still[1]], axis=0)
        found[k] = OnnxValue(whole.run("Pad", pads, zero).name, order)
    return found


# Conditions -------------------------------------------------------------------------------------


def while_loop(e: Exporter, op: Op) -> list[OnnxValue]:
    """Write a Loop; it evaluates the condition on the carries before the first step and after each.

    The number of steps is one more carry.
    """
    a, graph = op.attrs, e.graph
    given, carries = a.body.parameters, LoopCarries.of(e, op)
    before, zero = _captured(e, op.args, given[:-1]), graph.constant(0, np.int64)
    start = _condition(e, op, {**before, given[-1]: OnnxValue(zero, ())})
    turn, going, taken = (graph.unique(name) for name in ("turn", "going", "taken"))
    known = {**before, **carries.known, given[-1]: OnnxValue(turn, ())}
    with graph.subgraph() as nodes:
        results, types = _written(e, op, known)
        count = (e.expr(taken, INT64) + 1).name
        after = dict(zip(given[: a.carries], results, strict=False))
        again = _condition(e, op, {**known, **after, given[-1]: OnnxValue(count, ())})
    inputs = [_scalar(e, turn), _scalar(e, going, BOOL), _scalar(e, taken), *carries.types]
    outputs = [_scalar(e, again, BOOL), _scalar(e, count), *types]
    body = graph.graph(nodes, "loop_step", inputs, outputs)
    most = "" if a.limit is None else graph.constant(a.limit, np.int64)
    first = [most, start, zero, *carries.initial]
    steps, *made = graph.nodes_of("Loop", first, len(results) + 1, body=body)
    found = _outcomes(op, made, results)
    if a.axis is not None:
        found = _filled(e, op, found, e.number(a.limit))
    return [*found[: a.carries], OnnxValue(steps, ()), *found[a.carries :]]


def _condition(e: Exporter, op: Op, known: Known) -> str:
    """Write the condition of a loop on these parameters; return its name."""
    (truth,) = op.attrs.condition.results
    with e.binding(known):
        e.write([truth])
        return e.graph.node("Identity", [e.arranged(truth, ())])


def case(e: Exporter, op: Op) -> list[OnnxValue]:
    """Write an If for two branches, and If in the other branch of an If for more."""
    index = e.expr(e.arranged(op.args[0], ()), op.args[0].dtype).cast(INT64)
    names = _chosen(e, op, index, 0)
    orders = [result.axes.names for result in op.attrs.bodies[0].results]
    return [OnnxValue(name, order) for name, order in zip(names, orders, strict=True)]


def _chosen(e: Exporter, op: Op, index: Any, number: int) -> list[str]:
    """Write the branches from ``number`` on; return the names of their results."""
    graph, (*_, last) = e.graph, range(len(op.attrs.bodies))
    if number == last:
        return _branch(e, op, number)
    condition = index.equals(number)
    graphs = []
    for part in (lambda: _branch(e, op, number), lambda: _chosen(e, op, index, number + 1)):
        with graph.subgraph() as nodes:
            names = [graph.node("Identity", [name]) for name in part()]
        results = op.attrs.bodies[0].results
        values = [OnnxValue(n, r.axes.names) for n, r in zip(names, results, strict=True)]
        types = [_type(e, *each) for each in zip(values, results, strict=True)]
        graphs.append(graph.graph(nodes, "branch", [], types))
    ways = {"then_branch": graphs[0], "else_branch": graphs[1]}
    return graph.nodes_of("If", [condition.name], len(results), **ways)


def _branch(e: Exporter, op: Op, number: int) -> list[str]:
    body = op.attrs.bodies[number]
    with e.binding(_captured(e, op.args, body.parameters)):
        e.write(body.results)
        return [e.arranged(result, result.axes.names) for result in body.results]


ROWS: dict[str, Row] = {
    "case": case,
    "region_result": lambda e, op: e.values[op.args[0]][op.attrs.number],
    "scan": scan,
    "while": while_loop,
}
