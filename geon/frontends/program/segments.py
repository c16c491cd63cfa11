"""Runs of a program in parts: segments at several places, or one operator at a time."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import geon

from ...errors import NonFiniteError
from ...op_graph.axes.lengths import names_of
from ...op_graph.core.traversal import deep_order
from ...op_graph.regions.captured_views import replace_everywhere
from .program import Operator, Program
from .storage import Place
from .values import parts

if TYPE_CHECKING:
    from .executor import Lowered

Array = np.ndarray[Any, Any]
_places: weakref.WeakKeyDictionary[Operator, Place] = weakref.WeakKeyDictionary()


@contextmanager
def place_guard(program: Program, place: Place) -> Iterator[None]:
    """Context in which operators that are added to the global block are assigned to a place.

    An executor runs them there, and the others at its own place.
    """
    ops = program.global_block().ops
    begin = len(ops)
    yield
    _places.update(dict.fromkeys(ops[begin:], place))


def place_of(op: Operator) -> Place | None:
    """Return the place that an operator was assigned to."""
    return _places.get(op)


@dataclass(eq=False)
class Segment:
    """Consecutive operators at one place, with the ids of the values that they read and write.

    ``lengths`` are the numbers of data that are given for their open lengths alone. ``call`` maps
    the arrays of the values read, and of these data, to those of the values written.
    """

    ops: list[Operator]
    place: Place
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    call: Callable[..., Any] | None = None


class SegmentedRun:
    """A program as computations of its segments, with arrays on the host between them.

    With ``interpret`` each operator is a segment, whose results are printed and checked.
    """

    def __init__(self, lowered: Lowered, place: Place, plan: bool, interpret: bool) -> None:
        self.lowered, self.plan, self.interpret = lowered, plan, interpret
        self.segments: list[Segment] = []
        for op in lowered.ops:
            own = _places.get(op, place)
            if interpret or not self.segments or self.segments[-1].place != own:
                self.segments.append(Segment([], own))
            self.segments[-1].ops.append(op)
        wanted = {*lowered.fetched, *lowered.assigned.values()}
        for segment in reversed(self.segments):
            made = {k for op in segment.ops for k in op.writes if k in lowered.values}
            read = {k for op in segment.ops for k in op.reads if k in lowered.values}
            segment.writes = sorted(made if interpret else made & wanted)
            segment.reads = sorted(read - made)
            wanted.update(segment.reads)

    def __call__(self, arrays: Sequence[Any], show: Iterable[str] | bool = ()) -> list[Any]:
        """Return the fetched arrays for those of the placeholders."""
        from .executor import fetched_array

        lowered = self.lowered
        held = dict(self._sources(arrays))
        calls = arrays[len(lowered.feeds) :]
        for segment in self.segments:
            if segment.call is None:
                segment.call = self._compiled(segment)
            given = [array for k in segment.reads for array in held[k]]
            given += [arrays[k] for k in segment.lengths]
            results = iter(segment.call(*given, *calls))
            for k in segment.writes:
                held[k] = [np.asarray(next(results)) for _ in parts(lowered.values[k])]
            if self.interpret:
                self._inspect(segment, held, show)
        for name, k in lowered.assigned.items():
            lowered.kept[name][1].set(self._full(k, held)[0])
        return [fetched_array(lowered.values[k], self._full(k, held)) for k in lowered.fetched]

    def _sources(self, arrays: Sequence[Any]) -> Iterator[tuple[int, list[Array]]]:
        """Yield data and persistable variables as arrays of their parts, without lengths of 1."""
        lowered = self.lowered
        fed = dict(zip(lowered.feeds, arrays, strict=False))
        for name, k in lowered.program.global_block().parameters.items():
            if k in lowered.values:
                value = fed[name] if name in fed else lowered.kept[name][1].get()
                whole = np.asarray(value, lowered.values[k].dtype)
                shape = lowered.values[k].shape
                pairs = zip(whole.shape, shape, strict=True)
                yield k, [whole.reshape([n for n, length in pairs if length != 1])]

    def _compiled(self, segment: Segment) -> Callable[..., Any]:
        """Return the computation of a segment, whose inputs are the values that it reads."""
        lowered = self.lowered
        known: dict[geon.Tensor, geon.Tensor] = {}
        inputs = []
        for k in segment.reads:
            for part in parts(lowered.values[k]):
                inputs.append(geon.placeholder(part.tensor.axes, part.dtype))
                known[part.tensor] = inputs[-1]
        outputs = [part.tensor for k in segment.writes for part in parts(lowered.values[k])]
        calls = [] if lowered.calls is None else [lowered.calls]
        transformer = lowered.home.transformer(segment.place)
        found: list[Any] = replace_everywhere(outputs, known)  # in bodies, too
        segment.lengths = self._witnesses(found, inputs)
        data = list(lowered.feeds.values())
        inputs += [data[k] for k in segment.lengths]
        return transformer.computation(found, *inputs, *calls, plan=self.plan)

    def _witnesses(self, outputs: Sequence[geon.Tensor], inputs: Sequence[geon.Op]) -> list[int]:
        """Return the numbers of data that have open lengths which outputs have and no input has."""
        lengths: list[Any] = []
        for op in deep_order(outputs):
            lengths += op.axes.lengths
            lengths += op.attrs if op.primitive.name == "length" else ()
            lengths += [side for guard in op.guards for side in (guard.left, guard.right)]
        missing = {name for length in lengths for name in names_of(length)}
        missing -= {axis.open_name for leaf in inputs for axis in leaf.axes}
        found = []
        for k, leaf in enumerate(self.lowered.feeds.values()):
            own = missing & {axis.open_name for axis in leaf.axes}
            if own:
                found.append(k)
                missing -= own
        return found

    def _full(self, number: int, held: dict[int, list[Array]]) -> list[Array]:
        """Return the arrays of the parts of a value with their lengths of 1."""
        found = []
        for part, array in zip(parts(self.lowered.values[number]), held[number], strict=True):
            index = tuple([np.newaxis if n == 1 else slice(None) for n in part.shape])
            found.append(array[index])
        return found

    def _inspect(
        self, segment: Segment, held: dict[int, list[Array]], show: Iterable[str] | bool
    ) -> None:
        """Print the values that an operator wrote; raise ``NonFiniteError`` for a NaN."""
        (op,) = segment.ops
        for k in segment.writes:
            name = self.lowered.program.values[k].name
            arrays = self._full(k, held)
            if show is True or (show and name in show):
                print(f"{name} of {op} = {arrays[0]}")
            for array in arrays:
                if array.dtype.kind == "f" and np.isnan(array).any():
                    index = tuple(int(n) for n in np.argwhere(np.isnan(array))[0])
                    raise NonFiniteError(
                        f"{op}: its output {name!r} has a NaN, first at {index}; look at its "
                        "inputs with show="
                    )
