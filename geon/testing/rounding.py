"""Stochastic arithmetic: estimates of how far rounding moves the values of a graph.

A graph is computed a few times with each value moved by a random part of its dtype's tolerance
(Vignes 1978, Parker 1997). So the error of a float32 value is propagated to float64 results, and
that of large terms to sums in which they cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import GeonError
from ..op_graph.evaluation.interpreter import COMPUTING, BoundOp, Evaluate, evaluate, interpret
from ..op_graph.op_graph import Op
from ..op_graph.values.dtypes import kind, name_of
from .comparison import TOLERANCES, close, widest

Array = np.ndarray[Any, Any]
PERTURBED_RUNS = (
    8  # the largest move of these counts; all are below a quarter with probability 1/65,000
)
MAX_SPREAD_RATIO = 2.0  # allowed difference, as a multiple of that move
WHOLE = {"float64": 2.0**53, "float32": 2.0**24, "float16": 2.0**11, "bfloat16": 2.0**8}
WHOLE |= {"complex128": WHOLE["float64"], "complex64": WHOLE["float32"]}


def spreads(
    roots: Sequence[Op], known: Mapping[Any, Array], lengths: Mapping[str, int]
) -> list[Array]:
    """Return how far each element of the pure ``roots`` moves; 0 if computing them raises."""
    random = np.random.default_rng(0)
    plain = interpret(roots, known, lengths)
    found = [np.zeros(plain[root].shape) for root in roots]
    for _ in range(PERTURBED_RUNS):
        try:
            moved = interpret(roots, known, lengths, None, otherwise(random))
        except GeonError:  # an index that was moved out of range
            continue
        for k, root in enumerate(roots):
            with np.errstate(all="ignore"):
                move = np.abs(widest(moved[root]) - widest(plain[root]))
            found[k] = np.fmax(found[k], np.where(np.isfinite(move), move, 0))
    return found


class Expected:
    """Reference values of pure ``roots``, and comparison up to rounding.

    ``known`` has the arrays of leaves, ``lengths`` the integers of open names.
    """

    def __init__(
        self, roots: Sequence[Op], known: Mapping[Any, Array], lengths: Mapping[str, int]
    ) -> None:
        self.roots, self.known, self.lengths = roots, known, lengths
        self.values = interpret(roots, known, lengths)

    @cached_property
    def spreads(self) -> dict[Op, Array]:
        """Return how far the value of each root moves."""
        found = spreads(self.roots, self.known, self.lengths)
        return dict(zip(self.roots, found, strict=True))

    def same(self, root: Op, value: Any) -> Array:
        """Return for each element whether ``value`` equals that of a root up to rounding."""
        fine = close(value, self.values[root])
        return (
            fine if fine.all() else fine | explained(value, self.values[root], self.spreads[root])
        )


def explained(actual: Any, expected: Any, spread: Array) -> Array:
    """Return for each element whether it differs by at most ``MAX_SPREAD_RATIO`` times its
    ``spread``.
    """
    with np.errstate(all="ignore"):
        left, right = widest(actual), widest(expected)
        return np.asarray(np.abs(left - right) <= MAX_SPREAD_RATIO * spread)


def otherwise(random: np.random.Generator) -> Evaluate:
    """Return an evaluator of ops that adds random rounding errors.

    Computed values are moved, and for sums each term: the error of a sum is relative to these.
    """

    def value_of(op: Op, bound: BoundOp, args: list[Array]) -> Array:
        if adds(op):
            args = [moved(random, a, arg) for a, arg in zip(args, op.args, strict=True)]
        value = evaluate(op, bound, args)
        rounds = op.primitive.kind in COMPUTING and not op.primitive.is_selection
        return moved(random, value, op) if rounds else value

    return value_of


def adds(op: Op) -> bool:
    """Return True if elements of the op are sums of elements of its arguments."""
    row = op.primitive
    if row.kind == "elementwise":
        partials = row.partials or ()
        return len(partials) > 1 and all(isinstance(each, (int, float)) for each in partials)
    return row.transpose is not None and row.index_map is None


def moved(random: np.random.Generator, value: Array, op: Op) -> Array:
    """Return a value with a random error for its dtype; exact whole numbers stay."""
    name = name_of(op.dtype)
    if kind(op.dtype) == "c":
        parts = (_moved(random, part, name) for part in (value.real, value.imag))
        return np.asarray(next(parts) + 1j * next(parts)).astype(op.dtype)
    return _moved(random, value, name).astype(op.dtype) if kind(op.dtype) == "f" else value


def _moved(random: np.random.Generator, value: Array, name: str) -> Array:
    """Return real numbers in float64 with random errors of a dtype."""
    with np.errstate(all="ignore"):
        wide = value.astype(np.float64)
        exact = (wide == np.rint(wide)) & (np.abs(wide) <= WHOLE[name])
        error = TOLERANCES[name] * random.uniform(-1, 1, wide.shape)
        return np.asarray(np.where(exact, wide, wide * (1 + error)))
