"""``Calls``: records of a layer's inputs and results, for summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from weakref import ref

from ....op_graph.op_graph import Tensor


class Calls:
    """The calls of a layer whose results are still in use; holds weak references only."""

    def __init__(self) -> None:
        # Keyed by the id of the result, since tensors cannot be compared; removed with the result.
        self._made: dict[int, tuple[ref[Tensor], tuple[ref[Tensor], ...]]] = {}

    def add(self, given: Iterable[object], result: Tensor) -> None:
        """Record a result, and the tensors among the layer's arguments."""
        key, made = id(result), self._made
        inputs = tuple([ref(each) for each in tensors(given)])
        made[key] = ref(result, lambda _: made.pop(key, None) and None), inputs

    def __iter__(self) -> Iterator[tuple[Tensor, list[Tensor]]]:
        """Yield each result with its input tensors, in the order of the calls."""
        for result, given in list(self._made.values()):
            y = result()
            if y is not None:
                yield y, [x for x in (each() for each in given) if x is not None]


def tensors(values: Iterable[object]) -> Iterator[Tensor]:
    """Yield the tensors among arguments, including those in lists and tuples."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)
