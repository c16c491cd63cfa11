"""``Primitive``: the frozen row of facts about each primitive, and the registry of all rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError

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
    "movement",
    "indexing",
    "effect",
    "call",
    "region",
    "part",
)


def need(condition: bool, what: str, *shown: object) -> None:
    """Raise ``ArgumentError`` unless ``condition`` holds, which it does for all that geon builds.

    ``what`` is the message, with ``{}`` for each of ``shown``: it is only written when needed.
    """
    if not condition:
        raise ArgumentError(what.format(*shown))


# What computing a row again costs: nothing to speak of, wherever it is used; an instruction that
# takes as long as ten or twenty sums; little, but only for one use; some twenty instructions for an
# element; or a kernel of its own, which nothing repeats.
COSTS = ("cheap", "slow", "once", "expensive", "kernel")

# What a row gives for its arguments: axes, dtype, and what it assumes of open lengths.
Inferred = tuple["Axes", "DType", tuple["Guard", ...]]


CLASSES = (
    "geon.op_graph.core.primitive",
    "geon.op_graph.building.elementwise_build",
)  # where classes of rows are


@dataclass(frozen=True, eq=False)
class Primitive:
    """One primitive: its kind, meaning, derivative, how its tests are generated, and one sentence.

    ``reference`` is its meaning on NumPy arrays: ``reference(op, *arrays)``, and
    ``reference(*arrays)`` for elementwise rows. Exactly one of these says its derivative, and none
    of them where it has none:

    - ``partials``: of an elementwise row, d out / d arg for each argument: a number, None (zero
      everywhere) or a function of (out, \\*args);
    - ``transpose``: of a row that is linear in some arguments: ``transpose(g, op, i)`` is the
      cotangent of argument i, or None where the row does not depend on it differentiably; a row
      is linear in those arguments together, or, where ``multilinear``, in each of them alone;
    - ``linearise``: ``linearise(op, i, t)`` is the tangent of the result for the tangent t of
      argument i, made of linear rows; the driver transposes it;
    - ``vjp`` and ``jvp``: of a row whose ops carry a rule of the user's: ``vjp(g, op)`` is the
      cotangent of every argument, ``jvp(op, moving, found)`` the tangent of the result from those
      ``found`` of the arguments with the positions ``moving``. A row with a transpose may have a
      ``jvp`` of its own.

    ``infer(args, attrs)`` says the axes and dtype of the result, and raises the user's error where
    the row does not take these arguments: the one statement of both, which building an op and
    reading one from a dump share. ``arity`` is the number of arguments, None for any number of at
    least one; ``fits`` has for each of ``attributes`` a predicate that its values meet; the
    arguments of a row that is ``orderly`` may be effects, which have no value.

    ``reducer`` of a reduction is its meaning as scalar code. ``index_map`` of a row that only
    moves elements says which element of which argument each is; a row is a ``view`` where that is
    always one of the first argument, with no guards.

    Each element of an elementwise row that ``picks`` is one of an argument's, unchanged.
    ``cost`` is one of ``COSTS``. What is ``known`` has its value before a call runs. A row that
    ``acts`` has the value of its argument and does something when it is computed; one that
    ``raises`` may fail then, and one that ``waits`` only comes after its further arguments.
    ``in_place`` are the positions of arguments whose memory the result may take on every target:
    each element is read before its place is written.

    ``outcomes(attrs)`` of a region are the axes and dtype of each of its results; its ``reference``
    is ``reference(op, run, *arrays)`` with the arrays of all results, where ``run(body, arrays)``
    are the results of a body. Its ``vjp(given, op, wanted)`` takes the cotangents of its results,
    None for zero, and tells those of the arguments that are wanted; its ``jvp(op, tangents)`` takes
    those of its arguments and tells those of its results. ``spread(op, args, axes, images)`` are
    the results for arguments that may have ``axes`` besides, where ``images(roots, known)`` tells
    what ops become on others that do.

    ``further(attrs, axes)`` are the attributes of a row whose first argument has ``axes`` besides,
    last, where they are not the same ones; the arguments at the positions ``alike``, None for all,
    then have them too.

    ``samples`` gives examples for generated tests, beside those that follow from its kind: a label,
    the axes of each input, and what builds the op of these.

    ``carriers`` are the positions of the arguments that have the dtype of the result where that is
    theirs: all where not said, -1 for the last; others are conditions and positions. The result
    is weak where all of these are. ``own`` tells whether the row is made in geon itself.
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
    attributes: tuple[str, ...] = ()
    fits: tuple[Callable[[Any], bool], ...] = ()
    arity: int | None = None
    infer: Callable[[tuple[Any, ...], tuple[Any, ...]], Inferred] | None = None
    orderly: bool = False
    carriers: tuple[int, ...] | None = None
    reducer: Reducer | None = None
    index_map: Callable[[Op, Index], Map] | None = None
    view: bool = False
    cost: str = "cheap"
    picks: bool = False
    known: bool = False
    acts: bool = False
    raises: bool = False
    waits: bool = False
    in_place: tuple[int, ...] = ()
    outcomes: Callable[[tuple[Any, ...]], Sequence[tuple[Axes, DType]]] | None = None
    spread: Callable[[Op, Sequence[Op], Axes, Any], Sequence[Tensor]] | None = None
    further: Callable[[tuple[Any, ...], Axes], tuple[Any, ...]] | None = None
    alike: tuple[int, ...] | None = ()
    samples: Callable[[], Iterable[tuple[str, Sequence[Any], Callable[..., Any]]]] | None = None
    own: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__") in CLASSES and frame.f_back is not None:
            frame = frame.f_back
        maker = frame.f_globals.get("__name__", "")
        object.__setattr__(self, "own", maker.partition(".")[0] == "geon")
        if self.kind not in KINDS:
            raise ValueError(f"row {self.name!r}: no kind {self.kind!r} among {KINDS}")
        if self.cost not in COSTS:
            raise ValueError(f"row {self.name!r}: no cost {self.cost!r} among {COSTS}")
        if self.fits and len(self.fits) != len(self.attributes):
            raise ValueError(f"row {self.name!r}: {len(self.fits)} predicates for its attributes")
        if PRIMITIVES.setdefault(self.name, self) is not self:
            raise ValueError(f"there are two rows named {self.name!r}")

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def carrying(self, args: Sequence[Op]) -> Sequence[int]:
        """The positions among ``args`` of those whose dtype the result has."""
        count = len(args)
        if self.carriers is None:
            return range(count)
        return [i % count for i in self.carriers]

    def gives_weak(self, args: Sequence[Op]) -> bool:
        """Whether the result is weak: made of weak arguments alone, and in their dtype."""
        carried = args if self.carriers is None else [args[i] for i in self.carriers]
        for arg in carried:
            if not arg.weak:
                return False
        return len(carried) > 0

    @property
    def differentiable(self) -> bool:
        """Whether some rule says its derivative."""
        rules = (self.partials, self.transpose, self.linearise, self.vjp)
        return any(rule is not None for rule in rules)


PRIMITIVES: dict[str, Primitive] = {}
# NumPy's name of a ufunc to the row that means the same.
UFUNCS: dict[str, Primitive] = {}
