"""Derivatives as graphs: reverse mode (``deriv``, ``vjp``) and forward mode (``jvp``).

The two drivers here are the only code that knows about broadcasting, accumulation and source lines;
rules state partials, transposes or linear maps of their primitive alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import AxisError, DerivativeError, DTypeError
from .build import strengthen
from .constants import as_tensor, is_constant, scalar_value
from .dtypes import kind
from .elementwise import add, cast, multiply, negative
from .functional import pure_value
from .movement import broadcast
from .op_graph import NO_AXES, Leaf, Op, Tensor, post_order, with_args
from .reductions import sum_to
from .simplify import stabilise
from .sites import set_override


def deriv(y: Any, x: Any, *, seed: Any = None, unreached: str = "raise") -> Any:
    """The derivative of ``y`` with respect to ``x``: a tensor over x's axes, itself an op.

    ``x`` is a tensor or a list of tensors, which share one reverse sweep; variables and
    placeholders mean their values at entry. A ``y`` that is no scalar needs ``seed``, a tensor over
    y's axes: the result is the derivative of sum(seed * y). ``unreached="zero"`` gives zeros for
    an x that y does not depend on. Raises ``DerivativeError`` for an unreached x, a constant, a
    tensor that is not of a float dtype, or an op without a derivative.
    """
    wanted = list(x) if isinstance(x, (list, tuple)) else [x]
    if unreached not in ("raise", "zero"):
        raise DerivativeError(f"deriv: unreached={unreached!r} is neither 'raise' nor 'zero'")
    y = _differentiable(y, "y")
    wanted = [_differentiable(v, "x", unreached) for v in wanted]
    targets = [_target(v) for v in wanted]
    body = stabilise(pure_value(y), _computed(targets))
    seed = _seed(y, body, seed)
    cotangents = sweep(body, seed, targets)
    results = [
        _result(y, v, cotangents.get(t), unreached) for v, t in zip(wanted, targets, strict=True)
    ]
    return results if isinstance(x, (list, tuple)) else results[0]


def vjp(y: Any, x: Any, seed: Any) -> Any:
    """The vector-Jacobian product: ``deriv`` of sum(seed * y), zero for an x not reached."""
    return deriv(y, x, seed=seed, unreached="zero")


def jvp(y: Any, x: Any, tangent: Any) -> Tensor:
    """The Jacobian-vector product: the directional derivative of ``y`` along ``tangent``.

    ``x`` is a tensor and ``tangent`` one over its axes, or both are lists. Has the axes of ``y``;
    zero where y does not depend on x.
    """
    wanted = list(x) if isinstance(x, (list, tuple)) else [x]
    given = list(tangent) if isinstance(tangent, (list, tuple)) else [tangent]
    if len(wanted) != len(given):
        raise DerivativeError(f"jvp: {len(wanted)} tensors but {len(given)} tangents")
    y = _differentiable(y, "y")
    body = stabilise(pure_value(y), _computed(_target(v) for v in wanted))
    tangents: dict[Op, Tensor] = {}
    for v, t in zip(wanted, given, strict=True):
        v = _differentiable(v, "x")
        t = strengthen(as_tensor(t, near=v), v.dtype)
        tangents[_target(v)] = broadcast(cast(t, v.dtype), v.axes)
    found = push(body, tangents)
    return found if found is not None else _zeros(y)


def hvp(y: Any, x: Any, vector: Any) -> Any:
    """The Hessian of the scalar ``y`` in ``x`` times ``vector``: forward over reverse mode."""
    gradients = deriv(y, x, unreached="zero")
    if isinstance(x, (list, tuple)):
        return [jvp(g, x, vector) for g in gradients]
    return jvp(gradients, x, vector)


def _differentiable(x: Any, what: str, unreached: str = "raise") -> Tensor:
    x = as_tensor(x)
    if kind(x.dtype) != "f" and not (what == "x" and unreached == "zero"):
        raise DerivativeError(
            f"deriv: {what} is {x} of dtype {x.dtype.name} (made at {x.file_info}); only float "
            "tensors have derivatives: geon.cast it to a float dtype before it is used"
        )
    return x


def _target(x: Tensor) -> Op:
    return x if isinstance(x, Leaf) else pure_value(x)


def _computed(targets: Iterable[Op]) -> frozenset[Op]:
    return frozenset(op for op in targets if not isinstance(op, Leaf))


def _seed(y: Tensor, body: Tensor, seed: Any) -> Tensor:
    if seed is None:
        if y.axes is not NO_AXES:
            raise DerivativeError(
                f"deriv: y is {y} (made at {y.file_info}), not a scalar; give seed=, a tensor over "
                f"{y.axes}, or reduce it, for example with geon.sum(y)"
            )
        return strengthen(as_tensor(1.0), y.dtype)
    seed = as_tensor(seed, near=y)
    if any(axis not in y.axes for axis in seed.axes):
        raise AxisError(
            f"deriv: the seed {seed} (made at {seed.file_info}) has axes that y = {y} (made at "
            f"{y.file_info}) lacks"
        )
    if kind(seed.dtype) != "f" and not seed.weak:
        raise DTypeError(f"deriv: the seed {seed} is {seed.dtype.name}, not a float dtype")
    return broadcast(cast(strengthen(seed, y.dtype), y.dtype), body.axes)


def _result(y: Tensor, x: Tensor, g: Tensor | None, unreached: str) -> Tensor:
    if g is not None:
        return g
    if unreached == "zero":
        return _zeros(x)
    what = "a constant" if x.primitive.name == "constant" else "not reached"
    raise DerivativeError(
        f"deriv: {x} (made at {x.file_info}) is {what}: {y} (made at {y.file_info}) does not "
        'depend on it differentiably; deriv(..., unreached="zero") gives zeros'
    )


def _zeros(x: Tensor) -> Tensor:
    return broadcast(strengthen(as_tensor(0), x.dtype), x.axes)


# Reverse mode -----------------------------------------------------------------------------------


def sweep(y: Tensor, seed: Tensor, targets: Sequence[Op]) -> dict[Op, Tensor]:
    """The cotangent of every target that ``y`` reaches, from the cotangent ``seed`` of ``y``."""
    order = post_order([y])
    wanted = set(targets)
    on_path: set[Op] = set()
    for op in order:
        if op in wanted or any(arg in on_path for arg in op.args):
            on_path.add(op)
    parts: dict[Op, Tensor] = {y: seed}
    kept: dict[Op, Tensor] = {}
    outer = set_override(None)
    try:
        for op in reversed(order):
            g = parts.pop(op, None)
            if g is None or op not in on_path:
                continue
            if op in wanted:
                kept[op] = g
            site = op._site
            set_override((site[0], site[1], f"derivative of {op.primitive.name}"))
            for i, arg in enumerate(op.args):
                if arg in on_path and kind(arg.dtype) == "f":
                    part = _pull(op, i, arg, g)
                    if part is not None:
                        known = parts.get(arg)
                        parts[arg] = part if known is None else add.apply(known, part)
    finally:
        set_override(outer)
    return kept


def _pull(op: Op, i: int, arg: Op, g: Tensor) -> Tensor | None:
    """The cotangent of argument i of ``op`` from the cotangent ``g`` of its result."""
    row = op.primitive
    if row.partials is not None:
        part = _times_partial(op, i, g)
        return None if part is None else sum_to(part, arg.axes)
    if row.transpose is not None:
        part = row.transpose(g, op, i)
        if part is not None and part.axes is not arg.axes and row.kind == "elementwise":
            part = sum_to(part, arg.axes)
        return part
    if row.linearise is not None:
        return _transposed(op, i, arg, g)
    if kind(op.dtype) != "f":
        return None
    raise _missing(op)


def _times_partial(op: Op, i: int, g: Tensor) -> Tensor | None:
    partial = op.primitive.partials[i]  # type: ignore[index]  # the caller checked
    if partial is None:
        return None
    if callable(partial):
        partial = partial(op, *_full(op))
    if partial is None:
        return None
    if isinstance(partial, Tensor):
        value = scalar_value(partial)
        if value is None or partial.weak:
            return multiply.apply(g, partial)
        partial = value
    if partial == 1.0:
        return g
    if is_constant(g, 1.0) and g.axes is NO_AXES:
        return strengthen(as_tensor(float(partial)), g.dtype)
    return negative.apply(g) if partial == -1.0 else multiply.apply(g, float(partial))


def _full(op: Op) -> list[Any]:
    """The arguments over the op's full axes, so that rules may combine them freely."""
    return [
        arg if arg.axes is op.axes or arg.axes is NO_AXES else broadcast(arg, op.axes)
        for arg in op.args
    ]


def _transposed(op: Op, i: int, arg: Op, g: Tensor) -> Tensor | None:
    """The transpose of the linear map that the row states, by a sweep through that map."""
    from .leaves import placeholder

    tangent = placeholder(arg.axes, arg.dtype)
    pushed = op.primitive.linearise(op, i, tangent)  # type: ignore[misc]  # the caller checked
    if pushed is None:
        return None
    return sweep(pushed, g, [tangent]).get(tangent)


def _missing(op: Op) -> DerivativeError:
    return DerivativeError(
        f"{op.primitive.name} has no derivative: {op} was made at {op.file_info}; "
        "geon.stop_gradient(x) treats it as a constant, geon.custom_deriv gives it a rule"
    )


# Forward mode -----------------------------------------------------------------------------------


def push(y: Tensor, tangents: dict[Op, Tensor]) -> Tensor | None:
    """The tangent of ``y`` from the tangents of some ops below it; None where it is zero."""
    found: dict[Op, Tensor] = dict(tangents)
    outer = set_override(None)
    try:
        for op in post_order([y]):
            if op in found or kind(op.dtype) != "f":
                continue
            moving = [i for i, arg in enumerate(op.args) if arg in found]
            if moving:
                site = op._site
                set_override((site[0], site[1], f"tangent of {op.primitive.name}"))
                t = _push_one(op, moving, found)
                if t is not None:
                    found[op] = broadcast(t, op.axes)
    finally:
        set_override(outer)
    return found.get(y)


def _push_one(op: Op, moving: list[int], found: dict[Op, Tensor]) -> Tensor | None:
    row = op.primitive
    if row.partials is not None:
        return _sum(
            _times_partial(op, i, broadcast(found[op.args[i]], op.axes)) for i in moving
        )
    if row.transpose is not None and row.multilinear:
        return _sum(_replaced(op, {i: found[op.args[i]]}) for i in moving)
    if row.transpose is not None:
        return _push_linear(op, moving, found)
    if row.linearise is not None:
        return _sum(row.linearise(op, i, found[op.args[i]]) for i in moving)
    raise _missing(op)


def _push_linear(op: Op, moving: list[int], found: dict[Op, Tensor]) -> Tensor | None:
    """A row linear in several arguments together: those that do not move are zero."""
    if op.primitive.name == "custom":
        from .custom import push_custom

        return push_custom(op, moving, found)
    linear = [i for i, arg in enumerate(op.args) if kind(arg.dtype) == "f"]
    if not any(i in linear for i in moving) or kind(op.dtype) != "f":
        return None
    zero = {i: _zeros(op.args[i]) for i in linear}  # type: ignore[arg-type]  # float ops are tensors
    return _replaced(op, {**zero, **{i: found[op.args[i]] for i in moving}})


def _replaced(op: Op, new: dict[int, Tensor]) -> Tensor:
    args = tuple(new.get(i, arg) for i, arg in enumerate(op.args))
    made: Tensor = with_args(op, args)
    return made


def _sum(parts: Any) -> Tensor | None:
    total: Tensor | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else add.apply(total, part)
    return total
