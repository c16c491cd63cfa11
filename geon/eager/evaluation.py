"""Evaluation: compiled programs that compute pending arrays."""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import Any

from ..errors import FeedError, GeonError, GuardError, UnavailableError
from ..op_graph.core.source_info import describe, user_site
from ..op_graph.op_graph import Leaf
from ..op_graph.rows.leaves import input_leaf
from ..transformers.base import Transformer, make_transformer
from .arrays import LATE, EagerArray, refuse_reading
from .memo import keep
from .nodes import (
    ALIAS,
    FORGOTTEN,
    FREED,
    MAX_DEPTH,
    Recent,
    RecordedNode,
    ResultPart,
    local,
    lock,
    pending,
    serial,
    symbolic,
)

MAX_PROGRAMS = 512  # maximum compiled programs


class ProgramFamily:
    """The programs of one structure: ``open`` is that for all lengths.

    It is None before the second lengths, and False if a length is part of the structure.
    """

    open: Any = None
    seen = 0


programs: Recent[Any] = Recent(MAX_PROGRAMS)
structures: Recent[ProgramFamily] = Recent(MAX_PROGRAMS)


class use:
    """Compute with another transformer from now on, or within ``with geon.eager.use(...)``.

    It is a name or a transformer. Without it, arrays are computed by native code if there is a
    compiler, otherwise by NumPy. Values that are computed already stay.
    """

    chosen: Transformer | None = None  # None before the first value is read

    def __init__(self, transformer: Transformer | str) -> None:
        self.before = use.chosen
        named = isinstance(transformer, str)
        use.chosen = make_transformer(transformer) if named else transformer  # type: ignore[arg-type,assignment]  # by `named`

    def __enter__(self) -> Transformer:
        return transformer()

    def __exit__(self, *_: object) -> None:
        use.chosen = self.before


def transformer() -> Transformer:
    """Return the transformer that computes."""
    if use.chosen is None:
        try:
            use.chosen = make_transformer("native")
        except UnavailableError:
            use.chosen = make_transformer("numpy")
    return use.chosen


def read(x: EagerArray) -> None:
    """Compute the value of an array, with all that is pending in this thread."""
    if local.recording:
        refuse_reading(x)
    node = x._node
    with lock:
        if node.value is not None:
            return
        if len(pending) == 1 and node in pending and node.call is not ALIAS:
            value = node.value = _computed((node,))[0]
            value.flags.writeable = False
            del pending[node]
            if node.mark is None:
                keep(node)
            else:
                node.forget(node.mark)
            return
        mine = _pending()
        try:
            evaluate(mine if node in mine else [node])
        except GeonError:
            # An array that cannot be computed must not stop others: it raises if it is read.
            for other in mine:
                pending.pop(other, None)
            if len(mine) == 1:
                raise
            evaluate([node])


def sync() -> None:
    """Compute all arrays of this thread that are pending."""
    with lock:
        evaluate(_pending())


def limit(args: Sequence[RecordedNode]) -> None:
    """Compute what is pending, and forget the graph of nodes with too many calls behind them."""
    with lock:
        evaluate([*dict.fromkeys([*_pending(), *[arg for arg in args if arg.type is not None]])])
        for node in args:
            if node.value is not None and node.depth >= MAX_DEPTH:
                node.forget(node.mark or FORGOTTEN)


def _pending() -> list[RecordedNode]:
    """Return the nodes of live arrays of this thread without a value."""
    me = get_ident()
    while True:
        try:
            return [node for node, thread in list(pending.items()) if thread == me]
        except RuntimeError:  # an array died meanwhile
            continue


def evaluate(roots: Sequence[RecordedNode]) -> None:
    """Compute the values of these nodes by one program."""
    sources = [_source(node) for node in roots]
    wanted = [node for node in dict.fromkeys(sources) if node.value is None]
    if wanted:
        for node, value in zip(wanted, _computed(wanted), strict=True):
            value.setflags(write=False)
            node.value = value
            if node.shown and (node.mark is None or node.mark is FREED):
                keep(node)
            if node.mark is not None:
                node.forget(node.mark)
    for node, source in zip(roots, sources, strict=True):
        pending.pop(node, None)
        node.value = source.value
        if node.mark is not None:
            node.forget(node.mark)


def _source(node: RecordedNode) -> RecordedNode:
    """Return the node that has the value of a version or of a detached array."""
    while node.call is ALIAS and node.value is None:
        (node,) = node.args
    return node


def _computed(wanted: Sequence[RecordedNode]) -> Any:
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
    chosen = use.chosen or transformer()
    numbers: dict[RecordedNode, int] = {}
    inputs: list[RecordedNode] = []
    values: list[Any] = []
    key: list[Any] = [chosen]
    for node in order:
        key.append(node.call)
        for arg in node.args:
            if arg not in numbers:
                numbers[arg] = len(numbers)
                inputs.append(arg)
                values.append(arg.value)
            key.append(numbers[arg])
        numbers[node] = len(numbers)
    key += [numbers[node] for node in wanted]
    exact = tuple(key)
    program = programs.new.get(exact) or programs.get(exact)
    if program is None:
        program = programs.put(exact, _program(chosen, order, inputs, wanted, numbers))
    try:
        return program(*values)
    except GeonError as error:
        if isinstance(error, (FeedError, GuardError)):  # the program for all lengths states one
            program = programs.put(exact, _compiled(chosen, order, inputs, wanted, False))
            return program(*values)
        raise _with_lines(chosen, error, order) from None


def _program(
    chosen: Transformer,
    order: Sequence[RecordedNode],
    inputs: Sequence[RecordedNode],
    wanted: Sequence[RecordedNode],
    numbers: dict[RecordedNode, int],
) -> Any:
    """Return a program for these nodes; from the second lengths on, one for all lengths."""
    generic = (
        chosen,
        tuple([(n.call.generic, tuple([numbers[a] for a in n.args])) for n in order]),
        tuple([(n.type.declared, n.type.dtype) for n in inputs]),
        tuple([numbers[node] for node in wanted]),
    )
    known = structures.get(generic) or structures.put(generic, ProgramFamily())
    known.seen += 1
    if known.seen > 1 and known.open is None:
        known.open = False
        opens = any(n.type.declared is not n.type.axes for n in inputs)
        if opens and all(node.call.again is not None for node in order):
            try:
                known.open = _compiled(chosen, order, inputs, wanted, True)
            except GeonError:
                known.open = False  # such as the length of a flattened axis
    return known.open or _compiled(chosen, order, inputs, wanted, False)


def _compiled(
    chosen: Transformer,
    order: Sequence[RecordedNode],
    inputs: Sequence[RecordedNode],
    wanted: Sequence[RecordedNode],
    open: bool,
) -> Any:
    """Return the computation of nodes from the values of the inputs."""
    with symbolic():
        leaves = [_leaf(node, open) for node in inputs]
        tensors: dict[RecordedNode, Any] = dict(zip(inputs, leaves, strict=True))
        for node in order:
            given = [tensors[arg] for arg in node.args]
            tensors[node] = node.call.build(given, open, node.site)
        return chosen.computation([tensors[node] for node in wanted], *leaves)


def _leaf(node: RecordedNode, open: bool) -> Leaf:
    """Return a placeholder for the value of a node, with its line."""
    axes = node.type.declared if open else node.type.axes
    return input_leaf(axes, node.type.dtype, site=node.site)


def _with_lines(chosen: Transformer, error: GeonError, order: Sequence[RecordedNode]) -> GeonError:
    """Return an error of a program with the lines that built the array and asked for its value.

    The calls are computed one by one to find it: equal programs of other lines are one.
    """
    asked = describe(user_site())
    values: dict[RecordedNode, Any] = {}
    for node in order:
        args = [values[arg] if arg in values else arg.value for arg in node.args]
        try:
            if node.call is ALIAS or isinstance(node.call, ResultPart):
                values[node] = node.call.build(args, False)
                continue
            with symbolic():
                leaves = [_leaf(arg, False) for arg in node.args]
                known = node.call.again is not None
                f = chosen.computation(node.call.build(leaves, known, node.site), *leaves)
            values[node] = f(*args)
        except GeonError as own:
            what = f"the value of {node.call.name} at {describe(node.site)}"
            return type(own)(f"{own}\n{what} was asked for at {asked}")
    return type(error)(f"{error}\nits value was asked for at {asked}")


LATE["read"] = read
LATE["limit"] = limit
