"""``Op``: an immutable, interned application of a primitive to argument ops."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator
from typing import Any, NoReturn, TypeVar

import numpy as np

from ..errors import SymbolicError
from .axes import Axes
from .dtypes import DType
from .interning import Entry, forget
from .interning import lock as _lock
from .interning import table as _table
from .lengths import Length
from .nodes import Node, Notes, slot_setter
from .operators import TensorOperators
from .registry import Primitive
from .sites import user_site

NO_AXES = Axes()
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
                f"ops are immutable: {attribute!r} of {self} (made at {self.file_info}) "
                "cannot be set; build a new op"
            )

    def __delattr__(self, attribute: str) -> None:
        raise AttributeError(
            f"ops are immutable: {attribute!r} of {self} (made at {self.file_info}) stays"
        )

    def __copy__(self) -> NoReturn:
        self._refuse("copied", "ops are values: use the same one again")

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse("copied", "ops are values: use the same one again")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse("pickled", "write it with geon.dumps(op) and read it with geon.loads(text)")

    def _refuse(self, what: str, cure: str) -> NoReturn:
        raise SymbolicError(f"{self} (made at {self.file_info}) cannot be {what}; {cure}")

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
    def is_input(self) -> bool:
        """Whether values come in here: a placeholder (the mark ``in``)."""
        return self.primitive.name == "placeholder"

    @property
    def is_output(self) -> bool:
        """Whether it carries the tag ``out``, which a computation gives the results asked of it."""
        return "out" in self.tags

    def variables(self) -> list[Tensor]:
        """The trainable variables it depends on, in order of first use."""
        return [op for op in storage_leaves(self) if op.info.trainable and op.info.stored]

    def placeholders(self) -> list[Tensor]:
        """The placeholders it depends on, in order of first use."""
        return [op for op in storage_leaves(self) if not op.info.stored]

    def __str__(self) -> str:
        label = self.name or self.primitive.name
        return f"{label}{self.axes}"

    def __repr__(self) -> str:
        return f"<{self.primitive.name} {self} {self.dtype.name} at {self.file_info}>"


class Tensor(Op, TensorOperators):
    """An op with a value: ``axes`` say its shape, ``dtype`` its elements."""

    __slots__ = ()

    __array_priority__ = 1000.0

    def _repr_html_(self) -> str:
        from .pictures import tensor_html

        return tensor_html(self)


class ComputationOp(Tensor):
    """A tensor computed from arguments."""

    __slots__ = ()


class VoidOp(Op):
    """An op that is run for its effect and has no value."""

    __slots__ = ()


class Guard:
    """An assumption about lengths that only data can confirm, checked before each call.

    ``left == right``, or ``left <= right`` when ``relation`` is ``<=``.
    """

    __slots__ = ("left", "meaning", "relation", "right")

    def __init__(
        self, relation: str, left: int | Length, right: int | Length, meaning: str
    ) -> None:
        self.relation, self.left, self.right, self.meaning = relation, left, right, meaning

    def holds(self, left: int, right: int) -> bool:
        """Whether the assumption holds for these two integers."""
        return left == right if self.relation == "==" else left <= right


class LeafInfo:
    """What a storage leaf is: a placeholder, or a variable with its flags and first value."""

    __slots__ = ("initial_value", "initializers", "persistent", "serial", "stored", "trainable")

    def __init__(
        self, stored: bool, trainable: bool, persistent: bool, initial_value: object
    ) -> None:
        self.serial = next(_serials)
        self.stored = stored
        self.trainable = trainable
        self.persistent = persistent
        self.initial_value = initial_value
        self.initializers: tuple[Op, ...] = ()


_serials = itertools.count()


class Leaf(Tensor):
    """A placeholder or variable: unique, never interned, with a serial number that is stable."""

    __slots__ = ("info",)

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
_put_notes = slot_setter(Node, "_notes")
_put_info = slot_setter(Leaf, "info")
VOID_DTYPE: DType = np.dtype("V0")


def lookup(key: tuple[Any, ...]) -> Op | None:
    """The live op interned under ``key``, with this call's line added to its notes; or None."""
    entry = _table.get(key)
    if entry is not None:
        op = entry()
        if op is not None:
            op.note_site(user_site(2))
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
) -> OpT:
    """The op of this primitive, arguments and attributes: the live one, else a new one.

    ``arranged`` marks an op whose axes are not in the order that its arguments give them.
    """
    key = (primitive, attrs, *args) if attrs else (primitive, *args)
    if arranged:
        key = (axes, *key)
    found = lookup(key)
    if found is not None:
        return found  # type: ignore[return-value]  # a key belongs to one class
    op = _build(cls, primitive, args, attrs, axes, dtype, weak, effect, guards)
    return insert(key, op)


def insert(key: tuple[Any, ...], op: OpT) -> OpT:
    """Put a new op into the table under its key; the one there, if another thread was first."""
    entry = Entry(op, forget)
    entry.key = key
    with _lock:
        known = _table.get(key)
        found = None if known is None else known()
        if found is None:
            _table[key] = entry
            return op
    return found  # type: ignore[return-value]  # a key belongs to one class


def intern_elementwise(
    primitive: Primitive, args: tuple[Op, ...], axes: Axes, dtype: DType
) -> ComputationOp:
    """``intern`` for an elementwise op without attributes that was just looked up in vain."""
    op = _build(ComputationOp, primitive, args, (), axes, dtype, False, False, ())
    return insert((primitive, *args), op)


def _build(
    cls: type[OpT],
    primitive: Primitive,
    args: tuple[Op, ...],
    attrs: tuple[Any, ...],
    axes: Axes,
    dtype: DType,
    weak: bool,
    effect: bool,
    guards: tuple[Guard, ...],
) -> OpT:
    op = _new(cls)
    _put_primitive(op, primitive)
    _put_args(op, args)
    _put_attrs(op, attrs)
    _put_axes(op, axes)
    _put_dtype(op, dtype)
    _put_weak(op, weak)
    _put_guards(op, guards)
    _put_notes(op, None)
    _put_site(op, user_site(2))
    if not effect:
        for arg in args:
            if arg.effectful:
                effect = True
                break
    _put_effectful(op, effect)
    return op


def make_leaf(primitive: Primitive, axes: Axes, dtype: DType, info: LeafInfo) -> Leaf:
    """A new storage leaf, unlike any other."""
    leaf = _build(Leaf, primitive, (), (), axes, dtype, False, False, ())
    _put_info(leaf, info)
    return leaf


def with_args(
    op: OpT, args: tuple[Op, ...], dtype: DType | None = None, weak: bool | None = None
) -> OpT:
    """The same primitive, attributes, axes, dtype and weakness (unless given) on other arguments.

    The arguments of an elementwise op may lack axes that those replaced had, or have them in
    another order, as long as together they have all axes of the op.
    """
    if op.args == args and dtype is None:
        return op
    effect = op.effectful and not any(arg.effectful for arg in op.args)
    arranged = op.primitive.kind == "elementwise" and not _in_order(op.axes, args)
    return intern(
        type(op),
        op.primitive,
        args,
        op.attrs,
        op.axes,
        op.dtype if dtype is None else dtype,
        weak=op.weak if weak is None else weak,
        effect=effect,
        guards=op.guards,
        arranged=arranged,
    )


def _in_order(axes: Axes, args: tuple[Op, ...]) -> bool:
    """Whether joining the arguments gives these axes in this order."""
    if args[0].axes is axes:
        return True
    names = {name: None for arg in args for name in arg.axes.names}
    return tuple(names) == axes.names


def post_order(roots: Iterable[Op], known: Container[Op] = ()) -> list[Op]:
    """Every op the roots depend on, each once, arguments before users; iterative.

    Ops in ``known`` and what is only below them are left out.
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


def storage_leaves(*roots: Op) -> list[Leaf]:
    """The placeholders and variables the roots depend on, in order of first use."""
    return [op for op in post_order(roots) if isinstance(op, Leaf)]


def find(name: str, *roots: Op) -> Tensor | Op:
    """The op below ``roots`` that was ever given this name; ``KeyError`` when there is none."""
    for op in reversed(post_order(roots)):
        if op._notes is not None and name in op._notes.names:
            return op
    raise KeyError(f"no op named {name!r} below {', '.join(map(str, roots))}")


def new_notes(name: str | None, tags: Iterable[str]) -> Notes:
    """Notes with a name and tags."""
    return Notes(name, [] if name is None else [name], frozenset(tags))


def annotate(op: OpT, name: str | None, tags: Any, follows: Any) -> OpT:
    """``op`` with a name and tags noted, after ``follows`` where ops are given."""
    if follows:
        from .effects import after

        op = after(op, follows)
    if name is not None:
        op._set_name(name)
    if tags:
        op.add_tags(tags)
    return op


def carry_notes(old: Op, new: Op) -> None:
    """Let the names and tags of ``old`` find ``new``, which keeps a name of its own."""
    notes = old._notes
    if notes is not None and new.primitive.kind != "leaf":
        shown = new.name
        for name in notes.names:
            new._set_name(name)
        if shown is not None or notes.name is None:
            new._set_name(shown)
        if notes.tags:
            new.add_tags(notes.tags)


def interned_count() -> int:
    """How many interned ops are alive."""
    return len(_table)
