"""Construction of elementwise ops: joins axes by name and promotes dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from ...errors import ArgumentError, AxisError, DTypeError
from ...lazy_dataclasses import dataclass
from ..axes.axes import Axes, Axis
from ..axes.lengths import Length
from ..core.argument_hints import Dispatch, why
from ..core.primitive import PRIMITIVES, UFUNCS, Inferred, Primitive, require
from ..core.source_info import describe, user_call, user_site
from ..op_graph import (
    NO_AXES,
    VOID_DTYPE,
    Guard,
    Op,
    Tensor,
    intern_elementwise,
    lookup,
    make,
)
from ..values.dtypes import DType, Resolution, is_float8, is_number, number_dtype, resolve
from ..values.labels import dim_names
from .constants import as_tensor, number
from .resolve_axes import named_axes
from .weak import named_error, strengthen

if TYPE_CHECKING:
    from .typing import Binary, Ternary, Unary


@dataclass(frozen=True, eq=False, repr=False)
class Elementwise(Primitive):
    """An elementwise primitive; calling it builds an op.

    ``arity`` is the number of operands. ``rule`` is the dtype rule (see ``resolve``). ``sympy`` is
    the same function of x, y, z as a SymPy expression. ``domain`` has for each operand the interval
    of inputs in generated tests. ``ufunc`` is the name of the NumPy function that builds it.
    """

    arity: int = 1
    rule: str = "numeric"
    sympy: str | None = None
    domain: tuple[tuple[float, float], ...] = ()
    ufunc: str | None = None
    resolved: dict[Any, Resolution] = field(default_factory=dict, repr=False)
    direct: dict[DType, DType] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "infer", self.inferred)
        if self.ufunc is not None:
            UFUNCS.setdefault(self.ufunc, self)

    def __call__(
        self,
        *args: Any,
        axes: Any = None,
        name: str | None = None,
        tags: Any = (),
        follows: Any = (),
        **others: Any,
    ) -> Tensor:
        """Apply it elementwise to tensors, numbers and arrays, joined by axis name.

        The result has the left operand's axes, then the right operand's further ones. Raises
        ``AxisError`` for two lengths of one axis or tensors that share no axis, ``DTypeError`` for
        dtypes it does not take.
        """
        if Dispatch.hook is not None:
            if axes is not None or name is not None or tags or follows:
                keywords = {"axes": axes, "name": name, "tags": tags, "follows": follows, **others}
                result = Dispatch.hook(self, args, keywords)
            else:
                result = Dispatch.hook(self, args, others)
            if result is not NotImplemented:
                return result  # type: ignore[no-any-return]  # an array is a tensor
        if others:
            raise ArgumentError(why(self, args, others, "() takes its operands by position"))
        op = self._quick(*args)
        if op is None:
            op = self._checked(args)
        if axes is not None:
            op = broadcast_over(op, named_axes(axes, self.name, op))
        if name is not None or tags or follows:
            op = op._annotate(name, tags, follows)
        return op

    def _quick(self, x: Any = None, y: Any = None, *others: Any) -> Tensor | None:
        """Return the op if nothing needs joining, conversion or checks; otherwise None."""
        if others or not isinstance(x, Tensor) or x.weak:
            return None
        dtype = x.dtype
        out = self.direct.get(dtype)
        if out is None:
            out = self.direct[dtype] = self._unconverted_dtype(dtype)
        if out is VOID_DTYPE:
            return None
        args: tuple[Tensor, ...]
        key: tuple[Any, ...]
        if self.arity == 1 and y is None:
            args = (x,)
            key = (self, id(x))
        elif self.arity == 2:
            if y.__class__ is float and dtype.kind == "f":
                try:
                    y = number(y, dtype)
                except DTypeError:
                    return None  # the full check raises an error that names the operands
            elif not isinstance(y, Tensor) or y.dtype is not dtype or y.weak:
                return None
            if y.axes is not x.axes and y.axes is not NO_AXES:
                return None
            args = (x, y)
            key = (self, id(x), id(y))
        else:
            return None
        op: Any = lookup(key)
        if op is None:
            op = intern_elementwise(key, self, args, x.axes, out)
        return op  # type: ignore[no-any-return]  # keys of elementwise rows hold tensors

    def _unconverted_dtype(self, dtype: DType) -> DType:
        """Return the result dtype for operands of ``dtype``; void if these need conversion."""
        if dtype.kind == "c" and not self.takes_complex:
            return VOID_DTYPE
        if is_float8(dtype) and not self.takes_float8:
            return VOID_DTYPE
        try:
            targets, out, _ = resolve(self.rule, ((dtype, False),) * self.arity)
        except DTypeError:
            return VOID_DTYPE
        return out if all(target is dtype for target in targets) else VOID_DTYPE

    def _checked(self, args: tuple[Any, ...]) -> Tensor:
        if len(args) != self.arity:
            operands = ("x", "x, y", "condition, x, y")[self.arity - 1]
            raise ArgumentError(
                f"{self.name} takes {self.arity} operand{'s' * (self.arity > 1)}, not {len(args)}, "
                f"at {describe(user_site())}; write geon.{self.name}({operands})"
            )
        if self.arity > 1:
            if any(not isinstance(arg, (Tensor, float, int)) for arg in args):
                args = tuple([arg if dim_names(arg) is None else as_tensor(arg) for arg in args])
            refuse_unshared(self.name, args)
        return self.apply(*args)

    def apply(self, *args: Any) -> Tensor:
        """Build the op without checking that operands share an axis; for rules, ``geon.outer``."""
        tensors, dtype, weak = self._operands(args)
        key = (self, *map(id, tensors))
        op = lookup(key)
        if op is not None:
            return op  # type: ignore[return-value]  # elementwise keys hold tensors
        axes = tensors[0].axes
        guards: tuple[Guard, ...] = ()
        for other in tensors[1:]:
            if other.axes is not axes and other.axes is not NO_AXES:
                axes, guards = join(self.name, tensors)
                break
        return intern_elementwise(key, self, tensors, axes, dtype, weak, guards)

    def inferred(self, args: tuple[Any, ...], attrs: tuple[Any, ...]) -> Inferred:
        """Return axes, dtype and guards for operands that are converted already:
        ``Primitive.infer``.
        """
        targets, dtype, _ = resolve(self.rule, tuple([(arg.dtype, arg.weak) for arg in args]))
        for arg, target in zip(args, targets, strict=True):
            require(arg.dtype is target, "{} takes {}, not {}", self.name, target, arg.dtype)
        axes, guards = join(self.name, args)
        return axes, dtype, guards

    def _resolve(self, args: Sequence[Any]) -> Resolution:
        described = tuple(
            [
                (arg.dtype, arg.weak) if isinstance(arg, Tensor) else (number_dtype(arg), True)
                for arg in args
            ]
        )
        resolved = self.resolved.get(described)
        if resolved is None:
            self.refuse_dtypes(args)
            try:
                resolved = resolve(self.rule, described)
            except DTypeError as error:
                raise named_error(error, self.name, args) from None
            self.resolved[described] = resolved
        return resolved

    def _operands(self, args: Sequence[Any]) -> tuple[tuple[Tensor, ...], DType, bool]:
        """Return the converted operands, the dtype of the result, and whether that is weak."""
        try:
            given = [
                arg
                if isinstance(arg, Tensor) or is_number(arg)
                else as_tensor(arg, _near(args, arg))
                for arg in args
            ]
        except DTypeError as error:
            raise named_error(error, self.name, args) from None
        targets, dtype, weak = self._resolve(given)
        pairs = zip(given, targets, strict=True)
        try:
            return tuple([_coerce(arg, target, weak) for arg, target in pairs]), dtype, weak
        except DTypeError as error:
            raise named_error(error, self.name, given) from None

    @property
    def __signature__(self) -> Any:
        import inspect

        kinds = inspect.Parameter
        operands = [
            kinds(letter, kinds.POSITIONAL_ONLY) for letter in ("x", "y", "z")[: self.arity]
        ]
        keywords = [
            kinds("axes", kinds.KEYWORD_ONLY, default=None),
            kinds("name", kinds.KEYWORD_ONLY, default=None),
            kinds("tags", kinds.KEYWORD_ONLY, default=()),
            kinds("follows", kinds.KEYWORD_ONLY, default=()),
        ]
        return inspect.Signature([*operands, *keywords], return_annotation="Tensor")


def _near(args: Sequence[Any], arg: Any) -> Tensor | None:
    others = [a for a in args if isinstance(a, Tensor) and a is not arg and len(a.axes)]
    return others[0] if others else None


def _coerce(arg: Any, target: DType, weak: bool) -> Tensor:
    if isinstance(arg, Tensor):
        if arg.dtype is target and (weak or not arg.weak):
            return arg
        return strengthen(arg, target, weak)
    return number(arg, target, weak)


def refuse_unshared(what: str, args: Sequence[Any]) -> None:
    """Raise ``AxisError`` if two non-scalar tensors among ``args`` share no axis."""
    tensors = [arg for arg in args if isinstance(arg, Tensor) and arg.axes is not NO_AXES]
    for position in range(1, len(tensors)):
        left, right = tensors[position - 1], tensors[position]
        if left.axes is right.axes:
            continue
        before = tensors[:position]
        if not any(axis in other.axes for axis in right.axes for other in before):
            raise AxisError(
                f"{user_call(what)}: {left} and {right} share no axis\n"
                f"  {left} made at {left.line_info}\n"
                f"  {right} made at {right.line_info}\n"
                f"say that every element meets every other with geon.outer({what}, x, y), or "
                "repeat one with geon.broadcast(x, axes)"
            )


_joined: dict[tuple[Axes, ...], Axes] = {}
MAX_CACHED_JOINS = 4096  # maximum cached unions of axes


def join(what: str, tensors: Sequence[Tensor]) -> tuple[Axes, tuple[Guard, ...]]:
    """Return the union of the operands' axes by name, and guards where lengths may differ."""
    key = tuple([tensor.axes for tensor in tensors])
    joined = _joined.get(key)
    if joined is not None:
        return joined, ()
    guards: list[Guard] = []
    union: dict[str, Axis] = {}
    tensor_of: dict[str, Tensor] = {}
    for tensor in tensors:
        for axis in tensor.axes:
            known = union.setdefault(axis.name, axis)
            first = tensor_of.setdefault(axis.name, tensor)
            if known is not axis and known.expression != axis.expression:
                guards += meet(
                    what, axis.name, (known.expression, first), (axis.expression, tensor)
                )
    axes = Axes(*union.values())
    if not guards:
        if len(_joined) >= MAX_CACHED_JOINS:
            _joined.clear()
        _joined[key] = axes
    return axes, tuple(guards)


def meet(
    what: str,
    name: str,
    left: tuple[int | Length, Op],
    right: tuple[int | Length, Op],
) -> list[Guard]:
    """Return the guards for two lengths of one name: none if equal, one if they may be equal.

    Raises ``AxisError`` if they never are.
    """
    if left[0] == right[0]:
        return []
    (a, x), (b, y) = left, right
    here = f"{user_call(what)}: axis {name!r} has length {a} in {x}"
    if x is y:
        meaning = (
            f"{here} and should have {b}\n  {x} made at {x.line_info}\n"
            "ask for the length it has, or take a part of it"
        )
    else:
        cure = "give both the same length, or one of them another axis with geon.rename"
        if 1 in (a, b):
            single = x if a == 1 else y
            cure += (
                f"; length 1 is not stretched: {single.name or 'x'}[{{{name}: 0}}] is the element "
                f"of {single}, which meets all others"
            )
        meaning = (
            f"{here} and {b} in {y}\n"
            f"  {x} made at {x.line_info}\n  {y} made at {y.line_info}\n{cure}"
        )
    if isinstance(a - b, int):
        raise AxisError(meaning)
    return [Guard("==", a, b, meaning)]


def broadcast_over(x: Tensor, axes: Axes) -> Tensor:
    """Return ``x`` over exactly ``axes``, which include its own; broadcast along the others."""
    if x.axes is axes:
        return x
    return make(PRIMITIVES[_SPREADING[len(axes) == len(x.axes)]], (x,), (axes,))


_SPREADING = ("broadcast", "reorder")


@overload
def elementwise(
    name: str,
    doc: str,
    reference: Callable[..., Any],
    partials: tuple[Any, ...] | None = None,
    *,
    arity: Literal[1] = 1,
    **facts: Any,
) -> Unary: ...
@overload
def elementwise(
    name: str,
    doc: str,
    reference: Callable[..., Any],
    partials: tuple[Any, ...] | None = None,
    *,
    arity: Literal[2],
    **facts: Any,
) -> Binary: ...
@overload
def elementwise(
    name: str,
    doc: str,
    reference: Callable[..., Any],
    partials: tuple[Any, ...] | None = None,
    *,
    arity: Literal[3],
    **facts: Any,
) -> Ternary: ...
def elementwise(
    name: str,
    doc: str,
    reference: Callable[..., Any],
    partials: tuple[Any, ...] | None = None,
    *,
    arity: int = 1,
    domain: tuple[tuple[float, float], ...] = (),
    ufunc: str | None = None,
    **facts: Any,
) -> Any:
    """Return a new elementwise primitive, with other ``facts`` of ``Elementwise``.

    If ``reference`` is a NumPy ufunc, that ufunc builds the primitive's ops too. Otherwise
    ``ufunc`` may name the ufunc that does.
    """
    row = Elementwise(
        name,
        "elementwise",
        doc,
        reference=reference,
        partials=partials,
        arity=arity,
        domain=domain or ((-2.0, 2.0),) * arity,
        ufunc=reference.__name__ if isinstance(reference, np.ufunc) else ufunc,
        **facts,
    )
    object.__setattr__(row, "__doc__", doc)
    object.__setattr__(row, "__name__", name)
    return row
