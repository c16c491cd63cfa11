"""``Op``: an immutable, interned application of a primitive to argument ops, and how it is made.

The core of the graph is imported from here, guards and walks over ops included.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from ..errors import DTypeError, SymbolicError
from .axes.axes import Axes
from .axes.axes import Guard as Guard
from .core.interning import Entry, forget
from .core.interning import lock as _lock
from .core.interning import table as _table
from .core.primitive import Primitive
from .core.region_body import Body
from .core.source_info import Site, current, describe, user_site
from .core.traversal import Same as Same
from .core.traversal import among as among
from .core.traversal import deep_order as deep_order
from .core.traversal import find as find
from .core.traversal import post_order as post_order
from .core.traversal import same_ops as same_ops
from .core.traversal import storage_leaves as storage_leaves
from .nodes import Node, called_name, shown_name, slot_setter
from .syntax.foreign_names import is_missing
from .syntax.methods import TensorMethods
from .syntax.operators import IDENTITY, LATE_BOUND, OPERATORS, TensorOperators, refuse_call
from .values.dtypes import DType

NO_AXES = Axes()
EFFECTS_SHOWN = 4  # of a group, in messages
OpT = TypeVar("OpT", bound="Op")


class Op(Node):
    """An application of a primitive to argument ops; equal ones are one object.

    ``args`` are its argument ops and ``attrs`` its attributes in the order of
    ``primitive.attributes``. Nothing but ``name`` can be set after construction.
    """

    __slots__ = ("attrs", "axes", "dtype", "effectful", "guards", "primitive", "weak")

    primitive: Primitive
    args: tuple[Op, ...]
    attrs: tuple[Any, ...]
    axes: Axes
    dtype: DType
    weak: bool
    effectful: bool
    guards: tuple[Guard, ...]

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("ops are built by geon's functions and operators, not by their classes")

    def __setattr__(self, attribute: str, value: Any) -> None:
        if attribute == "name":
            self._set_name(value)
        else:
            raise AttributeError(
                f"ops are immutable: {attribute!r} of {self} (made at {self.line_info}) cannot be "
                "set; build a new op; values of variables are set with "
                "transformer.set(variable, value), or by geon.assign in a computation"
            )

    def __delattr__(self, attribute: str) -> None:
        raise AttributeError(
            f"ops are immutable: {attribute!r} of {self} (made at {self.line_info}) stays"
        )

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if not is_missing(type(self), name)]

    if not TYPE_CHECKING:  # a checker knows that ops are not called
        _called_op = True
        __call__ = refuse_call

    def __copy__(self) -> NoReturn:
        self._refuse("copied", "ops are values: use the same one again")

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse("copied", "ops are values: use the same one again")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse("pickled", "write it with geon.dumps(op) and read it with geon.loads(text)")

    def _refuse(self, what: str, cure: str) -> NoReturn:
        raise SymbolicError(f"{self} (made at {self.line_info}) cannot be {what}; {cure}")

    @property
    def users(self) -> tuple[Op, ...]:
        """The live ops that have this one as an argument, found on demand."""
        with _lock:
            entries = list(_table.values())
        alive = (entry() for entry in entries)
        return tuple(op for op in alive if op is not None and any(a is self for a in op.args))

    @property
    def follows(self) -> tuple[Op, ...]:
        """The ops that are run before this one."""
        if self.primitive.name == "sequential" and self.attrs[0]:
            return self.args[:-1]
        return ()

    @property
    def initializers(self) -> tuple[Op, ...]:
        """The ops that give a storage leaf its first value; none for others."""
        return ()

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies of a loop or branch, in order; none for others."""
        return ()

    @property
    def is_input(self) -> bool:
        """Whether values come in here: a placeholder (the mark ``in``)."""
        return self.primitive.name == "placeholder"

    @property
    def is_output(self) -> bool:
        """Whether it carries the tag ``out``, which users give; computing an op adds no tag."""
        return "out" in self.tags

    def variables(self) -> list[Tensor]:
        """The trainable variables it depends on, in order of first use."""
        return [op for op in storage_leaves(self) if op.info.trainable and op.info.stored]

    def placeholders(self) -> list[Tensor]:
        """The placeholders it depends on, in order of first use."""
        return [op for op in storage_leaves(self) if not op.info.stored]

    def __str__(self) -> str:
        if self.axes is NO_AXES and self.primitive.name == "constant" and not shown_name(self):
            return str(LATE_BOUND["number"](self))
        return f"{called_name(self, self.primitive.name)}{self.axes}"

    def __repr__(self) -> str:
        return f"<{self.primitive.name} {self} {self.dtype.name} at {self.file_info}>"


class Tensor(Op, TensorMethods, TensorOperators):
    """An op with a value: ``axes`` say its shape, ``dtype`` its elements."""

    __slots__ = ()

    __array_priority__ = 1000.0

    def _repr_html_(self) -> str:
        return str(LATE_BOUND["html"](self))


class ComputationOp(Tensor):
    """A tensor computed from arguments."""

    __slots__ = ()


class VoidOp(Op):
    """An op that is run for its effect and has no value."""

    __slots__ = ()

    # As of tensors, == and != of effects are no bool: they would build an op, and raise.
    def __eq__(self, other: object) -> NoReturn:
        self._refuse_comparison()

    def __ne__(self, other: object) -> NoReturn:
        self._refuse_comparison()

    __hash__ = object.__hash__

    def __str__(self) -> str:
        """The effect with what it changes: a variable, or the first of the effects it runs."""
        label = shown_name(self) or self.primitive.name
        if self.primitive.name == "assign":
            return f"{label}({self.args[0]})"
        shown = [_brief(op) for op in self.args[:EFFECTS_SHOWN]]
        return f"{label}({', '.join(shown + ['...'] * (len(self.args) > EFFECTS_SHOWN))})"

    def _refuse_comparison(self) -> NoReturn:
        raise DTypeError(
            f"{self} (made at {self.line_info}) is run for its effect and has no elements to "
            f"compare\n{IDENTITY}"
        )


def _without_value(op: Any, *_: Any) -> NoReturn:
    """An operator of an effect."""
    raise DTypeError(
        f"{op} (made at {op.line_info}) is run for its effect and has no value to compute with at "
        f"{describe(user_site())}; list it among the results of transformer.computation, and "
        "compute with the value that is assigned, or with the variable"
    )


if not TYPE_CHECKING:  # a checker knows that effects have no operators
    for _operator in OPERATORS:
        setattr(VoidOp, _operator, _without_value)


class RegionOp(Op):
    """A loop or branch: an op with bodies and several results, which has no value itself."""

    __slots__ = ()

    @property
    def bodies(self) -> tuple[Body, ...]:
        """What it runs, each with nothing free in it."""
        found: list[Body] = []
        for value in self.attrs:
            parts = value if isinstance(value, tuple) else (value,)
            found += [part for part in parts if isinstance(part, Body)]
        return tuple(found)

    def __str__(self) -> str:
        return shown_name(self) or self.primitive.name


def _brief(op: Op) -> str:
    """An op among the effects of a group; groups inside of groups are not opened."""
    inner = isinstance(op, VoidOp) and op.primitive.name != "assign"
    return f"{op.primitive.name}(...)" if inner else str(op)


class LeafInfo:
    """What a storage leaf is: a placeholder, or a variable with its flags and first value."""

    __slots__ = (
        "initial_value",
        "initializers",
        "inside",
        "persistent",
        "serial",
        "stored",
        "trainable",
    )

    def __init__(
        self, stored: bool, trainable: bool, persistent: bool, initial_value: object
    ) -> None:
        self.serial = next(_serials)
        self.stored = stored
        self.trainable = trainable
        self.persistent = persistent
        self.initial_value = initial_value
        self.initializers: tuple[Op, ...] = ()
        self.inside = ""  # the loop whose steps alone it has a value in


_serials = itertools.count()


class Leaf(Tensor):
    """A placeholder or variable: unique, never interned, with a serial number that is stable."""

    __slots__ = ("info",)

    _unique = True

    info: LeafInfo

    @property
    def persistent(self) -> bool:
        """Whether a checkpoint holds it."""
        return self.info.persistent

    @property
    def trainable(self) -> bool:
        """Whether ``variables()`` lists it."""
        return self.info.trainable

    @property
    def initial_value(self) -> object:
        """The first value it was declared with: a tensor, a callable of axes, or None."""
        return self.info.initial_value

    @property
    def initializers(self) -> tuple[Op, ...]:
        """The ops that give it its first value, in order."""
        return self.info.initializers


class Placeholder(Leaf):
    """A leaf whose value is given at each call."""

    __slots__ = ()


class Variable(Leaf):
    """A leaf whose value a transformer keeps."""

    __slots__ = ()


_new = object.__new__
_put_primitive = slot_setter(Op, "primitive")
_put_args = slot_setter(Node, "args")
_put_attrs = slot_setter(Op, "attrs")
_put_axes = slot_setter(Op, "axes")
_put_dtype = slot_setter(Op, "dtype")
_put_weak = slot_setter(Op, "weak")
_put_effectful = slot_setter(Op, "effectful")
_put_guards = slot_setter(Op, "guards")
_put_site = slot_setter(Node, "_site")
put_notes = slot_setter(Node, "_notes")
_put_info = slot_setter(Leaf, "info")
VOID_DTYPE: DType = np.dtype("V0")


def lookup(key: tuple[Any, ...], site: Site | None = None) -> Op | None:
    """The live op interned under ``key``, with ``site``, or this call's line, added to its notes;
    or None.

    What computations make notes no lines.
    """
    own = current.own
    if own is not None:
        return own.found(key)
    entry = _table.get(key)
    if entry is not None:
        op = entry()
        if op is not None:
            op.note_site(user_site(2) if site is None else site)
            return op
    return None


def intern(
    cls: type[OpT],
    primitive: Primitive,
    args: tuple[Op, ...],
    attrs: tuple[Any, ...],
    axes: Axes,
    dtype: DType,
    *,
    weak: bool = False,
    effect: bool = False,
    guards: tuple[Guard, ...] = (),
    arranged: bool = False,
    site: Site | None = None,
) -> OpT:
    """The op of this primitive, arguments and attributes: the live one, else a new one.

    ``arranged`` marks an op whose axes are not in the order that its arguments give them. ``site``
    is where it was made, where that is not the caller's line.
    """
    key = (primitive, attrs, *map(id, args)) if attrs else (primitive, *map(id, args))
    if arranged:
        key = (axes, *key)
    found = lookup(key, site)
    if found is not None:
        return found  # type: ignore[return-value]  # a key belongs to one class
    op = new_op(cls, primitive, args, attrs, axes, dtype, weak, effect, guards, site)
    return insert(key, op)


def make(
    row: Primitive,
    args: tuple[Op, ...],
    attrs: tuple[Any, ...] = (),
    *,
    weak: bool | None = None,
    guards: tuple[Guard, ...] = (),
    site: Site | None = None,
) -> Any:
    """The op of a row: the live one, else a new one with the axes and dtype that the row infers.

    ``guards`` are assumptions of the caller's own; it is weak where the row says so, unless given.
    """
    key = (row, attrs, *map(id, args)) if attrs else (row, *map(id, args))
    found = lookup(key, site)
    if found is not None:
        return found
    assert row.infer is not None
    axes, dtype, inferred = row.infer(args, attrs)
    cls = class_of(row, dtype)
    if weak is None:
        weak = row.gives_weak(args)
    effect = row.kind == "effect"
    guards = guards + inferred if guards else inferred
    return insert(key, new_op(cls, row, args, attrs, axes, dtype, weak, effect, guards, site))


def class_of(row: Primitive, dtype: DType) -> type[Op]:
    """The class of the ops of a row that give ``dtype``."""
    if row.kind == "region":
        return RegionOp
    return VoidOp if dtype is VOID_DTYPE else ComputationOp


def insert(key: tuple[Any, ...], op: OpT) -> OpT:
    """Put a new op into the table under its key; the one there, if another thread was first."""
    own = current.own
    table = _table if own is None else own.entries
    entry = Entry(op, forget if own is None else own.forget)
    entry.key = key
    with _lock:
        known = table.get(key)
        found = None if known is None else known()
        if found is None:
            table[key] = entry
            return op
    return found  # type: ignore[return-value]  # a key belongs to one class


def intern_elementwise(
    key: tuple[Any, ...],
    primitive: Primitive,
    args: tuple[Op, ...],
    axes: Axes,
    dtype: DType,
    weak: bool = False,
    guards: tuple[Guard, ...] = (),
) -> ComputationOp:
    """``intern`` for an elementwise op without attributes that was just looked up in vain.

    ``key`` is (primitive, ids of arguments).
    """
    op = new_op(ComputationOp, primitive, args, (), axes, dtype, weak, False, guards)
    return insert(key, op)


def new_op(
    cls: type[OpT],
    primitive: Primitive,
    args: tuple[Op, ...],
    attrs: tuple[Any, ...],
    axes: Axes,
    dtype: DType,
    weak: bool,
    effect: bool,
    guards: tuple[Guard, ...],
    site: Site | None = None,
) -> OpT:
    """An op that is in no table."""
    op = _new(cls)
    _put_primitive(op, primitive)
    _put_args(op, args)
    _put_attrs(op, attrs)
    _put_axes(op, axes)
    _put_dtype(op, dtype)
    _put_weak(op, weak)
    _put_guards(op, guards)
    put_notes(op, None)
    _put_site(op, user_site(2) if site is None else site)
    if not effect:
        for arg in args:
            if arg.effectful:
                effect = True
                break
    _put_effectful(op, effect)
    return op


def make_leaf(
    primitive: Primitive, axes: Axes, dtype: DType, info: LeafInfo, site: Site | None = None
) -> Leaf:
    """A new storage leaf, unlike any other; ``site`` as for ``intern``."""
    cls = Variable if info.stored else Placeholder
    leaf = new_op(cls, primitive, (), (), axes, dtype, False, False, (), site)
    _put_info(leaf, info)
    return leaf


def annotate(op: OpT, name: str | None, tags: Any, follows: Any) -> OpT:
    """``op`` with a name and tags noted, after ``follows`` where ops are given."""
    if follows:
        op = LATE_BOUND["follows"](op, follows)
    if name is not None:
        op._set_name(name)
    if tags:
        op.add_tags(tags)
    return op


def interned_count() -> int:
    """How many interned ops are alive."""
    return len(_table)
