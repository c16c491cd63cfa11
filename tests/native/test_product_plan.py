"""Plans of products of known lengths: they are those that the driver chooses for open ones."""

import ctypes
import dataclasses
import random
import re

import numpy as np
import pytest

import geon
from geon.transformers.kernels.costs.kernel_costs import cost_of
from geon.transformers.kernels.products.contraction import Contraction
from geon.transformers.kernels.products.row_blocking import Blocked, whole_sizes
from geon.transformers.lowering.planning.cost_report import parts_of
from geon.transformers.native.emit.compiler import record_of
from geon.transformers.native.emit.form_table import for_vectors
from geon.transformers.native.emit.module_text import make_module
from geon.transformers.native.emit.scratch import product_scratch
from geon.transformers.native.products.product_text import product_units
from geon.transformers.native.products.size_functions import size_functions
from geon.transformers.native.runtime.bound_program import NativeProgram
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.toolchain.shared_objects import shared_object
from geon.transformers.sizes.product_blocks import (
    MAX_DIRECT_ROWS,
    ROWS_PER_GROUP,
    Shape,
    half_vector_shape,
    shape,
)
from geon.transformers.sizes.product_cut import (
    BY_DOTS,
    BY_STREAM,
    BY_TILES,
    ProductCut,
    cut_product,
)
from geon.transformers.sizes.product_plan import WAYS, plan_product
from geon.transformers.sizes.product_problem import PlannedProduct, SizeProblem

from ..golden.emitting import Native
from .test_product import Case, compile_module, module_units

needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
CHOSEN = """
void cut(const struct geon_size_problem *, struct geon_product_cut *);
void cut(const struct geon_size_problem *sizes, struct geon_product_cut *found)
{
    *found = geon_cut_product(sizes);
}
static void geon_no_pack(const void *a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f,
                         TYPE *g, int64_t h, TYPE *i)
{
    (void)a; (void)b; (void)c; (void)d; (void)e; (void)f; (void)g; (void)h; (void)i;
}
static void geon_set(geon_operand *operand, int adjacent)
{
    operand->line = adjacent == 1 ? 1 : 1000;
    operand->summed = adjacent == 1 ? 1000 : 1;
    operand->pack = operand->pack_lines = adjacent < 0 ? geon_no_pack : NULL;
}
int chosen(int64_t, int64_t, int64_t, int, int, int);
int chosen(int64_t rows, int64_t columns, int64_t depth, int left, int right, int plain)
{
    TYPE result;
    geon_product product = {.batches = 1, .rows = rows, .columns = columns, .depth = depth};
    product.result = plain ? &result : NULL;
    geon_set(&product.left, left);
    geon_set(&product.right, right);
    const geon_product planned = geon_planned(&product);
    return planned.way * 2 + planned.exchanged;
}
"""


def any_product(type):
    return Case("mk,kn->mn", {"m": 9, "k": 9, "n": 99}, type=type).product("product")


def sized(draw, vector):
    """A length around one at which the driver chooses another way."""
    around = (1, vector, 3 * vector, 8 * vector, 16 * vector, 25, ROWS_PER_GROUP, 400)
    return max(1, draw.choice((*around, *MAX_DIRECT_ROWS.values())) + draw.randrange(-2, 3))


@needs_compiler
@pytest.mark.parametrize("type", ["float", "double"])
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_the_driver_chooses_the_same(type, vector_bytes, tmp_path):
    of = shape(type, vector_bytes)
    own, driver, *others = module_units([any_product(type)], vector_bytes)
    assert driver == product_units(of)[0]
    library = compile_module([own, driver + CHOSEN, *others], tmp_path)
    arguments = [ctypes.c_int64] * 3 + [ctypes.c_int] * 3
    library.chosen.argtypes = arguments
    draw, seen = random.Random(7), set()
    for _ in range(4000):
        rows, columns, depth = (sized(draw, of.vector) for _ in range(3))
        left, right = (draw.choice((True, False, None)) for _ in range(2))
        plain = draw.random() < 0.7
        plan = plan_product(rows, columns, depth, of, left, right, plain)
        numbers = [-1 if side is None else int(side) for side in (left, right)]
        way, turned = divmod(library.chosen(rows, columns, depth, *numbers, plain), 2)
        assert (WAYS[way - 1], turned) == (plan.way, plan.exchanged), (
            rows,
            columns,
            depth,
            numbers,
        )
        seen.add(plan)
    assert len(seen) == 6  # each way, and those of few rows exchanged too


def any_problem(draw):
    """Sizes of a product around those at which blocks change, and what it reads in which way."""

    def length():
        near = draw.choice((1, 4, 8, 12, 16, 48, 64, 96, 256, 384, 480, 1024, 8192, 20_000))
        return max(1, near + draw.randrange(-3, 4) if draw.random() < 0.8 else draw.randrange(5000))

    batches, rows, columns, depth = draw.choice((1, 1, 2, 3, 16)), length(), length(), length()
    direct = draw.choice((BY_TILES, BY_TILES, BY_STREAM, BY_DOTS))
    tiles, alone = direct == BY_TILES, draw.random() < 0.8
    keeps = tiles and draw.random() < 0.3
    band_rows = draw.choice((0, 48, 192)) * tiles
    return SizeProblem(
        batches, rows, columns, columns, depth, *(draw.choice((1, 1, 2)) * batches, rows, columns),
        direct=direct,
        thin=direct == BY_DOTS and max(rows, columns) <= ROWS_PER_GROUP,
        alone=alone,
        keeps=keeps,
        near_step=draw.choice((0, 1, 17, columns)),
        placed=tiles and alone and not keeps and draw.random() < 0.2,
        places_size=draw.choice((0, 5000)),
        band_rows=band_rows,
        band_size=draw.choice((0, 3000)),
        packs=draw.random() < 0.5,
        left_staged=48,
        right_staged=32,
        threads=draw.choice((1, 2, 3, 4, 8, 64)),
    )  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("type", ["float", "double"])
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_the_driver_divides_in_the_same_way(type, vector_bytes, tmp_path):
    of = shape(type, vector_bytes)
    own, driver, *others = module_units([any_product(type)], vector_bytes)
    library = compile_module([own, driver + CHOSEN, *others], tmp_path)
    draw, seen = random.Random(11), set()
    members = [field.name for field in dataclasses.fields(ProductCut)]
    for _ in range(3000):
        problem = any_problem(draw)
        given = [int(value) for value in dataclasses.astuple(problem)]
        found = (ctypes.c_int64 * len(members))()
        library.cut((ctypes.c_int64 * len(given))(*given), found)
        cut = cut_product(of, problem)
        assert list(map(int, dataclasses.astuple(cut))) == list(found), (problem, members)
        seen.add((cut.packed_columns > 0, cut.banded, cut.parts > 1, cut.is_long))
    packed, banded, in_parts, is_long = map(any, zip(*seen, strict=True))
    assert packed and banded and in_parts and is_long == (type == "float")


def summed(of: Shape, sizes: SizeProblem) -> int:
    """A sum, for which there is no C."""
    return sum([sizes.rows])


def test_what_has_no_c_is_refused():
    message = r"there is no C for 'sum\(\[sizes.rows\]\)' in .*summed; say it with"
    with pytest.raises(ValueError, match=message):
        size_functions((), (summed,), shape("float", 32))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_predictions_are_of_the_algorithm_in_the_text(dtype):
    of = shape("float" if dtype == "float32" else "double", 32)
    draw, seen = random.Random(3), set()
    for _ in range(200):
        m, n = (geon.Axis(name, max(5, sized(draw, of.vector))) for name in "MN")
        k = geon.Axis("K", draw.choice((max(5, sized(draw, of.vector)), 512)))
        orders = ([m, k], [k, n])
        x, y = (geon.placeholder(draw.choice((o, o[::-1])), dtype) for o in orders)
        f = Native().computation(geon.dot(geon.exp(x) if draw.random() < 0.2 else x, y), x, y)
        plan = for_vectors(f.plan, 32)
        (kernel,) = [each for each in plan.schedule.kernels if isinstance(each.work, Contraction)]
        made, planned = (
            cost_of(kernel.work, {}, None, parts).product for parts in ((), parts_of(plan, kernel))
        )
        assert made is not None and planned is not None and planned.planned is not None
        assert planned.planned.of in (of, half_vector_shape(shape(of.type, 64)))
        text = "".join(make_module(plan, f.linking, annotate=False).units)
        ways = re.findall(r"\.way = (\w+)", text)
        assert ways == [planned.planned.plan_for(planned.sizes).way]
        before = PlannedProduct(of, False, None, *made.strides)  # what is likely without a form
        assert ways == [before.plan_for(made.sizes).way]
        seen.update(ways)
    assert seen == set(WAYS)


# What a driver divides, which one that is compiled here also stores.
DIVIDED = "    run.cut = geon_cut_product(&run.sizes);\n"
DRIVER = "QUICK void TAG(geon_product)("
NOTED = '__attribute__((weak, visibility("default"))) struct geon_size_problem geon_noted;\n'


class Noting(geon.NativeTransformer):
    """Compiles programs whose products store what they divide in ``geon_noted``."""

    def __init__(self, threads):
        super().__init__(threads=threads)
        # The cache has no program of such a target.
        name = f"{self.target.name}, noting what is divided on {threads}"
        self.target = dataclasses.replace(self.target, name=name)

    def compile(self, plan, linking):
        module = make_module(plan, linking, False)
        assert any(DIVIDED in unit for unit in module.shared)
        shared = [
            unit.replace(DRIVER, NOTED + DRIVER).replace(
                DIVIDED, f"{DIVIDED}    geon_noted = run.sizes;\n"
            )
            for unit in module.shared
        ]
        path = shared_object(self.toolchain(), shared, own=module.units)
        self.library = ctypes.CDLL(str(path))
        return NativeProgram(record_of(plan, module, path, ""), path)

    def noted(self):
        """The problem of the product that ran last."""
        members = len(dataclasses.fields(SizeProblem))
        return list((ctypes.c_int64 * members).in_dll(self.library, "geon_noted"))


LENGTHS = {"N": 150, "M": 70, "K": 90, "L": 3, "W": 5, "D": 300, "T": 1030, "S": 1000}


def products_of_all_kinds(known):
    """Products in memory and computed, with windows, and steps of chains, of given lengths."""

    def axis(name, length):
        return geon.Axis(name, length) if known else geon.Axis(name)

    n, m, k, few, five, deep, t, s = (axis(name, length) for name, length in LENGTHS.items())
    x, y, z, u = (geon.placeholder(axes) for axes in ([n, k], [k, m], [m, k], [few, k]))
    yield geon.dot(x, y), [x, y]
    yield geon.dot(geon.exp(x), y), [x, y]
    yield geon.dot(x, geon.exp(y)) + 1, [x, y]
    yield geon.dot(x, z, over=[k]), [x, z]
    yield geon.dot(u, y), [u, y]
    yield geon.dot(u, z, over=[k]), [u, z]
    yield geon.dot(geon.exp(z), u, over=[k]), [z, u]
    narrow = geon.placeholder([k, five])
    yield geon.dot(x, narrow), [x, narrow]
    weights = geon.Variable([geon.Axis("A", 80), geon.Axis("B", 96)], initial_value=0.5)
    rows = geon.placeholder([n, weights.axes[0]])
    yield geon.dot(rows, weights), [rows]
    few_rows = geon.placeholder([few, weights.axes[0]])
    yield geon.dot(few_rows, weights), [few_rows]
    first, second = geon.placeholder([few, deep]), geon.placeholder([five, deep])
    yield geon.dot(first, second, over=[deep]), [first, second]
    inner = geon.Axis("I", 24)
    queries, keys = (geon.placeholder([a, inner]) for a in (t, s))
    weighted = geon.softmax(geon.dot(queries, keys, over=[inner]), s)
    yield geon.dot(weighted, keys, over=[s]), [queries, keys]
    h, w, c, f = (geon.Axis(*each) for each in (("H", 20), ("V", 20), ("C", 8), ("F", 32)))
    p, q = geon.Axis("P", 3), geon.Axis("Q", 3)
    images, filters = geon.placeholder([n, h, w, c]), geon.placeholder([p, q, c, f])
    for pad in (0, 1):
        windows = {h: geon.Window(p, pad=pad), w: geon.Window(q, pad=pad)}
        made = geon.convolution(images, filters, windows, [c])
        yield made, [images, filters]
        seed = geon.placeholder(made.axes)
        yield geon.deriv(made, filters, seed=seed), [images, seed]


def problems_of(plan, kernel, threads):
    """What the driver may divide for the last product of a kernel, as numbers."""
    work, parts, bindings = kernel.work, plan.forms[kernel.op].parts, [LENGTHS]
    whole = ()
    if isinstance(work, Blocked):
        bindings = [work.bindings(k, LENGTHS) for k in range(work.cut.blocks(LENGTHS))]
        work, parts, whole = work.steps[-1], parts[-1], whole_sizes(work.whole[-1])
    scratch = product_scratch(work, parts, whole)
    found = [problem for each in bindings for problem in scratch.problems(each, threads)]
    return [list(map(int, dataclasses.astuple(problem))) for problem in found]


@needs_compiler
@pytest.mark.parametrize("known", [True, False])
def test_the_driver_divides_what_scratch_memory_is_planned_for(known):
    members, seen = [field.name for field in dataclasses.fields(SizeProblem)], set()
    for threads in (1, 3):
        for results, placeholders in products_of_all_kinds(known):
            with Noting(threads=threads) as transformer:
                f = transformer.computation(results, *placeholders)
                shapes = [[LENGTHS.get(a.name, a.length) for a in x.axes] for x in placeholders]
                f(*(np.ones(shape, np.float32) for shape in shapes))
                *_, kernel = [
                    each
                    for each in f.plan.schedule.kernels
                    if isinstance(each.work, Contraction | Blocked)
                ]
                if isinstance(kernel.work, Blocked):
                    if threads > 1:
                        continue  # tasks of several threads store at the same time
                found, expected = transformer.noted(), problems_of(f.plan, kernel, threads)
            assert found in expected, (members, found, expected)
            made = dict(zip(members, found, strict=True))
            seen |= {(name, bool(made[name])) for name in members}
            seen.add(("direct", made["direct"]))
    both = ("thin", "alone", "near_step", "placed", "band_rows", "packs", "keeps")
    assert {(name, truth) for name in both for truth in (True, False)} <= seen
    assert {("direct", way) for way in (BY_TILES, BY_STREAM, BY_DOTS)} <= seen


@needs_compiler
def test_few_rows_need_no_packed_blocks():
    for rows in (1, 8):
        n, k, m = geon.Axis("N", rows), geon.Axis("K", 1024), geon.Axis("M", 1024)
        x, w = geon.placeholder([n, k]), geon.placeholder([k, m])
        f = geon.NativeTransformer(threads=1).computation(geon.dot(x, w), x, w)
        assert f.peak_bytes() < 1 << 18
