"""Many computations in one translation unit: kernels of equal text are compiled once for all."""

import dataclasses

import numpy as np

from geon.op_graph.axes.lengths import evaluate
from geon.transformers.cache import programs
from geon.transformers.loops.work import MIN_TASK_WORK, MIN_WORK
from geon.transformers.native.emit import module_text
from geon.transformers.native.emit.compiler import record_of
from geon.transformers.native.emit.unit_texts import UnitFunctions
from geon.transformers.native.products.product_text import product_units
from geon.transformers.native.runtime.bound_program import NativeProgram
from geon.transformers.native.sizes.products import ProductScratch
from geon.transformers.native.toolchain.shared_objects import shared_object
from geon.transformers.native.transformer import NativeTransformer
from geon.transformers.native.trees.nest_text import GRAIN
from geon.transformers.sizes.buffers import Buffer
from geon.transformers.sizes.product_blocks import TASK_MULADDS, shape
from geon.transformers.sizes.scratch import Largest

# Work is divided among threads from a few statements on, so that small arrays are divided too. How
# it is divided changes no result but for the order in which partial sums are added.
DIVIDED = {
    f"1 + {MIN_TASK_WORK} / each": "1 + 16 / each",
    f"< {MIN_WORK} &&": "< 64 &&",
    f"TASK_MULADDS {TASK_MULADDS}\n": "TASK_MULADDS 200\n",
}
_PRODUCTS = product_units(shape("float", 16))[0]
assert all(usual in GRAIN + _PRODUCTS for usual in DIVIDED), "what divides has other text"


class OfAllThreads(ProductScratch):
    """The memory of products whose little work is divided, for as many threads as there are."""

    def bytes(self, lengths, threads):
        sizes = (self.batches, self.rows, self.columns, self.depth)
        return self.bound(*(evaluate(size, lengths) for size in sizes), threads)


def for_all_threads(made):
    """A buffer, or a scratch memory, with `OfAllThreads` for the memory of each product."""
    if isinstance(made, ProductScratch):
        return OfAllThreads(*(getattr(made, field.name) for field in dataclasses.fields(made)))
    if isinstance(made, Largest):
        return dataclasses.replace(made, parts=tuple(map(for_all_threads, made.parts)))
    if isinstance(made, Buffer):
        return dataclasses.replace(made, scratch=tuple(map(for_all_threads, made.scratch)))
    return made


class Together:
    """Compiles what was added in one unit; ``transformer`` makes those that run it.

    ``missed`` counts programs that were needed and not among them. ``divided`` gives even small
    arrays to several threads.
    """

    def __init__(self, divided=False, **options):
        self.options = options
        self.divided = divided
        self.missed = 0
        self.parts = {}  # of each module as it is by itself: its suffix, and as it is here
        self.functions, self.bodies = Common(), []
        self.others = {}  # units of functions that products call, of any transformer
        self.path = None

    def transformer(self, threads=1):
        """A new transformer that takes its programs from the unit, once it is compiled."""
        return Member(self, threads=threads, **self.options)

    def add(self, f):
        """Have a computation of such a transformer compiled, and the first values it reads."""
        self.add_plan(f.transformer, f.plan, f.linking)
        for leaf in f.linking.variables:
            first = f.transformer.variables.first(leaf)
            if first is not None:
                self.add_plan(first.transformer, first.plan, first.linking)

    def add_plan(self, transformer, plan, linking):
        text = text_of(plan, linking)
        if text not in self.parts:
            suffix = f"_{len(self.parts)}"
            part = module_text._CModuleWriter(plan, linking, False, suffix, False, 1, Common.never)
            part.functions = self.functions
            module = part.make()
            self.bodies.append(module.units[0].removeprefix(module_text.LINK))
            self.others.update(dict.fromkeys(module.shared))
            self.parts[text] = suffix, module

    def compile(self):
        """Compile the unit."""
        units = [self.functions.together() + module_text.LINK + "".join(self.bodies), *self.others]
        for usual, small in DIVIDED.items() if self.divided else ():
            units = [unit.replace(usual, small) for unit in units]
        toolchain = self.transformer().toolchain()
        if self.options.get("sanitize"):
            # Small arrays need no fast code, and what an optimiser leaves out is checked too.
            toolchain = dataclasses.replace(toolchain, lean=("-O0",))
        self.path = shared_object(toolchain, units[1:], own=units[:1])

    def program(self, plan, linking):
        """The program of a plan; None for one that was not compiled here."""
        text = text_of(plan, linking)
        if text not in self.parts:
            self.missed += 1
            return None
        suffix, module = self.parts[text]
        record = record_of(plan, module, self.path, suffix)
        if self.divided:
            record = dataclasses.replace(
                record, buffers=tuple(map(for_all_threads, record.buffers))
            )
        return NativeProgram(record, self.path)


def text_of(plan, linking):
    """The units of a plan's own module, and the names of the lengths in the table that they read.

    Programs without elements have the same units whatever lengths of theirs are open.
    """
    module = module_text.make_module(plan, linking, False)
    return "\n".join([*module.units, *module.lengths])


class Common(UnitFunctions):
    """The functions of all modules, which have none of their own."""

    def __init__(self):
        super().__init__("", 0, 1, self.never)
        self.divides = False

    @staticmethod
    def never(unit):
        """No unit is begun while others are printed."""
        raise AssertionError(unit)

    def units(self, floor_div):
        self.divides |= floor_div
        return [""]

    def together(self):
        """The unit of all of them."""
        return self.unit(list(self.names), False, self.divides)


class Member(NativeTransformer):
    """A native transformer that looks for its programs in a unit of many."""

    def __init__(self, together, **options):
        super().__init__(**options)
        self.together = together
        name = f"{self.target.name}, together{' and divided' if together.divided else ''}"
        self.target = dataclasses.replace(self.target, name=name)

    def compile(self, plan, linking):
        found = self.together.program(plan, linking)
        return super().compile(plan, linking) if found is None else found


def results_of(cases, threads, mark, **options):
    """What a unit of all these programs computes, as lists, and whose text has a mark.

    Programs are kept by what they compute, not by how: none is taken that was made before.
    """
    programs._programs = None
    together = Together(divided=True, **options)
    transformer = together.transformer(threads=threads)
    made = [transformer.computation(case.results, *case.leaves) for case in cases]
    for f in made:
        together.add(f)
    together.compile()
    found = [as_list(f(*case.arrays)) for f, case in zip(made, cases, strict=True)]
    assert not together.missed
    return found, [mark in f.source for f in made]


def as_list(results):
    """The results of a call as a list."""
    return list(results) if isinstance(results, tuple | list) else [results]


def bits(array):
    """The bytes of an array's elements."""
    return np.ascontiguousarray(array).view("u1")
