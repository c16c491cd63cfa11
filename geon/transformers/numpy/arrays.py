"""Arrays of emitted NumPy programs: their Python names, and the statements that make them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...op_graph.axes.axes import Axes
from ...op_graph.axes.lengths import Length, as_text
from ...op_graph.building.constants import constant_value
from ...op_graph.core.traversal import is_bound
from ...op_graph.op_graph import NO_AXES, Leaf, Op
from ...op_graph.values.attribute_types import Frozen
from ...op_graph.values.dtypes import EXTENSIONS, name_of
from ..lowering.facts.value_sizes import bytes_of
from ..lowering.planning.plan import Home, Plan
from .index_maps import view_text
from .split_functions import Line

MAX_VIEWS_PER_STATEMENT = 12
MAX_VALUE_NAME_CHARACTERS = 8


@lru_cache(maxsize=4096)
def length_text(length: int | Length) -> str:
    """Return a length as Python over ``L``, the integers of open names."""
    return as_text(length, name="L[{0!r}]") if isinstance(length, Length) else str(length)


def dtype_text(dtype: Any) -> str:
    """Return a dtype as Python."""
    name = name_of(dtype)
    return name if name in EXTENSIONS else f"np.{name}"


class ArrayOperands:
    """Names the arrays that the statements of a plan use, and makes them.

    A name is *global* (a scalar constant), made in *bind* (once per binding) or made in *run* (once
    per call, for views of an input or a result). For the plan of a region's body, ``around`` is the
    enclosing one; ``first_buffer`` and ``first_step`` are offsets of its buffers and steps in those
    of the program. ``functions`` are those of nested bodies.
    """

    def __init__(
        self,
        plan: Plan,
        leaves: dict[Leaf, str],
        constants: dict[Frozen, int],
        around: ArrayOperands | None = None,
        first_buffer: int = 0,
    ) -> None:
        self.first_buffer: int = first_buffer + (0 if around is None else around.first_buffer)
        self.plan, self.leaves, self.constants = plan, leaves, constants
        self.layouts, self.base = plan.schedule.layouts, plan.schedule.base
        # Shared by all functions of a module.
        self.globals: dict[str, str] = {} if around is None else around.globals
        self.taken: set[str] = set() if around is None else around.taken
        self.shared_counts: dict[str, int] = {"step": 0} if around is None else around.shared_counts
        self.functions: list[Line] = []
        self.first_step = 0
        self.bind: list[Line] = []
        self.run: list[Line] = []
        self.scopes: dict[str, str] = {}
        self.names: dict[Op, str] = {}
        self.arena_buffers: dict[tuple[int, str], str] = {}
        self.texts: dict[tuple[str, str], str] = {}
        self.counts: dict[str, int] = {}
        self.position = 0
        outputs = plan.schedule.program.outputs
        self.result_dtypes = {k: op.dtype for k, op in enumerate(outputs)}

    # Names ------------------------------------------------------------------------------------

    def make(self, stem: str, text: str, scope: str) -> str:
        """Return the name of an array made by ``text``; equal texts in a scope share a name."""
        found = self.texts.get((scope, text))
        if found is None:
            first = int(stem[-1:].isdigit())
            number = self.counts.get(stem, first)
            self.counts[stem] = number + 1
            found = f"{stem}_{number}" if stem[-1:].isdigit() else f"{stem}{number}"
            self.texts[scope, text] = found
            self.scopes[found] = scope
            (self.bind if scope == "bind" else self.run).append((f"{found} = {text}", None))
        return found

    def array(self, op: Op) -> str:
        """Return the name of the array of ``op``, over its axes in their order."""
        found = self.names.get(op)
        if found is None:
            views = []  # iterative: views of views may be nested many thousands deep
            while op not in self.names and self.base[op] is not op:
                views.append(op)
                op = op.args[0]
            if op not in self.names:
                self.names[op] = self.own(op)
            for view in reversed(views):
                self.names[view] = self.shown(view)
            found = self.names[views[0] if views else op]
        return found

    def own(self, op: Op) -> str:
        """Return the array of a value with memory of its own."""
        if isinstance(op, Leaf):
            return self.leaves[op]
        if is_bound(op):
            return self.known(op)
        home = self.plan.homes[op]
        if home.kind == "variable":
            assert home.leaf is not None
            name = self.leaves[home.leaf]
            if home.leaf.dtype is not op.dtype:
                name = self.view_of(name, f".view({dtype_text(op.dtype)})")
        elif home.kind == "result":
            name = self.result(home, op)
        else:
            name = self.arena_view(home, op)
        order = self.layouts[op].order
        if order != op.axes.names:
            return self.view_of(
                name, f".transpose{_tuple([order.index(n) for n in op.axes.names])}"
            )
        return name

    def arena_view(self, home: Home, op: Op) -> str:
        """Return a view into the arena; those of one shape and dtype are made together."""
        shape = self.shape([op.axes[n].expression for n in self.layouts[op].order])
        return self.carved(home.number, shape, op.dtype)

    def carry_buffer(self, number: int, op: Op) -> str:
        """Return the array of a buffer that holds a carry like ``op``."""
        return self.carved(number, self.shape(op.axes.lengths), op.dtype)

    def carved(self, number: int, shape: str, dtype: Any) -> str:
        """Return the view of a buffer with this shape and dtype."""
        key = (number, f"{shape}, {dtype_text(dtype)}")
        found = self.arena_buffers.get(key)
        if found is None:
            found = f"b{number}"
            while found in self.scopes:
                found += "x"  # the same memory with another shape or dtype
            self.arena_buffers[key] = found
            self.scopes[found] = "bind"
        return found

    def carve_lines(self) -> list[Line]:
        """Return the statements that make all views into the arena."""
        groups: dict[str, list[tuple[int, str]]] = {}
        for (number, form), name in self.arena_buffers.items():
            groups.setdefault(form, []).append((number, name))
        lines: list[Line] = []
        for form, members in groups.items():
            for start in range(0, len(members), MAX_VIEWS_PER_STATEMENT):
                part = members[start : start + MAX_VIEWS_PER_STATEMENT]
                names = _tuple([name for _, name in part])
                numbers = _tuple([self.first_buffer + number for number, _ in part])
                lines.append(
                    (f"    {names} = rt.arena_views(arena, offsets, {numbers}, {form})", None)
                )
        return lines

    def result(self, home: Home, op: Op) -> str:
        name = f"r{home.number}"
        if self.result_dtypes[home.number] is not op.dtype:
            return self.view_of(name, f".view({dtype_text(op.dtype)})")
        return name

    def known(self, op: Op) -> str:
        """Return the array of a constant or a length."""
        if op.primitive.name == "constant":
            return self.constant(op)
        length = (op if op.primitive.name == "length" else op.args[0]).attrs.length
        return self.make("n", f"np.asarray({length_text(length)}, {dtype_text(op.dtype)})", "bind")

    def constant(self, op: Op) -> str:
        """Return the name of a constant: an argument of ``bind``, a scalar or a global array."""
        value = op.attrs.value
        if isinstance(value, Frozen):
            name = f"k{self.constants[value]}"
            self.scopes[name] = "bind"
            return name
        array = constant_value(op)
        if op.axes is NO_AXES:
            return self.scalar(array.item(), op.dtype)
        text = (
            f"np.array({_literal(array.tolist())}, {dtype_text(op.dtype)}).reshape({array.shape})"
        )
        return self.shared(text, f"c_{len(self.globals)}")

    def scalar(self, value: Any, dtype: Any) -> str:
        """Return the name of a scalar constant, formed from its value if that is short."""
        literal = _literal(value)
        if name_of(dtype) == "float32" and "np" not in literal:
            literal = str(np.float32(value))  # the shortest text that is this float32
        text = f"np.array({literal}, {dtype_text(dtype)})"
        shown = literal.replace("np.", "").removesuffix(".0").replace("-", "m").replace(".", "p")
        short = len(shown) <= MAX_VALUE_NAME_CHARACTERS and shown.isalnum()
        name = f"c_{shown}" if short else f"c_{len(self.globals)}"
        if name_of(dtype) != "float32":
            name += f"_{name_of(dtype)}"
        return self.shared(text, name)

    def shared(self, text: str, name: str) -> str:
        """Return the name of the global constant made by ``text``: ``name``, unless taken."""
        if text not in self.globals:
            while name in self.taken:
                name += "x"
            self.taken.add(name)
            self.globals[text] = name
        return self.globals[text]

    def view_of(self, name: str, suffix: str) -> str:
        """Return a view of a named array."""
        if not suffix:
            return name
        return self.wrapped(name, f"{name}{suffix}")

    def wrapped(self, name: str, text: str) -> str:
        """Return the result of a NumPy call that is a view of ``name``."""
        scope = self.scopes.get(name, "bind" if name.startswith("c_") else "run")
        return self.make(name.split("_")[0], text, scope)

    def shown(self, op: Op) -> str:
        """Return the array of an op that is a view of its argument."""
        source = self.array(op.args[0])
        if op.primitive.is_barrier:
            return source
        shown = SHOWN.get(op.primitive.name)
        if shown is None:
            return self.wrapped(source, view_text(self, op, source))
        return shown(self, op, source)

    def _itself(self, op: Op, source: str) -> str:
        return source

    def _turned(self, op: Op, source: str) -> str:
        order = [op.args[0].axes.index(n) for n in op.axes.names]
        return self.view_of(source, f".transpose{_tuple(order)}")

    def _repeated(self, op: Op, source: str) -> str:
        aligned = self.aligned(op.args[0], op.axes)
        return self.wrapped(aligned, f"{_spread(op)}({aligned}, {self.shape(op.axes.lengths)})")

    def _reshaped(self, op: Op, source: str) -> str:
        return self.view_of(source, f".reshape({self.shape(op.axes.lengths)}, copy=False)")

    def _flipped(self, op: Op, source: str) -> str:
        parts = ["::-1" if n in op.attrs.flipped else ":" for n in op.axes.names]
        return self.view_of(source, f"[{', '.join(parts)}]")

    def _sliced(self, op: Op, source: str) -> str:
        return self.view_of(source, self.index(op, 1))

    def index(self, op: Op, first: int) -> str:
        """Return the index text of a slice or update; run-time positions are read as integers."""
        parts = []
        for item in op.attrs.items:
            if item is None:
                parts.append(":")
            elif item[0] == "range":
                start, stop, step = (length_text(part) for part in item[1:])
                parts.append(f"{start}:{stop}" + (f":{step}" if step != "1" else ""))
            elif item[0] == "at":
                parts.append(length_text(item[1]))
            else:
                parts.append(f"int({self.array(op.args[item[1]])})")
        # The ellipsis keeps a fully indexed array an array.
        return f"[{', '.join([*parts, '...'])}]"

    def aligned(self, op: Op, axes: Axes) -> str:
        """Return the array of ``op``, transposed and expanded so that it broadcasts to ``axes``."""
        name, have, want = self.array(op), op.axes.names, axes.names
        if have == want[len(want) - len(have) :]:
            return name
        order = [have.index(n) for n in want if n in have]
        suffix = "" if order == sorted(order) else f".transpose{_tuple(order)}"
        name = self.view_of(name, suffix)
        start = next(k for k, n in enumerate(want) if n in have)
        marks = [":" if n in have else "None" for n in want[start:]]
        return self.view_of(name, f"[{', '.join(marks)}]") if "None" in marks else name

    def operand(self, op: Op, axes: Axes | None = None) -> str:
        """Return an operand as ``run`` reads it, aligned with ``axes`` if given."""
        return self.array(op) if axes is None else self.aligned(op, axes)

    def shape(self, lengths: Any) -> str:
        """Return a shape as a tuple."""
        return _tuple([length_text(n) for n in lengths])

    def length_text(self, length: int | Length) -> str:
        """Return a length as Python, evaluated in place."""
        return length_text(length)

    def length(self, length: int | Length) -> str:
        """Return a length as ``run`` reads it."""
        if isinstance(length, int):
            return str(length)
        return self.make("n", length_text(length), "bind")


# The array of each op that is a view of its argument.
SHOWN: dict[str, Callable[[ArrayOperands, Op, str], str]] = {
    **dict.fromkeys(("rename", "print", "checked"), ArrayOperands._itself),
    "reorder": ArrayOperands._turned,
    "broadcast": ArrayOperands._repeated,
    **dict.fromkeys(("flatten", "unflatten"), ArrayOperands._reshaped),
    "flip": ArrayOperands._flipped,
    "slice": ArrayOperands._sliced,
}


def _tuple(parts: list[Any]) -> str:
    return f"({', '.join(map(str, parts))}{',' * (len(parts) == 1)})"


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else ("np.inf" if value > 0 else "-np.inf")
    return repr(value)


def _spread(op: Op) -> str:
    """Return the broadcast function: NumPy's, if the size is known to be below its limit."""
    size = bytes_of(op)
    return "np.broadcast_to" if isinstance(size, int) and size < 2**63 else "rt.broadcast"
