"""Evaluation: compiled programs that compute pending arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import get_ident
from typing import Any

from ..errors import FeedError, GeonError, GuardError, UnavailableError
from ..op_graph.core.source_info import describe, user_site
from ..transformers.base import Transformer, make_transformer
from . import nodes
from .memo import keep
from .nodes import ALIAS, FORGOTTEN, FREED, MAX_DEPTH, Recent, RecordedNode, Tape, lock, pending

MAX_PROGRAMS = 512  # maximum compiled programs

programs: Recent[Any] = Recent()  # by structure and lengths
# By structure: the program for all lengths; None before the second ones, False if it states one.
structures: Recent[Any] = Recent()


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


def read(node: RecordedNode) -> Any:
    """Return the value of a node; it is computed with all that is pending in this thread."""
    with lock:
        if node.value is not None:
            return node.value
        if len(pending) == 1 and node in pending and node.result is not ALIAS:
            _store(node, _computed((node,))[0])
            del pending[node]
            return node.value
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
        return node.value


def sync() -> None:
    """Compute all arrays of this thread that are pending."""
    with lock:
        evaluate(_pending())


def limit(args: Sequence[RecordedNode]) -> None:
    """Compute what is pending, and forget the graph of nodes with too many calls behind them."""
    with lock:
        evaluate([*dict.fromkeys([*_pending(), *args])])
        for node in args:
            if node.value is not None and node.depth >= MAX_DEPTH:
                node.forget(node.mark or FORGOTTEN)


def _pending() -> list[RecordedNode]:
    """Return the nodes of live arrays of this thread without a value."""
    me = get_ident()
    return [node for node, thread in pending.copy().items() if thread == me]


def prepare() -> None:
    """Compile the program that computes the pending arrays of this thread, without running it."""
    with lock:
        sources = dict.fromkeys(map(_source, _pending()))
        wanted = [node for node in sources if node.value is None]
        if wanted:
            _computed(wanted, run=False)


def evaluate(roots: Sequence[RecordedNode]) -> None:
    """Compute the values of these nodes by one program."""
    sources = [_source(node) for node in roots]
    wanted = [node for node in dict.fromkeys(sources) if node.value is None]
    if wanted:
        for node, value in zip(wanted, _computed(wanted), strict=True):
            _store(node, value)
    for node, source in zip(roots, sources, strict=True):
        pending.pop(node, None)
        if node is not source:
            node.value = source.value
            if node.mark is not None:
                node.forget(node.mark)


def _store(node: RecordedNode, value: Any) -> None:
    """Give a node its value."""
    value.setflags(write=False)
    node.value, mark = value, node.mark
    if node.shown and (mark is None or mark is FREED):
        keep(node)
    if mark is not None:
        node.forget(mark)


def _source(node: RecordedNode) -> RecordedNode:
    """Return the node that has the value of a version or of a detached array."""
    while node.result is ALIAS and node.value is None:
        (node,) = node.args
    return node


def _computed(wanted: Sequence[RecordedNode], *, run: bool = True) -> Sequence[Any]:
    """Return the values of nodes; without ``run`` compile their program, and return none.

    The key of their program has the results of calls, from the ``wanted`` on, each with the numbers
    of its arguments in order of discovery; those of computed ones are negative.
    """
    order, values = [*wanted], []
    numbers: dict[RecordedNode, int] = {}
    chosen = use.chosen or transformer()
    key: list[Any] = [chosen, len(order)]
    for node in order:
        numbers[node] = len(numbers)
    for node in order:  # it grows
        key.append(node.result)
        for arg in node.args:
            number = numbers.get(arg)
            if number is None:
                number = len(numbers)
                if arg.value is None:
                    order.append(arg)
                else:
                    values.append(arg.value)
                    number = ~number
                numbers[arg] = number
            key.append(number)
    exact = tuple(key)

    def tape() -> Tape:
        return Tape(order, [node for node, number in numbers.items() if number < 0])

    program = programs.get(exact)
    if program is None:
        program = programs.put(exact, _program(chosen, tape(), wanted), MAX_PROGRAMS)
    if not run:
        _ = program.stages().compiled
        return ()
    try:
        made = program(*values)
    except GeonError as error:
        if not isinstance(error, (FeedError, GuardError)):
            raise _with_lines(chosen, error, tape()) from None
        # The program for all lengths states one.
        programs[exact] = _compiled(chosen, tape(), wanted, False, False)
        made = programs[exact](*values)
    return [made] if len(wanted) == 1 else made


def _program(chosen: Transformer, tape: Tape, wanted: Sequence[RecordedNode]) -> Any:
    """Return a program for these nodes; from the second lengths on, one for all lengths."""
    key = (chosen, tape.generic(), tuple([tape.numbers[node] for node in wanted]))
    if key not in structures:
        structures.put(key, None, MAX_PROGRAMS)
    elif structures[key] is None:
        structures[key] = False
        if tape.opens and any(n.type.declared is not n.type.axes for n in tape.inputs):
            with suppress(GeonError):  # such as for the length of a flattened axis
                structures[key] = _compiled(chosen, tape, wanted, True, True)
    return structures[key] or _compiled(chosen, tape, wanted, False, False)


def _compiled(
    chosen: Transformer, tape: Tape, wanted: Sequence[RecordedNode], open: bool, again: bool
) -> Any:
    """Return the computation of nodes from the values of the inputs of a tape."""
    with nodes.symbolic():
        leaves = nodes.leaves_for(tape.inputs, open)
        tensors = nodes.built(tape.steps, leaves, again, tape.sites)
        results = [tensors[tape.numbers[node]] for node in wanted]
        return chosen.computation(results if len(results) > 1 else results[0], *leaves)


def _with_lines(chosen: Transformer, error: GeonError, tape: Tape) -> GeonError:
    """Return an error of a program with the lines that built the array and asked for its value.

    The calls are computed one by one to find it: equal programs of other lines are one.
    """
    asked = describe(user_site())
    values = {node: node.value for node in tape.inputs}
    for node in tape.order:
        one = Tape([node], dict.fromkeys(node.args))
        try:
            f = _compiled(chosen, one, [node], False, one.opens)
            values[node] = f(*[values[arg] for arg in one.inputs])
        except GeonError as own:
            what = f"the value of {node.result.call.name} at {describe(node.site)}"
            return type(own)(f"{own}\n{what} was asked for at {asked}")
    return type(error)(f"{error}\nits value was asked for at {asked}")
