"""Evaluation: compiled programs that compute pending arrays, and values that are kept."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..errors import FeedError, GeonError, GuardError
from ..op_graph.core.source_info import describe, user_site
from ..op_graph.values.byte_budget import ByteBudget
from ..transformers.base import Transformer, make_transformer
from . import nodes
from .nodes import (
    ALIAS,
    FORGOTTEN,
    MAX_DEPTH,
    MemoEntry,
    Recent,
    RecordedNode,
    Type,
    local,
    lock,
)
from .tape import Matcher, Tape, built, matcher, tape_of

MAX_PROGRAMS = 512  # maximum compiled programs
MAX_BYTES = 64 << 20  # maximum bytes of values that are kept beside those of arrays in use
MAX_MATCHED = 256  # maximum pending nodes of a program that has a matcher
MAX_LATEST = 8  # maximum matchers that are tried before a tape is made
LARGE_BYTES = 4096  # least bytes of a value that are counted
# Least bytes of a result for which those of its program stay on a device. Smaller ones come back
# with the call: work that copies all results back is replayed as one CUDA graph.
MIN_DEVICE_BYTES = 4096

programs: Recent[Any] = Recent()  # by structure and lengths
matchers: Recent[Matcher] = Recent()  # by the same, of programs that were used twice
# By the result of the first wanted node: its matchers and programs that were found last.
latest: Recent[list[tuple[Matcher, Any]]] = Recent()
# By structure: the program for all lengths; None before the second ones, False if it states one.
structures: Recent[Any] = Recent()


class use:
    """Compute with another transformer from now on, or within ``with geon.eager.use(...)``.

    It is a name or a transformer. Without it, arrays are computed by ``geon.make_transformer()``:
    native code if there is a compiler, otherwise NumPy. Values that are computed already stay.
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
        use.chosen = make_transformer()
    return use.chosen


def read(node: RecordedNode) -> Any:
    """Return the value of a node; it is computed with all that is pending in this thread."""
    with lock:
        if node.value is None:
            roots = local.pending.take()
            if node not in roots:
                roots.append(node)
            try:
                if len(roots) == 1 and node.result is not ALIAS:
                    _store(node, _computed(roots)[0])
                else:
                    evaluate(roots)
            except GeonError:
                # An array that cannot be computed must not stop others: it raises if it is read.
                if len(roots) == 1:
                    raise
                evaluate([node])
        return node.value


def sync() -> None:
    """Compute all arrays of this thread that are pending."""
    with lock:
        evaluate(local.pending.take())


def limit(args: Sequence[RecordedNode]) -> None:
    """Compute what is pending, and forget the graph of nodes with too many calls behind them."""
    with lock:
        evaluate(
            [node for node in dict.fromkeys([*local.pending.take(), *args]) if node.value is None]
        )
        for node in args:
            if node.depth >= MAX_DEPTH:
                node.forget(node.mark or FORGOTTEN)


def prepare() -> None:
    """Compile the program that computes the pending arrays of this thread, without running it."""
    with lock:
        sources = dict.fromkeys(map(_source, local.pending.nodes()))
        wanted = [node for node in sources if node.value is None]
        if wanted:
            _computed(wanted, run=False)


def evaluate(roots: Sequence[RecordedNode]) -> None:
    """Compute the values of these nodes, which have none, by one program."""
    aliases, wanted = [node for node in roots if node.result is ALIAS], roots
    if aliases:
        wanted = [node for node in dict.fromkeys(map(_source, roots)) if node.value is None]
    if wanted:
        for node, value in zip(wanted, _computed(wanted), strict=True):
            _store(node, value)
    for node in aliases:
        _store(node, _source(node).value)


def _store(node: RecordedNode, value: Any) -> None:
    """Give a node its value."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    node.value, shown = value, node.shown
    if node.entry is not None and shown is not None and shown() is not None:
        keep(node.entry, value)
    if node.mark is not None:
        node.forget(node.mark)


def _source(node: RecordedNode) -> RecordedNode:
    """Return the node that has the value of a version or of a detached array."""
    while node.result is ALIAS and node.value is None:
        (node,) = node.args
    return node


def _computed(wanted: Sequence[RecordedNode], *, run: bool = True) -> Sequence[Any]:
    """Return the values of nodes; without ``run`` compile their program, and return none."""
    chosen, first = use.chosen or transformer(), wanted[0].result
    on_host = chosen.memory.on_host
    for match, program in latest.get(first, []) if run and on_host else []:
        values = match(wanted)
        if values is not None and program.transformer is chosen:
            break
    else:
        key, tape = _structure(chosen, wanted)
        program = programs.get(key)
        if program is None:
            program = programs.put(key, _program(chosen, tape, wanted), MAX_PROGRAMS)
        elif on_host and len(tape.order) <= MAX_MATCHED:
            match = matchers.get(key) or matchers.put(key, matcher(tape, wanted), MAX_PROGRAMS)
            others = latest.get(first, [])[: MAX_LATEST - 1]
            latest.put(first, [(match, program), *others], MAX_PROGRAMS)
        if not run:
            _ = program.stages().compiled
            return ()
        values = [n.value if on_host else _resident(n, chosen) for n in tape.inputs]
    try:
        made = program(*values)
    except GeonError as error:
        key, tape = _structure(chosen, wanted)
        if not isinstance(error, (FeedError, GuardError)):
            raise _with_lines(chosen, error, tape) from None
        # The program for all lengths states one.
        programs[key] = _compiled(chosen, tape, wanted, False, False)
        latest.pop(first, None)
        made = programs[key](*values)
    return (made,) if len(wanted) == 1 else made


def _structure(chosen: Transformer, wanted: Sequence[RecordedNode]) -> tuple[Any, Tape]:
    """Return the tape of what is pending behind nodes, and the key of their program."""
    tape = tape_of(wanted, pending=True)
    numbers = [tape.numbers[node] for node in wanted]
    return (chosen, len(tape.inputs), *numbers, *tape.steps), tape


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
        leaves = tape.placeholders(open)
        tensors = built(tape.steps, tape.leaves, leaves, again, tape.sites)
        results = [tensors[tape.numbers[node]] for node in wanted]
        stays = not chosen.memory.on_host and _may_stay([node.type for node in wanted])
        return chosen.computation(
            results if len(results) > 1 else results[0], *leaves, on_device=stays
        )


def _with_lines(chosen: Transformer, error: GeonError, tape: Tape) -> GeonError:
    """Return an error of a program with the lines that built the array and asked for its value.

    The calls are computed one by one to find it: equal programs of other lines are one.
    """
    reader = describe(user_site())
    values = {node: node.value for node in tape.inputs}
    for node in tape.order:
        one = Tape([node], dict.fromkeys(node.args))
        try:
            f = _compiled(chosen, one, [node], False, one.opens)
            values[node] = f(*[values[arg] for arg in one.inputs])
        except GeonError as own:
            what = f"the value of {node.result.call.name} at {describe(node.site)}"
            return type(own)(f"{own}\n{what} was asked for at {reader}")
    return type(error)(f"{error}\nits value was asked for at {reader}")


# Values on a device ------------------------------------------------------------------------------

_read: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""By array of a device: its elements as a NumPy array, once they were read or if they came so."""


def _may_stay(types: Sequence[Type]) -> bool:
    """Return True if results of these types are to stay on a device: real ones, some of them large.

    A device has no complex arrays.
    """
    sizes = [math.prod(t.axes.lengths) * t.dtype.itemsize for t in types]
    return max(sizes) >= MIN_DEVICE_BYTES and all(t.dtype.kind != "c" for t in types)


def _resident(node: RecordedNode, chosen: Transformer) -> Any:
    """Return the value of a node as input of a program on a device.

    Large values of variables, which every step reads, are copied to the device once.
    """
    value = node.value
    if not isinstance(value, np.ndarray):
        return value if chosen.memory.holds(value) else host_value(value)
    is_version = node.mark is not None and node.mark.__class__ is not str
    if is_version and value.nbytes >= MIN_DEVICE_BYTES and value.dtype.kind != "c":
        copy = chosen.memory.copy_in(value)
        _read[copy] = value
        node.value = value = copy
    return value


def host_value(value: Any) -> Any:
    """Return a computed value as a NumPy array; that on a device is copied by the first read."""
    if isinstance(value, np.ndarray):
        return value
    with lock:
        found = _read.get(value)
        if found is None:
            found = np.asarray(value)
            found.setflags(write=False)
            _read[value] = found
    return found


# Kept values -------------------------------------------------------------------------------------


def keep(entry: MemoEntry, value: Any) -> None:
    """Keep the value of a call to be found again, as the one that was used last."""
    entry.value = value if kept.most else None
    if value.nbytes >= LARGE_BYTES:
        kept.count(entry, value.nbytes)


def _drop(entry: MemoEntry) -> None:
    """Drop a kept value, also that of its node once no array has it."""
    entry.value, node = None, entry()
    if node is not None and node.result is not None:
        array = None if node.shown is None else node.shown()
        if array is None:
            node.value = None
        else:
            node.shown = weakref.ref(array, lambda _: kept.drop_later(entry))


kept = ByteBudget(MAX_BYTES, _drop, lock)


def kept_bytes(most: int | None = None) -> int:
    """Set the bytes of values that are kept to be found again; return the limit before.

    A value that was computed is found again by the same function of the same arrays. 0 keeps none
    from now on; without an argument the limit stays. Values of arrays in use stay in any case.
    """
    before = kept.most
    if most is not None:
        kept.limit(most)
    return before
