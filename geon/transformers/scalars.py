"""Scalar code: the C expression of one element of an op, at indices given as forms.

What an op takes through slices, flips, padding and the like becomes index arithmetic; what lies in
memory becomes a load. Shared by all targets that emit C-like loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from ..op_graph.affine import Affine, Quotient, Remainder
from ..op_graph.constants import scalar_value
from ..op_graph.dtypes import name_of
from ..op_graph.index_map import Position, identity
from ..op_graph.lengths import product
from ..op_graph.op_graph import Op
from . import c_expressions
from .forms import Form, Size, strides, variable

Index = Mapping[str, Form]
EXPENSIVE = 8  # an elementary function, in cheap ops
LANES = 512  # most rows computed side by side where neighbouring rows adjoin in memory


class Names(Protocol):
    """What a kernel calls its memory and its lengths."""

    def pointer(self, op: Op) -> str:
        """The typed pointer to the memory of ``op``."""

    def length(self, length: Size) -> str:
        """A length as C."""

    def order(self, op: Op) -> tuple[str, ...]:
        """The nesting of the axes of ``op`` in memory, outermost first."""

    def stored(self, op: Op) -> bool:
        """Whether ``op`` is read from memory that an earlier kernel, or the user, has written."""


class Block:
    """Statements of one nesting depth: 0 once, 1 for each row, 2 for each element.

    Inner blocks see outer ones' names. Where ``lanes`` is set, each value of the block is an array
    over the lanes of a block of rows, and is computed in a loop over them.
    """

    def __init__(self, outer: Block | None = None, lanes: str | None = None) -> None:
        self.outer, self.lanes = outer, lanes
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.lines: list[Any] = []
        self.names: dict[Any, str] = {}
        self.work = 0  # about how many statements of a processor the ops in it take
        self.serial = False  # whether compilers may make no vectors of it

    def find(self, key: Any) -> str | None:
        """The name of what was computed under ``key``, here or further out.

        Keys name ops by ``id``, since equal hashes would compare ops by ``==``.
        """
        block: Block | None = self
        while block is not None:
            if key in block.names:
                return block.names[key]
            block = block.outer
        return None

    def at(self, depth: int) -> Block:
        """This block, or the one around it of at most this depth."""
        block = self
        while block.depth > depth and block.outer is not None:
            block = block.outer
        return block


def is_same(op: Op) -> bool:
    """Whether each element of ``op`` is that of its only argument."""
    return op.primitive.picks and len(op.args) == 1


class LanesError(Exception):
    """Code that cannot be written for several rows at once."""


class Scalars:
    """Writes the scalar code of one kernel.

    ``known`` gives ops a name that is valid at the indices where they are asked for: reductions
    that were finished, elements of a product. ``lone`` collects variables that are used by
    themselves, not only in offsets; ``offsets`` all offsets: together they say which loops merge.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.known: dict[Op, Callable[[Index], str | None]] = {}
        self.count = 0
        self.splits: dict[str, tuple[str, Form, Size]] = {}
        self.halves: dict[str, tuple[str, Form, Size, bool]] = {}
        self.split_keys: dict[tuple[Form, Size], tuple[str, str]] = {}
        self.offsets: list[Form] = []
        self.lone: set[str] = set()
        self.depths: dict[str, int] = {}
        self.readable: set[Op] = set()  # stored by an earlier pass of the same kernel

    # Names --------------------------------------------------------------------------------------

    def fresh(self, stem: str = "t") -> str:
        """A new identifier."""
        self.count += 1
        return f"{stem}{self.count}"

    def loop_variable(self, name: str, depth: int) -> Form:
        """The form of a loop's variable, which is known from ``depth`` inwards."""
        self.depths[name] = depth
        return variable(name)

    def let(self, block: Block, key: Any, ctype: str, text: str) -> str:
        """The name of ``text`` computed once in ``block``."""
        name = self.fresh()
        self.depths[name] = block.depth
        if block.lanes is None:
            block.lines.append(f"const {ctype} {name} = {text};")
        else:
            block.lines.append(f"{ctype} {name}[{LANES}];")
            block.lines.append(
                f"for (int64_t lane = 0; lane < {block.lanes}; lane++) {name}[lane] = {text};"
            )
            name = f"{name}[lane]"
        block.names[key] = name
        return name

    def depth(self, forms: Iterable[Form]) -> int:
        """The depth at which all variables of these forms are known."""
        found = 0
        for form in forms:
            for name in form.terms:
                if name in self.halves:
                    found = max(found, self.depth([self.halves[name][1]]))
                else:
                    found = max(found, self.depths.get(name, 2))
        return found

    # Indices ------------------------------------------------------------------------------------

    def split(self, form: Form, lengths: Sequence[Size]) -> list[Form]:
        """The row-major indices over ``lengths`` of a position among their product."""
        found: list[Form] = []
        for length in reversed(lengths[1:]):
            key = (form, length)
            if key not in self.split_keys:
                quotient, rest = self.fresh("q"), self.fresh("m")
                self.split_keys[key] = (quotient, rest)
                self.splits[quotient] = (rest, form, length)
                self.halves[quotient] = (quotient, form, length, True)
                self.halves[rest] = (quotient, form, length, False)
            quotient, rest = self.split_keys[key]
            found.append(variable(rest))
            form = variable(quotient)
        return [form, *reversed(found)]

    def joined(self, form: Form) -> Form:
        """A form in which quotient and rest of one division are put together where they can."""
        changed = True
        while changed:
            changed = False
            for name, factor in form.terms.items():
                if name not in self.splits:
                    continue
                rest, whole, length = self.splits[name]
                each = form.terms.get(rest, 0)
                if each != 0 and factor == each * length:
                    kept = {n: f for n, f in form.terms.items() if n not in (name, rest)}
                    form = Form(kept.items(), form.constant) + whole.times(each)
                    changed = True
                    break
        return form

    def index_text(self, block: Block, form: Form, lone: bool = True) -> str:
        """A form as C; the divisions it needs are written into ``block`` first."""
        form = self.joined(form)
        for name in form.terms:
            if name in self.halves:
                self.write_division(block, name)
            elif lone:
                self.lone.add(name)
        return form.text(self.names.length)

    def write_division(self, block: Block, name: str) -> None:
        """Write the quotient or remainder of a split index once, where it is first known."""
        if block.find(name) is not None:
            return
        quotient, form, length, first = self.halves[name]
        block = block.at(self.depth([form]))
        if block.find(name) is not None:
            return
        if block.lanes is not None:
            raise LanesError
        text = self.index_text(block, form)
        size = self.names.length(length) if length != 0 else "1"  # never run, but compiled
        block.names[name] = name
        sign = "/" if first else "%"
        block.lines.append(f"const int64_t {name} = ({text}) {sign} ({size});")

    def offset(self, block: Block, op: Op, index: Index) -> str:
        """Where the element of ``op`` lies in its memory."""
        order = self.names.order(op)
        steps = strides(tuple(op.axes[n].expression for n in order))
        form = Form()
        for name, step in zip(order, steps, strict=True):
            form = form + index[name].times(step)
        form = self.joined(form)
        self.offsets.append(form)
        return self.index_text(block, form, lone=False)

    # Values -------------------------------------------------------------------------------------

    def value(self, block: Block, op: Op, index: Index) -> str:
        """The name or literal of the element of ``op`` at ``index`` (axis name to form)."""
        while True:
            if op in self.known:
                found = self.known[op](index)
                if found is not None:
                    return found
            if self.names.stored(op) or op in self.readable:
                return self.load(block, op, index)
            if op.primitive.view:
                index = self.through(block, op, index)
            elif not op.primitive.acts and not is_same(op):
                break
            op = op.args[0]
        return self.computed(block, op, index)

    def load(self, block: Block, op: Op, index: Index) -> str:
        """The element of ``op`` read from memory."""
        key = (id(op), tuple([index[n].key for n in op.axes.names]))
        found = block.find(key)
        if found is None:
            block = block.at(self.depth([index[n] for n in op.axes.names]))
            offset = self.offset(block, op, index)
            ctype = c_expressions.C_TYPES[name_of(op.dtype)]
            flag = " != 0" if ctype == "_Bool" else ""
            block.work += 1
            found = self.let(block, key, ctype, f"{self.names.pointer(op)}[{offset}]{flag}")
        return found

    def computed(self, block: Block, op: Op, index: Index) -> str:
        """The value of an op that is not in memory, from its arguments."""
        name = op.primitive.name
        dtype = name_of(op.dtype)
        if name == "constant":
            return c_expressions.literal(scalar_value(op), dtype)
        if name == "length":
            return f"(({c_expressions.C_TYPES[dtype]})({self.names.length(op.attrs[0])}))"
        key = (id(op), tuple([index[n].key for n in op.axes.names]))
        found = block.find(key)
        if found is not None:
            return found
        block = block.at(self.depth([index[n] for n in op.axes.names]))
        ctype = c_expressions.C_TYPES[dtype]
        if name == "iota":
            text = c_expressions.cast(
                "int64", dtype, f"({self.index_text(block, index[op.axes.names[0]])})"
            )
        elif op.primitive.index_map is not None:
            text = CHOOSING.get(name, Scalars._chosen)(self, block, op, index)
        elif name == "cast":
            x = self.value(block, op.args[0], index)
            text = c_expressions.cast(name_of(op.args[0].dtype), dtype, x)
        else:
            operands = [self.value(block, arg, index) for arg in op.args]
            kinds = [name_of(arg.dtype) for arg in op.args]
            text = c_expressions.expression(name, kinds, dtype, operands, op.attrs)
        block.work += EXPENSIVE if op.primitive.cost == "expensive" else 1
        block.serial |= c_expressions.is_serial(name, [name_of(arg.dtype) for arg in op.args])
        return self.let(block, key, ctype, text)

    def through(self, block: Block, op: Op, index: Index) -> dict[str, Form]:
        """The indices of the argument of a look, from the indices of the look."""
        through = THROUGH.get(op.primitive.name)
        if through is not None:
            return through(self, block, op, index)
        assert op.primitive.index_map is not None
        (piece,) = op.primitive.index_map(op, identity(op.axes.names))
        return {n: self.form(block, op, piece.index[n], index) for n in op.args[0].axes.names}

    def form(self, block: Block, op: Op, index: Affine, at: Index) -> Form:
        """An affine index over the axes of ``op`` as a form, at these indices of its element."""
        found = Form((), index.constant)
        for atom, step in index.terms.items():
            if isinstance(atom, (Quotient, Remainder)):
                whole = self.form(block, op, atom.of, at)
                parts = self.split(whole, [product([]), atom.by])
                part = parts[0] if isinstance(atom, Quotient) else parts[1]
            elif isinstance(atom, Position):
                place = {name: self.form(block, op, each, at) for name, each in atom.index}
                part = self.position(block, op.args[atom.arg], atom.length, place)
            else:
                part = at[str(atom)]
            found = found + part.times(step)
        return found

    def _same(self, block: Block, op: Op, index: Index) -> dict[str, Form]:
        return {n: index[n] for n in op.args[0].axes.names}

    def _renamed(self, block: Block, op: Op, index: Index) -> dict[str, Form]:
        pairs = zip(op.args[0].axes.names, op.axes.names, strict=True)
        return {old: index[new] for old, new in pairs}

    def _flipped(self, block: Block, op: Op, index: Index) -> dict[str, Form]:
        flipped = op.attrs[0]
        return {
            a.name: index[a.name].times(-1) + (a.expression - 1)
            if a.name in flipped
            else index[a.name]
            for a in op.args[0].axes
        }

    def _flattened(self, block: Block, op: Op, index: Index) -> dict[str, Form]:
        names, axis = op.attrs
        have = op.args[0].axes
        parts = self.split(index[axis.name], [have[n].expression for n in names])
        merged = dict(zip(names, parts, strict=True))
        return {n: merged[n] if n in merged else index[n] for n in have.names}

    def _unflattened(self, block: Block, op: Op, index: Index) -> dict[str, Form]:
        old, axes = op.attrs
        form = Form()
        for step, axis in zip(strides(axes.lengths), axes, strict=True):
            form = form + index[axis.name].times(step)
        return {n: form if n == old else index[n] for n in op.args[0].axes.names}

    def _cut(self, block: Block, op: Op, index: Index) -> dict[str, Form]:
        return self.sliced(block, op, index, 1)

    def sliced(self, block: Block, op: Op, index: Index, first: int) -> dict[str, Form]:
        """The indices that a slice reads, or an update writes, in its first argument."""
        found: dict[str, Form] = {}
        for axis, item in zip(op.args[0].axes, op.attrs[0], strict=True):
            if item is None:
                found[axis.name] = index[axis.name]
            elif item[0] == "range":
                found[axis.name] = index[axis.name].times(item[3]) + item[1]
            elif item[0] == "at":
                found[axis.name] = Form((), item[1])
            else:
                found[axis.name] = self.position(block, op.args[item[1]], axis.expression)
        return found

    def position(self, block: Block, op: Op, length: Size, index: Index | None = None) -> Form:
        """A run-time position as a form; negative ones count from the end."""
        block = block.at(self.depth((index or {}).values()))
        value = self.value(block, op, index or {})
        key = ("position", value, length)
        found = block.find(key)
        if found is None:
            if block.lanes is not None:
                raise LanesError
            wide = f"(int64_t){value}"
            text = f"{wide} < 0 ? {wide} + {self.names.length(length)} : {wide}"
            found = self.let(block, key, "int64_t", text)
        return variable(found)

    # Ops that choose by index -------------------------------------------------------------------

    def clamped(self, block: Block, form: Form, inside: str) -> Form:
        """An index that is 0 where ``inside`` is false, so that it can always be read."""
        text = self.index_text(block, form)
        return variable(
            self.let(block, ("clamped", text, inside), "int64_t", f"{inside} ? {text} : 0")
        )

    def inside(self, block: Block, form: Form, low: Size, high: Size) -> list[str]:
        """The conditions that an index is at least ``low`` and below ``high``."""
        text = self.index_text(block, form)
        return [f"{text} >= {self.names.length(low)}", f"{text} < {self.names.length(high)}"]

    def _concat(self, block: Block, op: Op, index: Index) -> str:
        along = op.attrs[0]
        start: Size = 0
        text, chosen = "", []
        for k, arg in enumerate(op.args):
            end = start + arg.axes[along].expression
            last = k == len(op.args) - 1
            form = index[along] + (0 - start)
            conditions = self.inside(block, index[along], start, end)
            flag = self.let(
                block, ("in", id(op), k, index[along]), "_Bool", " && ".join(conditions)
            )
            place = self.clamped(block, form, flag)
            value = self.value(block, arg, {**index, along: place})
            chosen.append(value if last else f"{flag} ? {value} : ")
            start = end
        text = "".join(chosen)
        return text

    def _pad(self, block: Block, op: Op, index: Index) -> str:
        x, fill = op.args
        limited: set[str] = set()
        conditions: list[str] = []
        forms: dict[str, Form] = {}
        for axis, width in zip(x.axes, op.attrs[0], strict=True):
            forms[axis.name] = index[axis.name]
            if width is not None:
                forms[axis.name] = index[axis.name] + (-width[0])
                limited.add(axis.name)
                conditions += self.inside(
                    block, index[axis.name], width[0], axis.expression + width[0]
                )
        return self.guarded(block, op, index, conditions, forms, limited, (x, fill))

    def _update(self, block: Block, op: Op, index: Index) -> str:
        base, value = op.args[0], op.args[1]
        limited: set[str] = set()
        conditions: list[str] = []
        forms: dict[str, Form] = {}
        for axis, item in zip(base.axes, op.attrs[0], strict=True):
            here = index[axis.name]
            if item is None:
                forms[axis.name] = here
            elif item[0] == "range":
                _, start, stop, step = item
                limited.add(axis.name)
                conditions += self.inside(block, here, start, stop)
                forms[axis.name] = here + (0 - start)
                if step != 1:
                    whole = self.split(here + (0 - start), [product([]), step])
                    text = self.index_text(block, whole[1])
                    conditions.append(f"{text} == 0")
                    forms[axis.name] = whole[0]
            else:
                at = (
                    Form((), item[1])
                    if item[0] == "at"
                    else self.position(block, op.args[item[1]], axis.expression)
                )
                text = self.index_text(block, here)
                conditions.append(f"{text} == {self.index_text(block, at)}")
        return self.guarded(block, op, index, conditions, forms, limited, (value, base))

    def guarded(
        self,
        block: Block,
        op: Op,
        index: Index,
        conditions: list[str],
        forms: dict[str, Form],
        limited: set[str],
        args: tuple[Op, Op],
    ) -> str:
        """The first argument at ``forms`` where all conditions hold, else the second.

        Indices along ``limited`` axes may be outside it where they do not: these are held at 0.
        """
        inner, outer = args
        if not conditions:
            return self.value(block, inner, forms)
        key = tuple([index[n].key for n in op.axes.names])
        flag = self.let(block, ("in", id(op), key), "_Bool", " && ".join(conditions))
        whole = {n for n, form in forms.items() if form == index.get(n) and n not in limited}
        safe = {
            n: forms[n] if n in whole else self.clamped(block, forms[n], flag)
            for n in inner.axes.names
        }
        value = self.value(block, inner, safe)
        return f"{flag} ? {value} : {self.value(block, outer, index)}"

    def _chosen(self, block: Block, op: Op, index: Index) -> str:
        """The element of the first piece of the index map whose guards hold."""
        assert op.primitive.index_map is not None
        key = tuple([index[n].key for n in op.axes.names])
        text = ""
        for number, piece in enumerate(op.primitive.index_map(op, identity(op.axes.names))):
            arg = op.args[piece.arg]
            forms = {n: self.form(block, op, piece.index[n], index) for n in arg.axes.names}
            conditions = [
                condition
                for guard in piece.guards
                for condition in self.inside(
                    block, self.form(block, op, guard.index, index), guard.low, guard.high
                )
            ]
            if not conditions:
                return f"{text}{self.value(block, arg, forms)}"
            told = ("in", id(op), number, key)
            flag = self.let(block, told, "_Bool", " && ".join(conditions))
            safe = {n: self.clamped(block, form, flag) for n, form in forms.items()}
            text += f"{flag} ? {self.value(block, arg, safe)} : "
        raise AssertionError(f"the last piece of {op} has guards")

    def _gather(self, block: Block, op: Op, index: Index) -> str:
        x, places = op.args
        along = op.attrs[0]
        at = self.position(
            block, places, x.axes[along].expression, {n: index[n] for n in places.axes.names}
        )
        return self.value(block, x, {n: at if n == along else index[n] for n in x.axes.names})


# The indices of the argument of each look, and the element of ops that choose by index.
THROUGH: dict[str, Callable[[Scalars, Block, Op, Index], dict[str, Form]]] = {
    "broadcast": Scalars._same,
    "reorder": Scalars._same,
    "rename": Scalars._renamed,
    "flip": Scalars._flipped,
    "flatten": Scalars._flattened,
    "unflatten": Scalars._unflattened,
    "slice": Scalars._cut,
}
CHOOSING: dict[str, Callable[[Scalars, Block, Op, Index], str]] = {
    "concat": Scalars._concat,
    "pad": Scalars._pad,
    "update": Scalars._update,
    "gather": Scalars._gather,
}
