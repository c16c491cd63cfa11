"""Evaluation: compiled programs that compute pending arrays, and the values that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import Any

from ..errors import FeedError, GeonError, GuardError, UnavailableError
from ..op_graph.core.source_info import describe, user_site
from ..op_graph.op_graph import Leaf
from ..op_graph.rows.leaves import input_leaf
from ..transformers.base import Transformer, make_transformer
from .arrays import Array, refuse_reading
from .memo import keep
from .nodes import FORGOTTEN, FREED, MAX_DEPTH, SAME, Node, Part, Recent, local, lock, pending
from .recording import serial, symbolic

MAX_PROGRAMS = 512  # maximum compiled programs


class Structure:
    """The programs of one structure: those for given lengths, and one for all lengths.

    ``open`` is None before the second lengths, and False if the structure has no program for all.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.open: Any = None


programs: Recent[Any] = Recent(MAX_PROGRAMS)
structures: Recent[Structure] = Recent(MAX_PROGRAMS)


class Chosen:
    """The transformer that computes; None before the first value is read."""

    transformer: Transformer | None = None


def transformer() -> Transformer:
    """Return the transformer: native if there is a compiler, otherwise NumPy."""
    if Chosen.transformer is None:
        try:
            Chosen.transformer = make_transformer("native")
        except UnavailableError:
            Chosen.transformer = make_transformer("numpy")
    return Chosen.transformer


class use:
    """Compute with another transformer from now on, or within ``with geon.eager.use(...)``.

    It is a name or a transformer. Values that are computed already stay.
    """

    def __init__(self, chosen: Transformer | str) -> None:
        self.before = Chosen.transformer
        Chosen.transformer = make_transformer(chosen) if isinstance(chosen, str) else chosen

    def __enter__(self) -> Transformer:
        assert Chosen.transformer is not None
        return Chosen.transformer

    def __exit__(self, *_: object) -> None:
        Chosen.transformer = self.before


def read(x: Array) -> None:
    """Compute the value of an array, with all that is pending in this thread."""
    if local.recording:
        refuse_reading(x)
    node = x._node
    with lock:
        if node.value is None:
            if len(pending) == 1 and node in pending and node.call is not SAME:
                _evaluate_one(node)
                return
            mine = _pending()
            if node not in mine:
                mine = [node]
            try:
                evaluate(mine)
            except GeonError:
                # An array that cannot be computed must not stop the others: it raises if it is read.
                for other in mine:
                    pending.pop(other, None)
                if mine != [node]:
                    evaluate([node])
                else:
                    raise


def sync() -> None:
    """Compute all arrays of this thread that are pending."""
    with lock:
        evaluate(_pending())


def limit(args: Sequence[Node]) -> None:
    """Compute what is pending, and forget the graph of nodes with too many calls behind them."""
    with lock:
        evaluate(list({**dict.fromkeys(_pending()), **dict.fromkeys(a for a in args if a.type)}))
        for node in args:
            for each in (node, *node.args) if node.type is None else (node,):
                if each.value is not None and each.depth >= MAX_DEPTH:
                    each.forget(FORGOTTEN if each.mark is None else each.mark)


def _pending() -> list[Node]:
    """Return the nodes of live arrays of this thread without a value."""
    me = get_ident()
    while True:
        try:
            return [node for node, thread in list(pending.items()) if thread == me]
        except RuntimeError:  # an array died meanwhile
            continue


def evaluate(roots: Sequence[Node]) -> None:
    """Compute the values of these nodes by one program."""
    roots = [node for node in roots if node.value is None]
    targets = list(dict.fromkeys([_source(node) for node in roots]))
    wanted = [node for node in targets if node.value is None]
    if wanted:
        values = _computed(wanted)
        for node, value in zip(wanted, values, strict=True):
            value.setflags(write=False)
            node.value = value
            if node.shown and (node.mark is None or node.mark == FREED):
                keep(node)
    for node in roots:
        node.value = _source(node).value
    for node in (*roots, *wanted):
        pending.pop(node, None)
        if node.mark is not None and node.call is not None:
            node.forget(node.mark)


def _evaluate_one(node: Node) -> None:
    """Compute the only pending node."""
    value = _computed([node])[0]
    value.setflags(write=False)
    node.value = value
    del pending[node]
    if node.mark is not None:
        node.forget(node.mark)
    elif node.shown:
        keep(node)


def _source(node: Node) -> Node:
    """Return the node that has the value of a version or of a detached array."""
    while node.call is SAME:
        (node,) = node.args
    return node


def _computed(wanted: Sequence[Node]) -> Sequence[Any]:
    """Return the values of nodes."""
    order = list(wanted)
    seen = set(order)
    for node in order:  # it grows
        for arg in node.args:
            if arg.value is None and arg not in seen:
                seen.add(arg)
                order.append(arg)
    if len(order) > 1:
        order.sort(key=serial)
    numbers: dict[Node, int] = {}
    inputs: list[Node] = []
    key: list[Any] = [Chosen.transformer]
    count = 0
    for node in order:
        key.append(node.call)
        for arg in node.args:
            number = numbers.get(arg)
            if number is None:
                number = numbers[arg] = count
                count += 1
                inputs.append(arg)
            key.append(number)
        numbers[node] = count
        count += 1
    for node in wanted:
        key.append(numbers[node])
    exact = tuple(key)
    program = programs.new.get(exact) or programs.get(exact)
    if program is None:
        program = _compiled(order, inputs, wanted, numbers)
        key[0] = Chosen.transformer
        programs.put(tuple(key), program)
    try:
        return program(*[node.value for node in inputs])  # type: ignore[no-any-return]
    except GeonError as error:
        raise _with_lines(transformer(), error, order) from None


def _compiled(
    order: Sequence[Node], inputs: Sequence[Node], wanted: Sequence[Node], numbers: dict[Node, int]
) -> Any:
    """Return a program for these nodes; from the second lengths on, one for all lengths."""
    chosen = transformer()
    generic = (
        chosen,
        tuple([(n.call.generic, tuple([numbers[a] for a in n.args])) for n in order]),
        tuple([(n.type.declared, n.type.dtype) for n in inputs]),
        tuple([numbers[node] for node in wanted]),
    )
    known = structures.get(generic)
    if known is None:
        known = Structure()
        structures.put(generic, known)
    known.seen += 1
    if known.seen > 1 and known.open is None:
        known.open = False
        whole = all(node.call.again is not None for node in order)
        if whole and any(n.type.declared is not n.type.axes for n in inputs):
            try:
                known.open = _program(chosen, order, inputs, wanted, True)
            except GeonError:
                known.open = (
                    False  # a length is part of the program, such as that of a flattened axis
                )
    if known.open:
        return _Open(known.open, lambda: _program(chosen, order, inputs, wanted, False))
    return _program(chosen, order, inputs, wanted, False)


class _Open:
    """The program for all lengths; that for its own lengths if the other refuses them."""

    def __init__(self, shared: Any, make: Any) -> None:
        self.shared, self.make = shared, make

    def __call__(self, *values: Any) -> Any:
        try:
            return self.shared(*values)
        except (FeedError, GuardError):  # its graph states a length
            self.shared = self.make()
            return self.shared(*values)


def _program(
    chosen: Transformer,
    order: Sequence[Node],
    inputs: Sequence[Node],
    wanted: Sequence[Node],
    open: bool,
) -> Any:
    """Return the computation of nodes from the values of the inputs."""
    with symbolic():
        leaves = [_leaf(node, open) for node in inputs]
        tensors: dict[Node, Any] = dict(zip(inputs, leaves, strict=True))
        for node in order:
            tensors[node] = node.call.build([tensors[arg] for arg in node.args], open)
        return chosen.computation([tensors[node] for node in wanted], *leaves)


def _leaf(node: Node, open: bool) -> Leaf:
    """Return a placeholder for the value of a node, with its line."""
    axes = node.type.declared if open else node.type.axes
    return input_leaf(axes, node.type.dtype, site=node.site)


def _with_lines(chosen: Transformer, error: GeonError, order: Sequence[Node]) -> GeonError:
    """Return an error of a program with the lines that built the array and asked for its value.

    The calls are computed one by one to find it: equal programs of other lines are one.
    """
    asked = describe(user_site())
    values: dict[Node, Any] = {}
    for node in order:
        args = [values[arg] if arg in values else arg.value for arg in node.args]
        try:
            values[node] = _alone(chosen, node, args)
        except GeonError as own:
            what = f"the value of {node.call.name} at {describe(node.site)}"
            return type(own)(f"{own}\n{what} was asked for at {asked}")
    return type(error)(f"{error}\nits value was asked for at {asked}")


def _alone(chosen: Transformer, node: Node, args: Sequence[Any]) -> Any:
    """Return the value of one call on these values; a tuple if it has several."""
    if node.call is SAME:
        return args[0]
    if isinstance(node.call, Part):
        return args[0][node.call.number]
    with symbolic():
        leaves = [_leaf(arg, False) for arg in node.args]
        made = node.call.build(leaves, False)
        f = chosen.computation(made, *leaves)
    return f(*args)
