"""Patterns of ops for rewrite rules, such as ``P.log(1 + P.exp(x))``, and helpers of rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from typing import Any

from ...lazy_dataclasses import dataclass
from ..building.constants import as_tensor, is_constant
from ..building.weak import strengthen
from ..core.primitive import PRIMITIVES
from ..op_graph import Op, Tensor
from ..rows.movement import broadcast
from ..values.dtypes import HALVES, DType, kind, name_of

Bindings = dict[str, Op]  # ops by the names of variables


class Expression:
    """A variable, or a primitive applied to expressions and numbers.

    ``x + y`` and ``x * y`` match operands in either order, ``P.add(x, y)`` only in this one. A
    number matches a scalar constant, in which 0.0 and -0.0 are equal.
    """

    def __add__(self, other: Any) -> Applied:
        return Applied("add", (self, other), True)

    def __radd__(self, other: Any) -> Applied:
        return Applied("add", (other, self), True)

    def __mul__(self, other: Any) -> Applied:
        return Applied("multiply", (self, other), True)

    def __rmul__(self, other: Any) -> Applied:
        return Applied("multiply", (other, self), True)

    def __sub__(self, other: Any) -> Applied:
        return Applied("subtract", (self, other))

    def __rsub__(self, other: Any) -> Applied:
        return Applied("subtract", (other, self))

    def __truediv__(self, other: Any) -> Applied:
        return Applied("divide", (self, other))

    def __rtruediv__(self, other: Any) -> Applied:
        return Applied("divide", (other, self))

    def __neg__(self) -> Applied:
        return Applied("negative", (self,))


@dataclass(frozen=True, eq=False)
class Wildcard(Expression):
    """Any op, or one of the primitive ``row`` for which ``test`` holds; each name is one op."""

    name: str
    row: str | None = None
    test: Callable[[Op], bool] | None = None


@dataclass(frozen=True, eq=False)
class Applied(Expression):
    """An op of the primitive ``name`` with these operands, or the two in the other order."""

    name: str
    args: tuple[Any, ...]
    commutes: bool = False

    @cached_property
    def checks(self) -> list[tuple[int, Any]]:
        """The operands with their positions, variables last, since these match most ops."""
        return sorted(enumerate(self.args), key=lambda part: _row_of(part[1]) is None)


class _Primitives:
    """``P.log(x)`` is the pattern of a ``log`` of ``x``."""

    def __getattr__(self, name: str) -> Callable[..., Applied]:
        return lambda *args: Applied(name, args)


P = _Primitives()


def orders(pattern: Any) -> list[Any]:
    """Return a pattern with its commuting operands in each order."""
    if not isinstance(pattern, Applied):
        return [pattern]
    variants = [Applied(pattern.name, args) for args in product(*map(orders, pattern.args))]
    if pattern.commutes:
        variants += [Applied(pattern.name, each.args[::-1]) for each in variants]
    return variants


def binds(pattern: Any, op: Op, bound: Bindings) -> bool:
    """Return True if a pattern in one order matches ``op``; put the variables' ops into ``bound``.

    A name stands for the op that it has in ``bound``, if any.
    """
    if isinstance(pattern, Wildcard):
        if pattern.name in bound:
            return bound[pattern.name] is op
        bound[pattern.name] = op
        return pattern.test is None or pattern.test(op)
    if not isinstance(pattern, Applied):
        return is_constant(op, pattern)
    if op.primitive.name != pattern.name or len(op.args) != len(pattern.args):
        return False
    for k, part in pattern.checks:
        if not binds(part, op.args[k], bound):
            return False
    return True


@dataclass(frozen=True, eq=False)
class Replacement:
    """A pattern, its replacement, and a condition on the op and the variables, if any.

    The replacement is a variable or a number, or a primitive applied to these.
    """

    pattern: Applied
    replacement: Any
    when: Callable[[Op, Bindings], bool] | None = None


def floats(op: Op, bound: Bindings) -> bool:
    """Return True if the op that a rule replaces has a float dtype."""
    return kind(op.dtype) == "f"


def pattern_rule(name: str, cases: Sequence[Replacement]) -> Callable[[Op], Op | None]:
    """Return the rule that applies the first of these cases that matches."""
    table: dict[str, list[tuple[Applied, Replacement]]] = {}  # patterns in each order, by primitive
    for case in cases:
        for pattern in orders(case.pattern):
            table.setdefault(pattern.name, []).append((pattern, case))

    def rule(op: Op) -> Op | None:
        for pattern, case in table[op.primitive.name]:
            bound: Bindings = {}
            if binds(pattern, op, bound) and (case.when is None or case.when(op, bound)):
                return over_axes(_built(case.replacement, bound, op.dtype), op)
        return None

    rule.__name__ = name
    starts = {_row_of(pattern.checks[0][1]) for each in table.values() for pattern, _ in each}
    if None not in starts:
        rule.operands = starts  # type: ignore[attr-defined]  # the driver skips ops without one
    return rule


def _row_of(pattern: Any) -> str | None:
    """Return the name of the primitive that each match of a pattern has; None if it may be any."""
    if isinstance(pattern, Applied):
        return pattern.name
    return pattern.row if isinstance(pattern, Wildcard) else "constant"


def _built(expression: Any, bound: Bindings, dtype: DType) -> Any:
    """Return the tensor of a replacement, with numbers in this dtype."""
    if isinstance(expression, Wildcard):
        return bound[expression.name]
    if isinstance(expression, Applied):
        row: Any = PRIMITIVES[expression.name]
        return row.apply(*[_built(arg, bound, dtype) for arg in expression.args])
    return strengthen(as_tensor(expression), dtype)


# Helpers of rules that are functions --------------------------------------------------------------


def is_of(op: Op, name: str) -> bool:
    """Return True if the primitive of ``op`` has this name."""
    return op.primitive is PRIMITIVES[name]


def tensor(x: Op) -> Tensor:
    """Return ``x``; assert that it is a tensor."""
    assert isinstance(x, Tensor)
    return x


def strip_repeats(op: Op) -> Op:
    """Return the operand of ``op`` if it is a broadcast, otherwise ``op``."""
    return op.args[0] if is_of(op, "broadcast") else op


def strip_rounding(op: Op) -> Op:
    """Return the operand below casts of ``op`` to and from half precision."""
    while is_of(op, "cast") and kind(op.args[0].dtype) == "f":
        if not {name_of(op.dtype), name_of(op.args[0].dtype)}.intersection(HALVES):
            break
        op = op.args[0]
    return op


def over_axes(x: Any, op: Op) -> Tensor:
    """Broadcast ``x`` to the axes of the op that it replaces."""
    return broadcast(x, op.axes)
