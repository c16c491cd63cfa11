"""Matrix products in C: every shape, layout, element and store against NumPy in float64."""

from __future__ import annotations

import configparser
import ctypes
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import geon
from geon.op_graph.axes.affine import AffineIndex, Size
from geon.op_graph.axes.lengths import Length, product
from geon.op_graph.rows.elementwise import multiply, subtract
from geon.op_graph.values.dtypes import DType, named_dtype
from geon.transformers.kernels.ir.nest import Loop
from geon.transformers.kernels.ir.scalar_code import Load, Scalar, ScalarBuilder
from geon.transformers.kernels.products.contraction import merge_loops
from geon.transformers.native.emit.unit_texts import FLOOR_DIV
from geon.transformers.native.names.c_texts import FOLDER, c_text
from geon.transformers.native.names.dialect import NATIVE, PRELUDE
from geon.transformers.native.names.naming import KernelNames
from geon.transformers.native.products.operand_views import Operand
from geon.transformers.native.products.orientation import analyse_product
from geon.transformers.native.products.product_form import ProductForm, product_form
from geon.transformers.native.products.product_ir import MatrixProduct
from geon.transformers.native.products.product_text import (
    product_header,
    product_text,
    product_units,
)
from geon.transformers.native.sizes import products as product_sizes
from geon.transformers.native.sizes.products import ProductScratch
from geon.transformers.printing.nests.parameters import Parameters
from geon.transformers.printing.scalars.c_types import c_length
from geon.transformers.sizes import product_cut
from geon.transformers.sizes.product_blocks import (
    MAX_PACKED_BYTES,
    MIN_PACK_FIRST_MULADDS,
    TAGS,
    shape,
)

COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler was found")

FLAGS = (
    "-O2 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv -fopenmp-simd"
    " -std=gnu11 -Wall -Wextra -Werror -pthread"
).split()
# A pool that starts its threads for every run.
POOL = """\
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
void (*geon_pool_run)(void (*task)(void *argument, int64_t index), void *argument, int64_t count,
                      int32_t threads);
void (*geon_pool_run_short)(void (*task)(void *argument, int64_t index), void *argument,
                            int64_t count, int32_t threads, int32_t duration);
int32_t (*geon_seat)(void);
struct run { void (*task)(void *, int64_t); void *argument; int64_t count, next; int32_t seats; };
static __thread int32_t seat;
static int32_t own_seat(void) { return seat; }
static void *work(void *argument) {
  struct run *run = argument;
  for (;;) {
    int64_t index = __atomic_fetch_add(&run->next, 1, __ATOMIC_RELAXED);
    if (index >= run->count) return NULL;
    run->task(run->argument, index);
  }
}
static void *help(void *argument) {
  seat = 1 + __atomic_fetch_add(&((struct run *)argument)->seats, 1, __ATOMIC_RELAXED);
  return work(argument);
}
static void pool(void (*task)(void *, int64_t), void *argument, int64_t count, int32_t threads) {
  struct run run = {task, argument, count, 0, 0};
  pthread_t other[16];
  if (threads > count) threads = (int32_t)count;
  for (int32_t i = 1; i < threads; ++i) pthread_create(other + i, NULL, help, &run);
  work(&run);
  for (int32_t i = 1; i < threads; ++i) pthread_join(other[i], NULL);
}
static void pool_short(
    void (*task)(void *, int64_t), void *argument, int64_t count, int32_t threads, int32_t duration)
{
  pool(task, argument, duration < 0 ? 0 : count, threads); /* no product lasts less than nothing */
}
__attribute__((constructor)) static void start(void) {
  geon_seat = own_seat;
  geon_pool_run = pool;
  geon_pool_run_short = pool_short;
}
"""
GUARD = 4096  # bytes on both sides of scratch memory
DTYPES: dict[str, type[np.floating[Any]]] = {"float": np.float32, "double": np.float64}
EPSILON = {"float": 2.0**-23, "double": 2.0**-52}


def row_major(order: str, lengths: Mapping[str, Size]) -> dict[str, Size]:
    """Element strides of axes that lie in memory in this order."""
    strides: dict[str, Size] = {}
    step: Size = 1
    for name in reversed(order):
        strides[name] = step
        step = step * lengths[name]
    return strides


def text(length: Size) -> str:
    """A length as C: open ones are called as they are."""
    return c_length(length, {f"n{k}": f"n{k}" for k in range(9)})


def offset(texts: Mapping[str, str], strides: Mapping[str, Size], names: str) -> str:
    """The C text of an element's offset."""
    return " + ".join(f"({texts[n]}) * ({text(strides[n])})" for n in names) or "0"


class Names(Parameters):
    """The names of two operands, and of open lengths."""

    dialect = NATIVE
    plain = False

    def __init__(self, dtype: DType, open: bool, lengths: int) -> None:
        operands = [geon.placeholder([], dtype) for _ in range(2)]
        super().__init__(lambda op: ("operand", op), operands, ())
        self.lengths = {f"n{k}": f"n{k}" for k in range(lengths)} if open else {}
        assert [self.operand(number) for number in range(2)] == ["x0", "x1"]


@dataclass(frozen=True)
class Case:
    """One product by letters: `spec` as einsum has it, `memory` the nesting of each array."""

    spec: str
    lengths: Mapping[str, int]
    memory: tuple[str, ...] = ()
    type: str = "float"
    open: bool = False
    computed: tuple[bool, bool] = (False, False)
    from_type: str = ""
    vector_bytes: int = 64
    unit: tuple[str | None, ...] = field(default=())
    plain: bool = False

    @property
    def letters(self) -> tuple[str, str, str]:
        first, result = self.spec.split("->")
        left, right = first.split(",")
        return left, right, result

    @property
    def orders(self) -> tuple[str, ...]:
        return self.memory or self.letters

    def extents(self) -> dict[str, Size]:
        """The extents, which may be open."""
        if self.open:
            return {name: Length.of(f"n{i}") for i, name in enumerate(self.lengths)}
        return dict(self.lengths)

    def product(self, name: str) -> MatrixProduct:
        """The product, which stores its values and, in a second array, their halves plus one.

        A plain one stores its values alone, and says where.
        """
        left, right, result = self.letters
        extents, source = self.extents(), self.from_type or self.type
        strides = [row_major(order, extents) for order in self.orders]

        dtype = named_dtype(f"float{32 if source == 'float' else 64}")
        names, code = Names(dtype, self.open, len(extents)), ScalarBuilder()

        def operand(number: int, letters: str) -> Operand:
            steps = strides[number]
            value: Scalar = code(Load, number, AffineIndex(steps.items()), dtype)
            if self.computed[number]:
                value = code.apply(multiply, value, code.number(2, dtype))
                value = code.apply(subtract, value, code.number(1, dtype))
            plain = f"(x{number} + 0)" if not self.computed[number] else None
            unit = self.unit[number] if self.unit else (self.orders[number] or " ")[-1]
            return Operand(source, value, plain, steps, unit)

        def store(at: Mapping[str, str], value: str) -> list[str]:
            place = offset(at, strides[2], result)
            second = [] if self.plain else [f"y1[{place}] = {value} / 2 + 1;"]
            return [f"y0[{place}] = {value};", *second]

        def only(letters: Sequence[str]) -> tuple[Loop, ...]:
            return tuple(Loop(letter, (letter,), extents[letter]) for letter in letters)

        unit = self.unit[2] if self.unit else (self.orders[2] or " ")[-1]
        stored = Operand(self.type, None, "y0", strides[2], unit)
        parameters = {f"x{i}": f"const {source} *restrict x{i}" for i in range(2)}
        parameters |= {f"y{i}": f"{self.type} *restrict y{i}" for i in range(2)}
        parameters["scratch"] = "char *scratch"
        if self.open:
            parameters |= {text(n): f"int64_t {text(n)}" for n in extents.values()}
        return MatrixProduct(
            name,
            self.type,
            only([d for d in left if d in right and d in result]),
            only([d for d in left if d not in right]),
            only([d for d in right if d not in left]),
            only([d for d in left if d in right and d not in result]),
            operand(0, left),
            operand(1, right),
            store,
            unit,
            parameters,
            text,
            stored if self.plain else None,
            scratch=True,
            names=cast(KernelNames, names),
        )

    def scratch(self) -> ProductScratch:
        """The scratch memory, as it is planned."""
        (left, right, result), extents = self.letters, self.extents()

        def count(letters: Sequence[str]) -> Size:
            return product(extents[d] for d in letters)

        return ProductScratch(
            count([d for d in left if d in right and d in result]),
            count([d for d in left if d not in right]),
            count([d for d in right if d not in left]),
            count([d for d in left if d in right and d not in result]),
            form_of(self.product("planned"), self.vector_bytes).planned,
        )

    def planned_bytes(self, threads: int) -> int:
        """The bytes of its scratch memory in a call."""
        open_lengths = {f"n{i}": length for i, length in enumerate(self.lengths.values())}
        return self.scratch().bytes(open_lengths if self.open else {}, threads)

    def inputs(self, seed: int) -> list[np.ndarray]:
        dtype = DTYPES[self.from_type or self.type]
        random = np.random.default_rng(seed)
        return [
            random.standard_normal([self.lengths[d] for d in order]).astype(dtype)
            for order in self.orders[:2]
        ]

    def expected(self, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The product in float64, and the sums of the terms' magnitudes."""
        wide = [
            x.astype(np.float64) * 2 - 1 if computed else x.astype(np.float64)
            for x, computed in zip(inputs, self.computed, strict=True)
        ]
        spec = f"{self.orders[0]},{self.orders[1]}->{self.orders[2]}"
        return np.einsum(spec, *wide), np.einsum(spec, *map(np.abs, wide))


def form_of(product: MatrixProduct, vector_bytes: int = 64) -> ProductForm:
    """The form of a product of the operands that its names know."""
    assert product.names is not None
    return product_form(product, vector_bytes, product.names.operands)


def module_units(products: Sequence[MatrixProduct], vector_bytes: int, more: str = "") -> list[str]:
    """A whole module with one public function for each product, and ``more`` in the first unit."""
    forms = [form_of(product, vector_bytes) for product in products]
    body = "\n".join([product_text(*each)[0] for each in zip(products, forms, strict=True)])
    runs = ""
    for p in products:
        head = f"void run_{p.name}({', '.join(['int32_t threads', *p.parameters.values()])})"
        runs += f"{head};\n{head} {{ {p.name}({', '.join(['threads', *p.parameters])}); }}\n"
    needed = dict.fromkeys([form.of for form in forms])
    headers = "".join(map(product_header, needed))
    own = PRELUDE + FLOOR_DIV + c_text("module.h") + headers + body + runs + POOL + more
    return [own, *(unit for of in needed for unit in product_units(of))]


def build(units: Sequence[str], target: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    sources = [target.with_name(f"unit{number}.c") for number in range(len(units))]
    for source, unit in zip(sources, units, strict=True):
        source.write_text(unit)
    command = [str(COMPILER), *FLAGS, *flags, *map(str, sources), "-o", str(target)]
    return subprocess.run(command, capture_output=True, text=True)


def compile_module(units: Sequence[str], folder: Path) -> ctypes.CDLL:
    target = folder / "module.so"
    done = build(units, target, "-shared", "-fPIC")
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(target))


def run_case(
    library: ctypes.CDLL, name: str, case: Case, inputs: Sequence[np.ndarray], threads: int
) -> list[np.ndarray]:
    shape = [case.lengths[d] for d in case.orders[2]]
    outputs = [np.full(shape, np.nan, DTYPES[case.type]) for _ in range(2)]
    arguments = [ctypes.c_void_p(a.ctypes.data) for a in (*inputs, *outputs)]
    lengths = [ctypes.c_int64(n) for n in case.lengths.values()] if case.open else []
    planned = case.planned_bytes(threads)
    # All bits set: not a number, and seen to be written to.
    memory = np.full(planned + 2 * GUARD + 64, 0xFF, np.uint8)
    start = GUARD + -(memory.ctypes.data + GUARD) % 64
    scratch = ctypes.c_void_p(memory.ctypes.data + start)
    getattr(library, f"run_{name}")(ctypes.c_int32(threads), *arguments, scratch, *lengths)
    outside = np.concatenate([memory[:start], memory[start + planned :]])
    assert np.all(outside == 0xFF), f"{case} leaves its {planned} bytes on {threads} threads"
    assert planned <= threads * MOST_EACH + MAX_PACKED_BYTES, case
    return outputs


def check(case: Case, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
    """Within the error of summing in order, of every element and of the second store."""
    expected, magnitude = case.expected(inputs)
    depth = prod(case.lengths[d] for d in set("".join(case.letters[:2])) - set(case.letters[2]))
    bound = (depth + 4) * EPSILON[case.type] * magnitude + 1e-30
    assert np.all(np.abs(outputs[0] - expected) <= bound), case
    assert case.plain or np.array_equal(outputs[1], outputs[0] / 2 + 1), case


MOST_EACH = 2 << 20  # bytes of a thread's part of scratch memory


def sizes(**lengths: int) -> dict[str, int]:
    return lengths


def cases() -> list[Case]:
    """Shapes around every tile and block, each layout, and elements of every kind."""
    found = []
    layouts = [("mk", "kn", "mn"), ("km", "nk", "mn"), ("km", "kn", "nm"), ("mk", "nk", "nm")]
    shapes = [
        (1, 1, 1),
        (0, 5, 3),
        (3, 0, 5),
        (5, 3, 0),
        (1, 300, 100),
        (2, 17, 333),
        (7, 401, 65),
        (12, 8, 32),
        (13, 9, 31),
        (32, 100, 300),
        (33, 385, 47),
        (49, 769, 33),
        (100, 70, 10),
        (97, 33, 257),
        (500, 3, 70),
        (128, 64, 128),
        (61, 1000, 2),
    ]
    for number, (m, k, n) in enumerate(shapes):
        lengths = sizes(m=m, k=k, n=n)
        for turn, memory in enumerate(layouts):
            open = (number + turn) % 2 == 0
            found.append(Case("mk,kn->mn", lengths, memory, open=open))
        computed = [(True, False), (False, True), (True, True)][number % 3]
        found.append(Case("mk,kn->mn", lengths, layouts[number % 4], "float", True, computed))
        found.append(
            Case("mk,kn->mn", lengths, layouts[(number + 1) % 4], "double", number % 2 == 0)
        )
    return found + grouped() + plain()


def narrow() -> list[Case]:
    """Columns that fill half of a vector at most, of so many rows that vectors are half as wide."""
    found = []
    layouts = [("mk", "kn", "mn"), ("km", "nk", "mn"), ("km", "kn", "nm"), ("mk", "nk", "nm")]
    for number, (m, k, n) in enumerate(
        [(15_000, 72, 1), (13_001, 27, 3), (2_900, 385, 8), (5_000, 70, 7), (150, 8200, 5)]
    ):
        lengths = sizes(m=m, k=k, n=n)
        for turn, memory in enumerate(layouts):
            way = [(False, False), (True, False), (False, True), (True, True)][(number + turn) % 4]
            found.append(Case("mk,kn->mn", lengths, memory, computed=way))
            found.append(Case("mk,kn->mn", lengths, memory, plain=True))
        found.append(Case("mk,kn->mn", {**lengths, "n": min(n, 4)}, layouts[number % 4], "double"))
    for m, n in [(14_000, 2), (9_000, 6), (9_001, 8)]:
        found.append(Case("mk,kn->mn", sizes(m=m, k=80, n=n), computed=(True, n == 6)))
    return found


def packed_first() -> list[Case]:
    """Right operands that are packed once for all rows: columns and batches of all, and of some."""
    computed = [(False, False), (True, False), (False, True), (True, True)]
    layouts = [("mk", "kn", "mn"), ("mk", "nk", "mn"), ("km", "kn", "nm"), ("km", "nk", "mn")]
    found = []
    for number, (m, k, n) in enumerate([(97, 401, 129), (340, 60, 1100)]):
        lengths = sizes(m=m, k=k, n=n)
        for turn, memory in enumerate(layouts):
            way = computed[(number + turn) % 4]
            found.append(Case("mk,kn->mn", lengths, memory, "float", turn % 2 == 0, way))
            found.append(Case("mk,kn->mn", lengths, memory, plain=True))
        found.append(Case("mk,kn->mn", lengths, layouts[number], "double", True))
        found.append(Case("mk,kn->mn", lengths, layouts[number], "double", plain=True))
    deep = sizes(m=300, k=4100, n=270)
    found.append(Case("mk,kn->mn", deep, layouts[1], "double", True, (False, True)))
    found.append(Case("mk,kn->mn", deep, layouts[0], "double", plain=True))
    for lengths in (sizes(b=3, m=130, k=300, n=200), sizes(b=2, m=90, k=60, n=1050)):
        found.append(Case("bmk,bkn->bmn", lengths, plain=True))
        found.append(Case("bmk,bkn->bmn", lengths, ("mbk", "bnk", "bnm"), open=True))
        found.append(Case("bmk,bkn->bmn", lengths, open=True, computed=(True, True)))
    return found


def plain() -> list[Case]:
    """Results that tiles write themselves where they are whole, and operands read in place."""
    shapes = [
        *((96, 64, 64), (52, 8, 128), (100, 16, 16), (57, 16, 48), (60, 30, 50)),
        *((48, 800, 32), (500, 390, 64), (4, 9, 16), (33, 64, 64), (24, 33, 1)),
        *((5, 3, 200), (12, 255, 70), (3, 192, 70)),  # too short for dot products in place, or not
    ]
    found = []
    for number, (m, k, n) in enumerate(shapes):
        lengths = sizes(m=m, k=k, n=n)
        for turn, memory in enumerate([("mk", "kn", "mn"), ("mk", "nk", "mn"), ("km", "kn", "nm")]):
            type = "double" if (number + turn) % 3 == 0 else "float"
            open = (number + turn) % 2 == 0
            found.append(Case("mk,kn->mn", lengths, memory, type, open, plain=True))
    for memory in [(), ("mbk", "bkn", "mbn"), ("bmk", "bnk", "bnm")]:
        lengths = sizes(b=5, m=52, k=40, n=32)
        found.append(Case("bmk,bkn->bmn", lengths, memory, plain=True))
        found.append(Case("bmk,bkn->bmn", lengths, memory, open=True, plain=True))
    for lengths in (sizes(b=3, m=5, k=9, n=203), sizes(b=2, m=9, k=600, n=61)):  # written across
        found.append(Case("bmk,bkn->bmn", lengths, ("bmk", "bkn", "bnm"), plain=True))
    found.append(Case("bmk,bkn->bmn", sizes(b=2, m=8, k=20_000, n=32), open=True, plain=True))
    for m, k, n in [(100, 200, 8), (60, 20_000, 3), (96, 1000, 12), (50, 128, 1)]:
        for memory in [("mk", "kn", "mn"), ("mk", "nk", "mn"), ("km", "kn", "mn")]:
            lengths = sizes(m=m, k=k, n=n)
            found.append(Case("mk,kn->mn", lengths, memory, open=True, plain=True))
            found.append(Case("mk,kn->mn", lengths, memory, "double", True, plain=True))
    found.append(Case("bmk,bkn->bmn", sizes(b=3, m=90, k=150, n=4), open=True, plain=True))
    return found


def grouped() -> list[Case]:
    """Several dimensions in a group, batches, absent groups, converted operands, no units."""
    small = sizes(b=3, p=2, m=5, q=3, n=7, j=4, k=6)
    found = []
    for open in (False, True):
        found += [
            Case("m,n->mn", sizes(m=20, n=30), open=open),
            Case("k,k->", sizes(k=5000), open=open),
            Case("mk,k->m", sizes(m=70, k=400), open=open),
            Case("mk,k->m", sizes(m=70, k=400), ("km", "k", "m"), open=open),
            Case("b,b->b", sizes(b=9), open=open),
            Case("k,k->", sizes(k=140_001), open=open),
            Case("bmk,bkn->bmn", sizes(b=2, m=9, k=20_000, n=17), ("bkm", "bkn", "bmn"), open=open),
            Case("mk,kn->mn", sizes(m=2, k=20_000, n=50), computed=(True, False), open=open),
            *(
                Case(
                    "mk,kn->mn",
                    sizes(m=m, k=13_000, n=n),
                    ("km", *memory),
                    open=open,
                    computed=(True, False),
                )
                for m, n in ((1, 70), (4, 60), (11, 100), (30, 64))
                for memory in (("kn", "mn"), ("nk", "mn"))
            ),
            Case("b,b->b", sizes(b=70), computed=(True, True), open=open),
            Case("mkb,bkn->bnm", sizes(b=3, m=40, k=50, n=70), ("mkb", "nkb", "bnm"), open=open),
            Case("bmk,bkn->bmn", sizes(b=9, m=16, k=48, n=32), open=open),
            Case("bmk,bkn->bmn", sizes(b=9, m=16, k=48, n=32), ("bmk", "bnk", "bmn"), open=open),
            Case("bmk,bkn->bmn", sizes(b=5, m=50, k=70, n=40), ("mbk", "kbn", "mbn"), open=open),
            Case("bpmjk,bjkqn->bpmqn", small, open=open),
            Case("bpmjk,bjkqn->bpmqn", small, ("kpbmj", "nbkjq", "qbmpn"), open=open),
            Case("bpmjk,bjkqn->bpmqn", small, ("jbmkp", "qjbnk", "nqpbm"), open=open),
            Case(
                "bpmjk,bjkqn->bpmqn",
                small,
                ("kpbmj", "nbkjq", "qbmpn"),
                open=open,
                computed=(True, True),
            ),
            *(
                Case(
                    "bpmjk,bjkqn->bpmqn",
                    lengths,
                    ("kpbmj", "nbkjq", "qbmpn"),
                    open=open,
                    computed=way,
                )
                for lengths in ({**small, "k": 0}, {**small, "j": 0}, {**small, "p": 0})
                for way in ((False, False), (True, True))
            ),  # fmt: skip
            Case(
                "pmjk,jkqn->pmqn",
                sizes(p=3, m=30, j=3, k=150, q=2, n=45),
                ("mpkj", "kjqn", "pqmn"),
                open=open,
                computed=(False, True),
            ),
            Case("mk,kn->mn", sizes(m=30, k=50, n=60), open=open, from_type="float", type="double"),
            Case(
                "mk,kn->mn",
                sizes(m=30, k=500, n=60),
                open=open,
                computed=(True, True),
                unit=(None, None, None),
            ),
        ]
    return found


def check_all(every: Sequence[Case], vector_bytes: int, folder: Path) -> None:
    every = [replace(case, vector_bytes=vector_bytes) for case in every]
    products = [case.product(f"product{i}") for i, case in enumerate(every)]
    library = compile_module(module_units(products, vector_bytes), folder)
    for number, case in enumerate(every):
        inputs = case.inputs(number)
        serial = run_case(library, f"product{number}", case, inputs, 1)
        check(case, inputs, serial)
        shared = run_case(library, f"product{number}", case, inputs, 3)
        assert [a.tobytes() for a in serial] == [a.tobytes() for a in shared], case


@needs_compiler
def test_every_shape_layout_and_element(tmp_path: Path) -> None:
    check_all(cases(), 64, tmp_path)


@needs_compiler
def test_few_columns_take_vectors_of_half_the_width(tmp_path: Path) -> None:
    """Where they are narrow, many are to be multiplied, and registers are the widest there are."""
    found = narrow()
    halved = [form_of(case.product("p"), 64).of.halved for case in found]
    assert 5 < sum(halved) < len(halved)  # what is turned has many columns
    assert not any(form_of(case.product("p"), 32).of.halved for case in found)
    small = Case("mk,kn->mn", sizes(m=100, k=72, n=8))
    wide = Case("mk,kn->mn", sizes(m=15_000, k=72, n=9))
    assert not any(form_of(case.product("p"), 64).of.halved for case in (small, wide))
    check_all(found, 64, tmp_path)


@needs_compiler
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_rows_of_a_block_in_one_group_and_low_tiles(vector_bytes: int, tmp_path: Path) -> None:
    """Around heights of tiles, groups and blocks of rows, widths of panels, and few terms."""
    rows, depths = (3, 4, 12, 46, 48, 52, 480, 484, 1000), (1, 4, 7, 8, 9, 16, 33)
    widths = (8, 15, 16, 17, 32, 33, 48, 127, 128, 160)
    shapes = [(rows[i % 9], depths[i % 7], widths[i * 3 % 10]) for i in range(63)]
    found = [
        Case("mk,kn->mn", sizes(m=m, k=k, n=n), vector_bytes=vector_bytes, plain=True)
        for m, k, n in shapes
    ]
    check_all(found, vector_bytes, tmp_path)


@needs_compiler
def test_few_columns_of_a_computed_operand_that_adjoins_along_rows(tmp_path: Path) -> None:
    """It is packed as the right one, its rows as columns; of many columns as before."""
    found = [
        Case("mk,kn->mn", sizes(m=m, k=k, n=n), ("km", "kn", "mn"), computed=(True, False),
             unit=("m", "n", "n"))
        for m, k, n in [(130, 9, 1), (131, 18, 2), (1000, 5, 5), (77, 400, 8), (200, 9, 9)]
    ]  # fmt: skip
    turned = [shape_turned(case.product("p")) for case in found]
    assert turned == [True] * 4 + [False]
    check_all(found, 64, tmp_path)


def shape_turned(product: MatrixProduct) -> bool:
    """Whether rows of a product become columns."""
    made = analyse_product(product, 64).product
    return [loop.name for loop in made.columns] == [loop.name for loop in product.rows]


@needs_compiler
def test_dots_of_a_few_rows_are_shared_by_columns(tmp_path: Path) -> None:
    """Also where columns are fewer than streams go along; bits are those of one thread."""
    found = [
        Case("mk,kn->mn", sizes(m=m, k=k, n=n), ("mk", "nk", "mn"), plain=plain)
        for m, k, n in [
            (1, 1024, 256),
            (1, 1030, 129),
            (4, 1024, 255),
            (12, 512, 257),
            (1, 256, 256),
            (1, 260, 257),
            (2, 128, 512),
            (1, 64, 1024),
            (3, 513, 96),
        ]
        for plain in (False, True)
    ]
    check_all(found, 64, tmp_path)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_packing_first_changes_no_bits(
    vector_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A right operand packed once for all rows, in small products too, or by each task."""
    every = [replace(case, vector_bytes=vector_bytes) for case in packed_first()]
    products = [case.product(f"product{i}") for i, case in enumerate(every)]
    made: list[list[np.ndarray]] = []
    works = (MIN_PACK_FIRST_MULADDS, 1_000_000)
    defined = [f"#define MIN_PACK_FIRST_MULADDS {work}\n" for work in works]
    uncached = product_sizes.memory_elements.__wrapped__
    monkeypatch.setattr(product_sizes, "memory_elements", uncached)
    own, *shared = module_units(products, vector_bytes)
    assert any(defined[0] in unit for unit in shared)
    for least, new in zip(works, defined, strict=True):
        monkeypatch.setattr(product_cut, "MIN_PACK_FIRST_MULADDS", least)
        folder = tmp_path / str(least)
        folder.mkdir()
        library = compile_module([own, *(unit.replace(defined[0], new) for unit in shared)], folder)
        made.append([])
        for number, case in enumerate(every):
            inputs = case.inputs(number)
            for threads in (1, 2, 3):
                made[-1] += run_case(library, f"product{number}", case, inputs, threads)
            check(case, inputs, made[-1][-2:])
    assert [a.tobytes() for a in made[0]] == [a.tobytes() for a in made[1]]


@needs_compiler
@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_narrower_vectors(vector_bytes: int, tmp_path: Path) -> None:
    check_all(cases()[vector_bytes // 16 :: 5], vector_bytes, tmp_path)


@needs_compiler
def test_open_lengths_choose_their_way_at_run_time(tmp_path: Path) -> None:
    """One compiled product serves few rows, narrow results and whole blocks alike."""
    lengths = [
        (1, 700, 64),
        (8, 4000, 100),
        (32, 9, 500),
        (33, 9, 500),
        (130, 400, 5),
        (5, 5, 5),
        (300, 800, 300),
        (110, 300, 1200),
        (3, 40000, 4),
    ]
    layouts = [("mk", "kn", "mn"), ("mk", "nk", "mn"), ("km", "kn", "mn")]
    any_length = sizes(m=1, k=1, n=1)
    products = [
        Case("mk,kn->mn", any_length, memory, open=True).product(f"product{i}")
        for i, memory in enumerate(layouts)
    ]
    library = compile_module(module_units(products, 64), tmp_path)
    for number, memory in enumerate(layouts):
        for m, k, n in lengths:
            case = Case("mk,kn->mn", sizes(m=m, k=k, n=n), memory, open=True)
            inputs = case.inputs(m + k + n)
            serial = run_case(library, f"product{number}", case, inputs, 1)
            check(case, inputs, serial)
            for threads in (2, 5, 16):
                shared = run_case(library, f"product{number}", case, inputs, threads)
                assert serial[0].tobytes() == shared[0].tobytes(), (case, threads)


@needs_compiler
def test_special_values_propagate(tmp_path: Path) -> None:
    """NaN and infinities reach the sums they belong to and no others."""
    case = Case("mk,kn->mn", sizes(m=20, k=40, n=37))
    few = Case("mk,kn->mn", sizes(m=3, k=40, n=61))
    every = [case, few]
    products = [c.product(f"product{i}") for i, c in enumerate(every)]
    library = compile_module(module_units(products, 64), tmp_path)
    for number, one in enumerate(every):
        left, right = one.inputs(1)
        left[2, 5], right[7, -1], right[39, 4] = np.nan, np.inf, -np.inf
        out = run_case(library, f"product{number}", one, [left, right], 1)[0]
        with np.errstate(invalid="ignore"):
            expected = left.astype(np.float64) @ right
        assert np.array_equal(np.isnan(out), np.isnan(expected))
        assert np.array_equal(np.isposinf(out), np.isposinf(expected))
        assert np.array_equal(np.isneginf(out), np.isneginf(expected))


@needs_compiler
def test_an_update_in_place_as_the_store(tmp_path: Path) -> None:
    """The store loads and writes the same array, with a bias of another shape."""
    base = Case("mk,kn->mn", sizes(m=70, k=90, n=50)).product("update")

    def store(at: Mapping[str, str], value: str) -> list[str]:
        place = f"{at['m']} * 50 + {at['n']}"
        return [
            f"const float t1 = {value} + y1[{at['n']}];",
            f"y0[{place}] = y0[{place}] - 0.5f * (t1 > 0 ? t1 : 0);",
        ]

    product = MatrixProduct(**{**vars(base), "store": store})
    library = compile_module(module_units([product], 64), tmp_path)
    random = np.random.default_rng(0)
    x, w = (
        random.standard_normal((70, 90), np.float32),
        random.standard_normal((90, 50), np.float32),
    )
    y, bias = random.standard_normal((70, 50), np.float32), random.standard_normal(50, np.float32)
    expected = y - 0.5 * np.maximum(x.astype(np.float64) @ w + bias, 0)
    scratch = np.empty(1 << 22, np.uint8)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, w, y, bias, scratch)]
    library.run_update(ctypes.c_int32(2), *pointers)
    assert np.allclose(y, expected, atol=1e-4)


SANITIZED = """\
static uint64_t state = 1;
static double next(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(state >> 40) / (1 << 23) - 1;
}
"""


def sanitized_main(every: Sequence[Case]) -> str:
    """A program that runs each product on arrays of exactly its sizes and sums again plainly."""
    lines = ["int main(void) {"]
    for number, case in enumerate(every):
        strides = [row_major(order, dict(case.lengths)) for order in case.orders]
        left, right, result = case.letters
        counts = [prod(case.lengths[d] for d in order) for order in (*case.orders, case.orders[2])]
        lines.append("  {")
        for array, count in zip(("x0", "x1", "y0", "y1"), counts, strict=True):
            lines.append(f"    {case.type} *{array} = malloc({count} * sizeof *{array});")
        for array, count in zip(("x0", "x1"), counts, strict=False):
            lines.append(f"    for (int64_t i = 0; i < {count}; ++i) {array}[i] = next();")
        lengths = "".join(f", {n}" for n in case.lengths.values()) if case.open else ""
        planned = case.planned_bytes(2)
        lines.append(f"    char *scratch = aligned_alloc(64, {planned});")
        lines.append(f"    memset(scratch, 0xff, {planned});")
        lines.append(f"    run_product{number}(2, x0, x1, y0, y1, scratch{lengths});")
        names = [*result, *(d for d in case.lengths if d not in result)]
        for d in result:
            lines.append(f"    for (int64_t {d} = 0; {d} < {case.lengths[d]}; ++{d})")
        lines.append("    { double sum = 0;")
        for d in names[len(result) :]:
            lines.append(f"    for (int64_t {d} = 0; {d} < {case.lengths[d]}; ++{d})")
        places = [
            " + ".join(f"{d} * {s[d]}" for d in o) or "0"
            for s, o in zip(strides, (left, right, result), strict=True)
        ]
        terms = [f"(x{i}[{places[i]}] * {'2 - 1' if case.computed[i] else '1'})" for i in range(2)]
        lines.append(f"      sum += (double){terms[0]} * {terms[1]};")
        lines.append(
            f"    if (__builtin_fabs(sum - y0[{places[2]}]) > 1e-3) return {number + 1}; }}"
        )
        lines.append("    free(x0); free(x1); free(y0); free(y1); free(scratch);\n  }")
    return "\n".join([*lines, "  return 0;", "}", ""])


@pytest.mark.slow
@needs_compiler
def test_sanitized_build_reads_and_writes_inside_its_arrays(tmp_path: Path) -> None:
    every = [
        Case("mk,kn->mn", sizes(m=61, k=401, n=70)),
        Case("mk,kn->mn", sizes(m=61, k=401, n=70), ("km", "nk", "mn"), open=True),
        Case("mk,kn->mn", sizes(m=5, k=37, n=83), open=True),
        Case("mk,kn->mn", sizes(m=5, k=37, n=83), ("mk", "nk", "mn")),
        Case("bmk,bkn->bmn", sizes(b=3, m=33, k=20, n=32)),
        Case("mk,kn->mn", sizes(m=30, k=40, n=50), computed=(True, True), open=True),
        Case("bpmjk,bjkqn->bpmqn", sizes(b=2, p=2, m=5, q=3, n=7, j=4, k=6), open=True),
    ]
    products = [case.product(f"product{i}") for i, case in enumerate(every)]
    units = module_units(products, 64, SANITIZED + sanitized_main(every))
    target = tmp_path / "main"
    built = build(units, target, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    if built.returncode and "cannot find" in built.stderr:
        pytest.skip("the compiler has no sanitizer libraries")
    assert built.returncode == 0, built.stderr[:4000]
    environment = {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([str(target)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"case {done.returncode - 1}\n{done.stderr[:4000]}"


def test_text_is_deterministic() -> None:
    products = [cases()[4].product("p") for _ in range(2)]
    first, second = (product_text(each, form_of(each)) for each in products)
    assert first == second


def test_a_units_text_has_all_that_it_is_made_of() -> None:
    """Nothing but the system's headers is included by name, and all numbers are there as macros."""
    for type, tag in TAGS.items():
        for text in product_units(shape(type, 64)):
            assert '#include "' not in text
            assert f"#define TAG(name) name##_{tag}" in text
            for name, value in shape(type, 64).macros().items():
                assert text.count(f"#define {name} {value}\n") == 1
            assert c_text("product/product.h") in text
    wide, narrow = shape("float", 64), shape("float", 32)
    assert not {*product_units(wide)} & {*product_units(narrow)}


def test_every_c_file_is_package_data() -> None:
    """A wheel has the patterns' files alone."""
    metadata = configparser.ConfigParser()
    metadata.read(Path(__file__).parents[2] / "setup.cfg")
    data = metadata["options.package_data"]
    patterns = data["geon.transformers.native"].split()
    shipped = {path for pattern in patterns for path in FOLDER.parent.glob(pattern)}
    assert shipped == {path for path in FOLDER.rglob("*") if path.is_file()} != set()


def test_a_name_of_the_products_own_is_refused() -> None:
    product = MatrixProduct(**{**vars(cases()[4].product("p")), "parameters": {"b1": "float *b1"}})
    with pytest.raises(ValueError, match="b1"):
        product_text(product, form_of(product))


def test_unknown_vector_width_is_refused() -> None:
    with pytest.raises(ValueError, match="24"):
        form_of(cases()[4].product("p"), 24)


N, M = Length.of("n0"), Length.of("n1")


@pytest.mark.parametrize(
    ("extents", "strides", "left"),
    [
        ((2, 3, 4), (12, 4, 1), 1),
        ((2, N, 4), (N * 4, 4, 1), 1),
        ((2, N, M), (M * N, M, 1), 1),
        ((2, 3, 4), (13, 4, 1), 2),
        ((2, 3, 4), (0, 0, 0), 1),
        ((2, 3, 4), (0, 4, 1), 2),
        ((2, 1, 4), (4, 99, 1), 1),
        ((1, 1), (5, 7), 1),
        ((2, N + 1), (N + 1, 1), 1),
        ((2, N + 1), (N, 1), 2),
    ],
)
def test_loops_that_strides_cannot_tell_apart_merge(
    extents: tuple[Size, ...], strides: tuple[Size, ...], left: int
) -> None:
    loops = [Loop(f"d{i}", (f"d{i}",), extent) for i, extent in enumerate(extents)]
    steps = {f"d{i}": stride for i, stride in enumerate(strides)}
    assert len(merge_loops(loops, steps)[0]) == left
