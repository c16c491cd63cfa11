"""``GraphFunction``: a function of arrays without effects, its derivatives and its batched forms.

Frontends make it a differentiable function of another library. The derivative of a function is
such a function, whose graph is made at first use, so that derivatives exist to any order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DTypeError, FeedError
from ...op_graph.autodiff.deriv import deriv
from ...op_graph.axes.axes import Axes, Axis
from ...op_graph.axes.length_defaults import default_lengths
from ...op_graph.axes.lengths import Length, evaluate
from ...op_graph.core.source_info import user_call
from ...op_graph.op_graph import Leaf, Op, Tensor, among, post_order, storage_leaves
from ...op_graph.rows.elementwise import cast
from ...op_graph.rows.leaves import placeholder
from ...op_graph.rows.movement import reorder
from ...op_graph.rows.reductions import sum
from ...op_graph.transforms.batching import with_further
from ...op_graph.values.dtypes import kind
from ...op_graph.values.tree import flat
from ...transformers.base import Transformer, make_transformer

Shape = tuple[int, ...]


class GraphFunction:
    """A function from arrays, one for each of ``inputs``, to those of ``results``, in order.

    ``inputs`` are placeholders, and the results depend on no other leaf and have no effects.
    """

    def __init__(
        self,
        results: Sequence[Tensor],
        inputs: Sequence[Leaf],
        transformer: Transformer,
        lengths: Any = None,
    ) -> None:
        self.results, self.inputs = tuple(results), tuple(inputs)
        self.transformer, self.lengths = transformer, lengths
        self._made: dict[Any, Any] = {}
        self._lock = threading.RLock()

    def __call__(
        self, arrays: Sequence[Any], out: Sequence[Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], ...]:
        """Return the results, in the arrays ``out`` if given; inputs are read where they lie."""
        program = self._once("program", self._compiled)
        return tuple(program(*arrays) if out is None else program(*arrays, out=list(out)))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def _compiled(self) -> Any:
        return self.transformer.computation(list(self.results), *self.inputs, lengths=self.lengths)

    # Derivatives --------------------------------------------------------------------------------

    @property
    def differentiable_inputs(self) -> tuple[int, ...]:
        """The positions of the float inputs."""
        return tuple(k for k, leaf in enumerate(self.inputs) if kind(leaf.dtype) == "f")

    @property
    def differentiable_results(self) -> tuple[int, ...]:
        """The positions of the float results."""
        return tuple(k for k, op in enumerate(self.results) if kind(op.dtype) == "f")

    def vjp(self, wanted: tuple[int, ...], given: tuple[int, ...]) -> GraphFunction:
        """Return the function from inputs and cotangents to the cotangents of inputs.

        ``given`` are the positions of the results that have a cotangent, the others have 0.
        ``wanted`` are the positions of the inputs. Inputs of the new function are those of this
        one, then the cotangents; what it needs of the forward pass, it computes again.
        """
        return self._once(("vjp", wanted, given), lambda: self._derived(wanted, given))

    def _derived(self, wanted: tuple[int, ...], given: tuple[int, ...]) -> GraphFunction:
        ys = [self.results[k] for k in given]
        seeds = [placeholder(y.axes, y.dtype) for y in ys]
        xs = [self.inputs[k] for k in wanted]
        if len(ys) == 1:
            found = deriv(ys[0], xs, seed=seeds[0], unreached="zero")
        else:
            total: Any = 0.0
            for y, seed in zip(ys, seeds, strict=True):
                total = total + sum(y * seed)
            found = deriv(total, xs, unreached="zero")
        strong = [cast(op, x.dtype) for op, x in zip(found, xs, strict=True)]
        return GraphFunction(strong, [*self.inputs, *seeds], self.transformer, self.lengths)

    # Batching -----------------------------------------------------------------------------------

    def batched(self, which: tuple[bool, ...]) -> tuple[GraphFunction, tuple[bool, ...]]:
        """Return the function of inputs that have a further axis in front, where ``which`` says.

        The second result says which of its results have the axis, in front too. Its length is open.
        """
        return self._once(("batched", which), lambda: self._batched(which))

    def _batched(self, which: tuple[bool, ...]) -> tuple[GraphFunction, tuple[bool, ...]]:
        used = {name for op in post_order(self.results) for name in op.axes.names}
        axis = Axis("batch")
        while axis.name in used:
            axis = Axis(axis.name + "_")
        known: dict[Op, Tensor] = {}
        inputs: list[Leaf] = []
        for leaf, many in zip(self.inputs, which, strict=True):
            new = placeholder(Axes(axis, leaf.axes), leaf.dtype, name=leaf.name) if many else leaf
            inputs.append(new)
            if many:
                known[leaf] = reorder(new, Axes(leaf.axes, axis))
        made = with_further(self.results, known, Axes(axis), "the batched function")
        mapped = tuple(axis in op.axes for op in made)
        results = [
            reorder(op, Axes(axis, old.axes)) if has else op
            for op, old, has in zip(made, self.results, mapped, strict=True)
        ]
        return GraphFunction(results, inputs, self.transformer, self.lengths), mapped

    # Shapes -------------------------------------------------------------------------------------

    def result_shapes(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Return the shapes of the results for inputs of ``shapes``; raise ``FeedError``."""
        found: dict[str, int] = {**default_lengths(), **_by_name(self.lengths)}
        waiting = []
        for leaf, shape in zip(self.inputs, shapes, strict=True):
            if len(shape) != len(leaf.axes):
                raise FeedError(_misfit(leaf, shape, leaf.axes))
            for axis, length in zip(leaf.axes, shape, strict=True):
                if axis.open_name:
                    found[axis.open_name] = length
                waiting.append((leaf, shape, axis, length))
        for leaf, shape, axis, length in waiting:
            if self._length(axis, found) != length:
                raise FeedError(_misfit(leaf, shape, f"{axis} = {self._length(axis, found)}"))
        return [tuple(self._length(axis, found) for axis in op.axes) for op in self.results]

    def _length(self, axis: Axis, lengths: dict[str, int]) -> int:
        names = axis.expression.names() if isinstance(axis.expression, Length) else ()
        unknown = [name for name in names if name not in lengths]
        if unknown:
            raise FeedError(
                f"no input of the function fixes {unknown[0]}, the length of {axis}; give "
                f"lengths={{{unknown[0]!r}: ...}} to transformer.computation, or set axis.length"
            )
        return evaluate(axis.expression, lengths)


def _by_name(lengths: Any) -> dict[str, int]:
    pairs = dict(lengths or {}).items()
    return {getattr(axis, "open_name", None) or str(axis): length for axis, length in pairs}


def _misfit(leaf: Leaf, shape: Shape, needs: object) -> str:
    return (
        f"{leaf} (made at {leaf.line_info}) was given an array of shape {shape}; it needs {needs}; "
        "give dimensions in the order of its axes"
    )


class FunctionDescription:
    """The description of a function: its graph, its structure of results, and its variables.

    ``variables`` are those that the results read and that are no inputs; they are the last inputs
    of ``graph``. ``names`` are those of the inputs.
    """

    def __init__(self, f: Any, inputs: Sequence[Leaf], transformer: Transformer | None) -> None:
        what = user_call("function")
        lengths = None
        if hasattr(f, "asked") and hasattr(f, "placeholders") and not isinstance(f, Op):
            if transformer is not None and transformer is not f.transformer:
                raise ArgumentError(f"{what}: a computation has its own transformer; leave it out")
            transformer, lengths = f.transformer, f.request.lengths
            inputs, f = (*f.placeholders, *inputs), f.asked
        leaves, self.structure = flat(f, "results")
        self.transformer = make_transformer() if transformer is None else transformer
        for leaf in inputs:
            if not isinstance(leaf, Leaf):
                raise ArgumentError(
                    f"{what}: an input is {leaf!r}; give the placeholders, or variables, that the "
                    "function takes, one after another"
                )
        results = [_checked(name, op, what) for name, op in leaves]
        read = storage_leaves(*results)
        missing = [leaf for leaf in read if not leaf.info.stored and not among(leaf, inputs)]
        if missing:
            raise ArgumentError(
                f"{what}: the results need {missing[0]} (made at {missing[0].line_info}), which is "
                "no input; give it after the results"
            )
        self.variables = [leaf for leaf in read if leaf.info.stored and not among(leaf, inputs)]
        self.names = [leaf.name for leaf in inputs]
        every = (*inputs, *self.variables)
        stored = [leaf for leaf in every if leaf.info.stored]
        fed = {leaf: placeholder(leaf.axes, leaf.dtype, name=leaf.name) for leaf in stored}
        known: dict[Op, Tensor] = dict(fed.items())
        results = with_further(results, known, Axes(), "the function")
        given = [fed.get(leaf, leaf) for leaf in every]
        self.graph = GraphFunction(results, given, self.transformer, lengths)

    def arranged(self, values: Sequence[Any], named: Mapping[str, Any], kind: str) -> list[Any]:
        """Return the values of all inputs, given by position or by name, in order.

        ``kind`` is what the library calls them. Raises ``ArgumentError`` if they are not complete.
        """
        rest = self.names[len(values) :]
        if len(values) > len(self.names) or {*named} != {*rest}:
            names = ", ".join(name or "?" for name in self.names)
            said = f"{len(values)} by position"
            said += f" and {', '.join(named)} by name" if named else ""
            raise ArgumentError(
                f"{user_call('the function')} takes {len(self.names)} {kind} ({names}), not "
                f"{said}; give one for each"
            )
        return [*values, *[named[str(name)] for name in rest]]

    def dtype_error(self, leaf: Leaf, given: object, cure: str) -> DTypeError:
        """Return the error for an array of another dtype than that of an input."""
        return DTypeError(
            f"{leaf} (made at {leaf.line_info}) is {leaf.dtype.name} and was given an array of "
            f"{given}, to which its derivative would not fit; {cure}"
        )


def _checked(name: str, op: Any, what: str) -> Tensor:
    """Return a result without effects and random draws; raise ``ArgumentError`` for others."""
    if not isinstance(op, Tensor):
        shown = str(op) if isinstance(op, Op) else repr(op)
        raise ArgumentError(
            f"{what}: {name} is {shown}, no tensor; a differentiable function has no effects, so "
            "leave assignments to another computation"
        )
    below = post_order([op])
    bad = next((each for each in below if each.primitive.name in REFUSED or each.effectful), None)
    if bad is not None:
        raise ArgumentError(
            f"{what}: {name} contains {bad} (made at {bad.line_info}), "
            f"{REFUSED.get(bad.primitive.name, EFFECTS)}"
        )
    return cast(op, op.dtype)


EFFECTS = "which has effects; leave them to another computation"
REFUSED = {
    "random_bits": "a random draw, which the backward pass would draw anew; give the noise as an "
    "input",
}
