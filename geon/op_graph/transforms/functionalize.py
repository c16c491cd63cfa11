"""Functionalization: replaces effects by values, as (outputs, new value of each variable).

The walk over a ``sequential`` op carries an environment from each storage leaf to its current
value. Reads in a later element are replaced by that value, and an assignment to a slice becomes
``update(whole, value, at)``. The result is pure. The walk consists of generators that run on an
explicit stack, so that graphs of any depth work.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from math import gcd
from typing import Any

from ...errors import OrderError
from ...lazy_dataclasses import dataclass
from ..axes.lengths import Length
from ..building.constants import convert_weak, is_weak_constant, number
from ..building.rebuild import with_args
from ..core.interning import OwnTable
from ..core.source_info import Site, building
from ..nodes import made_at
from ..op_graph import NO_AXES, Leaf, Op, Tensor, VoidOp, among, post_order, same_ops
from ..rows.elementwise import add
from ..rows.slicing import _slice, _update
from ..values.dtypes import UINT64


@dataclass(frozen=True, eq=False, slots=True)
class AssignmentRecord:
    """One assignment: ``value`` is stored in the part of ``leaf`` given by the slices ``chain``."""

    leaf: Leaf
    chain: tuple[Op, ...]
    value: Tensor
    op: Op


@dataclass(frozen=True, eq=False, slots=True)
class Effects:
    """The effects of running an op: assignments per leaf in execution order, and prints."""

    sets: dict[Leaf, tuple[AssignmentRecord, ...]]
    prints: tuple[Op, ...] = ()


NOTHING = Effects({})


class Env:
    """The current value of each storage leaf assigned so far; others have their value at entry."""

    __slots__ = ("memo", "substituted", "values")

    def __init__(self, values: dict[Leaf, Tensor]) -> None:
        self.values = values
        self.memo: dict[Op, tuple[Op, Effects]] = {}
        self.substituted: dict[Op, Op] = dict(values.items())


@dataclass(frozen=True, eq=False, slots=True)
class Functional:
    """A computation without effects.

    ``outputs`` has the pure op of each result, or None for an effect. ``updates`` has the new value
    of each variable that changes. ``prints`` are the print ops to run.
    """

    outputs: tuple[Tensor | None, ...]
    updates: dict[Leaf, Tensor]
    prints: tuple[Op, ...]

    @property
    def roots(self) -> tuple[Op, ...]:
        """All ops that must be computed."""
        outputs = tuple(op for op in self.outputs if op is not None)
        return (*outputs, *self.updates.values(), *self.prints)

    def mapped(self, of: Callable[[Op], Any], leaf: Callable[[Leaf], Any]) -> Functional:
        """Return the same with ``of`` applied to each op, and ``leaf`` to each changed variable."""
        return Functional(
            tuple([None if op is None else of(op) for op in self.outputs]),
            {leaf(changed): of(value) for changed, value in self.updates.items()},
            tuple(map(of, self.prints)),
        )

    def with_values(self, known: dict[Op, Op], own: OwnTable) -> Functional:
        """Return the same with the ops in ``known`` replaced; new ops are in ``own``."""
        with building(own):
            return self.mapped(lambda op: substitute(op, known), lambda leaf: leaf)


def functional(results: Iterable[Op], own: OwnTable | None = None) -> Functional:
    """Return the pure form of running ``results`` together, with counters of streams advanced.

    New ops are in the intern table ``own``, if given. Raises ``OrderError`` for two unordered
    assignments to overlapping parts of a variable.
    """
    with building(own):
        return _functional(results)


def _functional(results: Iterable[Op]) -> Functional:
    outputs, landed, prints = run_once(results)
    updates = {leaf: value for leaf, value in landed.items() if leaf.info.stored}
    result = Functional(outputs, updates, prints)
    order = post_order(result.roots)
    result = Functional(result.outputs, {**updates, **_counters(order, updates)}, result.prints)
    return _settled(result, order)


def run_once(
    results: Iterable[Op],
) -> tuple[tuple[Tensor | None, ...], dict[Leaf, Tensor], tuple[Op, ...]]:
    """Return pure values, assigned values and prints of running ``results`` together.

    The pure value of an effect is None. The assigned values are by variable or placeholder.
    Counters of random streams are not advanced.
    """
    env = Env({})
    outputs: list[Tensor | None] = []
    effects = NOTHING
    for result in results:
        value, own = _run(_visit(result, env))
        outputs.append(None if isinstance(result, VoidOp) else value)
        effects = _union(effects, own)
    landed = {leaf: _landed(leaf, records) for leaf, records in effects.sets.items()}
    return tuple(outputs), landed, effects.prints


def pure_value(y: Tensor) -> Tensor:
    """Return the value of ``y`` as a pure op; ``y`` itself if it has no effects below."""
    if not y.effectful:
        return y
    value, _ = _run(_visit(y, Env({})))
    assert isinstance(value, Tensor)
    return value


def _settled(made: Functional, order: list[Op]) -> Functional:
    """Convert weak constant lists that met no dtype to the default dtype of their kind."""
    lists = [op for op in order if is_weak_constant(op) and op.axes is not NO_AXES]
    if not lists:
        return made
    known: dict[Any, Any] = {op: convert_weak(op, op.dtype) for op in lists}
    for root in made.roots:
        substitute(root, known)
    return Functional(
        tuple([None if op is None else known[op] for op in made.outputs]),
        {leaf: known[op] for leaf, op in made.updates.items()},
        tuple([known[op] for op in made.prints]),
    )


def _counters(order: list[Op], updates: dict[Leaf, Tensor]) -> dict[Leaf, Tensor]:
    """Return the call counter of every stream drawn from, advanced by one."""
    counters: dict[Leaf, Tensor] = {}
    for op in order:
        for counter in _counters_of(op):
            # A counter that was assigned explicitly keeps the assigned value, one that is fed the
            # value of the call.
            if not isinstance(counter, Leaf) or not counter.info.stored:
                continue
            if counter not in {**counters, **updates}:
                counters[counter] = add.apply(counter, number(1, UINT64))
    return counters


def _counters_of(op: Op) -> list[Op]:
    """Return the counters that an op draws from; for a region those passed to its bodies' draws."""
    if op.primitive.name == "random_bits":
        return [below for below in post_order(op.args) if not below.args and below.dtype is UINT64]
    counters = []
    for body in op.bodies:
        places = {parameter: k for k, parameter in enumerate(body.parameters)}
        for inner in post_order(body.results):
            counters += [op.args[places[c]] for c in _counters_of(inner) if c in places]
    return counters


Step = Generator[Any, Any, Any]


def _run(first: Step) -> Any:
    """Run a generator that yields the generators whose results it needs."""
    stack, result = [first], None
    while stack:
        try:
            stack.append(stack[-1].send(result))
            result = None
        except StopIteration as stop:
            stack.pop()
            result = stop.value
    return result


def _visit(op: Op, env: Env) -> Step:
    """Return the pure value of ``op`` in ``env`` (itself for void ops) and its effects."""
    result = env.memo.get(op)
    if result is None:
        if not op.effectful:
            result = (substitute(op, env.substituted) if env.values else op), NOTHING
        else:
            step = _STEPS.get(op.primitive.name, _visit_pure)
            result = yield step(op, env)
        env.memo[op] = result
    return result


def _visit_pure(op: Op, env: Env) -> Step:
    args, effects = yield _visit_args(op.args, env)
    return with_args(op, args), effects


def _visit_print(op: Op, env: Env) -> Step:
    args, effects = yield _visit_args(op.args, env)
    result = with_args(op, args)
    return result, _union(effects, Effects({}, (result,)))


def _visit_args(args: tuple[Op, ...], env: Env) -> Step:
    values: list[Op] = []
    effects = NOTHING
    for arg in args:
        value, own = yield _visit(arg, env)
        values.append(value)
        effects = _union(effects, own)
    return tuple(values), effects


def _visit_assign(op: Op, env: Env) -> Step:
    target, value = op.args
    new, effects = yield _visit(value, env)
    chain: list[Op] = []
    while not isinstance(target, Leaf):
        positions, own = yield _visit_args(target.args[1:], env)
        effects = _union(effects, own)
        chain.append(with_args(target, (target.args[0], *positions)))
        target = target.args[0]
    record = AssignmentRecord(target, tuple(reversed(chain)), new, op)
    return op, _union(effects, Effects({target: (record,)}))


def _visit_doall(op: Op, env: Env) -> Step:
    _, effects = yield _visit_args(op.args, env)
    return op, effects


def _visit_with_effect(op: Op, env: Env) -> Step:
    args, effects = yield _visit_args(op.args, env)
    return args[0], effects


def _visit_sequential(op: Op, env: Env) -> Step:
    sets: dict[Leaf, tuple[AssignmentRecord, ...]] = {}
    prints: tuple[Op, ...] = ()
    value: Op = op
    for element in op.args:
        value, effects = yield _visit(element, env)
        prints += tuple(p for p in effects.prints if not among(p, prints))
        if effects.sets:
            values = dict(env.values)
            for leaf, records in effects.sets.items():
                values[leaf] = _landed(env.values.get(leaf, leaf), records)
                sets[leaf] = (*sets.get(leaf, ()), *records)
            env = Env(values)
    return value, Effects(sets, prints)


_STEPS = {
    "assign": _visit_assign,
    "with_effect": _visit_with_effect,
    "doall": _visit_doall,
    "sequential": _visit_sequential,
    "print": _visit_print,
}


def substitute(op: Op, known: dict[Op, Op]) -> Op:
    """Return ``op`` with the ops in ``known`` replaced; ``known`` gains all rebuilt ops."""
    if op not in known:
        for below in post_order([op], known):
            known[below] = with_args(below, tuple(known[arg] for arg in below.args))
    return known[op]


def _landed(current: Tensor, records: tuple[AssignmentRecord, ...]) -> Tensor:
    """Return the value of a leaf after the assignments ``records``, in order, to ``current``.

    A value that reads the part which it replaces reads it after the assignments to other parts, so
    that one memory can hold the leaf throughout.
    """
    whole = next((k for k in reversed(range(len(records))) if not records[k].chain), 0)
    first, records = current, records[whole:]  # one of the whole overwrites all earlier ones
    for k, record in enumerate(records):
        value, chain = record.value, record.chain
        if chain and k and not any(_overlap(chain, earlier.chain) for earlier in records[:k]):
            before, now = (_parts(whole, chain)[-1] for whole in (first, current))
            value = substitute(value, {before: now})  # type: ignore[assignment]
        current = _placed(current, chain, value, record.op._site)
    return current


def _parts(whole: Tensor, chain: tuple[Op, ...], site: Site | None = None) -> list[Tensor]:
    """Return ``whole`` and the slices of it, one of the other."""
    parts = [whole]
    for part in chain:
        parts.append(_slice(parts[-1], part.attrs.items, part.args[1:], part.guards, site=site))
    return parts


def _placed(current: Tensor, chain: tuple[Op, ...], value: Tensor, site: Site) -> Tensor:
    if not chain:
        return value
    wholes = _parts(current, chain[:-1], site)
    for whole, part in zip(reversed(wholes), reversed(chain), strict=True):
        value = _update(whole, value, part.attrs.items, part.args[1:], part.guards, 1, site)
    return value


def _union(left: Effects, right: Effects) -> Effects:
    """Return the union of unordered effects; raise ``OrderError`` if they overlap."""
    if left is right or not (right.sets or right.prints):
        return left
    if not (left.sets or left.prints):
        return right
    sets = dict(left.sets)
    for leaf, records in right.sets.items():
        known = sets.get(leaf, ())
        new = tuple(record for record in records if record not in known)
        for a in known:
            for b in new:
                if _overlap(a.chain, b.chain):
                    raise OrderError(
                        f"two unordered assignments to {leaf} (made at {made_at(leaf)}): one "
                        f"made at {made_at(a.op)}, another at {made_at(b.op)}; order them with "
                        "geon.sequential([first, second]), or assign to parts that do not overlap"
                    )
        sets[leaf] = known + new
    prints = left.prints + tuple(p for p in right.prints if not among(p, left.prints))
    return Effects(sets, prints)


def _overlap(left: tuple[Op, ...], right: tuple[Op, ...]) -> bool:
    """Return True if two chains of slices of one leaf may have an element in common."""
    if not left or not right:
        return True
    for a, b in zip(left[0].attrs.items, right[0].attrs.items, strict=True):
        if _apart(a, b):
            return False
    same = left[0].attrs.items == right[0].attrs.items and same_ops(
        left[0].args[1:], right[0].args[1:]
    )
    return _overlap(left[1:], right[1:]) if same else True


def _apart(a: Any, b: Any) -> bool:
    if a is None or b is None or "dyn" in (a[0], b[0]):
        return False
    (first, last, step), (other_first, other_last, other_step) = _ends(a), _ends(b)
    if _negative(last - other_first - 1) or _negative(other_last - first - 1):
        return True
    offset, common = first - other_first, gcd(step, other_step)
    return isinstance(offset, int) and common > 0 and offset % common != 0


def _ends(item: Any) -> tuple[int | Length, int | Length, int]:
    # An index is a range of one element with step 0: gcd(0, step) is the other range's step.
    return (item[1], item[1] + 1, 0) if item[0] == "at" else item[1:]


def _negative(difference: int | Length) -> bool:
    return isinstance(difference, int) and difference < 0
