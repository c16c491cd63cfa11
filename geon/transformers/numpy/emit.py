"""Stage 6 for NumPy: a plan as the text of a Python module.

The text has three functions. ``sizes`` gives the arena's buffers under given lengths, ``bind``
makes every array that can be made before a call (views into the arena and the variables), ``run``
computes.
It contains no names and no line numbers of the user's; ``annotated`` adds them as comments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...op_graph.attributes import Frozen
from ...op_graph.axes import Axes
from ...op_graph.constants import constant_value
from ...op_graph.dtypes import name_of
from ...op_graph.lengths import Length, as_text
from ...op_graph.nodes import shown_name
from ...op_graph.op_graph import NO_AXES, Leaf, Op
from ..layout import is_bound
from ..memory import Home, Plan
from ..schedule import bytes_of
from .index_maps import view_text
from .kernels import statements
from .parts import Line, computing, unpacked

CARVED_TOGETHER = 12
NAMED_BY_VALUE = 8
ADDED_UP = 20


@lru_cache(maxsize=4096)
def length_text(length: int | Length) -> str:
    """A length as Python over ``L``, the integer of each open name."""
    return as_text(length, name="L[{0!r}]") if isinstance(length, Length) else str(length)


def dtype_text(dtype: Any) -> str:
    """A dtype as Python."""
    name = name_of(dtype)
    return name if name == "bfloat16" else f"np.{name}"


class Emitter:
    """Writes the statements of a plan, and names the arrays they use.

    A name is *global* (a scalar constant), made in *bind* (once for each binding) or made in *run*
    (once for each call, where it shows an input or a result).
    """

    def __init__(self, plan: Plan, leaves: dict[Leaf, str], constants: dict[Frozen, int]) -> None:
        self.plan, self.leaves, self.constants = plan, leaves, constants
        self.layouts, self.base = plan.schedule.layouts, plan.schedule.base
        self.globals: dict[str, str] = {}
        self.taken: set[str] = set()
        self.bind: list[Line] = []
        self.run: list[Line] = []
        self.scopes: dict[str, str] = {}
        self.names: dict[Op, str] = {}
        self.carves: dict[tuple[int, str], str] = {}
        self.texts: dict[tuple[str, str], str] = {}
        self.counts: dict[str, int] = {}
        self.position = 0

    # Names ------------------------------------------------------------------------------------

    def make(self, stem: str, text: str, scope: str) -> str:
        """The name of an array that ``text`` makes; the same text in a scope has one name."""
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
        """The name of the array of ``op``, over its axes in their order."""
        found = self.names.get(op)
        if found is None:
            looks = []  # innermost first below: looks at looks may be many thousands deep
            while op not in self.names and self.base[op] is not op:
                looks.append(op)
                op = op.args[0]
            if op not in self.names:
                self.names[op] = self.own(op)
            for look in reversed(looks):
                self.names[look] = self.shown(look)
            found = self.names[looks[0] if looks else op]
        return found

    def own(self, op: Op) -> str:
        """The array of a value with memory of its own."""
        if isinstance(op, Leaf):
            return self.leaves[op]
        if is_bound(op):
            return self.known(op)
        home = self.plan.homes[op]
        if home.kind == "variable":
            assert home.leaf is not None
            name = self.leaves[home.leaf]
            if home.leaf.dtype is not op.dtype:
                name = self.look(name, f".view({dtype_text(op.dtype)})")
        elif home.kind == "result":
            name = self.result(home, op)
        else:
            name = self.carved(home, op)
        order = self.layouts[op].order
        if order != op.axes.names:
            return self.look(name, f".transpose{_tuple([order.index(n) for n in op.axes.names])}")
        return name

    def carved(self, home: Home, op: Op) -> str:
        """A view into the arena; those of one shape and dtype are made together."""
        shape = self.shape([op.axes[n].expression for n in self.layouts[op].order])
        key = (home.number, f"{shape}, {dtype_text(op.dtype)}")
        found = self.carves.get(key)
        if found is None:
            found = f"b{home.number}"
            while found in self.scopes:
                found += "x"  # the same memory under another shape or dtype
            self.carves[key] = found
            self.scopes[found] = "bind"
        return found

    def carve_lines(self) -> list[Line]:
        """The statements that make all views into the arena."""
        groups: dict[str, list[tuple[int, str]]] = {}
        for (number, form), name in self.carves.items():
            groups.setdefault(form, []).append((number, name))
        lines: list[Line] = []
        for form, members in groups.items():
            for start in range(0, len(members), CARVED_TOGETHER):
                part = members[start : start + CARVED_TOGETHER]
                names = _tuple([name for _, name in part])
                numbers = _tuple([number for number, _ in part])
                lines.append((f"    {names} = rt.carve(arena, offsets, {numbers}, {form})", None))
        return lines

    def result(self, home: Home, op: Op) -> str:
        name = f"r{home.number}"
        if self.result_dtypes[home.number] is not op.dtype:
            return self.look(name, f".view({dtype_text(op.dtype)})")
        return name

    def known(self, op: Op) -> str:
        """A constant, or a length."""
        if op.primitive.name == "constant":
            return self.constant(op)
        length = op.attrs[0] if op.primitive.name == "length" else op.args[0].attrs[0]
        return self.make("n", f"np.asarray({length_text(length)}, {dtype_text(op.dtype)})", "bind")

    def constant(self, op: Op) -> str:
        value = op.attrs[0]
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
        """A scalar constant, named by its value where that reads well."""
        literal = _literal(value)
        if name_of(dtype) == "float32" and "np" not in literal:
            literal = str(np.float32(value))  # the shortest text that is this float32
        text = f"np.array({literal}, {dtype_text(dtype)})"
        shown = literal.replace("np.", "").removesuffix(".0").replace("-", "m").replace(".", "p")
        short = len(shown) <= NAMED_BY_VALUE and shown.isalnum()
        name = f"c_{shown}" if short else f"c_{len(self.globals)}"
        if name_of(dtype) != "float32":
            name += f"_{name_of(dtype)}"
        return self.shared(text, name)

    def shared(self, text: str, name: str) -> str:
        """The name of the constant that ``text`` makes: ``name``, unless another one has it."""
        if text not in self.globals:
            while name in self.taken:
                name += "x"
            self.taken.add(name)
            self.globals[text] = name
        return self.globals[text]

    def look(self, name: str, suffix: str) -> str:
        """Another look at the memory of a named array."""
        if not suffix:
            return name
        return self.wrapped(name, f"{name}{suffix}")

    def wrapped(self, name: str, text: str) -> str:
        """The result of a call of NumPy's that makes another look at ``name``."""
        scope = self.scopes.get(name, "bind" if name.startswith("c_") else "run")
        return self.make(name.split("_")[0], text, scope)

    def shown(self, op: Op) -> str:
        """The array of an op that only looks at the memory of its argument."""
        source = self.array(op.args[0])
        shown = SHOWN.get(op.primitive.name)
        if shown is None:
            return self.wrapped(source, view_text(self, op, source))
        return shown(self, op, source)

    def _itself(self, op: Op, source: str) -> str:
        return source

    def _turned(self, op: Op, source: str) -> str:
        order = [op.args[0].axes.index(n) for n in op.axes.names]
        return self.look(source, f".transpose{_tuple(order)}")

    def _repeated(self, op: Op, source: str) -> str:
        aligned = self.aligned(op.args[0], op.axes)
        return self.wrapped(aligned, f"{_spread(op)}({aligned}, {self.shape(op.axes.lengths)})")

    def _reshaped(self, op: Op, source: str) -> str:
        return self.look(source, f".reshape({self.shape(op.axes.lengths)}, copy=False)")

    def _flipped(self, op: Op, source: str) -> str:
        parts = ["::-1" if n in op.attrs[0] else ":" for n in op.axes.names]
        return self.look(source, f"[{', '.join(parts)}]")

    def _sliced(self, op: Op, source: str) -> str:
        return self.look(source, self.index(op, 1))

    def index(self, op: Op, first: int) -> str:
        """The index of a slice or update; run-time positions are read as integers."""
        parts = []
        for item in op.attrs[0]:
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
        """The array of ``op`` with its dimensions where NumPy's broadcasting meets ``axes``."""
        name, have, want = self.array(op), op.axes.names, axes.names
        if have == want[len(want) - len(have) :]:
            return name
        order = [have.index(n) for n in want if n in have]
        suffix = "" if order == sorted(order) else f".transpose{_tuple(order)}"
        name = self.look(name, suffix)
        start = next(k for k, n in enumerate(want) if n in have)
        marks = [":" if n in have else "None" for n in want[start:]]
        return self.look(name, f"[{', '.join(marks)}]") if "None" in marks else name

    def operand(self, op: Op, axes: Axes | None = None) -> str:
        """An operand as ``run`` reads it, aligned with ``axes`` where given."""
        return self.array(op) if axes is None else self.aligned(op, axes)

    def shape(self, lengths: Any) -> str:
        """A shape as a tuple."""
        return _tuple([length_text(n) for n in lengths])

    def length_text(self, length: int | Length) -> str:
        """A length as Python, where it is read."""
        return length_text(length)

    def length(self, length: int | Length) -> str:
        """A length as ``run`` reads it."""
        if isinstance(length, int):
            return str(length)
        return self.make("n", length_text(length), "bind")

    # Statements -------------------------------------------------------------------------------

    def emit(self) -> None:
        """Write all kernels."""
        schedule = self.plan.schedule
        outputs = schedule.program.outputs
        self.result_dtypes = {k: op.dtype for k, op in enumerate(outputs)}
        for k, op in enumerate(outputs):
            lengths = op.axes.lengths
            shape = self.shape(lengths)
            if any(isinstance(n, Length) for n in lengths):
                shape = self.make("s", shape, "bind")
            self.scopes[f"r{k}"] = "run"
            self.run.append((f"r{k} = np.empty({shape}, {dtype_text(op.dtype)})", op))
        for position, kernel in enumerate(schedule.kernels):
            self.position = position
            for text in statements(self, kernel):
                self.run.append((text, kernel.op))
            if schedule.check and kernel.raises and not kernel.acts:
                checked = self.array(kernel.op)
                self.run.append((f"rt.check_finite({checked}, {position})", kernel.op))


# The array of each op that only looks at the memory of its argument's.
SHOWN: dict[str, Callable[[Emitter, Op, str], str]] = {
    **dict.fromkeys(("rename", "print", "checked"), Emitter._itself),
    "reorder": Emitter._turned,
    "broadcast": Emitter._repeated,
    **dict.fromkeys(("flatten", "unflatten"), Emitter._reshaped),
    "flip": Emitter._flipped,
    "slice": Emitter._sliced,
}


def _tuple(parts: list[Any]) -> str:
    return f"({', '.join(map(str, parts))}{',' * (len(parts) == 1)})"


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else ("np.inf" if value > 0 else "-np.inf")
    return repr(value)


def emit(
    plan: Plan, leaves: dict[Leaf, str], constants: dict[Frozen, int], annotate: bool = False
) -> str:
    """The module of a plan; ``leaves`` name inputs ``x<n>`` and variables ``v<n>``."""
    work = Emitter(plan, leaves, constants)
    for name in leaves.values():
        work.scopes[name] = "bind" if name.startswith("v") else "run"
    work.emit()
    inputs = [name for name in leaves.values() if name.startswith("x")]
    variables = [name for name in leaves.values() if name.startswith("v")]
    lines: list[Line] = [("import numpy as np", None), (_RUNTIME, None)]
    written = [*work.bind, *work.run, *work.carve_lines()]
    if any("bfloat16" in text for text in [*work.globals, *(text for text, _ in written)]):
        lines.append(("from ml_dtypes import bfloat16", None))
    named = [(f"{name} = {text}", None) for text, name in work.globals.items()]
    lines += [("", None), *named, *([("", None)] if named else []), *_sizes(plan), ("", None)]
    work.scopes["L"] = "bind"  # looks at an input or a result need lengths in each call
    results = [f"r{k}" for k in range(len(plan.schedule.program.outputs))]
    bound, functions = computing(work.run, work.scopes, inputs, results)
    lines += [("def bind(arena, offsets, variables, constants, L):", None)]
    lines += unpacked(variables, "variables")
    lines += unpacked([f"k{number}" for number in constants.values()], "constants")
    lines += work.carve_lines()
    lines += [(f"    {text}", op) for text, op in work.bind]
    lines += [(f"    return {bound}", None), ("", None), *functions]
    return "\n".join(_comment(text, op) if annotate else text for text, op in lines) + "\n"


_RUNTIME = "from geon.transformers.numpy import runtime as rt"


def _spread(op: Op) -> str:
    """What broadcasts a view: NumPy, where its size is known to be one that NumPy can say."""
    size = bytes_of(op)
    return "np.broadcast_to" if isinstance(size, int) and size < 2**63 else "rt.broadcast"


def _sizes(plan: Plan) -> list[Line]:
    """The function that gives sizes and lifetimes of buffers, and the bytes beside the arena."""
    sizes = ", ".join(length_text(buffer.size) for buffer in plan.buffers)
    lifetimes = ", ".join(f"({first}, {last})" for first, last in plan.lifetimes)
    beside = [length_text(bytes_of(op)) for op in plan.schedule.program.outputs]
    hidden = [length_text(size) for _, size in plan.hidden]
    if hidden:
        beside.append(f"max({', '.join(hidden)})" if len(hidden) > 1 else hidden[0])
    few = len(beside) <= ADDED_UP  # Python refuses an expression of thousands of additions
    rest = " + ".join(beside) or "0" if few else f"sum([{', '.join(beside)}])"
    return [
        ("def sizes(L):", None),
        (f"    buffers = [{sizes}]", None),
        (f"    lifetimes = [{lifetimes}]", None),
        (f"    return buffers, lifetimes, {rest}", None),
    ]


def _comment(text: str, op: Op | None) -> str:
    if op is None:
        return text
    named = f"{shown_name(op)}: " if op.name else ""
    note = f"{named}{op.primitive.name} {op.axes}  {op.file_info}"
    return f"{text}  # {note}".replace("\n", " ").replace("\r", " ")
