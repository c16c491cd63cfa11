"""What a kernel must do at least: the bytes it moves and the operations it computes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ...op_graph.dtypes import name_of
from ...op_graph.lengths import evaluate
from ...op_graph.op_graph import Op, among
from ..kernels.elements import is_same
from ..lowering.fusion import reduces
from ..lowering.memory import Plan
from ..lowering.schedule import Kernel
from ..printing import c_expressions
from .naming import KernelNames, Place, place_of

# Prefix sums and extremes take one operation for each element; what sorting takes is not counted.
COUNTED_LIBRARY = frozenset({"cumsum", "cumprod", "argmax", "argmin"})

_FUNCTION = re.compile(r"GEON_INLINE [\w ]+?\b(geon_\w+)\(")
_CALL = re.compile(r"\bgeon_\w+(?=\()")
_FUSED = re.compile(r"\b(?:GEON_FMA_F\d\d|fmaf?)\(")
_SIGN = re.compile(r"(?<=[\w)\]]) [-+*/] (?=[\w(-])")
_ROOT = re.compile(r"\bsqrtf?\(")
_PORTABLE = re.compile(r"^#else\n.*?^(?=#endif)", re.MULTILINE | re.DOTALL)


@dataclass(slots=True)
class Cost:
    """What one kernel does in one call.

    ``read`` and ``written`` are bytes, each value counted once; ``touched`` the bytes of memory
    that these lie in, which is less where a result takes the place of what was read.
    ``operations`` are counted by the dtype they are computed in.
    """

    read: int = 0
    written: int = 0
    touched: int = 0
    operations: dict[Any, int] = field(default_factory=dict)

    def count(self, dtype: Any, operations: int) -> None:
        """Count further operations."""
        if operations:
            self.operations[dtype] = self.operations.get(dtype, 0) + operations


def cost_of(plan: Plan, kernel: Kernel, lengths: Mapping[str, int]) -> Cost:
    """The cost of a kernel where the open lengths are ``lengths``.

    A product of matrices takes two operations for each triple of indices, a reduction one for each
    element it goes over, an elementwise op one for each element of its result, or what the C of an
    elementary function does: two for a fused multiply-add, one for each other sum, product,
    quotient or root. What an op computes several times for want of memory counts once; casts
    count, moving data and the arithmetic of indices do not. Of a value of which only a part can be
    reached, as through a slice, that part is read.
    """
    return _Work(plan, kernel, lengths).cost()


def _reads_whole(op: Op) -> bool:
    """Whether ``op`` reads all of an argument, whichever of its elements are asked for."""
    row = op.primitive
    kernel = row.cost == "kernel" and row.name != "update"
    return reduces(op) or kernel or row.acts or row.name == "dot"


class _Work:
    def __init__(self, plan: Plan, kernel: Kernel, lengths: Mapping[str, int]) -> None:
        self.plan, self.kernel, self.lengths = plan, kernel, lengths
        self.names = KernelNames(plan, kernel)
        self.needed: dict[Op, int] = {}  # elements of each op that are used
        self.places: dict[Place, int] = {}

    def size(self, op: Op) -> int:
        return int(evaluate(op.axes.size, self.lengths))

    def cost(self) -> Cost:
        """Bytes and operations of the kernel."""
        cost = Cost()
        name = self.kernel.op.primitive.name
        if name in ("update", "scatter") and self.kernel.kind == "call":
            self.replaced(cost, self.kernel.op)
        else:
            self.walked(cost)
        cost.touched = sum(self.places.values())
        return cost

    def touch(self, place: Place, size: int) -> int:
        """Note that bytes of a place are touched; returns how many."""
        self.places[place] = max(self.places.get(place, 0), size)
        return size

    def walked(self, cost: Cost) -> None:
        """The cost of all that the kernel computes, from its results to what lies in memory."""
        acting = self.kernel.op.args if self.kernel.acts else ()
        for op in (*self.kernel.results, *acting):
            self.needed[op] = self.size(op)
        for op in self.order([*self.kernel.results, *acting]):
            needed = min(self.needed[op], self.size(op))
            if among(op, self.kernel.results):
                place = place_of(self.plan, op)
                cost.written += self.touch(place, needed * op.dtype.itemsize)
            elif self.names.stored(op):
                place = place_of(self.plan, op)
                cost.read += self.touch(place, needed * op.dtype.itemsize)
                continue
            for arg in op.args:
                whole = _reads_whole(op)
                used = self.size(arg) if whole else min(needed, self.size(arg))
                self.needed[arg] = self.needed.get(arg, 0) + used
            self.count(cost, op, needed)

    def order(self, roots: list[Op]) -> Iterator[Op]:
        """What the kernel computes and reads, each op after all that use it."""
        found: dict[Op, None] = {}
        stack = [(op, False) for op in roots]
        while stack:
            op, ready = stack.pop()
            if ready:
                found[op] = None
            elif op not in found:
                stack.append((op, True))
                if among(op, self.kernel.results) or not self.names.stored(op):
                    stack += [(arg, False) for arg in op.args if arg not in found]
        return reversed(found)

    def count(self, cost: Cost, op: Op, elements: int) -> None:
        """Add the operations of one op for so many elements."""
        name, dtype = op.primitive.name, op.dtype
        if name == "dot":
            sizes = {axis.name: axis.expression for arg in op.args for axis in arg.axes}
            total = 2
            for length in sizes.values():
                total *= int(evaluate(length, self.lengths))
            cost.count(dtype, total)
        elif reduces(op) or name in COUNTED_LIBRARY:
            cost.count(op.args[0].dtype, self.size(op.args[0]))
        elif op.primitive.kind == "elementwise" and not is_same(op):
            kinds = tuple(name_of(arg.dtype) for arg in op.args)
            wide = op.args[-1].dtype if op.args else dtype
            cost.count(wide, elements * _operations(name, kinds, name_of(dtype), op.attrs))

    def replaced(self, cost: Cost, op: Op) -> None:
        """A value with a part replaced: in place that part alone is touched."""
        x, *rest = (self.plan.schedule.base[arg] for arg in op.args)
        whole = self.size(op) * op.dtype.itemsize
        for arg in dict.fromkeys(rest):
            size = self.size(arg) * arg.dtype.itemsize
            if self.names.stored(arg):
                cost.read += self.touch(place_of(self.plan, arg), size)
        scatters = op.primitive.name == "scatter"
        value = op.args[2 if scatters else 1]
        part = min(self.size(value) * op.dtype.itemsize, whole)
        combines = scatters and op.attrs[1] != "set"
        if combines:
            cost.count(op.dtype, self.size(value))
        in_place = place_of(self.plan, op) == place_of(self.plan, x)
        cost.read += whole if not in_place else part if combines else 0
        cost.written += part if in_place else whole
        self.touch(place_of(self.plan, op), part if in_place else whole)
        if not in_place:
            self.touch(place_of(self.plan, x), whole)


@cache
def _operations(name: str, kinds: tuple[str, ...], dtype: str, attrs: tuple[Any, ...]) -> int:
    """The operations of one element of an elementwise row."""
    if name == "cast":
        return int(kinds[0] != dtype)
    text = c_expressions.expression(name, kinds, dtype, ["x", "y", "z"][: len(kinds)], attrs)
    return max(1, operations_of(text))


def operations_of(text: str) -> int:
    """The operations that a C expression does, those of the functions that it calls included."""
    return _counted(text, _bodies(c_expressions.definitions(text)), {})


def _counted(text: str, bodies: Mapping[str, str], known: dict[str, int]) -> int:
    total = 2 * len(_FUSED.findall(text)) + len(_SIGN.findall(text)) + len(_ROOT.findall(text))
    for name in _CALL.findall(text):
        if name not in known:
            known[name] = 0  # none calls itself
            known[name] = _counted(bodies.get(name, ""), bodies, known)
        total += known[name]
    return total


def _bodies(text: str) -> dict[str, str]:
    """The bodies of C functions by name, without the ways of machines that cannot fuse."""
    found = {}
    for part in re.split(r"(?=^GEON_INLINE )", _PORTABLE.sub("", text), flags=re.MULTILINE):
        named = _FUNCTION.match(part)
        if named is not None:
            found[named[1]] = part[part.index("{") :]
    return found
