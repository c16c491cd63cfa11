"""Iterative traversal of graphs: post-order, comparison by identity, leaves, lookup by name."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, TypeVar
from weakref import finalize

from .argument_hints import public

if TYPE_CHECKING:
    from ..op_graph import Leaf, Op, Tensor


Value = TypeVar("Value")
Node = TypeVar("Node", bound=Hashable)


def same_ops(left: Sequence[object], right: Sequence[object]) -> bool:
    """Return True if both hold the same ops in the same order."""
    return left is right or (len(left) == len(right) and all(map(operator.is_, left, right)))


def among(op: Op, ops: Iterable[Op]) -> bool:
    """Return True if ``op`` itself is one of ``ops``; ``in`` would compare them by ``==``."""
    return any(other is op for other in ops)


def until_dropped(table: dict[int, Value], op: Op, value: Value) -> Value:
    """Store a value under the id of an op until the op dies; return the one that is stored."""
    if id(op) not in table:
        finalize(op, table.pop, id(op), None).atexit = False
    return table.setdefault(id(op), value)


class Same:
    """Wrapper of an op for dict keys: equal if it is the same op."""

    __slots__ = ("op",)

    def __init__(self, op: Op) -> None:
        self.op = op

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.op is self.op

    def __hash__(self) -> int:
        return hash(self.op)


def reachable(roots: Iterable[Node], further: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Yield ``roots`` and all nodes that ``further`` leads to from them, each once."""
    stack = list(dict.fromkeys(roots))
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        for each in further(node):
            if each not in seen:
                seen.add(each)
                stack.append(each)


def post_order(roots: Iterable[Op], known: Set[Op] | Mapping[Op, object] = frozenset()) -> list[Op]:
    """Return every op that the roots depend on, each once, arguments before users; iterative.

    Ops in ``known``, and ops that are only below these, are left out.
    """
    seen: set[Op] = set()
    order: list[Op] = []
    stack: list[tuple[Op, Iterator[Op]]] = []
    for root in roots:
        if root in seen or root in known:
            continue
        seen.add(root)
        stack.append((root, iter(root.args)))
        while stack:
            op, rest = stack[-1]
            for arg in rest:
                if arg not in seen and arg not in known:
                    seen.add(arg)
                    stack.append((arg, iter(arg.args)))
                    break
            else:
                order.append(op)
                stack.pop()
    return order


def deep_order(roots: Iterable[Op]) -> list[Op]:
    """Return the ops of ``post_order`` and those in bodies of regions, each before its region."""
    order: dict[Op, None] = {}
    waiting = [iter(post_order(roots))]
    while waiting:
        op = next(waiting[-1], None)
        if op is None:
            waiting.pop()
            continue
        inner = [root for body in op.bodies for root in body.results if root not in order]
        if inner and op not in order:
            # Visit the op again after the ops in its bodies.
            waiting += [iter([op]), iter(post_order(inner, order))]
            continue
        order[op] = None
    return list(order)


def storage_leaves(*roots: Op) -> list[Leaf]:
    """Return the placeholders and variables that the roots depend on, in order of first use."""
    return [op for op in post_order(roots) if op._unique]  # type: ignore[misc]  # these are leaves


@public
def find(name: str, *roots: Op) -> Tensor | Op:
    """Return the op below ``roots`` that was ever given this name; ``KeyError`` if none was."""
    for op in reversed(post_order(roots)):
        if op._notes is not None and name in op._notes.names:
            return op
    raise KeyError(f"no op named {name!r} below {', '.join(map(str, roots))}")


def is_bound(op: Op) -> bool:
    """Return True if ``op`` is known before a call: storage, a constant, a length or its cast."""
    row = op.primitive
    return row.known or (row.name == "cast" and op.args[0].primitive.name == "length")
