"""Rows of loops and branches: Scan, Loop and If, whose sub-graphs see the values around them.

Values that all steps read are not inputs of a sub-graph: it reads them by their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....op_graph.axes.axes import Axes
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import BOOL, INT64
from .exporter import Exporter, OnnxValue
from .movement import Row

Known = dict[Op, OnnxValue]


def scan(e: Exporter, op: Op) -> list[OnnxValue]:
    """Write a Scan; without a known number of steps a Loop, since a Scan runs at least one."""
    length = op.attrs.axis.expression
    known = isinstance(length, int) and length > 0 and not op.attrs.counted
    return _scan(e, op) if known else _loop(e, op)


def _scan(e: Exporter, op: Op) -> list[OnnxValue]:
    a, graph = op.attrs, e.graph
    given = a.body.parameters
    known, carries, states = _carried(e, op.args[: a.carries], given)
    stacks, axes, items = [], [], []
    for arg, parameter in zip(op.args[a.carries : a.before_captures], given[a.carries :],
                              strict=False):  # fmt: skip
        value = e.values[arg]
        if a.axis.name not in value.order:  # the same in each step
            known[parameter] = value
            continue
        at = value.order.index(a.axis.name)
        order = (*value.order[:at], *value.order[at + 1 :])
        known[parameter] = OnnxValue(graph.unique("item"), order)
        stacks.append(value.name)
        axes.append(at)
        items.append(graph.described(known[parameter].name, parameter.axes, order, parameter.dtype))
    step = OnnxValue(graph.unique("step"), ())
    stacks.append(e.range(a.axis.expression).name)
    axes.append(0)
    items.append(graph.described(step.name, Axes(), (), INT64))
    known |= {**_captured(e, op.args[a.captures], given[a.captures]), given[-1]: step}
    with e.binding(known), graph.subgraph() as nodes:
        e.write(a.body.results)
        after, shown, orders = _results(e, a.body.results, a.carries, known)
    body = graph.graph(nodes, "scan_step", [*states, *items], [*after, *shown])
    way = [int(a.reverse)]
    outward = {"scan_output_directions": way * len(shown)} if shown else {}
    made = graph.nodes_of(
        "Scan",
        [*carries, *stacks],
        len(a.body.results),
        body=body,
        num_scan_inputs=len(stacks),
        scan_input_axes=axes,
        scan_input_directions=way * len(stacks),
        **outward,
    )
    return _outcomes(made, op, a, orders)


def _carried(
    e: Exporter, args: Sequence[Op], parameters: Sequence[Op]
) -> tuple[Known, list[str], list[Any]]:
    """Return carries as parameters of a body: their values, initial values, and types."""
    known, initial, types = {}, [], []
    for arg, parameter in zip(args, parameters, strict=False):
        order = parameter.axes.names
        initial.append(e.arranged(arg, order))
        known[parameter] = OnnxValue(e.graph.unique("carry"), order)
        types.append(
            e.graph.described(known[parameter].name, parameter.axes, order, parameter.dtype)
        )
    return known, initial, types


def _captured(e: Exporter, args: Sequence[Op], parameters: Sequence[Op]) -> Known:
    return {parameter: e.values[arg] for arg, parameter in zip(args, parameters, strict=True)}


def _results(
    e: Exporter, results: Sequence[Op], carries: int, known: Known
) -> tuple[list[Any], list[Any], list[tuple[str, ...]]]:
    """Write the results of a body as values of its own; return their types and orders."""
    after: list[Any] = []
    shown: list[Any] = []
    orders: list[tuple[str, ...]] = []
    for k, result in enumerate(results):
        value = e.values[result]
        order = result.axes.names if k < carries else value.order
        own = e.graph.node("Identity", [e.arranged(result, order)])
        orders.append(order)
        typed = e.graph.described(own, result.axes, order, result.dtype)
        (after if k < carries else shown).append(typed)
    return after, shown, orders


def _outcomes(
    names: list[str], op: Op, a: Any, orders: list[tuple[str, ...]], first: int = 0
) -> list[OnnxValue]:
    """Return the results of a loop; stacked ones have its axis in front."""
    axis = () if a.axis is None else (a.axis.name,)
    return [
        OnnxValue(name, order if k < a.carries else (*axis, *order))
        for k, (name, order) in enumerate(zip(names, orders, strict=True))
    ]


def _loop(e: Exporter, op: Op) -> list[OnnxValue]:
    """Write a Loop over the first steps of an axis; stacked results are 0 at the others."""
    a, graph = op.attrs, e.graph
    given, length = a.body.parameters, a.axis.expression
    total = count = e.expr(e.lengths.scalar(length), INT64)
    if a.counted:
        count = e.expr(e.arranged(op.args[-1], ()), op.args[-1].dtype).cast(INT64)
        count = count.run("Max", 0).run("Min", total)
    known, carries, states = _carried(e, op.args[: a.carries], given)
    turn, going = graph.unique("turn"), graph.unique("going")
    with graph.subgraph() as nodes:
        number = e.expr(turn, INT64)
        step = (count - 1) - number if a.reverse else number
        for arg, parameter in zip(op.args[a.carries : a.before_captures], given[a.carries :],
                                  strict=False):  # fmt: skip
            value = e.values[arg]
            if a.axis.name in value.order:
                at = value.order.index(a.axis.name)
                picked = e.gathered(value.name, step.name, at)
                value = OnnxValue(picked, (*value.order[:at], *value.order[at + 1 :]))
            known[parameter] = value
        known |= {
            **_captured(e, op.args[a.captures], given[a.captures]),
            given[-1]: OnnxValue(step.name, ()),
        }
        with e.binding(known):
            e.write(a.body.results)
            after, shown, orders = _results(e, a.body.results, a.carries, known)
        again = graph.node("Identity", [going])
    flags = [graph.described(n, Axes(), (), dtype) for n, dtype in
             ((turn, INT64), (going, BOOL), (again, BOOL))]  # fmt: skip
    body = graph.graph(nodes, "loop_step", [*flags[:2], *states], [flags[2], *after, *shown])
    made = graph.nodes_of("Loop", [count.name, "", *carries], len(orders), body=body)
    if a.reverse:
        made[a.carries :] = [_backwards(e, name) for name in made[a.carries :]]
    found = _outcomes(made, op, a, orders)
    rest = total - count
    return [
        *found[: a.carries],
        *[
            _filled(e, value, result, rest.name, a.axis)
            for value, result in zip(found[a.carries :], a.body.results[a.carries :], strict=True)
        ],
    ]


def _backwards(e: Exporter, name: str) -> str:
    ends = [e.graph.constant([end], np.int64) for end in (-1, np.iinfo(np.int64).min + 1, 0, -1)]
    return e.graph.node("Slice", [name, *ends])


def _filled(e: Exporter, value: OnnxValue, result: Op, rest: str, axis: Any) -> OnnxValue:
    """Return stacked values with zeros behind, for the steps that were not taken.

    A loop without steps may give dimensions of length 0 where they are open: the shape is set.
    """
    graph, order = e.graph, value.order
    vector = graph.node("Reshape", [rest, graph.constant([1], np.int64)])
    taken = graph.node("Shape", [value.name], start=0, end=1)
    inner = e.lengths.listed([result.axes[name].expression for name in order[1:]])
    parts = [taken, inner] if len(order) > 1 else [taken]
    name = graph.node("Reshape", [value.name, graph.node("Concat", parts, axis=0)], allowzero=1)
    zero = e.expr(graph.constant(np.zeros((), result.dtype)), result.dtype)
    whole = e.expr(name, result.dtype)
    still = [graph.constant([0] * count, np.int64) for count in (len(order), len(order) - 1)]
    pads = graph.node("Concat", [still[0], vector, still[1]], axis=0)
    made = zero.run_mixed("Pad", [whole, pads, zero])
    return OnnxValue(made.name, order)


def while_loop(e: Exporter, op: Op) -> list[OnnxValue]:
    """Write a Loop; it evaluates the condition on the carries before the first step and after each.

    The number of steps is one more carry.
    """
    a, graph = op.attrs, e.graph
    given = a.body.parameters
    captured = _captured(e, op.args[a.carries :], given[a.carries : -1])
    zero = OnnxValue(graph.constant(0, np.int64), ())
    before = _captured(e, op.args[: a.carries], given[: a.carries])
    start = _condition(e, op, {**captured, **before, given[-1]: zero})
    known, carries, states = _carried(e, op.args[: a.carries], given)
    turn, going, taken = (graph.unique(name) for name in ("turn", "going", "taken"))
    known = {**captured, **known, given[-1]: OnnxValue(turn, ())}
    with graph.subgraph() as nodes:
        with e.binding(known):
            e.write(a.body.results)
            after, shown, orders = _results(e, a.body.results, a.carries, known)
        count = e.expr(taken, INT64) + 1
        next_values = {
            parameter: OnnxValue(typed.name, parameter.axes.names)
            for parameter, typed in zip(given, after, strict=False)
        }
        again = _condition(e, op, {**known, **next_values, given[-1]: OnnxValue(count.name, ())})
    numbers = [graph.described(name, Axes(), (), INT64) for name in (turn, taken, count.name)]
    flags = [graph.described(name, Axes(), (), BOOL) for name in (going, again)]
    inputs = [numbers[0], flags[0], numbers[1], *states]
    outputs = [flags[1], numbers[2], *after, *shown]
    body = graph.graph(nodes, "loop_step", inputs, outputs)
    most = "" if a.limit is None else graph.constant(a.limit, np.int64)
    made = graph.nodes_of("Loop", [most, start, zero.name, *carries], len(orders) + 1, body=body)
    steps, results = made[0], _outcomes(made[1:], op, a, orders)
    stacked = results[a.carries :]
    if stacked:
        rest = (e.expr(graph.constant(a.limit, np.int64), INT64) - e.expr(steps, INT64)).name
        stacked = [
            _filled(e, value, result, rest, a.axis)
            for value, result in zip(stacked, a.body.results[a.carries :], strict=True)
        ]
    return [*results[: a.carries], OnnxValue(steps, ()), *stacked]


def _condition(e: Exporter, op: Op, known: Known) -> str:
    """Write the condition of a loop on these parameters; return its name."""
    (truth,) = op.attrs.condition.results
    with e.binding(known):
        e.write([truth])
        return e.graph.node("Identity", [e.arranged(truth, ())])


def case(e: Exporter, op: Op) -> list[OnnxValue]:
    """Write an If for two branches, and If in the other branch of an If for more."""
    index = e.expr(e.arranged(op.args[0], ()), op.args[0].dtype)
    bodies = op.attrs.bodies
    orders = [result.axes.names for result in bodies[0].results]
    names = _chosen(e, op, index.cast(INT64), 0)
    return [OnnxValue(name, order) for name, order in zip(names, orders, strict=True)]


def _chosen(e: Exporter, op: Op, index: Any, number: int) -> list[str]:
    """Write the branches from ``number`` on; return the names of their results."""
    bodies, graph = op.attrs.bodies, e.graph
    if number == len(bodies) - 1:
        return _branch(e, op, number)
    condition = index.equals(number)
    graphs = []
    for part in (lambda: _branch(e, op, number), lambda: _chosen(e, op, index, number + 1)):
        with graph.subgraph() as nodes:
            names = part()
            names = [graph.node("Identity", [name]) for name in names]
        typed = [
            graph.described(name, result.axes, result.axes.names, result.dtype)
            for name, result in zip(names, bodies[0].results, strict=True)
        ]
        graphs.append(graph.graph(nodes, "branch", [], typed))
    count = len(bodies[0].results)
    return graph.nodes_of(
        "If", [condition.name], count, then_branch=graphs[0], else_branch=graphs[1]
    )


def _branch(e: Exporter, op: Op, number: int) -> list[str]:
    body = op.attrs.bodies[number]
    with e.binding(_captured(e, op.args, body.parameters)):
        e.write(body.results)
        return [e.arranged(result, result.axes.names) for result in body.results]


def region_result(e: Exporter, op: Op) -> OnnxValue:
    """Return one of the results of a loop or branch."""
    found: OnnxValue = e.values[op.args[0]][op.attrs.number]
    return found


ROWS: dict[str, Row] = {
    "case": case,
    "region_result": region_result,
    "scan": scan,
    "while": while_loop,
}
