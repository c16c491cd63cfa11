"""Derivatives as graphs: reverse mode (``deriv``, ``vjp``) and forward mode (``jvp``, ``hvp``)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any, overload

from ...errors import ArgumentError, AxisError, DerivativeError, DTypeError
from ..axes.axes import Axes
from ..building.constants import as_tensor
from ..building.elementwise_build import broadcast_over
from ..building.rebuild import with_args
from ..building.resolve_axes import named_axes
from ..building.weak import strengthen, without_effect
from ..core.argument_hints import differentiates, public
from ..core.source_info import user_call
from ..op_graph import NO_AXES, Leaf, Op, RegionOp, Tensor, post_order
from ..regions.captured_views import replace_everywhere
from ..regions.closure import is_repeated
from ..rewriting.driver import rewrite
from ..rewriting.stabilise import STABLE
from ..rows.elementwise import cast, copy
from ..rows.leaves import placeholder
from ..rows.movement import broadcast
from ..transforms.batching import images, many_at_once
from ..transforms.derivative_sweeps import forward_mode, reverse_mode, zeros
from ..transforms.functionalize import pure_value, substitute
from ..values.dtypes import is_continuous, kind

if TYPE_CHECKING:
    from ..building.typing import AxesLike, TensorLike


@overload
def deriv(
    y: TensorLike,
    x: Tensor,
    *,
    seed: TensorLike | None = None,
    per: AxesLike | None = None,
    unreached: str = "raise",
) -> Tensor: ...
@overload
def deriv(
    y: TensorLike,
    x: Sequence[Tensor],
    *,
    seed: TensorLike | None = None,
    per: AxesLike | None = None,
    unreached: str = "raise",
) -> list[Tensor]: ...
@public
@differentiates(0, "y")
def deriv(y: Any, x: Any, *, seed: Any = None, per: Any = None, unreached: str = "raise") -> Any:
    """Return the derivative of ``y`` with respect to ``x``: a tensor over x's axes, itself an op.

    ``x`` is a tensor or a list of tensors, which share one reverse sweep. Variables and
    placeholders stand for their values at entry. A ``y`` that is no scalar needs ``seed``, a tensor
    over y's axes: the result is the derivative of sum(seed * y). Further axes of ``seed`` are many
    seeds at once, in the same sweep; the result has them first.

    ``per`` are axes of y, such as the axis of the examples of a batch. The result has them first;
    at each index along them it is the derivative of y at that index. ``unreached="zero"`` gives
    zeros for an x on which y does not depend.

    Raises ``DerivativeError`` for an unreached x, a constant, a tensor that is not of a float
    dtype, an op without a derivative, and if y at an index of ``per`` depends on other indices
    along it; ``AxisError`` for a ``per`` that y lacks.
    """
    wanted = _listed(x)
    if unreached not in ("raise", "zero"):
        raise DerivativeError(f"deriv: unreached={unreached!r} is neither 'raise' nor 'zero'")
    y = _differentiable(y, "deriv", "y")
    if unreached == "raise":
        wanted = [_differentiable(v, "deriv", "x") for v in wanted]
    places = _places(y, per)
    given = _seed(y, seed, places)
    many = given.axes.without(y.axes.names)
    _refuse_taken(many, given, wanted, "deriv")
    _refuse_weak([y], wanted, "deriv")
    (body,), targets, original = _prepared([y], wanted)
    one = placeholder(y.axes, y.dtype) if len(many) else given
    if len(places):
        cotangents = _cotangents_per_index(body, wanted, targets, one, places)
    else:
        cotangents = reverse_mode(body, one, targets)
    if len(many):
        batched = many_at_once([*cotangents.values()], {one: given}, many)
        cotangents = dict(zip(cotangents, batched, strict=True))
    results = []
    for v, t in zip(wanted, targets, strict=True):
        result = _result(y, v, cotangents.get(t), unreached)
        first = Axes(places, many, v.axes)
        results.append(result if result.axes is first else broadcast(result, first))
    results = _restored(results, original)
    return results if isinstance(x, (list, tuple)) else results[0]


def _places(y: Tensor, per: Any) -> Axes:
    """Return the axes of ``y`` that ``per`` names."""
    per_axes = named_axes([] if per is None else per, "deriv", y)
    for axis in per_axes:
        if axis.name not in y.axes:
            raise AxisError(
                f"{user_call('deriv')}: per={axis.name} is no axis of {y} (made at {y.line_info}), "
                f"which has {', '.join(y.axes.names) or 'none'}; keep it where y is reduced, for "
                f"example geon.sum(..., out_axes={axis.name})"
            )
    return y.axes.only(per_axes)


def _cotangents_per_index(
    body: Tensor, wanted: Sequence[Tensor], targets: Sequence[Op], seed: Tensor, places: Axes
) -> dict[Op, Tensor]:
    """Return the cotangents of the targets at each index along ``places``.

    The targets are replaced by placeholders that vary along ``places``.
    """
    for x in wanted:
        if any(axis in x.axes for axis in places):
            raise AxisError(
                f"{user_call('deriv')}: x = {x} (made at {x.line_info}) has an axis of per= "
                f"{places} already; where each place of y depends on x there alone, give the sum "
                f"of y without per=: geon.deriv(geon.sum(y, {list(places.names)}), x)"
            )
    placeholders = [placeholder(Axes(t.axes, places), t.dtype) for t in targets]
    varying = dict(zip(targets, placeholders, strict=True))
    batched: Any = images([body], varying, places, "the derivative of each")
    adjoints = reverse_mode(batched.get(body, body), seed, placeholders)
    # All indices have the same value, so the forward values are reused, not computed for each.
    values: dict[Op, Any] = {
        result: broadcast_over(op, result.axes) for op, result in batched.items()
    }
    parts: dict[Op, Any] = {
        t: substitute(adjoints[s], values) for t, s in varying.items() if s in adjoints
    }
    return parts


def _refuse_taken(many: Axes, given: Tensor, others: Sequence[Tensor], what: str) -> None:
    """Raise ``AxisError`` if one of the axes of ``many`` is also an axis of a result."""
    for other in others:
        for axis in many:
            if axis in other.axes:
                raise AxisError(
                    f"{user_call(what)}: {given} (made at {given.line_info}) has the axis "
                    f"{axis.name!r} for many at once, and {other} (made at {other.line_info}) has "
                    "it too, so the result would have it twice; geon.rename one, for example to "
                    f"{axis.name}.prime"
                )


@overload
def vjp(y: TensorLike, x: Tensor, seed: TensorLike) -> Tensor: ...
@overload
def vjp(y: TensorLike, x: Sequence[Tensor], seed: TensorLike) -> list[Tensor]: ...
@public
@differentiates(0, "y")
def vjp(y: Any, x: Any, seed: Any) -> Any:
    """Return the vector-Jacobian product: ``deriv`` of sum(seed * y), zero for an unreached x."""
    return deriv(y, x, seed=seed, unreached="zero")


@overload
def jvp(
    y: Tensor, x: Tensor | Sequence[Tensor], tangent: TensorLike | Sequence[TensorLike]
) -> Tensor: ...
@overload
def jvp(
    y: Sequence[Tensor], x: Tensor | Sequence[Tensor], tangent: TensorLike | Sequence[TensorLike]
) -> list[Tensor]: ...
@public
@differentiates(0, "y")
def jvp(y: Any, x: Any, tangent: Any) -> Any:
    """Return the Jacobian-vector product: the directional derivative of ``y`` along ``tangent``.

    ``y`` is a tensor or a list of tensors, which share one forward sweep. ``x`` is a tensor and
    ``tangent`` a tensor over its axes, or both are lists. The result has the axes of ``y``; it is
    zero if y does not depend on x. Further axes of a tangent are many directions at once, in the
    same sweep; the result has them last. Raises ``DerivativeError`` for a tensor that is not of a
    float dtype or an op without a derivative.
    """
    wanted = _listed(x)
    directions = list(tangent) if isinstance(tangent, (list, tuple)) else [tangent]
    if len(wanted) != len(directions):
        raise DerivativeError(f"jvp: {len(wanted)} tensors but {len(directions)} tangents")
    wanted = [_differentiable(v, "jvp", "x") for v in wanted]
    ys = [_differentiable(v, "jvp", "y") for v in _listed(y)]
    _refuse_weak(ys, wanted, "jvp")
    bodies, targets, original = _prepared(ys, wanted)
    tangents: dict[Op, Tensor] = {}
    varying: dict[Tensor, Tensor] = {}
    many = NO_AXES
    for v, target, t in zip(wanted, targets, directions, strict=True):
        t = cast(strengthen(as_tensor(t, near=v), v.dtype), v.dtype)
        batch_axes = t.axes.without(v.axes.names)
        if len(batch_axes):
            _refuse_taken(batch_axes, t, ys, "jvp")
            many = Axes(many, [axis for axis in batch_axes if axis not in many])
            tangents[target] = one = placeholder(v.axes, v.dtype)
            varying[one] = t
        else:
            tangents[target] = broadcast(t, v.axes)
    derived = forward_mode(bodies, tangents)
    pairs = zip(ys, bodies, strict=True)
    results = [derived[b] if b in derived else zeros(v) for v, b in pairs]
    if len(many):
        results = many_at_once(results, varying, many)
    results = _restored(results, original)
    return results if isinstance(y, (list, tuple)) else results[0]


@overload
def hvp(y: TensorLike, x: Tensor, vector: TensorLike) -> Tensor: ...
@overload
def hvp(y: TensorLike, x: Sequence[Tensor], vector: Sequence[TensorLike]) -> list[Tensor]: ...
@public
@differentiates(0, "y")
def hvp(y: Any, x: Any, vector: Any) -> Any:
    """Return the Hessian of the scalar ``y`` in ``x`` times ``vector``: forward over reverse mode.

    ``x`` is a tensor and ``vector`` a tensor over its axes, or both are lists, and then the result
    is a list too. Further axes of ``vector`` are many vectors at once; the result has them last.
    """
    return jvp(deriv(y, x, unreached="zero"), x, vector)


def _listed(x: Any) -> list[Tensor]:
    for given in x if isinstance(x, (list, tuple)) else [x]:
        if isinstance(given, (str, dict, set)):
            cure = "geon.find(y, name) finds a tensor by its name"
            if isinstance(given, dict):
                cure = "give list(x.values()), and the derivatives are a list in its order"
            raise ArgumentError(
                f"{user_call('deriv')}: x is {given!r} of type {type(given).__name__}; give a "
                f"tensor or a list of tensors; {cure}"
            )
    return [as_tensor(v) for v in x] if isinstance(x, (list, tuple)) else [as_tensor(x)]


def _differentiable(x: Any, what: str, role: str) -> Tensor:
    x = as_tensor(x)
    if not is_continuous(x.dtype):
        raise DerivativeError(
            f"{what}: {role} is {x} of dtype {x.dtype.name} (made at {x.line_info}); only float "
            "and complex tensors have derivatives: geon.cast it to a float dtype before it is used"
        )
    tensor: Tensor = x
    return tensor


def _refuse_weak(ys: Sequence[Tensor], wanted: Sequence[Tensor], what: str) -> None:
    for x in wanted:
        reason = without_effect(x, ys)
        if reason is not None:
            raise DerivativeError(f"{what}: {reason}")


_marks = itertools.count()


def _prepared(
    ys: Sequence[Tensor], wanted: Sequence[Tensor]
) -> tuple[list[Tensor], list[Op], dict[Op, Op]]:
    """Return pure, stable forms of ``ys``, the targets in them, and a map back to ``wanted``.

    A target that is computed is replaced by a unique copy, so that no rewrite rule looks through it
    and no other op is merged with it. ``_restored`` undoes the replacement.
    """
    pure: list[Any] = [pure_value(y) for y in ys]
    targets: list[Any] = [v if isinstance(v, Leaf) else pure_value(v) for v in wanted]
    marked = {op for op in targets if not isinstance(op, Leaf)}
    roots = _marked(pure, targets, marked) if marked else [*pure, *targets]
    result: list[Any] = rewrite(roots, STABLE, {})
    images = result[len(pure) :]
    original = {m: t for m, t in zip(images, targets, strict=True) if t in marked}
    return result[: len(pure)], images, original


def _marked(pure: Sequence[Op], targets: Sequence[Op], marked: Set[Op]) -> list[Any]:
    """Return the ops with each one in ``marked`` replaced by a unique copy, in bodies too."""
    order = post_order([*pure, *targets])
    roots: list[Any] = [*pure, *targets]
    views = [op for op in order if op in marked and is_repeated(op)]
    if views and any(isinstance(op, RegionOp) for op in order):
        places = {op: k for k, op in enumerate(targets, len(pure))}
        for view in views:
            target = roots[places.pop(view)]
            roots = replace_everywhere(roots, {target: copy(target, None, next(_marks))})
        order, marked = post_order(roots), {roots[k] for op, k in places.items() if op in marked}
    known: dict[Op, Op] = {}
    for op in order:
        new = with_args(op, tuple([known[arg] for arg in op.args]))
        known[op] = copy(new, None, next(_marks)) if op in marked else new
    return [known[op] for op in roots]


def _restored(results: Sequence[Tensor], original: dict[Op, Op]) -> list[Tensor]:
    """Return the results with the copies of targets replaced by the targets."""
    known = dict(original)
    restored: list[Any] = [substitute(op, known) if known else op for op in results]
    return restored


def _seed(y: Tensor, given: Any, places: Axes = NO_AXES) -> Tensor:
    if given is None:
        if kind(y.dtype) == "c":
            raise DerivativeError(
                f"deriv: y is {y} (made at {y.line_info}), which is complex; take the derivative "
                "of a real number such as geon.absolute(y), or give seed=1 if y is a holomorphic "
                "function of x"
            )
        if len(places) == len(y.axes):
            return broadcast(strengthen(as_tensor(1.0), y.dtype), y.axes)
        if y.axes is not NO_AXES:
            names = ", ".join([repr(name) for name in places.names])
            cure = f"geon.sum(y, out_axes=[{names}])" if len(places) else "geon.sum(y)"
            each = [axis.name for axis in y.axes.without(places)]
            raise DerivativeError(
                f"deriv: y is {y} (made at {y.line_info}), not a scalar; give seed=, a tensor over "
                f"{y.axes}, or reduce it, for example with {cure}; per={[*places.names, *each]} "
                "gives the derivative of each element"
            )
        return strengthen(as_tensor(1.0), y.dtype)
    seed = as_tensor(given, near=y)
    if not is_continuous(seed.dtype) and not seed.weak:
        raise DTypeError(f"deriv: the seed {seed} is {seed.dtype.name}, not a float dtype")
    batch_axes = [axis for axis in seed.axes if axis not in y.axes]
    return broadcast(cast(strengthen(seed, y.dtype), y.dtype), Axes(y.axes, batch_axes))


def _result(y: Tensor, x: Tensor, g: Tensor | None, unreached: str) -> Tensor:
    if g is not None:
        return g
    if unreached == "zero":
        return zeros(x)
    what = "a constant" if x.primitive.name == "constant" else "not reached"
    inside = _read_inside(y, x)
    why = (
        ""
        if inside is None
        else (
            f"; {inside.attrs.rule}, called at {inside.line_info}, has a rule of custom_deriv and "
            "reads it otherwise than as an argument, which makes it a constant: make it an argument"
        )
    )
    raise DerivativeError(
        f"deriv: {x} (made at {x.line_info}) is {what}: {y} (made at {y.line_info}) does not "
        f'depend on it differentiably; deriv(..., unreached="zero") gives zeros{why}'
    )


def _read_inside(y: Tensor, x: Tensor) -> Op | None:
    """Return a ``custom_deriv`` call that reads ``x`` other than as an argument, or None."""
    for op in post_order([y]):
        if op.primitive.name == "custom" and x in set(post_order([op.args[0]], set(op.args[1:]))):
            return op
    return None
