"""``assert_agrees``: compare a transformer with the reference interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..op_graph.axes.axes import Axis
from ..op_graph.op_graph import Leaf, Op, Tensor
from ..transformers.base import Transformer
from ..transformers.binding.entry_values import at_entry
from ..transformers.computation import Computation
from ..transformers.reports.trace import op_title
from .comparison import assert_close
from .difference import first_difference
from .rounding import Expected


def assert_agrees(
    transformer: Transformer,
    results: Op | Iterable[Op],
    feeds: Mapping[Leaf, Any] | None = None,
    *,
    lengths: Mapping[Axis, int] | None = None,
    exact: bool = False,
    floor: float | None = None,
    plan: bool = True,
) -> Any:
    """Compute ``results``, and compare values and changed variables with the reference interpreter.

    ``feeds`` has the array of each placeholder, and of variables that are to be set first. Values
    may differ by rounding, including that of intermediate values (with a ``floor``, as by
    ``close``); with ``exact``, not in any bit. Returns what the computation returned. Raises
    ``AssertionError`` that names the op, and the first op at which the transformer and the
    interpreter differ; also if an input was written to, or a result is not the caller's own array.
    """
    listed = [results] if isinstance(results, Op) else list(results)
    fed = dict(feeds or {})
    inputs = {leaf: array for leaf, array in fed.items() if not leaf.info.stored}
    f = transformer.computation(listed, *inputs, lengths=lengths, plan=plan)
    for leaf, array in fed.items():
        if leaf.info.stored:
            transformer.set(leaf, array)
    arrays = list(inputs.values())
    known, sizes = at_entry(transformer, f.stages(), arrays)
    expected = Expected(f.pure.roots, known, sizes)
    before = [np.array(array) for array in arrays]
    found = f(*arrays)
    assert_own(f.results, found, arrays, before)
    pairs: list[tuple[Op, Op, Any]] = [
        (shown, pure, value)
        for shown, pure, value in zip(f.results, f.pure.outputs, found, strict=True)
        if isinstance(shown, Tensor) and pure is not None
    ]
    pairs += [(leaf, pure, transformer.get(leaf)) for leaf, pure in f.pure.updates.items()]
    for shown, pure, value in pairs:
        what = op_title(shown)
        try:
            assert value.dtype == shown.dtype, f"{what} came as {value.dtype}"
            wanted = expected.values[pure]
            strict = exact or floor is not None or value.shape != wanted.shape
            if strict or not expected.same(pure, value).all():
                assert_close(value, wanted, shown.dtype, floor=floor, exact=exact, what=what)
        except AssertionError as error:
            error.add_note(_explanation(transformer, f, known, arrays, exact))
            raise
    return found


def assert_own(
    results: Sequence[Op], values: Sequence[Any], inputs: Sequence[Any], before: Sequence[Any]
) -> None:
    """Raise if a result is not a writable array of the caller's own, or an input has changed."""
    for k, (array, copy) in enumerate(zip(inputs, before, strict=True)):
        assert np.asarray(array).tobytes() == copy.tobytes(), f"input number {k + 1} was written to"
    others = [array for array in inputs if isinstance(array, np.ndarray)]
    for op, value in zip(results, values, strict=True):
        if isinstance(op, Tensor):
            shared = any(np.may_share_memory(value, other) for other in others)
            assert value.flags.writeable and not shared, f"{op_title(op)} is not the caller's own"
            others.append(value)


def _explanation(
    transformer: Transformer,
    f: Computation,
    known: Mapping[Leaf, Any],
    arrays: list[Any],
    exact: bool,
) -> str:
    for leaf, array in known.items():
        if leaf.info.stored:
            transformer.set(leaf, array)
    found = first_difference(f, *arrays, exact=exact) if arrays else first_difference(f)
    return "no op differs where it is a result of its own" if found is None else str(found)
