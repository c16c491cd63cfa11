"""Python operators on tensors, and what symbolic tensors refuse to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import AxisError, SymbolicError
from .interning import local, table
from .registry import PRIMITIVES
from .sites import user_site

if TYPE_CHECKING:
    from .op_graph import Tensor

_getframe = sys._getframe
TensorLike = "Tensor | bool | int | float | np.ndarray | list"


def _apply(name: str, *operands: Any) -> Tensor:
    row: Any = PRIMITIVES[name]
    made: Tensor = row(*operands)
    return made


def _binary(name: str, x: Any, y: Any) -> Tensor:
    """The op of a binary operator; the one that is alive already is found with one look-up."""
    row: Any = PRIMITIVES[name]
    try:
        entry = table.get((row, x, y)) if local.own is None else None
    except TypeError:  # an array or a list has no hash
        entry = None
    if entry is not None:
        op: Any = entry()
        # An op built by geon.outer lacks the check that its operands share an axis.
        if op is not None and op.axes is x.axes:
            frame = _getframe(2)
            site = op._site
            if site[0] is not frame.f_code or site[1] != frame.f_lasti or op._notes is not None:
                op.note_site(user_site(2))
            return op  # type: ignore[no-any-return]  # keys of elementwise rows hold tensors
    made: Tensor = row(x, y)
    return made


class TensorOperators:
    """What Python syntax means for a symbolic tensor: each operator builds an op."""

    __slots__ = ()

    def __add__(self, other: Any) -> Tensor:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _binary("subtract", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _binary("divide", other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return _binary("floordivide", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _binary("floordivide", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return _binary("mod", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _binary("mod", other, self)

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __pow__(self, other: Any) -> Tensor:
        return _binary("power", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return _binary("power", other, self)

    def __neg__(self) -> Tensor:
        return _apply("negative", self)

    def __pos__(self) -> Tensor:
        return self  # type: ignore[return-value]  # the mixin is a Tensor

    def __abs__(self) -> Tensor:
        return _apply("absolute", self)

    def __lt__(self, other: Any) -> Tensor:
        return _binary("less", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _binary("greater", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _binary("greater_equal", self, other)

    def __and__(self, other: Any) -> Tensor:
        return _binary("bitwise_and", self, other)

    def __rand__(self, other: Any) -> Tensor:
        return _binary("bitwise_and", other, self)

    def __or__(self, other: Any) -> Tensor:
        return _binary("bitwise_or", self, other)

    def __ror__(self, other: Any) -> Tensor:
        return _binary("bitwise_or", other, self)

    def __xor__(self, other: Any) -> Tensor:
        return _binary("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return _binary("bitwise_xor", other, self)

    def __invert__(self) -> Tensor:
        return _apply("bitwise_not", self)

    def __lshift__(self, other: Any) -> Tensor:
        return _binary("left_shift", self, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return _binary("left_shift", other, self)

    def __rshift__(self, other: Any) -> Tensor:
        return _binary("right_shift", self, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return _binary("right_shift", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _matmul(other, self)

    def __getitem__(self, at: Any) -> Tensor:
        from .slicing import take

        return take(self, at)

    def __bool__(self) -> NoReturn:
        self._refuse_value("has no truth value", "geon.where(condition, a, b) chooses by element")

    def __len__(self) -> NoReturn:
        self._refuse_value("has no len()", "x.axes has its axes, geon.tensor_size(x) its size")

    def __iter__(self) -> Iterator[Any]:
        self._refuse_value("cannot be iterated", "take parts with x[i] or x[{axis: i}]")

    def __contains__(self, item: object) -> NoReturn:
        self._refuse_value("cannot be searched", "geon.any(geon.equal(x, value)) tells")

    def __float__(self) -> NoReturn:
        self._refuse_value("is no number", "compute it: transformer.computation(x)()")

    def __int__(self) -> NoReturn:
        self._refuse_value("is no number", "compute it: transformer.computation(x)()")

    def __index__(self) -> NoReturn:
        self._refuse_value("is no index", "compute it, or use it as a position of a tensor")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        self._refuse_value("is no array", "compute it: transformer.computation(x)()")

    def _refuse_value(self, what: str, cure: str) -> NoReturn:
        place = self.file_info  # type: ignore[attr-defined]  # the mixin is a Tensor
        raise SymbolicError(f"the symbolic tensor {self} (made at {place}) {what}; {cure}")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Let ``np.tanh(x)`` and ``array * x`` build ops."""
        row = UFUNC_ROWS.get(ufunc.__name__)
        if method != "__call__" or options or row is None:
            if ufunc.__name__ in ("equal", "not_equal") and method == "__call__" and not options:
                return _apply(ufunc.__name__, *inputs)
            called = ufunc.__name__ + (f".{method}" if method != "__call__" else "")
            given = f" with {', '.join(options)}=" if options else ""
            self._refuse_value(
                f"cannot be given to np.{called}{given}", "use the functions of geon"
            )
        return _apply(row, *inputs)


# NumPy's name of a ufunc to the row that means the same.
UFUNC_ROWS = {
    name: name
    for name in (
        "add subtract multiply divide power negative absolute sign reciprocal square sqrt exp expm1"
        " log log1p sin cos tan sinh cosh tanh maximum minimum less less_equal greater"
        " greater_equal logical_and logical_or logical_xor logical_not bitwise_and bitwise_or"
        " bitwise_xor left_shift right_shift floor ceil trunc isnan isinf isfinite"
    ).split()
} | {
    "floor_divide": "floordivide",
    "remainder": "mod",
    "rint": "round",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "invert": "bitwise_not",
}


def _matmul(left: Any, right: Any) -> Tensor:
    from .constants import as_tensor
    from .contraction import dot

    x, y = as_tensor(left, near=right), as_tensor(right, near=left)
    shared = [axis.name for axis in x.axes if axis in y.axes]
    if len(shared) > 1:
        raise AxisError(
            f"x @ y is ambiguous: {x} (made at {x.file_info}) and {y} (made at {y.file_info}) "
            f"share the axes {', '.join(shared)}; say which to contract with "
            f"geon.dot(x, y, over={shared[-1]}), or geon.dot(x, y) for all of them"
        )
    return dot(x, y)
