"""Python operators of tensors, and errors for conversions that symbolic tensors do not support."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import ArgumentError, AxisError, DTypeError, SymbolicError
from ..core.interning import table
from ..core.primitive import PRIMITIVES, UFUNCS
from ..core.source_info import called_within, current, describe, site_beyond, user_site
from ..values.dtypes import is_number

if TYPE_CHECKING:
    from ..building.typing import At, TensorLike
    from ..op_graph import Tensor

_getframe = sys._getframe

# Functions that lower modules call and higher modules define; `geon/__init__.py` fills the table.
LATE_BOUND: dict[str, Callable[..., Any]] = {}


def late(name: str) -> Callable[..., Any]:
    """Return a function that calls ``LATE_BOUND[name]``, such as a derivative rule.

    The module of the rule is imported when the first derivative needs it.
    """

    def call(*args: Any, **named: Any) -> Any:
        return LATE_BOUND[name](*args, **named)

    return call


def _apply(name: str, *operands: Any) -> Tensor:
    row: Any = PRIMITIVES[name]
    result: Tensor = row(*operands)
    return result


def _binary(name: str, depth: int = 1) -> Callable[[Any, TensorLike], Tensor]:
    """Return the method of an operator; it finds an existing op with one table lookup.

    The operator is in the user's code ``depth`` frames above the method.
    """
    find = table.get
    row: Any = None  # set at the first call: primitives are defined after the tensor class

    def method(x: Any, y: Any) -> Tensor:
        nonlocal row
        if row is None:
            row = PRIMITIVES[name]
        entry = find((row, id(x), id(y)))
        if entry is not None:
            op: Any = entry()
            # An op built by geon.outer was not checked for a shared axis of its operands.
            if op is not None and op.axes is x.axes:
                frame = _getframe(depth)
                site = op._site
                here = site[0] is frame.f_code and site[1] == frame.f_lasti
                if current.own is None and (not here or op._notes is not None):
                    op.note_site(user_site(depth))
                return op  # type: ignore[no-any-return]  # keys of elementwise rows hold tensors
        result: Tensor = row(x, y)
        return result

    return method


def _reflected(name: str) -> Callable[[Any, TensorLike], Tensor]:
    """Return the method of an operator whose left operand is no tensor."""
    return lambda y, x: _apply(name, x, y)


IDENTITY = (
    "== and != compare elements, also where Python searches a list or tuple (in, index, remove); "
    "`x is y` tells whether both are the same op"
)


def _equality(name: str) -> Callable[[Any, object], Any]:
    """Return the method of ``==`` or ``!=``, whose errors also explain how to test identity."""
    build = _binary(name, depth=2)

    def method(x: Any, y: Any) -> Tensor:
        try:
            return build(x, y)
        except (AxisError, DTypeError) as error:
            if not is_number(y):
                error.args = (f"{error}\n{IDENTITY}",)
            raise

    return method


if TYPE_CHECKING:  # type checkers understand `callable`
    is_function = callable
else:

    def is_function(value: object) -> bool:
        """Return True if ``value`` can be called; ops have a ``__call__`` that only raises."""
        return callable(value) and not hasattr(type(value), "_called_op")


def refuse_call(op: Any, *given: Any, **named: Any) -> NoReturn:
    """Raise ``ArgumentError``, as the ``__call__`` of ops: say how to compute or index an op."""
    names = [leaf.name or f"input {n}" for n, leaf in enumerate(op.placeholders())]
    shown = op.name or ("result" if "x" in names else "x")
    leaves = ", ".join([shown, *names])
    values = ", ".join(f"value of {name}" for name in names)
    raise ArgumentError(
        f"{op} (made at {op.line_info}) is an expression and was called at "
        f"{describe(user_site())}; compute it with transformer.computation({leaves})({values}); "
        "x[...] takes a part of a tensor"
    )


CHOICES = (
    "geon.where(condition, a, b) chooses by element, &, | and ~ join conditions, and "
    "geon.maximum(a, b) takes the larger"
)


BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "lt", "le", "gt", "ge",
    "and", "or", "xor", "lshift", "rshift", "matmul",
)  # fmt: skip


class TensorOperators:
    """Python's operators for symbolic tensors: each builds an op."""

    __slots__ = ()
    __pandas_priority__ = 10_000  # above that of all pandas classes, so their operators defer

    __add__ = _binary("add")
    __radd__ = _reflected("add")
    __sub__ = _binary("subtract")
    __rsub__ = _reflected("subtract")
    __mul__ = _binary("multiply")
    __rmul__ = _reflected("multiply")
    __truediv__ = _binary("divide")
    __rtruediv__ = _reflected("divide")
    __floordiv__ = _binary("floordivide")
    __rfloordiv__ = _reflected("floordivide")
    __mod__ = _binary("mod")
    __rmod__ = _reflected("mod")

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    _power = _binary("power", depth=2)

    def __pow__(self, other: TensorLike, modulus: Any = None) -> Tensor:
        if modulus is not None:
            self._refuse_value(
                "has no power modulo a number", "geon.mod(x ** y, z), or (x ** y) % z, is that"
            )
        return self._power(other)

    __rpow__ = _reflected("power")

    def __neg__(self) -> Tensor:
        return _apply("negative", self)

    def __pos__(self) -> Tensor:
        return self  # type: ignore[return-value]  # the mixin is a Tensor

    def __abs__(self) -> Tensor:
        return _apply("absolute", self)

    # They return tensors, while `object` declares bool; only Any fits both.
    __eq__ = _equality("equal")
    __ne__ = _equality("not_equal")
    __hash__ = object.__hash__

    __lt__ = _binary("less")
    __le__ = _binary("less_equal")
    __gt__ = _binary("greater")
    __ge__ = _binary("greater_equal")
    __and__ = _binary("bitwise_and")
    __rand__ = _reflected("bitwise_and")
    __or__ = _binary("bitwise_or")
    __ror__ = _reflected("bitwise_or")
    __xor__ = _binary("bitwise_xor")
    __rxor__ = _reflected("bitwise_xor")

    def __invert__(self) -> Tensor:
        return _apply("bitwise_not", self)

    __lshift__ = _binary("left_shift")
    __rlshift__ = _reflected("left_shift")
    __rshift__ = _binary("right_shift")
    __rrshift__ = _reflected("right_shift")

    def __matmul__(self, other: TensorLike) -> Tensor:
        result: Tensor = LATE_BOUND["matmul"](self, other)
        return result

    def __rmatmul__(self, other: TensorLike) -> Tensor:
        result: Tensor = LATE_BOUND["matmul"](other, self)
        return result

    def __getitem__(self, at: At) -> Tensor:
        result: Tensor = LATE_BOUND["take"](self, at)
        return result

    def __setitem__(self, at: Any, value: object) -> NoReturn:
        op: Any = self
        cure = "geon.update(x, value, at) gives a new tensor with that part replaced"
        if op.primitive.name in ("variable", "placeholder"):
            cure = f"geon.assign(x[at], value) is an op that changes it when it is computed; {cure}"
        self._refuse_value("has no items that can be set", cure)

    def __delitem__(self, at: Any) -> NoReturn:
        self._refuse_value("has no items that can be deleted", "x[at] takes a part of it")

    def __bool__(self) -> NoReturn:
        op: Any = self
        cure = CHOICES
        if op.primitive.name in ("equal", "not_equal"):
            cure = (
                f"{IDENTITY}; whether all values are equal is computed: "
                "transformer.computation(geon.all(x == y), ...); "
                "geon.where(condition, a, b) chooses by element"
            )
        self._refuse_value("has no truth value", cure)

    def __len__(self) -> NoReturn:
        self._refuse_value("has no len()", "x.axes has its axes, geon.tensor_size(x) its size")

    def __iter__(self) -> Iterator[Any]:
        self._refuse_value("cannot be iterated", "take parts with x[i] or x[{axis: i}]")

    def __contains__(self, item: object) -> NoReturn:
        self._refuse_value("cannot be searched", "geon.any(x == value) tells")

    def __float__(self) -> NoReturn:
        cure = f"geon.sqrt and the like take the place of math.sqrt, or {self._computed()}"
        self._refuse_value("is no number", cure)

    def __int__(self) -> NoReturn:
        self._refuse_value("is no number", self._computed())

    def __index__(self) -> NoReturn:
        self._refuse_value("is no index", "compute it, or use it as a position of a tensor")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        cure = self._computed()
        if called_within(np, "ma"):
            cure = (
                "a masked array is filled first, array.filled(value) + x, or its mask is another "
                "tensor: geon.where(mask, other, x)"
            )
        self._refuse_value("is no array", cure)

    def __format__(self, form: str) -> str:
        try:
            return format(str(self), form)
        except ValueError:
            self._refuse_value(f"cannot be written as {form!r}", self._computed())

    def __round__(self, digits: int | None = None) -> Tensor:
        if digits is not None:
            cure = "geon.round(x, decimals=2) rounds to decimals"
            self._refuse_value("cannot be rounded to digits", cure)
        return _apply("round", self)

    def _computed(self) -> str:
        """Return the advice how to compute the tensor, with its placeholders."""
        op: Any = self
        names = [leaf.name or f"input {n}" for n, leaf in enumerate(op.placeholders())]
        given = "".join(f", {name}" for name in names)
        values = ", ".join(f"value of {name}" for name in names)
        shown = op.name or ("result" if "x" in names else "x")
        return f"compute it: transformer.computation({shown}{given})({values})"

    def _refuse_value(self, what: str, cure: str) -> NoReturn:
        place = self.line_info  # type: ignore[attr-defined]  # the mixin is a Tensor
        here = describe(site_beyond(np))
        raise SymbolicError(
            f"the symbolic tensor {self} (made at {place}) {what} at {here}; {cure}"
        )

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, keywords: dict[str, Any]
    ) -> Any:
        """Build an op for ``np.sum(x, axis=A)`` and other NumPy functions."""
        return LATE_BOUND["numpy"](function, args, keywords)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Build an op for ``np.tanh(x)``, ``array * x`` and other ufuncs."""
        if ufunc is np.matmul and method == "__call__" and not options:
            return LATE_BOUND["matmul"](*inputs)
        row: Any = UFUNCS.get(ufunc.__name__)
        if method != "__call__" or options or row is None:
            called = ufunc.__name__ + (f".{method}" if method != "__call__" else "")
            given = f" with {', '.join(options)}=" if options else ""
            cure = LATE_BOUND["ufunc"](ufunc.__name__, method)
            self._refuse_value(f"cannot be given to np.{called}{given}", cure)
        result: Tensor = row(*inputs)
        return result


# The methods of arithmetic, comparison and indexing, which effects refuse.
OPERATORS = ("__getitem__", "__neg__", "__pos__", "__abs__", "__invert__") + tuple(
    name
    for name in vars(TensorOperators)
    if name.removeprefix("__r").removeprefix("__").removesuffix("__") in BINARY
)
