# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
"""A graph of geon as a function of JAX: named axes by position, each op by the function that a user
of ``jax.numpy`` would call.

Ops and dtypes are those of the graph; 64-bit types are switched on. Positions are taken to lie
inside their axis, which geon checks. ``picks`` of ``top_k`` are its values, as JAX gives both.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from geon.op_graph.building.constants import constant_value
from geon.op_graph.evaluation.interpreter import BoundOp
from geon.op_graph.op_graph import Leaf, Op, post_order
from geon.op_graph.rows.indexing import gather_plan
from geon.op_graph.rows.reductions import positions
from geon.op_graph.rows.sort_and_cumulative import RunningAttributes

jax.config.update("jax_enable_x64", True)

Rule = Callable[..., Any]
NAMES = {"round": "rint", "where": "where", "atan": "arctan", "asin": "arcsin", "acos": "arccos",
         "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "atan2": "arctan2",
         "floordivide": "floor_divide"}  # fmt: skip
ELEMENTWISE: dict[str, Rule] = {
    "rsqrt": jax.lax.rsqrt,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "silu": jax.nn.silu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "erf": jax.scipy.special.erf,
    "erfc": jax.scipy.special.erfc,
    "erfinv": jax.scipy.special.erfinv,
    "lgamma": jax.scipy.special.gammaln,
    "ndtr": jax.scipy.special.ndtr,
    "log_ndtr": jax.scipy.special.log_ndtr,
    "stop_gradient": jax.lax.stop_gradient,
}
HALVES = ("float16", "bfloat16")
REDUCED = {"sum": jnp.sum, "prod": jnp.prod, "max": jnp.max, "min": jnp.min, "any": jnp.any,
           "all": jnp.all}  # fmt: skip


class UnsaidError(Exception):
    """An op that has no function in JAX."""


def as_jax(
    results: Sequence[Op], placeholders: Sequence[Leaf], lengths: Mapping[str, int]
) -> Callable[..., list[Any]]:
    """A function of the placeholders' arrays, by position, that gives the results."""
    order = list(post_order(results))
    bounds: dict[Op, BoundOp] = {}
    for op in order:
        bounds[op] = BoundOp(op, lengths, tuple(bounds[arg] for arg in op.args))

    def function(*arrays: Any) -> list[Any]:
        values: dict[Op, Any] = dict(zip(placeholders, arrays, strict=True))
        largest: dict[Op, Any] = {}  # the values that top_k found, by its op
        for op in order:
            if op not in values:
                values[op] = _value(op, bounds[op], [values[arg] for arg in op.args], largest)
        return [values[op] for op in results]

    return function


def _value(op: Op, bound: Any, args: list[Any], largest: dict[Op, Any]) -> Any:
    name = op.primitive.name
    if name == "gather" and op.args[1] in largest and op.args[1].args[0] is op.args[0]:
        if op.attrs.axis == op.args[1].attrs.axis:
            return largest[op.args[1]]
    if name == "top_k":
        largest[op], found = _top_k(bound, args[0])
        return found
    if op.primitive.kind == "elementwise" and name != "cast":
        args = [_aligned(x, arg.axes, bound.axes) for x, arg in zip(args, bound.args, strict=True)]
        shape = bound.axes.lengths
        made = _elementwise(name)(*args).astype(op.dtype)
        return made if made.shape == tuple(shape) else jnp.broadcast_to(made, shape)
    rule = RULES.get(name)
    if rule is None:
        raise UnsaidError(f"JAX has no {name}")
    return jnp.asarray(rule(bound, *args)).astype(op.dtype)


def _elementwise(name: str) -> Rule:
    rule = ELEMENTWISE.get(name) or getattr(jnp, NAMES.get(name, name), None)
    if rule is None:
        raise UnsaidError(f"JAX has no {name}")
    found: Rule = rule
    return found


def _aligned(x: Any, have: Any, want: Any) -> Any:
    """``x`` with its dimensions in the order of ``want``, 1 where it has none."""
    order = [have.index(name) for name in want.names if name in have]
    moved = x if order == sorted(order) else jnp.transpose(x, order)
    if len(have) == len(want):
        return moved
    return jnp.expand_dims(moved, [k for k, name in enumerate(want.names) if name not in have])


def _shape(op: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in op.axes.lengths)


def _broadcast(op: Any, x: Any) -> Any:
    return jnp.broadcast_to(_aligned(x, op.args[0].axes, op.axes), _shape(op))


def _cumulative(running: Rule, identity: int) -> Rule:
    def value(op: Any, x: Any) -> Any:
        a: RunningAttributes = op.attrs
        at = op.axes.index(a.axis)
        # JAX adds halves in their own precision, geon in float32.
        x = x.astype("float32" if op.dtype.name in HALVES else op.dtype)
        if a.exclusive:
            edge = jnp.full_like(jax.lax.slice_in_dim(x, 0, 1, axis=at), identity)
            count = x.shape[at]
            if a.reverse:
                parts = [jax.lax.slice_in_dim(x, 1, count, axis=at), edge]
            else:
                parts = [edge, jax.lax.slice_in_dim(x, 0, count - 1, axis=at)]
            x = jnp.concatenate(parts, axis=at)
        return running(x, axis=at, reverse=a.reverse)

    return value


def _top_k(op: Any, x: Any) -> tuple[Any, Any]:
    at = op.args[0].axes.index(op.attrs.axis)
    values, found = jax.lax.top_k(jnp.moveaxis(x, at, -1), op.attrs.k)
    return jnp.moveaxis(values, -1, at), jnp.moveaxis(found, -1, at).astype(op.dtype)


def _dot(op: Any, x: Any, y: Any) -> Any:
    letters: dict[str, str] = {}
    for arg in op.args:
        for name in arg.axes.names:
            letters.setdefault(name, string.ascii_letters[len(letters)])
    first, second = ("".join(letters[n] for n in arg.axes.names) for arg in op.args)
    out = "".join(letters[n] for n in op.axes.names)
    return jnp.einsum(f"{first},{second}->{out}", x.astype(op.dtype), y.astype(op.dtype))


def _extreme_position(find: Rule) -> Rule:
    def value(op: Any, x: Any) -> Any:
        reduced = positions(op)
        kept = [p for p in range(x.ndim) if p not in reduced]
        moved = jnp.transpose(x, [*kept, *reduced])
        return find(moved.reshape(*moved.shape[: len(kept)], -1), axis=-1)

    return value


def _index(op: Any, found: Sequence[Any]) -> tuple[Any, ...]:
    """The index of a slice or update; ``found`` are its positions at run time."""
    first = 1 if op.primitive.name == "slice" else 2
    index: list[Any] = []
    for item in op.attrs.items:
        if item is None:
            index.append(slice(None))
        elif item[0] == "range":
            start, stop, step = item[1:]
            index.append(slice(start, None if step < 0 and stop < 0 else stop, step))
        else:
            index.append(item[1] if item[0] == "at" else found[item[1] - first])
    return tuple(index)


def _places(op: Any, index: Any) -> tuple[list[str], list[str], list[str], tuple[Any, ...]]:
    """Batch axes, the index's own, the rest of the table's, and what to index the table with."""
    table, own_axes = op.args[0].axes, op.args[1].axes
    batch, own, rest = gather_plan(op, table, own_axes)
    ordered = jnp.transpose(index, [own_axes.index(n) for n in [*batch, *own]])
    grids = []
    for k, name in enumerate(batch):
        shape = [1] * ordered.ndim
        shape[k] = int(table[name].expression)
        grids.append(np.arange(shape[k]).reshape(shape))
    return batch, own, rest, (*grids, ordered)


def _gather(op: Any, x: Any, index: Any) -> Any:
    batch, own, rest, at = _places(op, index)
    axes = op.args[0].axes
    moved = jnp.transpose(x, [axes.index(n) for n in [*batch, op.attrs.axis, *rest]])
    names = [*batch, *own, *rest]
    return jnp.transpose(moved[at], [names.index(n) for n in op.axes.names])


def _scatter(op: Any, x: Any, index: Any, value: Any) -> Any:
    batch, own, rest, at = _places(op, index)
    axes = op.args[0].axes
    order = [axes.index(n) for n in [*batch, op.attrs.axis, *rest]]
    names = op.args[2].axes.names
    values = jnp.transpose(value, [names.index(n) for n in [*batch, *own, *rest]])
    table = jnp.transpose(x, order).at[at]
    made = table.add(values) if op.attrs.mode == "add" else table.set(values)
    return jnp.transpose(made, np.argsort(order))


def _pad(op: Any, x: Any, value: Any) -> Any:
    return jnp.pad(x, [width or (0, 0) for width in op.attrs.widths], constant_values=value)


def _reduced(reduce: Rule) -> Rule:
    def value(op: Any, x: Any) -> Any:
        return reduce(x if op.dtype.name in HALVES else x.astype(op.dtype), axis=positions(op))

    return value


RULES: dict[str, Rule] = {
    "constant": lambda op: constant_value(op),
    "iota": lambda op: jnp.arange(_shape(op)[0], dtype=op.dtype),
    "length": lambda op: np.asarray(op.attrs.length, np.int64),
    "cast": lambda op, x: x.astype(op.dtype),
    "broadcast": _broadcast,
    "reorder": _broadcast,
    "rename": lambda op, x: x,
    "flip": lambda op, x: jnp.flip(x, tuple(map(op.axes.index, op.attrs.flipped))),
    "flatten": lambda op, x: jnp.reshape(x, _shape(op)),
    "unflatten": lambda op, x: jnp.reshape(x, _shape(op)),
    "slice": lambda op, x, *found: x[_index(op, found)],
    "update": lambda op, x, value, *found: x.at[_index(op, found)].set(value),
    "concat": lambda op, *xs: jnp.concatenate(xs, axis=op.axes.index(op.attrs.axis)),
    "pad": _pad,
    "dot": _dot,
    "gather": _gather,
    "scatter": _scatter,
    "cumsum": _cumulative(jax.lax.cumsum, 0),
    "cumprod": _cumulative(jax.lax.cumprod, 1),
    "sort": lambda op, x: jnp.sort(x, axis=op.axes.index(op.attrs.axis)),
    "argsort": lambda op, x: jnp.argsort(x, axis=op.axes.index(op.attrs.axis), stable=True),
    **{name: _reduced(reduce) for name, reduce in REDUCED.items()},
    "argmax": _extreme_position(jnp.argmax),
    "argmin": _extreme_position(jnp.argmin),
}
