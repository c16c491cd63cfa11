"""``check_gradients``: compares derivatives with central differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, FeedError, GradientError
from ..axes.lengths import Length
from ..building.constants import CONSTANT, as_tensor, convert_weak
from ..building.rebuild import with_args, with_bodies
from ..core.argument_hints import public
from ..core.region_body import Body
from ..core.source_info import user_call
from ..evaluation.interpreter import interpret
from ..op_graph import Leaf, Op, RegionOp, Tensor, deep_order, post_order, storage_leaves
from ..regions.parameters import PARAMETER, REGION_RESULT, parameter, result_of
from ..rows.elementwise import cast
from ..rows.leaves import iota, placeholder
from ..transforms.functionalize import functional
from ..values.arrays import array_of
from ..values.dtypes import exact_dtype, is_continuous, kind
from ..values.labels import by_name
from ..values.tree import is_mapping
from .deriv import deriv, jvp

if TYPE_CHECKING:
    from ..building.typing import AxisLike, TensorLike

Array = np.ndarray[Any, Any]
# Absolute tolerance as a fraction of the largest difference: the differences of small elements
# have the same absolute error as those of large ones.
RELATIVE_FLOOR = 1e-2


@public
def check_gradients(
    y: TensorLike | Callable[..., TensorLike],
    at: Mapping[Leaf, Any],
    *,
    each: bool = False,
    directions: int = 2,
    seed: int = 0,
    step: float = 1e-5,
    tolerance: float = 1e-6,
    lengths: Mapping[AxisLike, int] | None = None,
    transformer: Any = None,
) -> None:
    """Compare ``deriv`` and ``jvp`` of ``y`` with central differences at one point.

    ``y`` is a tensor, or a function that is called with the keys of ``at`` and returns one. ``at``
    maps placeholders and variables to arrays; derivatives are taken with respect to its keys of a
    float dtype. A variable that is not in ``at`` has its value in ``transformer``, otherwise its
    initial value. ``lengths`` are the lengths of open axes that no array in ``at`` determines. The
    naive interpreter computes everything in float64, whatever the dtype of ``y``; it is meant for
    small arrays.

    Random ``directions`` are drawn with ``seed`` for each key. Along each one, ``jvp``, and the sum
    of the derivative times the direction, are compared with ``(y(x + step * d) - y(x - step * d)) /
    (2 * step)``. For ``deriv``, a ``y`` that is no scalar is summed with random weights. With
    ``each``, every element of the derivative is compared by itself. Values may differ by
    ``tolerance`` times the difference, plus ``tolerance / 100`` times the larger of 1 and the
    largest difference.

    Raises ``GradientError`` that names the key, the index, and both values; a kink within ``step``
    of the point raises it, too. Raises ``FeedError`` if an array does not fit its key.
    """
    what = user_call("check_gradients")
    _Check(what, y, at, seed, step, tolerance, lengths, transformer).run(each, directions)


class _Check:
    """A function at a point, with its derivatives as ops over float64 leaves.

    ``known`` has the array of every leaf. ``weights`` are the weights with which ``y`` is summed.
    """

    def __init__(
        self,
        what: str,
        y: Any,
        at: Mapping[Leaf, Any],
        seed: int,
        step: float,
        tolerance: float,
        lengths: Mapping[Any, int] | None,
        transformer: Any,
    ) -> None:
        self.what, self.step, self.tolerance = what, step, tolerance
        self.random = np.random.default_rng(seed)
        if not is_mapping(at) or not all(isinstance(x, Leaf) for x in at):
            raise ArgumentError(
                f"{what}: at, a {type(at).__name__}, maps no placeholders and variables to "
                "arrays; give {x: array, w: array}"
            )
        self.y = as_tensor(y(*at) if callable(y) and not isinstance(y, Tensor) else y)
        if kind(self.y.dtype) == "c":
            raise ArgumentError(
                f"{what}: {self.y} (made at {self.y.line_info}) is complex; check a real number "
                "such as geon.absolute of it"
            )
        self.xs = [x for x in at if kind(x.dtype) == "f"]
        if not self.xs:
            raise ArgumentError(f"{what}: none of {', '.join(map(str, at))} is of a float dtype")
        weights = placeholder(self.y.axes, self.y.dtype)
        tangents = [placeholder(x.axes, x.dtype) for x in self.xs]
        gradients = deriv(self.y, self.xs, seed=weights, unreached="zero")
        forward = [jvp(self.y, x, t) for x, t in zip(self.xs, tangents, strict=True)]
        pure = functional([self.y, *gradients, *forward]).outputs
        leaves = dict.fromkeys([*at, *storage_leaves(*[op for op in pure if op is not None])])
        wide = _DoublePrecision()
        result = [wide(op) for op in pure if op is not None]
        self.value, self.gradients = result[0], result[1 : 1 + len(self.xs)]
        self.forward = result[1 + len(self.xs) :]
        self.lengths = {str(getattr(a, "name", a)): int(n) for a, n in (lengths or {}).items()}
        arrays = {leaf: self.fed(leaf, array) for leaf, array in at.items()}
        given = {*arrays, weights, *tangents}
        for leaf in leaves:
            if leaf not in given:
                arrays[leaf] = self.values_of(leaf, transformer)
        self.known = {wide(leaf): array for leaf, array in arrays.items()}
        self.wide_xs = [wide(x) for x in self.xs]
        self.tangents = [wide(t) for t in tangents]
        self.wide_weights = wide(weights)
        shape = self.at(self.value, {}).shape
        self.weights: Array = np.asarray(self.random.normal(size=shape) if shape else 1.0)
        self.known[self.wide_weights] = self.weights

    def fed(self, leaf: Leaf, value: Any) -> Array:
        """Return the array of a leaf; its shape determines the lengths of open axes."""
        named = by_name(value, leaf.axes.names, f"{self.what}: {leaf}")
        array = array_of(named, f"{self.what}: {leaf}")
        shape = array.shape
        if len(shape) != len(leaf.axes):
            raise FeedError(
                f"{self.what}: {leaf} (made at {leaf.line_info}) was given an array of shape "
                f"{shape}; it has the axes {leaf.axes}"
            )
        for axis, size in zip(leaf.axes, shape, strict=True):
            name = axis.open_name
            if name is not None:
                wanted: Any = self.lengths.setdefault(name, size)
            elif isinstance(axis.expression, Length):
                wanted = axis.expression.evaluate(self.lengths)
            else:
                wanted = axis.expression
            if wanted != size:
                raise FeedError(
                    f"{self.what}: {leaf} (made at {leaf.line_info}) was given {size} along "
                    f"{axis.name}, which has length {wanted}"
                )
        return array.astype(exact_dtype(leaf.dtype))

    def values_of(self, leaf: Leaf, transformer: Any) -> Array:
        """Return the value of a leaf that is not in ``at``."""
        first = leaf.initial_value
        if leaf.info.stored and transformer is not None:
            return self.fed(leaf, transformer.get(leaf))
        if isinstance(first, Tensor):
            pure = functional([first]).outputs[0]
            assert pure is not None
            inner = {one: self.values_of(one, None) for one in storage_leaves(pure)}
            return np.asarray(interpret([pure], inner, self.lengths)[pure])
        raise ArgumentError(
            f"{self.what}: {self.y} (made at {self.y.line_info}) reads {leaf} (made at "
            f"{leaf.line_info}), which has no value: give its array in at"
        )

    def at(self, op: Op, changed: Mapping[Op, Array]) -> Array:
        """Return the value of an op with other arrays for some leaves."""
        known = {**self.known, **changed}
        return np.asarray(interpret([op], known, self.lengths)[op])

    def differences(self, k: int, direction: Array) -> Array:
        """Return the central difference of ``y`` as input ``k`` moves along a direction."""
        x = self.wide_xs[k]
        here = self.known[x]
        with np.errstate(all="ignore"):
            more, less = (
                self.at(self.value, {x: here + s * self.step * direction}) for s in (1, -1)
            )
            return np.asarray((more - less) / (2 * self.step))

    def run(self, each: bool, directions: int) -> None:
        """Compare all values; raise ``GradientError`` for the first that differs."""
        for k, x in enumerate(self.xs):
            gradient = self.at(self.gradients[k], {})
            if each:
                self.compare_elements(k, gradient)
            for _ in range(directions):
                direction = np.asarray(self.random.normal(size=gradient.shape))
                difference = self.differences(k, direction)
                total = np.vdot(self.weights, difference)
                if not self.close(np.vdot(gradient, direction), total):
                    self.compare_elements(k, gradient)
                    self.refuse(x, "deriv", "along a random direction",
                                np.vdot(gradient, direction), total)  # fmt: skip
                forward = self.at(self.forward[k], {self.tangents[k]: direction})
                self.compare(x, "jvp along a random direction", self.y, forward, difference)

    def compare_elements(self, k: int, gradient: Array) -> None:
        """Compare every element of a derivative with its difference."""
        expected = np.zeros(gradient.shape)
        for index in np.ndindex(gradient.shape):
            unit = np.zeros(gradient.shape)
            unit[index] = 1
            expected[index] = np.vdot(self.weights, self.differences(k, unit))
        self.compare(self.xs[k], "deriv", self.xs[k], gradient, expected)

    def close(self, computed: Any, expected: Any) -> Any:
        """Return for each element whether it is within the tolerance of the expected value."""
        size = np.abs(expected)
        largest = max(1.0, float(np.max(size, initial=0.0)))
        with np.errstate(invalid="ignore"):
            return np.abs(computed - expected) <= self.tolerance * (size + RELATIVE_FLOOR * largest)

    def compare(self, x: Leaf, what: str, over: Tensor, computed: Array, expected: Array) -> None:
        """Raise ``GradientError`` for the element that differs most, if one is off."""
        fine = np.asarray(self.close(computed, expected))
        if fine.all():
            return
        off = np.where(fine, -1.0, np.nan_to_num(np.abs(computed - expected), nan=np.inf))
        index = np.unravel_index(int(np.argmax(off)), off.shape)
        names = zip(over.axes.names, map(int, index), strict=True)
        where = ", ".join(f"{name} = {n}" for name, n in names)
        self.refuse(x, what, f"at {where}" if where else "", computed[index], expected[index])

    def refuse(self, x: Leaf, what: str, where: str, computed: Any, expected: Any) -> None:
        """Raise ``GradientError`` for one value."""
        summed = " summed with random weights" if len(self.y.axes) and "deriv" in what else ""
        rules = {
            str(op.attrs.rule): op.line_info
            for op in deep_order([self.y])
            if op.primitive.name == "custom"
        }
        cure = ", ".join(f"{rule} (called at {line})" for rule, line in rules.items())
        raise GradientError(
            f"{self.what}: {what} of {self.y} (made at {self.y.line_info}){summed} with respect to "
            f"{x} (made at {x.line_info}){' ' + where if where else ''} is {float(computed):.9g}, "
            f"and central differences give {float(expected):.9g}; "
            + (f"mend the rule of {cure}" if rules else
               "a kink or a jump near the point gives such differences: move it, or make step= "
               "smaller")
        )  # fmt: skip


class _DoublePrecision:
    """Rebuilds ops with floats in float64 and complex numbers in complex128; call it with an op."""

    def __init__(self) -> None:
        self.known: dict[Op, Op] = {}

    def __call__(self, root: Op) -> Any:
        for op in post_order([root], self.known):
            self.known[op] = self.again(op)
        return self.known[root]

    def again(self, op: Op) -> Op:
        """Return one op rebuilt; its arguments are rebuilt already."""
        args = tuple([self.known[arg] for arg in op.args])
        if isinstance(op, RegionOp):
            return with_bodies(op, [self.body(body) for body in op.bodies], args)
        if op.primitive is REGION_RESULT:
            return result_of(args[0], op.attrs.number, op._site)
        if not is_continuous(op.dtype):
            return with_args(op, args)
        wide = exact_dtype(op.dtype)
        if isinstance(op, Leaf):
            return op if op.dtype is wide else placeholder(op.axes, wide)
        if op.primitive is CONSTANT:
            return convert_weak(op, wide)
        if op.primitive is PARAMETER:
            return parameter(op.attrs.number, op.attrs.axes, wide)
        if op.primitive.name == "iota":
            return iota(op.attrs.axis, wide)
        if op.primitive.name == "cast":
            return cast(args[0], wide)  # type: ignore[arg-type]  # a tensor
        if all(
            new is old and not is_continuous(new.dtype)
            for new, old in zip(args, op.args, strict=True)
        ):
            args = tuple([cast(arg, wide) for arg in args])  # type: ignore[arg-type]  # tensors
        return with_args(op, args, wide)

    def body(self, body: Body) -> Body:
        """Return the same body with parameters in float64."""
        parameters = tuple([self(parameter) for parameter in body.parameters])
        return Body(parameters, tuple([self(result) for result in body.results]))
