"""Sample graphs of primitives that are not elementwise, by kind, with the dtypes each supports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import geon
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.core.primitive import PRIMITIVES, Primitive
from geon.op_graph.op_graph import Leaf, Tensor
from geon.op_graph.rows import reductions
from geon.op_graph.special.special_functions import erfcx_derivative
from geon.op_graph.values.attribute_types import SCATTER_MODES
from geon.op_graph.values.dtypes import DTYPES, FLOATS, as_dtype, kind

Array = np.ndarray[Any, Any]

A, B, C, D = geon.Axis("A", 2), geon.Axis("B", 3), geon.Axis("C", 4), geon.Axis("D", 5)
Z = geon.Axis("Z", 0)
NUMBERS = tuple(name for name in DTYPES if name != "bool")
ROWS = [row for row in PRIMITIVES.values() if isinstance(row, Elementwise)]
OPERAND_AXES = ((A, B), (B, C), (C, A))


@dataclass(frozen=True)
class Sample:
    """A graph of one primitive: ``build`` of tensors over ``axes``, for each of ``dtypes``."""

    row: str
    label: str
    axes: tuple[tuple[geon.Axis, ...], ...]
    build: Callable[..., Any]
    dtypes: tuple[str, ...] = DTYPES
    exact: bool = False

    def __str__(self) -> str:
        return f"{self.row}, {self.label}"

    def results(self, dtype: str, seed: int = 0) -> tuple[list[Tensor], dict[Leaf, Array]]:
        """Return the results for inputs of this dtype, and the array of each input."""
        random = np.random.default_rng(seed)
        xs = [geon.placeholder(axes, dtype) for axes in self.axes]
        built = self.build(*xs)
        results: list[Tensor] = list(built) if isinstance(built, (list, tuple)) else [built]
        return results, {x: values(random, dtype, x) for x in xs}


def shape_of(axes: Iterable[geon.Axis]) -> tuple[int, ...]:
    """Return the shape of axes whose lengths are integers."""
    return tuple(axis.length for axis in axes if isinstance(axis.length, int))


def values(random: np.random.Generator, dtype: str, like: Leaf) -> Array:
    """Return small random numbers over the axes of a leaf, of both signs if the dtype has them."""
    shape = shape_of(like.axes)
    if kind(as_dtype(dtype)) == "c":
        both = random.normal(size=(2, *shape))
        return np.asarray(both[0] + 1j * both[1]).astype(dtype)
    if kind(as_dtype(dtype)) == "f":
        return random.normal(size=shape).astype(as_dtype(dtype))
    low, high = (0, 2) if dtype == "bool" else (0 if dtype.startswith("u") else -4, 5)
    return random.integers(low, high, size=shape).astype(dtype)


def sample(
    row: str,
    label: str,
    axes: Sequence[Sequence[geon.Axis]],
    build: Callable[..., Any],
    **more: Any,
) -> Sample:
    """Return a sample whose inputs are over these lists of axes."""
    return Sample(row, label, tuple(tuple(a) for a in axes), build, **more)


def position(value: int) -> Tensor:
    """Return an index that is known only at run time."""
    return geon.sum(geon.constant([value, 0], axes=[A], dtype="int64"))


def index(numbers: Any, axes: Sequence[geon.Axis]) -> Tensor:
    """Return an index tensor."""
    return geon.constant(np.array(numbers), axes=list(axes))


def _reductions() -> list[Sample]:
    found = []
    rows = [row for row in PRIMITIVES.values() if row.kind == "reduction"]
    for row in rows:
        name, reduce = row.name, partial(reductions.reduce, row)
        more = {"dtypes": _taken(row)}
        found += [
            sample(name, "over all", [[A, B]], reduce, **more),
            sample(name, "over the first", [[A, C]], lambda x, r=reduce: r(x, A), **more),
            sample(name, "over the last", [[A, C]], lambda x, r=reduce: r(x, C), **more),
            sample(name, "kept", [[A, B, C]], lambda x, r=reduce: r(x, out_axes=[C, A]), **more),
            sample(
                name,
                "of a transpose",
                [[A, B, C]],
                lambda x, r=reduce: r(geon.reorder(x, [C, A, B]), [C, B]),
                **more,
            ),
            sample(name, "of every second", [[A, D]], lambda x, r=reduce: r(x[:, ::2], D), **more),
        ]
    for row in rows:
        if row.reducer is None or row.reducer.empty:
            reduce = partial(reductions.reduce, row)
            label, axes = "over nothing", [[A, Z]]
            found.append(sample(row.name, label, axes, lambda x, r=reduce: r(x, Z)))
    return found


def _taken(row: Primitive) -> tuple[str, ...]:
    """Return the dtypes that a reduction supports."""
    found = []
    for dtype in DTYPES:
        with suppress(geon.DTypeError):
            reductions.reduce(row, geon.placeholder([A], dtype))
            found.append(dtype)
    return tuple(found)


def _own(kind: str, **more: Any) -> list[Sample]:
    """Return the samples that primitives of a kind define."""
    return [
        sample(row.name, *own, exact=kind in ("movement", "indexing"), **more)
        for row in PRIMITIVES.values()
        if row.kind == kind and row.samples is not None
        for own in row.samples()
    ]


def _ordered() -> list[Sample]:
    ways = {
        "forwards": {},
        "exclusive": {"exclusive": True},
        "backwards": {"reverse": True},
        "both": {"exclusive": True, "reverse": True},
    }
    found = []
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        run: Any = getattr(geon, name)
        more = {"exact": name in ("cummax", "cummin")}
        for label, options in ways.items():
            build = lambda x, r=run, o=options: r(x, C, **o)  # noqa: E731
            found.append(sample(name, label, [[A, C, B]], build, **more))
        found.append(sample(name, "of nothing", [[A, Z]], lambda x, r=run: r(x, Z), **more))
    exact = {"exact": True}
    return [  # fmt: skip
        *found,
        sample("sort", "inner", [[A, D]], lambda x: geon.sort(x, D), **exact),
        sample("sort", "outer", [[D, A]], lambda x: geon.sort(x, D), **exact),
        sample("argsort", "ties", [[D, A]], lambda x: geon.argsort(x, D), **exact),
        sample("top_k", "two", [[D, A]], lambda x: geon.top_k(x, 2, D), **exact),
        sample("top_k", "all", [[A, D]], lambda x: geon.top_k(x, 5, D), **exact),
        sample(
            "top_k", "smallest", [[A, D]], lambda x: geon.top_k(x, 3, D, largest=False), **exact
        ),
    ]


def _contraction() -> list[Sample]:
    h = geon.Axis("H", 3)
    return [
        sample("dot", "matrix and vector", [[A, B], [B]], geon.dot),
        sample("dot", "vector and matrix", [[B], [A, B]], geon.dot),
        sample("dot", "two vectors", [[B], [B]], geon.dot),
        sample("dot", "two matrices", [[A, B], [B, C]], geon.dot),
        sample("dot", "transposed operands", [[B, A], [C, B]], geon.dot),
        sample("dot", "over two axes", [[A, B, C], [C, D, B]], geon.dot),
        sample("dot", "apart in memory", [[B, A, C], [C, D, B]], geon.dot),
        sample("dot", "a batch axis", [[A, B, C], [C, A]], lambda x, y: geon.dot(x, y, over=C)),
        sample("dot", "only batch axes", [[A, B], [B, A]], lambda x, y: geon.dot(x, y, over=[])),
        sample("dot", "with a scalar", [[A, B], []], geon.dot),
        sample("dot", "outer", [[A], [B]], lambda x, y: geon.outer(geon.multiply, x, y)),
        sample("dot", "with itself", [[A, B]], lambda x: geon.dot(x, x)),
        sample("dot", "with itself over one", [[A, B]], lambda x: geon.dot(x, x, over=B)),
        sample(
            "dot",
            "a square weight",
            [[h, h.prime], [h, C]],
            lambda w, x: geon.dot(geon.rename(w, {h: h.prime, h.prime: h}), x),
        ),
        sample("dot", "over nothing", [[A, Z], [Z, B]], geon.dot),
        sample(
            "dot", "strided operands", [[A, D], [D, C]], lambda x, y: geon.dot(x[:, ::2], y[::2])
        ),
        sample("dot", "three", [[A, B], [B, C], [C]], lambda *xs: geon.contract(xs, out_axes=A)),
    ]


def _movement() -> list[Sample]:
    xabc = [[A, B, C]]
    two = [geon.Axis("P", 2), geon.Axis("Q", 2)]
    found: list[tuple[str, str, Any, Callable[..., Any]]] = [
        ("broadcast", "new first", [[B]], lambda x: geon.broadcast(x, [A, B])),
        ("broadcast", "between", [[A, B]], lambda x: geon.broadcast(x, [B, C, A])),
        ("broadcast", "a scalar", [[]], lambda x: geon.broadcast(x, [A, B])),
        ("broadcast", "to nothing", [[A]], lambda x: geon.broadcast(x, [A, Z])),
        ("reorder", "rotated", xabc, lambda x: geon.reorder(x, [C, A, B])),
        ("rename", "prime", [[B, A]], lambda x: geon.rename(x, {B: B.prime})),
        ("flip", "one axis", [[A, B]], lambda x: geon.flip(x, B)),
        ("flip", "two axes", xabc, lambda x: geon.flip(x, [C, A])),
        ("flatten", "all", [[A, B]], geon.flatten),
        ("flatten", "apart", xabc, lambda x: geon.flatten(x, [C, A])),
        ("unflatten", "in two", [[C, B]], lambda x: geon.unflatten(x, C, two)),
        (
            "concat",
            "in another order",
            [[A, B], [B.with_length(5), A]],
            lambda x, y: geon.concat([x, y], B),
        ),
        ("concat", "the same twice", [[A]], lambda x: geon.concat([x, x], A)),
        ("concat", "with nothing", [[A], [A.with_length(0)]], lambda x, y: geon.concat([x, y], A)),
        (
            "concat",
            "stack",
            [[A, B], [A, B]],
            lambda x, y: geon.stack([x, y], geon.Axis("S"), 1),
        ),
        ("pad", "constant", [[A, B], []], lambda x, v: geon.pad(x, {B: (1, 2), A: 1}, value=v)),
        ("pad", "edge", [[A, B]], lambda x: geon.pad(x, {B: (2, 1)}, mode="edge")),
        ("pad", "reflect", [[B]], lambda x: geon.pad(x, {B: (5, 6)}, mode="reflect")),
        ("slice", "with a step", [[A, D]], lambda x: x[:, 1:5:2]),
        ("slice", "backwards", [[A, D]], lambda x: x[::-1, 4:0:-2]),
        ("slice", "a position", [[A, D]], lambda x: x[{D: -2}]),
        ("slice", "dots", [[A, B, D]], lambda x: x[1, ..., 2:4]),
        ("slice", "at run time", [[A, D]], lambda x: x[{D: position(3), A: position(-1)}]),
        ("slice", "nothing", [[A, D]], lambda x: x[:, 2:2]),
        (
            "update",
            "with a step",
            [[A, D], [D.with_length(2)]],
            lambda x, v: geon.update(x, v, {D: slice(0, 4, 2)}),
        ),
        (
            "update",
            "backwards",
            [[D], [D.with_length(3)]],
            lambda x, v: geon.update(x, v, slice(4, 1, -1)),
        ),
        ("update", "at run time", [[A, D], [A]],
         lambda x, v: geon.update(x, v, {D: position(-2)})),
        ("update", "a position", [[A, D], [D]], lambda x, v: geon.update(x, v, 1)),
    ]  # fmt: skip
    return [sample(row, label, axes, build, exact=True) for row, label, axes, build in found]


def _indexing() -> list[Sample]:
    picks, table = [4, -1, 0, 4], [[4, 0, 4], [1, -2, 3]]
    gathers = [
        ("new axis", [[A, D]], lambda x: geon.gather(x, index(picks, [C]), D)),
        ("shared axis", [[D, A]], lambda x: geon.gather(x, index(table, [A, B]), D)),
        ("the same axis", [[A, D]],
         lambda x: geon.take_along(x, index([[1, 1], [3, 0]], [A, D.with_length(2)]), D)),
        ("two shared axes", [[A, D, B, C]],
         lambda x: geon.gather(x, index([[0, 1, -1], [4, 3, 2]], [A, B]), D)),
        ("nothing", [[A, D]],
         lambda x: geon.gather(x, geon.constant(np.zeros(0, np.int64), axes=[Z]), D)),
    ]  # fmt: skip
    scatters = [
        ("one place twice", [[A, D], [A, C]],
         lambda x, v, m: geon.scatter(x, index(picks, [C]), v, D, mode=m)),
        ("shared axis", [[D, A], [B, A]],
         lambda x, v, m: geon.scatter(x, index(table, [A, B]), v, D, mode=m)),
        ("one value", [[A, D], []],
         lambda x, v, m: geon.scatter(x, index(picks, [C]), v, D, mode=m)),
    ]  # fmt: skip
    combining = [
        ("of equal elements and zeros", lambda x, v, m: _scattered_ties(x, v, m)),
        ("derivatives", lambda x, v, m: geon.deriv(
            geon.sum(geon.square(_scattered_ties(x, v, m))), [x, v])),
    ]  # fmt: skip
    return [
        *(sample("gather", label, axes, build, exact=True) for label, axes, build in gathers),
        *(
            sample(
                "scatter",
                f"{mode} {label}",
                axes,
                lambda x, v, b=build, m=mode: b(x, v, m),
                exact=mode in ("set", "max", "min"),
                dtypes=NUMBERS if mode in ("add", "multiply") else DTYPES,
            )
            for label, axes, build in scatters
            for mode in SCATTER_MODES
        ),
        *(
            sample(
                "scatter",
                f"{mode} {label}",
                [[A, D], [A, C]],
                lambda x, v, b=build, m=mode: b(x, v, m),
                dtypes=FLOATS,
            )
            for label, build in combining
            for mode in SCATTER_MODES
        ),
    ]


def _scattered_ties(x: Tensor, value: Tensor, mode: str) -> Tensor:
    """Return a scatter with ties and zeros, at values that its derivative depends on."""
    flat = [y - geon.stop_gradient(y) for y in (x, value)]
    x = geon.where(geon.equal(geon.iota(D), 1), x, flat[0])
    value = geon.where(geon.equal(geon.iota(C), 2), value, flat[1])
    return geon.scatter(x, index([4, -1, 0, 4], [C]), value, D, mode=mode)


def _recomputed(x: Tensor) -> Tensor:
    """Return a derivative that recomputes part of a function."""
    inner = geon.checkpoint(lambda y: geon.tanh(y * geon.tanh(y)))
    return geon.deriv(geon.sum(geon.square(geon.tanh(inner(x)))), x)


def _in_segments(x: Tensor, y: Tensor) -> Tensor:
    """Return a derivative of a loop that recomputes its steps, segment by segment."""
    last, _ = geon.scan(lambda c, each: (geon.tanh(c * each), None), y, x, over=A, segments=2)
    return geon.deriv(geon.sum(geon.square(last)), y)


def _others() -> list[Sample]:
    floats = {"dtypes": FLOATS}
    return [
        sample("stop_gradient", "of a float", [[A, B]], geon.stop_gradient, **floats),
        sample(
            "polygamma",
            "three orders",
            [[A, B]],
            lambda x: [geon.polygamma(n, abs(x) + 1) for n in range(3)],
            dtypes=("float32", "float64"),
        ),
        sample(
            "erfcx_derivative",
            "three orders",
            [[A, B]],
            lambda x: [erfcx_derivative(n, x) for n in (1, 2, 3)],
            dtypes=("float32", "float64"),
        ),
        sample("remat", "under a derivative", [[A, B]], _recomputed, dtypes=("float32", "float64")),
        sample("segmented", "under a derivative", [[A, B], [B]], _in_segments,
               dtypes=("float32", "float64")),
        sample("iota", "along an axis", [[A]], lambda x: x + geon.cast(geon.iota(A), x.dtype),
               dtypes=NUMBERS),
        sample("constant", "large", [[A]],
               lambda x: x + geon.sum(geon.constant(np.arange(400.0), axes=[geon.Axis("K")])),
               dtypes=("float32", "float64")),
    ]  # fmt: skip


SAMPLES: dict[str, list[Sample]] = {
    "reduction": [*_reductions(), *_own("reduction")],
    "ordered": [*_ordered(), *_own("ordered")],
    "contraction": [*_contraction(), *_own("contraction")],
    "matrix": _own("matrix", dtypes=("float32", "float64")),
    "movement": [*_movement(), *_own("movement")],
    "indexing": [*_indexing(), *_own("indexing")],
    "other": _others(),
}
