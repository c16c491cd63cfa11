"""Examples of every differentiable row that is not tested from its elementwise row alone.

``SAMPLES`` has them by row name; a row that is missing there fails the completeness test.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import geon
from geon.op_graph.rows.elementwise import copy
from geon.op_graph.rows.reductions import FIRST_MAX, reduce
from geon.op_graph.special.special_functions import erfcx_derivative

A, B, C, D = geon.Axis("A", 2), geon.Axis("B", 3), geon.Axis("C", 4), geon.Axis("D", 5)
A1, B5, Z = A.with_length(1), B.with_length(5), geon.Axis("Z", 0)


@dataclass(frozen=True)
class Sample:
    """A graph to differentiate: ``build`` of tensors over ``axes``, and where to.

    ``values`` gives the arrays (else they are normal), ``differences`` says whether central
    differences with this ``step`` are its derivative.
    """

    label: str
    axes: tuple
    build: Callable
    values: Callable | None = None
    differences: bool = True
    step: float = 1e-5

    def arrays(self, random):
        """The float64 arrays of its inputs."""
        if self.values is not None:
            return [np.asarray(v, np.float64) for v in self.values(random)]
        return [random.normal(size=[a.length for a in axes]) for axes in self.axes]


def sample(label, axes, build, **options):
    """A sample whose inputs have these lists of axes."""
    return Sample(label, tuple(tuple(a) for a in axes), build, **options)


def position(value):
    """A position known only at run time, as far as rules can tell."""
    return geon.constant(value, dtype="int64")


def index(values, axes):
    """An index tensor."""
    return geon.constant(np.array(values), axes=axes)


def _zeros_of_place(random, count):
    """Elements over D and values over C, of which ``count`` that meet at place 4 are 0."""
    x, v = random.normal(size=5), random.normal(size=4)
    x[4] = 0
    v[[0, 3][: count - 1]] = 0
    return x, v


def with_zeros(count):
    """Arrays over (A, C) of which ``count`` elements of one row are 0."""

    def values(random):
        x = random.uniform(0.5, 2, size=(2, 4))
        x[0, 1 : 1 + count] = 0
        return [x]

    return values


def _movement():
    xabc = [[A, B, C]]
    return {
        "broadcast": [
            sample("new first", [[B]], lambda x: geon.broadcast(x, [A, B])),
            sample("new between, reordered", [[A, B]], lambda x: geon.broadcast(x, [B, C, A])),
            sample("a scalar", [[]], lambda x: geon.broadcast(x, [A, B])),
            sample("expand", [[A]], lambda x: geon.expand(x, C, 1)),
            sample("length 0", [[A]], lambda x: geon.broadcast(x, [A, Z])),
        ],
        "reorder": [sample("rotated", xabc, lambda x: geon.reorder(x, [C, A, B]))],
        "rename": [
            sample("prime", [[B, A]], lambda x: geon.rename(x, {B: B.prime})),
            sample("cast_axes", [[A, B]], lambda x: geon.cast_axes(x, [A, geon.Axis("E", 3)])),
        ],
        "flip": [
            sample("one axis", [[A, B]], lambda x: geon.flip(x, B)),
            sample("two axes", xabc, lambda x: geon.flip(x, [C, A])),
        ],
        "flatten": [
            sample("all", [[A, B]], geon.flatten),
            sample("apart", xabc, lambda x: geon.flatten(x, [C, A])),
        ],
        "unflatten": [
            sample(
                "in two",
                [[C, B]],
                lambda x: geon.unflatten(x, C, [geon.Axis("P", 2), geon.Axis("Q", 2)]),
            )
        ],
        "concat": [
            sample("other order", [[A, B], [B5, A]], lambda x, y: geon.concat([x, y], B)),
            sample("the same twice", [[A]], lambda x: geon.concat([x, x], A)),
            sample("stack", [[A, B], [A, B]], lambda x, y: geon.stack([x, y], geon.Axis("S"), 1)),
        ],
        "pad": [
            sample(
                "constant",
                [[A, B], []],
                lambda x, fill: geon.pad(x, {B: (1, 2), A: (0, 1)}, value=fill),
            ),
            sample("edge", [[A, B]], lambda x: geon.pad(x, {B: (2, 1)}, mode="edge")),
            sample("reflect", [[A, B]], lambda x: geon.pad(x, {B: (2, 1)}, mode="reflect")),
            sample("reflect far", [[B]], lambda x: geon.pad(x, {B: (5, 6)}, mode="reflect")),
        ],
    }


def _parts():
    return {
        "slice": [
            sample("step", [[A, D]], lambda x: x[:, 1:5:2]),
            sample("negative step", [[A, D]], lambda x: x[::-1, 4:0:-2]),
            sample("a position", [[A, D]], lambda x: x[{D: -2}]),
            sample("dots", [[A, B, D]], lambda x: x[1, ..., 2:4]),
            sample("at run time", [[A, D]], lambda x: x[{D: position(3), A: position(-1)}]),
            sample("overlapping", [[D]], lambda x: x[1:4] * x[0:3]),
            sample("nothing", [[A, D]], lambda x: x[:, 2:2]),
        ],
        "update": [
            sample(
                "a range with a step",
                [[A, D], [B.with_length(2)]],
                lambda x, v: geon.update(x, geon.rename(v, {B: "D"}), {D: slice(0, 4, 2)}),
            ),
            sample(
                "backwards",
                [[D], [D.with_length(3)]],
                lambda x, v: geon.update(x, v, slice(4, 1, -1)),
            ),
            sample("at run time", [[A, D], [A]], lambda x, v: geon.update(x, v, {D: position(-2)})),
            sample("a position", [[A, D], [D]], lambda x, v: geon.update(x, v, 1)),
        ],
        "gather": [
            sample(
                "new axis",
                [[A, D]],
                lambda x: geon.gather(x, index([4, -1, 0, 4], [C]), D),
            ),
            sample(
                "shared axis",
                [[D, A]],
                lambda x: geon.gather(x, index([[4, 0, 4], [1, -2, 3]], [A, B]), D),
            ),
            sample(
                "the same axis",
                [[A, D]],
                lambda x: geon.take_along(x, index([[1, 1], [3, 0]], [A, D.with_length(2)]), D),
            ),
        ],
        "scatter": [
            sample(
                "add to one twice",
                [[A, D], [A, C]],
                lambda x, v: geon.scatter(x, index([4, -1, 0, 4], [C]), v, D, mode="add"),
            ),
            sample(
                "add, shared axis",
                [[D, A], [B, A]],
                lambda x, v: geon.scatter(
                    x, index([[4, 0, 4], [1, -2, 3]], [A, B]), v, D, mode="add"
                ),
            ),
            sample(
                "set one twice",
                [[A, D], [C]],
                lambda x, v: geon.scatter(x, index([4, -1, 0, 4], [C]), v, D),
            ),
            sample(
                "set, shared axis",
                [[D, A], [A, B]],
                lambda x, v: geon.scatter(x, index([[4, 0, 4], [1, -4, 1]], [A, B]), v, D),
            ),
            *(
                sample(
                    f"{mode}, shared axis",
                    [[D, A], [B, A]],
                    lambda x, v, m=mode: geon.scatter(
                        x, index([[4, 0, 4], [1, -2, 3]], [A, B]), v, D, mode=m
                    ),
                )
                for mode in ("max", "min", "multiply")
            ),
            *(
                sample(
                    f"multiply, {count} zeros at one place",
                    [[D], [C]],
                    lambda x, v: geon.scatter(x, index([4, 4, 0, 4], [C]), v, D, mode="multiply"),
                    values=lambda r, n=count: _zeros_of_place(r, n),
                )
                for count in (1, 2, 3)
            ),
        ],
    }


def _finite(x):
    """Zeros instead of infinities, of which there are no differences."""
    return geon.where(geon.isfinite(x), x, 0)


def _sums():
    running = {
        "": {},
        "exclusive": {"exclusive": True},
        "reverse": {"reverse": True},
        "both": {"exclusive": True, "reverse": True},
    }
    return {
        "sum": [
            sample("all", [[A, B]], geon.sum),
            sample("kept in another order", [[A, B, C]], lambda x: geon.sum(x, out_axes=[C, A])),
        ],
        "prod": [
            sample("no zero", [[A, C]], lambda x: geon.prod(x, C)),
            sample("one zero", [[A, C]], lambda x: geon.prod(x, C), values=with_zeros(1)),
            sample("two zeros", [[A, C]], lambda x: geon.prod(x, C), values=with_zeros(2)),
            sample("two axes", [[A, B, C]], lambda x: geon.prod(x, [A, C])),
            sample(
                "a name that is taken",
                [[A, B, geon.Axis("A_B", 2)]],
                lambda x: geon.prod(x, [A, B]),
            ),
        ],
        "max": [
            sample("one axis", [[A, C]], lambda x: geon.max(x, C)),
            sample("all", [[A, C]], geon.max),
            sample(
                "ties",
                [[A, B]],
                lambda x: geon.max(x, B),
                values=lambda _: [[[1, 3, 3], [2, 2, 2]]],
                differences=False,
            ),
        ],
        "first_max": [
            sample("one axis", [[A, C]], lambda x: reduce(FIRST_MAX, x, C)),
            sample("two axes", [[A, B, C]], lambda x: reduce(FIRST_MAX, x, [C, A])),
            sample(
                "ties",
                [[A, B]],
                lambda x: reduce(FIRST_MAX, x, B),
                values=lambda _: [[[1, 3, 3], [2, 2, 2]]],
                differences=False,
            ),
        ],
        "min": [
            sample("one axis", [[A, C]], lambda x: geon.min(x, A)),
            sample("two axes", [[A, B, C]], lambda x: geon.min(x, out_axes=B)),
        ],
        "cumsum": [
            sample(label, [[A, C]], lambda x, o=options: geon.cumsum(x, C, **o))
            for label, options in running.items()
        ],
        "cumprod": [
            sample(f"{label} {zeros} zeros", [[A, C]], build, values=with_zeros(zeros))
            for label, options in running.items()
            for build in [lambda x, o=options: geon.cumprod(x, C, **o)]
            for zeros in (0, 1, 2)
        ],
        **{
            name: [
                sample(label, [[A, D]], lambda x, r=run, o=options: _finite(r(x, D, **o)))
                for label, options in running.items()
            ]
            for name, run in (("cummax", geon.cummax), ("cummin", geon.cummin))
        },
        "sort": [
            sample("ascending", [[A, D]], lambda x: geon.sort(x, D)),
            sample("descending", [[D, A]], lambda x: geon.sort(x, D, descending=True)),
            sample("top_k", [[A, D]], lambda x: geon.top_k(x, 3, D)[0]),
            sample("smallest", [[D, A]], lambda x: geon.top_k(x, 3, D, largest=False)[0]),
        ],
        "dot": [
            sample("one axis", [[A, B], [B, C]], geon.dot),
            sample("two axes", [[A, B, C], [C, D, B]], geon.dot),
            sample("a batch axis", [[A, B, C], [C, A]], lambda x, y: geon.dot(x, y, over=C)),
            sample("with itself", [[A, B]], lambda x: geon.dot(x, x)),
            sample("with itself over one", [[A, B]], lambda x: geon.dot(x, x, over=B)),
            sample("a scalar", [[A, B], []], geon.dot),
            sample("three", [[A, B], [B, C], [C]], lambda *xs: geon.contract(xs, out_axes=A)),
        ],
    }


def _slope_rule(g, out, x, y):
    inner = g * (1 - out * out)
    return [inner * y, geon.sum(inner * x, A)]


@geon.custom_deriv(_slope_rule)
def product_tanh(x, y):
    """tanh(x * y) of x over (A, B) and y over (B,), with its own rule."""
    return geon.tanh(x * y)


def _others():
    positive = {"values": lambda random: [random.uniform(0.5, 3, size=(2, 3))]}
    turned = [[A, B], [A, B]]
    return {
        "as_complex": [sample("modulus", turned, lambda x, y: abs(geon.as_complex(x, y)))],
        "real": [sample("of a product", turned, lambda x, y: geon.real((x + 1j) * (x * y + 2j)))],
        "imag": [sample("of a power", turned, lambda x, y: geon.imag((x + y * 1j) ** 3))],
        "conj": [
            sample(
                "in a quotient",
                turned,
                lambda x, y: geon.imag(geon.conj(x + y * 1j) / (x * 1j + 3)),
            )
        ],
        # Rounding to float32 allows no small step; the cast is linear, so a large one is exact.
        "cast": [sample("to float32", [[A, B]], lambda x: geon.cast(x, "float32"), step=0.5)],
        "copy": [sample("of a product", [[A, B]], lambda x: copy(x * x))],
        "polygamma": [
            sample(f"order {n}", [[A, B]], lambda x, n=n: geon.polygamma(n, x), **positive)
            for n in range(3)
        ],
        "erfcx_derivative": [
            sample(f"order {n}", [[A, B]], lambda x, n=n: erfcx_derivative(n, x)) for n in (1, 2)
        ],
        "stop_gradient": [
            sample("one factor", [[A, B]], lambda x: x * geon.stop_gradient(x), differences=False)
        ],
        "bitcast": [
            sample(
                "one factor",
                [[A, B]],
                lambda x: x * geon.bitcast(geon.bitcast(x, "int64"), "float64"),
                differences=False,
            )
        ],
        "print": [sample("in between", [[A, B]], lambda x: geon.print(x * x) * x)],
        "custom": [sample("two inputs", [[A, B], [B]], product_tanh)],
        "remat": [
            sample("of a product", [[A, B], [B]], geon.checkpoint(lambda x, y: geon.tanh(x * y))),
            sample("of a draw", [[A, B]], lambda x: geon.remat(geon.exp(x * x), "nothing")),
        ],
        "segmented": [
            sample(
                "beginning of a loop",
                [[A, B], [B]],
                lambda x, y: geon.scan(
                    lambda c, each: (geon.tanh(c * each), None), y, x, over=A, segments=2
                )[0],
            )
        ],
    }


def _loops():
    def carried(x, y, **options):
        def step(carry, each):
            h = geon.tanh(carry["h"] * each + y)
            return {"h": h, "s": carry["s"] + geon.sum(h * h)}, (h, geon.sin(each))

        init = {"h": geon.broadcast(geon.cast(0.5, x.dtype), [B]), "s": geon.sum(y)}
        last, (h, s) = geon.scan(step, init, x, over=A, **options)
        return geon.sum(h * s) + last["s"] * geon.sum(last["h"])

    def nested(x, y):
        def step(carry, each):
            inner, seen = geon.scan(
                lambda c, v: (geon.sin(c * v + carry), c * carry), geon.sum(y), each, over=B
            )
            return inner + carry, geon.sum(seen)

        last, stacked = geon.scan(step, geon.max(y), x, over=A)
        return geon.sum(stacked) * last

    def branch(k):
        def build(x, y):
            return geon.case_of(
                k,
                [lambda: (geon.sin(x) * y, y), lambda: (x * x, geon.exp(y))],
                default=lambda: (x, geon.broadcast(geon.cast(1.0, x.dtype), [B])),
            )[0]

        return build

    def stays(x, y):
        def f(c):
            a, b = c
            return 0.3 * geon.sin(a) + geon.tanh(x) * y, geon.tanh(geon.mean(a, A)) * 0.4 + y

        a, b = geon.fixed_point(f, (geon.broadcast(geon.cast(0.0, x.dtype), [A, B]), y), 1e-9)
        return a * b

    def until(limit, largest=9.0):
        def build(x, y):
            def body(c):
                h, steps = c
                return geon.sin(h * y) + 0.1 * h, steps + 1

            last, _ = geon.while_loop(
                lambda c: (c[1] < 3) & (geon.sum(abs(c[0])) < largest), body, (x, 0), limit
            )
            return last

        return build

    axes = [[A, B], [B]]
    return {
        "while": [
            sample("all carries kept", axes, until(7)),
            sample("ended by its limit", axes, until(2)),
            sample("in segments", axes, until(None)),
            sample("no step", axes, until(None, -1.0)),
        ],
        "fixed_point": [
            sample("of two values", axes, stays),
            sample("of a scalar", [[]], lambda x: geon.fixed_point(
                lambda y: 0.3 * geon.sin(y) + x, 0 * x, 1e-9)),
        ],
        "converged": [
            sample("of a scalar", [[]], lambda x: geon.fixed_point(
                lambda y: 0.3 * geon.sin(y) + x, 0 * x, 1e-9)),
        ],
        "case": [sample(f"branch {k}", axes, branch(k)) for k in (0, 1, 5)],
        "scan": [
            sample("several carries", axes, carried),
            sample("backwards", axes, lambda x, y: carried(x, y, reverse=True)),
            sample("in a scan", axes, nested),
            sample("no carries", axes, lambda x, y: geon.scan(
                lambda c, each: (c, geon.sin(each) * y), (), x, over=A)[1]),
            sample("no stacks", [[B]], lambda y: geon.scan(
                lambda c, each: (geon.sin(c), None), y, over=A)[0]),
            sample("length 0", [[B]], lambda y: geon.scan(
                lambda c, each: (geon.sin(c), None), y, over=Z)[0]),
        ],
    }  # fmt: skip


SAMPLES = {**_movement(), **_parts(), **_sums(), **_others(), **_loops()}

# Rows that have no derivative: their results are no floats, or they are leaves or effects.
NOT_DIFFERENTIABLE = frozenset(
    "after all any argmax argmin argsort assign checked constant doall fourier_parts iota"
    " length lu lu_solve parameter placeholder random_bits region_result sequential top_k"
    " variable with_effect".split()
)
