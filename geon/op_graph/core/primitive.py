"""``Primitive``: the frozen record of facts about each primitive, and the registry of all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import ArgumentError, DTypeError
from ...lazy_dataclasses import dataclass
from .source_info import user_call

if TYPE_CHECKING:
    from ..axes.axes import Axes
    from ..axes.index_map import Index, Map
    from ..op_graph import Guard, Op, Tensor
    from ..rows.reducers import Reducer
    from ..values.dtypes import DType

KINDS = (
    "leaf",
    "elementwise",
    "reduction",
    "ordered",
    "contraction",
    "matrix",
    "movement",
    "indexing",
    "effect",
    "call",
    "region",
    "part",
)


def require(condition: bool, what: str, *shown: object) -> None:
    """Raise ``ArgumentError`` unless ``condition`` holds; it holds for all ops that geon builds.

    ``what`` is the message, with ``{}`` for each of ``shown``; it is formatted only if needed.
    """
    if not condition:
        raise ArgumentError(what.format(*shown))


# The cost of recomputing an op, per element: negligible at every use (cheap); one instruction that
# takes as long as ten or twenty additions (slow); cheap, but only for one use (once); about twenty
# instructions (expensive); or a kernel of its own, which is never recomputed (kernel).
COSTS = ("cheap", "slow", "once", "expensive", "kernel")

# Kinds of primitives that take every dtype unless a row says otherwise: they move elements.
MOVING_KINDS = ("leaf", "movement", "indexing", "effect", "region", "part", "call")

# The result of inference: axes, dtype, and the guards on open lengths.
Inferred = tuple["Axes", "DType", tuple["Guard", ...]]


CLASSES = (
    "geon.op_graph.core.primitive",
    "geon.op_graph.building.elementwise_build",
)  # modules that define subclasses; `own` looks at the first frame outside of them


class NoAttributes(NamedTuple):
    """The attributes of a primitive that has none."""


@dataclass(frozen=True, eq=False)
class Primitive:
    """One primitive: its kind, meaning, derivative, and how its tests are generated.

    ``name`` is unique in the registry, ``kind`` is one of ``KINDS``, and ``doc`` is one sentence.
    ``reference`` is its meaning on NumPy arrays: ``reference(op, *arrays)``, or
    ``reference(*arrays)`` for elementwise primitives.

    A differentiable primitive has exactly one of these derivative rules, others have none:

    - ``partials``: of an elementwise primitive, d out / d arg for each argument: a number, None
      (zero everywhere) or a function of (out, \\*args);
    - ``transpose``: of a primitive that is linear in some arguments: ``transpose(g, op, i)`` is
      the cotangent of argument i, or None if the result does not depend on it differentiably.
      It is linear in those arguments jointly, or, if ``multilinear``, in each one alone;
    - ``linearise``: ``linearise(op, i, t)`` is the tangent of the result for the tangent t of
      argument i, built from linear primitives; the driver transposes it;
    - ``vjp`` and ``jvp``: of a primitive whose ops carry a user's rule: ``vjp(g, op)`` is the
      cotangent of every argument, and ``jvp(op, moving, tangents)`` the tangent of the result from
      the ``tangents`` of the arguments at the positions ``moving``. A primitive with a
      transpose may have a ``jvp`` as well.

    ``infer(args, attrs)`` returns the axes and dtype of the result, and raises the user's error if
    the primitive does not take these arguments. Building an op and reading one from a dump share
    it. ``arity`` is the number of arguments; None means any number of at least one. ``attributes``
    is the class of the attributes, a named tuple whose annotations say what each may be. If
    ``takes_effects`` is true, arguments may be effects, which have no value.

    ``reducer`` is the scalar code of a reduction. ``index_map`` of a primitive that only moves
    elements returns which element of which argument each result element is. The primitive is a
    ``view`` if that is always an element of the first argument, without guards. An elementwise
    primitive ``is_selection`` if each result element is an element of an argument, unchanged.

    ``cost`` is one of ``COSTS``. If ``known``, the value is known before a call runs. If
    ``has_side_effect``, the op returns its first argument and has an effect when it is computed. If
    ``raises``, its computation may raise an error. If ``is_barrier``, the op only orders its first
    argument after the others. ``in_place`` are the positions of arguments whose memory the result
    may reuse on every target: each element is read before its location is written.

    ``outcomes(attrs)`` of a region are the axes and dtype of each of its results. The ``reference``
    of a region is ``reference(op, run, *arrays)`` and returns the arrays of all results;
    ``run(body, arrays)`` returns the results of a body. Its ``vjp(given, op, wanted)`` takes the
    cotangents of the results, None for zero, and returns those of the ``wanted`` arguments. Its
    ``jvp(op, tangents)`` takes the tangents of the arguments and returns those of the results.
    ``batch(op, args, axes, images)`` is its batching rule: it returns the results for arguments
    that may have the further ``axes``. There ``images(roots, known)`` returns the batched forms of
    ops, given those of others.

    ``batch_attributes(attrs, axes)`` returns the attributes of an op whose first argument got the
    further ``axes`` behind its own, if they change. ``batched_together`` are the positions of
    operands that must be broadcast over these axes too; None means all.

    ``samples`` returns examples for generated tests, beyond those that follow from its kind: a
    label, the axes of each input, and a function that builds the op from the inputs.

    ``dtype_operands`` are the positions of the arguments whose dtype the result has: None means
    all, -1 the last one. Other arguments are conditions and indices. The result is weak if all
    dtype operands are. ``takes_complex`` is true if arguments may be complex, ``takes_float8`` if
    they may be float8; without a value they follow from the kind. ``own`` is true if the primitive
    is defined in geon itself.
    """

    name: str
    kind: str
    doc: str
    reference: Callable[..., Any] | None = None
    partials: tuple[Any, ...] | None = None
    transpose: Callable[[Tensor, Op, int], Tensor | None] | None = None
    multilinear: bool = False
    linearise: Callable[[Op, int, Tensor], Tensor | None] | None = None
    vjp: Callable[..., Sequence[Tensor | None]] | None = None
    jvp: Callable[..., Any] | None = None
    attributes: Any = NoAttributes
    arity: int | None = None
    infer: Callable[[tuple[Any, ...], Any], Inferred] | None = None
    takes_effects: bool = False
    dtype_operands: tuple[int, ...] | None = None
    reducer: Reducer | None = None
    index_map: Callable[[Op, Index], Map] | None = None
    view: bool = False
    cost: str = "cheap"
    is_selection: bool = False
    known: bool = False
    has_side_effect: bool = False
    raises: bool = False
    is_barrier: bool = False
    in_place: tuple[int, ...] = ()
    outcomes: Callable[[Any], Sequence[tuple[Axes, DType]]] | None = None
    batch: Callable[[Op, Sequence[Op], Axes, Any], Sequence[Tensor]] | None = None
    batch_attributes: Callable[[Any, Axes], tuple[Any, ...]] | None = None
    batched_together: tuple[int, ...] | None = ()
    samples: Callable[[], Iterable[tuple[str, Sequence[Any], Callable[..., Any]]]] | None = None
    takes_complex: bool | None = None
    takes_float8: bool | None = None
    own: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__") in CLASSES and frame.f_back is not None:
            frame = frame.f_back
        maker = frame.f_globals.get("__name__", "")
        object.__setattr__(self, "own", maker.partition(".")[0] == "geon")
        for takes in ("takes_complex", "takes_float8"):
            if getattr(self, takes) is None:
                object.__setattr__(self, takes, self.kind in MOVING_KINDS)
        if self.kind not in KINDS:
            raise ValueError(f"row {self.name!r}: no kind {self.kind!r} among {KINDS}")
        if self.cost not in COSTS:
            raise ValueError(f"row {self.name!r}: no cost {self.cost!r} among {COSTS}")
        if PRIMITIVES.setdefault(self.name, self) is not self:
            raise ValueError(f"there are two rows named {self.name!r}")

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def named(self, attrs: tuple[Any, ...]) -> Any:
        """Return attributes as the named tuple ``attributes``; TypeError for another number."""
        return self.attributes._make(attrs) if type(attrs) is tuple else attrs

    def refuse_dtypes(self, args: Sequence[Any]) -> None:
        """Raise ``DTypeError`` for a complex or float8 argument if the primitive takes none."""
        for arg in args:
            dtype = getattr(arg, "dtype", None)
            if not self.takes_float8 and dtype is not None and dtype.itemsize == 1:
                refuse_float8((arg,), self.name)
            if self.takes_complex:
                continue
            if isinstance(arg, complex) if dtype is None else dtype.kind == "c":
                shown = (
                    f"{arg} {arg.dtype.name} (made at {arg.line_info})"
                    if hasattr(arg, "line_info")
                    else repr(arg)
                )
                raise DTypeError(
                    f"{self.name} takes no complex numbers, and {shown} is complex; take its "
                    "geon.real, geon.imag, geon.absolute or geon.angle first"
                )

    def dtype_positions(self, args: Sequence[Op]) -> Sequence[int]:
        """Return the positions among ``args`` of those whose dtype the result has."""
        count = len(args)
        if self.dtype_operands is None:
            return range(count)
        return [i % count for i in self.dtype_operands]

    def has_weak_result(self, args: Sequence[Op]) -> bool:
        """Return True if the result is weak, that is if all dtype operands are weak."""
        carried = args if self.dtype_operands is None else [args[i] for i in self.dtype_operands]
        for arg in carried:
            if not arg.weak:
                return False
        return len(carried) > 0

    @property
    def differentiable(self) -> bool:
        """True if the primitive has a derivative rule."""
        rules = (self.partials, self.transpose, self.linearise, self.vjp)
        return any(rule is not None for rule in rules)


def refuse_float8(args: Sequence[Any], what: str) -> None:
    """Raise ``DTypeError`` if an argument of ``what`` is float8."""
    for arg in args:
        dtype = getattr(arg, "dtype", None)
        if dtype is not None and dtype.itemsize == 1 and dtype.name.startswith("float8"):
            raise DTypeError(
                f"{user_call(what)}: it takes no float8 numbers, which are only stored, and "
                f"{arg} (made at {arg.line_info}) is {dtype.name}; compute on "
                'geon.cast(x, "float32")'
            )


PRIMITIVES: dict[str, Primitive] = {}
# NumPy's name of a ufunc to the primitive of the same meaning.
UFUNCS: dict[str, Primitive] = {}
