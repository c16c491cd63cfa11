"""``Op``: an immutable, interned application of a primitive to argument ops, and its constructors.

Other modules import the core of the graph, guards and graph traversal from here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self, TypeVar

import numpy as np

from ..errors import DTypeError, SymbolicError
from .axes.axes import Axes
from .axes.axes import Guard as Guard
from .core.interning import InternedReference, forget
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
MAX_SHOWN_EFFECTS = 4  # maximum effects of a group that a message lists
OpT = TypeVar("OpT", bound="Op")
P = ParamSpec("P")


class Op(Node):
    """An application of a primitive to argument ops; equal ones are one object.

    ``args`` are its argument ops and ``attrs`` its attributes, a named tuple of the class
    ``primitive.attributes``. Only ``name`` can be set after construction.
    """

    __slots__ = ("attrs", "axes", "dtype", "effectful", "guards", "primitive", "weak")

    primitive: Primitive
    args: tuple[Op, ...]
    attrs: Any
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

    if not TYPE_CHECKING:  # type checkers refuse calls of ops
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
        """The ops that run before this one."""
        if self.primitive.name == "sequential" and self.attrs.follows:
            return self.args[:-1]
        return ()

    @property
    def initializers(self) -> tuple[Op, ...]:
        """The ops that initialize a storage leaf; none for other ops."""
        return ()

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies of a loop or branch, in order; none for other ops."""
        return ()

    @property
    def is_input(self) -> bool:
        """True for a placeholder (the mark ``in``)."""
        return self.primitive.name == "placeholder"

    @property
    def is_output(self) -> bool:
        """True if it has the tag ``out``, which users give; computing an op adds no tag."""
        return "out" in self.tags

    def variables(self) -> list[Tensor]:
        """Return the trainable variables that it depends on, in order of first use."""
        return [op for op in storage_leaves(self) if op.info.trainable and op.info.stored]

    def placeholders(self) -> list[Tensor]:
        """Return the placeholders that it depends on, in order of first use."""
        return [op for op in storage_leaves(self) if not op.info.stored]

    def _annotate(self, name: str | None, tags: Any = (), follows: Any = ()) -> Self:
        """Return the op with a name and tags added, ordered after the ops ``follows``, if any."""
        op: Self = LATE_BOUND["follows"](self, follows) if follows else self
        if name is not None:
            op._set_name(name)
        if tags:
            op.add_tags(tags)
        return op

    def __str__(self) -> str:
        if self.axes is NO_AXES and self.primitive.name == "constant" and not shown_name(self):
            return str(LATE_BOUND["number"](self))
        return f"{called_name(self, self.primitive.name)}{self.axes}"

    def __repr__(self) -> str:
        return f"<{self.primitive.name} {self} {self.dtype.name} at {self.file_info}>"


class Tensor(Op, TensorMethods, TensorOperators):
    """An op with a value: ``axes`` are its shape, ``dtype`` is the dtype of its elements."""

    __slots__ = ()

    __array_priority__ = 1000.0

    def _repr_html_(self) -> str:
        return str(LATE_BOUND["html"](self))


class ComputationOp(Tensor):
    """A tensor computed from arguments."""

    __slots__ = ()


class VoidOp(Op):
    """An op that runs for its effect and has no value."""

    __slots__ = ()

    # == and != do not compare identity, as for tensors; without elements they raise.
    def __eq__(self, other: object) -> NoReturn:
        self._refuse_comparison()

    def __ne__(self, other: object) -> NoReturn:
        self._refuse_comparison()

    __hash__ = object.__hash__

    def __str__(self) -> str:
        """Return the effect with its target: a variable, or the first effects that it runs."""
        label = shown_name(self) or self.primitive.name
        if self.primitive.name == "assign":
            return f"{label}({self.args[0]})"
        shown = [_brief(op) for op in self.args[:MAX_SHOWN_EFFECTS]]
        return f"{label}({', '.join(shown + ['...'] * (len(self.args) > MAX_SHOWN_EFFECTS))})"

    def _refuse_comparison(self) -> NoReturn:
        raise DTypeError(
            f"{self} (made at {self.line_info}) is run for its effect and has no elements to "
            f"compare\n{IDENTITY}"
        )


def _without_value(op: Any, *_: Any) -> NoReturn:
    """Raise ``DTypeError``: the operators of effects."""
    raise DTypeError(
        f"{op} (made at {op.line_info}) is run for its effect and has no value to compute with at "
        f"{describe(user_site())}; list it among the results of transformer.computation, and "
        "compute with the value that is assigned, or with the variable"
    )


if not TYPE_CHECKING:  # type checkers refuse operators of effects
    for _operator in OPERATORS:
        setattr(VoidOp, _operator, _without_value)


class RegionOp(Op):
    """A loop or branch: an op with bodies and several results, but no value itself."""

    __slots__ = ()

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies that it runs, which are closed."""
        regions: list[Body] = []
        for value in self.attrs:
            parts = value if isinstance(value, tuple) else (value,)
            regions += [part for part in parts if isinstance(part, Body)]
        return tuple(regions)

    def __str__(self) -> str:
        return shown_name(self) or self.primitive.name


def _brief(op: Op) -> str:
    """Return an op as text for a list of effects; nested groups are abbreviated."""
    inner = isinstance(op, VoidOp) and op.primitive.name != "assign"
    return f"{op.primitive.name}(...)" if inner else str(op)


class LeafInfo:
    """Properties of a storage leaf: a placeholder, or a variable with flags and initial value."""

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
        self.inside = ""  # description of the loop in whose steps it has a value, or ""


_serials = itertools.count()


class Leaf(Tensor):
    """A placeholder or variable: unique, never interned, with a stable serial number."""

    __slots__ = ("info",)

    _unique = True

    info: LeafInfo

    @property
    def persistent(self) -> bool:
        """True if checkpoints store it."""
        return self.info.persistent

    @property
    def trainable(self) -> bool:
        """True if ``variables()`` lists it."""
        return self.info.trainable

    @property
    def initial_value(self) -> object:
        """The declared initial value: a tensor, a callable of axes, or None."""
        return self.info.initial_value

    @property
    def initializers(self) -> tuple[Op, ...]:
        """The ops that initialize it, in order."""
        return self.info.initializers


class Placeholder(Leaf):
    """A leaf whose value is given at each call."""

    __slots__ = ()


class Variable(Leaf):
    """A leaf whose value a transformer stores between calls."""

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
    """Return the live op interned under ``key``, or None.

    ``site``, or this call's line, is added to its notes, except in the tables of computations.
    """
    own = current.own
    if own is not None:
        return own.look_up(key)
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
    """Return the op of this primitive, arguments and attributes: the live one, else a new one.

    ``arranged`` marks an op whose axes are not in the order of its arguments' axes. ``site`` is its
    source line; None means the caller's line.
    """
    key = (primitive, attrs, *map(id, args)) if attrs else (primitive, *map(id, args))
    if arranged:
        key = (axes, *key)
    known = lookup(key, site)
    if known is not None:
        return known  # type: ignore[return-value]  # a key belongs to one class
    attrs = primitive.named(attrs) if attrs else attrs
    op = new_op(cls, primitive, args, attrs, axes, dtype, weak, effect, guards, site)
    return insert(key, op)


def make_op(
    row: Primitive,
    args: tuple[Op, ...],
    attrs: tuple[Any, ...] = (),
    *,
    weak: bool | None = None,
    guards: tuple[Guard, ...] = (),
    site: Site | None = None,
) -> Op:
    """Return an op with inferred axes and dtype: the live one, else a new one.

    ``guards`` are further assumptions of the caller. ``weak`` overrides the weakness that the
    primitive infers.
    """
    key = (row, attrs, *map(id, args)) if attrs else (row, *map(id, args))
    known = lookup(key, site)
    if known is not None:
        return known
    assert row.infer is not None
    if not (row.takes_complex and row.takes_float8):
        row.refuse_dtypes(args)
    if attrs:
        attrs = row.named(attrs)
    axes, dtype, inferred = row.infer(args, attrs)
    cls = class_of(row, dtype)
    if weak is None:
        weak = row.has_weak_result(args)
    effect = row.kind == "effect"
    guards = guards + inferred if guards else inferred
    return insert(key, new_op(cls, row, args, attrs, axes, dtype, weak, effect, guards, site))


def _giving(cls: type[OpT], build: Callable[P, Op]) -> Callable[P, OpT]:
    return build  # type: ignore[return-value]  # the class follows from the primitive


# ``make_op`` of primitives whose ops are of one class.
make = _giving(Tensor, make_op)
make_region = _giving(RegionOp, make_op)
make_effect = _giving(VoidOp, make_op)


def class_of(row: Primitive, dtype: DType) -> type[Op]:
    """Return the class of the ops of a primitive with a result of ``dtype``."""
    if row.kind == "region":
        return RegionOp
    return VoidOp if dtype is VOID_DTYPE else ComputationOp


def insert(key: tuple[Any, ...], op: OpT) -> OpT:
    """Put a new op into the table; return the op of another thread instead if it was first."""
    own = current.own
    table = _table if own is None else own.entries
    entry = InternedReference(op, forget if own is None else own.forget)
    entry.key = key
    with _lock:
        known = table.get(key)
        live = None if known is None else known()
        if live is None:
            table[key] = entry
            return op
    return live  # type: ignore[return-value]  # a key belongs to one class


def intern_elementwise(
    key: tuple[Any, ...],
    primitive: Primitive,
    args: tuple[Op, ...],
    axes: Axes,
    dtype: DType,
    weak: bool = False,
    guards: tuple[Guard, ...] = (),
) -> ComputationOp:
    """Build and insert an elementwise op without attributes, after a lookup that found none.

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
    """Return a new op that is in no table; ``attrs`` is of the class ``primitive.attributes``."""
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
    """Return a new storage leaf, unlike any other; ``site`` as for ``intern``."""
    cls = Variable if info.stored else Placeholder
    leaf = new_op(cls, primitive, (), (), axes, dtype, False, False, (), site)
    _put_info(leaf, info)
    return leaf


def interned_count() -> int:
    """Return the number of live interned ops."""
    return len(_table)
