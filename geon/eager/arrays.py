"""``EagerArray``: a tensor with a value that is computed when it is looked at."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import ref

import numpy as np

from ..errors import ArgumentError, AssignError, SymbolicError
from ..op_graph.axes.axes import Axes, Axis, as_axes
from ..op_graph.building.constants import fit_axes, to_array
from ..op_graph.core.primitive import PRIMITIVES
from ..op_graph.core.source_info import ROOT, describe, user_call, user_site
from ..op_graph.nodes import slot_setter
from ..op_graph.op_graph import Leaf, LeafInfo, Op, Tensor, put_notes
from ..op_graph.values.labels import by_name, dim_names
from ..op_graph.values.tree import mapped
from .evaluation import host_value, keep, limit, read
from .nodes import (
    ALIAS,
    DETACHED,
    MAX_DEPTH,
    Args,
    CallResult,
    MemoEntry,
    Recent,
    RecordedNode,
    Type,
    local,
    type_of,
)

if TYPE_CHECKING:
    from ..op_graph.core.source_info import Site

MAX_USES = 64  # maximum calls of one first argument that are found again
_new = object.__new__


def _in_geon(depth: int) -> bool:
    """Return True if geon calls, for a message; it describes the array, and does not compute it."""
    return local.recording or sys._getframe(depth).f_code.co_filename.startswith(ROOT)


def _converter(what: str, cure: str, convert: Callable[[Any], Any]) -> Any:
    """Return the method that converts the only element."""

    def method(self: EagerArray) -> Any:
        value = self.numpy()
        if value.size != 1:
            raise SymbolicError(
                f"the array {self} (made at {self.line_info}) has {value.size} elements and "
                f"{what} at {describe(user_site())}; {cure}"
            )
        return convert(value.item())

    return method


def _or_on_values(build: Callable[[], Any], function: Any, args: Any, keywords: Any) -> Any:
    """Return what ``build`` does; where geon has no such function, that of NumPy on the values."""
    try:
        return build()
    except SymbolicError:
        if local.recording:
            raise
        args, keywords = mapped(
            (args, keywords), lambda v: np.asarray(v) if isinstance(v, EagerArray) else v
        )
        return function(*args, **keywords)


class EagerArray(Leaf):
    """A tensor with a value: ``print``, ``float``, ``bool`` and ``np.asarray`` compute it.

    Functions and operators of geon on arrays give arrays. ``axes``, ``dtype``, ``name``,
    ``line_info``, operators and methods are those of every tensor. To derivatives and to the bodies
    of loops it is a leaf. Read values are NumPy arrays that cannot be written; ``np.array(x)``
    copies one.
    """

    __slots__ = ("_node",)

    _node: RecordedNode

    if not TYPE_CHECKING:  # the facts of a leaf, shared by all arrays
        primitive = PRIMITIVES["placeholder"]
        args, attrs, guards, weak, effectful = (), (), (), False, False
        info = LeafInfo(stored=False, trainable=False, persistent=False, initial_value=None)
        _site = property(lambda self: self._node.site)
        axes = property(lambda self: self._node.type.axes, doc="Its axes, with their lengths.")
        dtype = property(lambda self: self._node.type.dtype, doc="The dtype of its elements.")

    def numpy(self) -> Any:
        """Return the value as a NumPy array, which cannot be written."""
        node = self._node
        if local.recording:
            raise SymbolicError(
                f"the value of {self._label()} (made at {self.line_info}) was read at "
                f"{describe(user_site())} while a function was recorded"
            )
        value = read(node) if node.value is None else node.value
        return value if value.__class__ is np.ndarray else host_value(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # type: ignore[override]  # tensors refuse
        value = self.numpy()
        if copy or (dtype is not None and dtype != value.dtype):
            return np.array(value, dtype)
        return value

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self.numpy().item()

    def tolist(self) -> Any:
        """Return the value as a Python number or nested lists."""
        return self.numpy().tolist()

    __bool__ = _converter("has no truth value", "geon.all(x) or geon.any(x)", bool)
    __float__ = _converter("is no number", "x[i] takes an element", float)
    __int__ = _converter("is no number", "x[i] takes an element", int)
    __index__ = _converter("is no index", "x[i] takes an element", operator.index)

    def __len__(self) -> Any:
        if not len(self.axes):
            raise SymbolicError(
                f"the scalar {self} (made at {self.line_info}) has no length and cannot be "
                f"iterated at {describe(user_site())}; float(x) is its value"
            )
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[{self.axes[0]: k}] for k in range(len(self))])

    def __format__(self, form: str) -> str:
        if _in_geon(2):
            return self._label()
        return format(str(self.numpy()) if len(self.axes) else self.numpy()[()], form)

    def __str__(self) -> str:
        return self._label() if _in_geon(2) else str(self.numpy())

    def __repr__(self) -> str:
        if _in_geon(2):
            return f"<array {self._label()}>"
        shown = np.array2string(self.numpy(), prefix="array(", separator=", ")
        return f"array({shown}, {self.axes}, {self.dtype.name})"

    def _label(self) -> str:
        result = self._node.result
        return f"{self.name or ('array' if result is None else result.call.name)}{self.axes}"

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        def build() -> Any:
            return super(EagerArray, self).__array_function__(function, types, args, keywords)

        return _or_on_values(build, function, args, keywords)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        def build() -> Any:
            return super(EagerArray, self).__array_ufunc__(ufunc, method, *inputs, **options)

        return _or_on_values(build, getattr(ufunc, method), inputs, options)

    def detach(self) -> EagerArray:
        """Return the same values without their graph: derivatives take them as constants."""
        return same(self._node, DETACHED, user_site())

    def backward(self, seed: Any = None, *, retain_graph: bool = False) -> None:
        """Add its derivative to ``grad`` of every trainable variable that it depends on.

        A tensor that is no scalar needs a ``seed`` over its axes. Its graph is freed unless
        ``retain_graph`` says that it is derived again.
        """
        from . import derivatives

        derivatives.backward(self, seed, retain_graph)

    def variables(self) -> list[Tensor]:
        """Return the trainable variables that it depends on."""
        from . import derivatives

        return [*derivatives.states_of(self)]

    def __setitem__(self, at: Any, value: object) -> NoReturn:
        raise AssignError(
            f"{user_call('setting items')}: the array {self._label()} (made at {self.line_info}) "
            "is a value; x = geon.update(x, value, at) is the array with that part replaced, and "
            "geon.assign(w[at], value) changes a variable"
        )

    def __reduce_ex__(self, protocol: object) -> Any:
        return array, (np.asarray(self), tuple(self._node.type.declared))

    def __deepcopy__(self, memo: object) -> Any:
        return self.detach()

    def __copy__(self) -> Any:
        return self


_put_node = slot_setter(EagerArray, "_node")


def handle(node: RecordedNode) -> EagerArray:
    """Return the array of a node; the next read of a value computes it."""
    made: EagerArray = _new(EagerArray)
    _put_node(made, node)
    put_notes(made, None)
    node.shown = shown = ref(made)
    if node.value is None:
        pending = local.pending
        pending.append(shown)
        if len(pending) > pending.limit:
            pending.remove_dropped()
    return made


def array_of(node: RecordedNode) -> EagerArray:
    """Return the array of a node; a new one if it was dropped."""
    known = None if node.shown is None else node.shown()
    return handle(node) if known is None else known


def computed(result: CallResult, args: Args, site: Site) -> EagerArray:
    """Return the array of a result of a call: that of an equal call if there is one."""
    mark, depth, value = None if local.grad else DETACHED, 0, None
    if not args:
        return handle(RecordedNode(result, args, result.type, site, None, 1, mark))
    for arg in args:
        if arg.depth > depth:
            depth = arg.depth
    if depth >= MAX_DEPTH:
        limit(args)
        depth = max([arg.depth for arg in args])
    first, count = args[0], len(args)
    if count < 3:
        key: Any = result if count == 1 else (result, args[1].serial)
    else:
        key = (result, *[arg.serial for arg in args[1:]])
    memo = first.memo
    if memo is not None and key in memo:
        known = memo[key]
        equal, value = known(), known.value
        if equal is not None and equal.mark is mark is None:
            if equal.shown is None or equal.shown() is None:
                equal.site = site
            return array_of(equal)
    node = RecordedNode(result, args, result.type, site, value, depth + 1, mark)
    if mark is None:
        if memo is None or len(memo) >= MAX_USES:
            memo = first.memo = {}
        memo[key] = node.entry = known = MemoEntry(node)
        known.value = None
        if value is not None:
            keep(known, value)
    return handle(node)


def same(node: RecordedNode, mark: Any, site: Site) -> EagerArray:
    """Return an array of the same value, which derivatives take as data."""
    made = RecordedNode(ALIAS, (node,), node.type, site, node.value, node.depth + 1, mark)
    if node.value is not None:
        made.forget(mark)
    return handle(made)


_known: Recent[Type] = Recent()  # by declared axes, shape and dtype of NumPy arrays


def array(data: Any, axes: Any = None, dtype: Any = None, *, name: str | None = None) -> EagerArray:
    """Return an array of data over ``axes``; ``geon.eager`` describes arrays.

    ``data`` are a number, a nested list, an array of any library, which is copied, or a variable or
    other tensor of variables, whose value at this time it is. Open axes take their lengths from the
    data. The dtype is that of the data; Python numbers are float32 or int64. Raises ``AxisError``
    if the axes do not fit.
    """
    value, key, kind = data, None, None
    if data.__class__ is np.ndarray and dtype is None and axes is not None:
        key = (as_axes(axes), data.shape, data.dtype)
        kind = _known.get(key)
    if isinstance(data, Op):
        from .recording import lifted

        made = lifted(data)
    else:
        if kind is None:
            value, kind = _checked(data, None if axes is None else as_axes(axes), dtype)
        if key is not None and value.dtype == data.dtype:
            _known.put(key, kind)
        made = data_array(value, kind, data)
    if name is not None:
        made._set_name(name)
    return made


def _checked(data: Any, axes: Axes | None, dtype: Any) -> tuple[Any, Type]:
    """Return data as a NumPy array, and its type."""
    dims = dim_names(data)
    if dims is not None:
        axes = Axes(*[Axis(str(dim)) for dim in dims]) if axes is None else axes
        data = by_name(data, axes.names, user_call("array"))
    value, weak = to_array(data, dtype)
    if weak and value.dtype.kind == "f":
        value = value.astype("float32")
    fixed = fit_axes(value, axes, "array")
    return value, type_of(fixed, fixed if axes is None else axes, value.dtype)


def data_array(value: Any, kind: Type, given: Any = None) -> EagerArray:
    """Return an array of a NumPy array, copied if it is ``given`` by the user."""
    if value is given or value.base is not None or not value.flags.c_contiguous:
        value = np.array(value, order="C")
    value.setflags(write=False)
    return handle(RecordedNode(None, (), kind, user_site(3), value, 0, None))


def check_array(x: Any, what: str) -> EagerArray:
    """Return ``x``; raise ``ArgumentError`` unless it is an array."""
    if not isinstance(x, EagerArray):
        raise ArgumentError(
            f"{user_call(what)}: {x!r} is no array of geon.eager; make one with "
            "geon.eager.array(data, axes)"
        )
    return x
