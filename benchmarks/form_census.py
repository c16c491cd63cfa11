"""Count how often each form of a kernel fires, and time what it gains.

``python -m benchmarks.form_census count`` goes over golden, benchmark and random programs, for
native code and for CUDA, and compiles nothing. ``gain --form NAME`` times the kernels of programs
in which a form fires, with it and without it in turn. A form is a row of ``FORMS``, the function
that decides it and the answer that switches it off, or a rule of a list that schedules trees.
Rewrites of graphs are counted, too, by program.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import geon
from geon.op_graph.rewriting.driver import RuleSet
from geon.transformers.loops.rules import cpu, gpu
from geon.transformers.loops.rules.schedule_rule import ScheduleRule
from geon.transformers.native.emit.module_text import function_of
from tests.golden.emitting import Cuda, Native
from tests.golden.programs import PROGRAMS

from .peers import geon_work, workloads
from .profiled import profiled
from .random_programs.programs import TooLargeError, grown

BASE = "geon.transformers."
sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))  # golden programs use them
ROUNDS, REPEATS = 3, 15  # times that a program is timed with a form and without it; calls of each


@dataclass(frozen=True)
class Form:
    """A form, and the function or method ``where`` (``module:name``) that decides it.

    ``off`` is what that answers where the form does not fire, or a function of its arguments;
    ``always`` tells that the form fires whenever the function is called, ``fixed`` that other text
    relies on its answer: such forms are counted and cannot be switched off.
    """

    name: str
    where: str
    off: Any = None
    always: bool = False
    fixed: bool = False

    def owner(self) -> tuple[Any, str]:
        """The module or class that has the function, and its name there."""
        module, path = self.where.split(":")
        *classes, name = path.split(".")
        found: Any = importlib.import_module(BASE + module)
        for each in classes:
            found = getattr(found, each)
        return found, name

    def answer(self, args: Any, keywords: Any) -> Any:
        """What the function answers where the form does not fire."""
        return self.off(*args, **keywords) if callable(self.off) else self.off


def first(value: Any, *_: Any, **__: Any) -> Any:
    """The first argument as it was."""
    return value


def second(_: Any, value: Any, *__: Any, **___: Any) -> Any:
    """The second argument as it was."""
    return value


def rules_of(*lists: tuple[ScheduleRule[Any], ...]) -> Iterator[Form]:
    """Yield a form for each function of rules: it fires where it changes a tree."""
    for function in dict.fromkeys(rule.apply for rules in lists for rule in rules):
        name = next(rule.name for rules in lists for rule in rules if rule.apply is function)
        where = f"{function.__module__.removeprefix(BASE)}:{function.__name__}"
        yield Form(f"rule: {name}, {where.removeprefix('loops.rules.')}", where, first)


NESTS = "kernels.nests."
FORMS = (
    # Stage 4.
    Form("rows in lanes", "kernels.nests.iteration_space:IterationSpace.across", (None, set())),
    Form("known short rows in lanes", NESTS + "nest_lowering:NestMaker.beside"),
    Form("open short rows", NESTS + "short_row_variants:with_short_rows", first),
    Form("turned loops", NESTS + "short_row_variants:with_turned_loops", first),
    Form("collapsed rows", NESTS + "short_row_variants:with_flat_rows", first),
    Form("lengthened loops", NESTS + "iteration_space:IterationSpace.lengthened", second),
    Form("digits", NESTS + "nest_lowering:NestMaker.take_apart", False),
    Form("buffered loads", NESTS + "buffered_loads:choose_buffered", lambda *_: []),
    Form("pieces", NESTS + "index_set_splitting:_Splitter.apart", second),
    Form("row pieces", NESTS + "reduction_splitting:with_row_pieces", first),
    Form("unrolled windows", NESTS + "unrolled_reductions:is_straight", False),
    Form("constant reductions", NESTS + "constant_reductions:states_of_same"),
    Form("kept values", NESTS + "nest_builder:NestBuilder.keep_costly", lambda *_: []),
    Form("draws ahead", NESTS + "random_runs:runs", lambda *_: []),
    Form("scalarised scans", "kernels.scans.scalarised_scans:scalarise_scan"),
    Form("packed scans", "kernels.scans.slp_cost:choose_packing"),
    Form("chains", "lowering.fusion.chain_fusion:by_blocks", second),
    # Native text.
    Form("trees", "native.trees.tree_choice:tree_of"),
    Form("interleaved vectors", "loops.rules.interleaved_loops:item_bytes", 0),
    Form("past", "native.vectors.nontemporal_stores:passing"),
    Form("gathers ahead", "loops.gather_prefetch:lookups", lambda *_: []),
    Form("copies without a buffer", "loops.rules.forwarded_copies:only_store"),
    Form("filled copy", "native.library.library_kernels:fill_function", always=True),
    # Products of native code.
    Form("product: windows of rows", "native.products.product_analysis:ProductAnalysis.windows"),
    Form("product: windows of columns", "native.products.product_analysis:ProductAnalysis.places"),
    Form("product: bands", "native.products.implicit_im2col:find_band"),
    Form("product: padded", "kernels.products.contraction:padded_access"),
    Form("product: residues", "kernels.products.residue_classes:classes_of", lambda *_: []),
    Form("product: vector stores", "native.products.epilogue_form:_has_vectors", False),
    # CUDA.
    Form("cuda: threads", "pycuda.kernels.thread_text:thread_function", always=True),
    Form("cuda: teams", "pycuda.kernels.team_text:team_function", always=True),
    Form("cuda: in parts", "pycuda.kernels.split_reductions:division_of"),
    Form("cuda: columns", "pycuda.kernels.team_text:column_of", always=True),
    Form("cuda: tiles", "loops.rules.tiles:in_tiles"),
    Form("cuda: joined kernels", "pycuda.kernels.horizontal_fusion:joined_text", always=True),
    Form("cuda: large products", "pycuda.products.large_products:large_function"),
    Form("cuda: attention by wmma", "pycuda.products.attention:ByMatrices.body", always=True),
    Form("cuda: attention by tiles", "pycuda.products.attention:ByTiles.body", always=True),
    *rules_of(cpu.RULES, cpu.COMPILED_RULES, cpu.COMPILED_COLUMN_RULES, gpu.RULES),
)  # fmt: skip
KERNELS = {
    "lowered": "kernels.kernel_lowering:lower",
    "tree": "loops.rules.cpu:schedule",
    "cuda tree": "loops.rules.gpu:scheduled",
    "native": "native.emit.module_text:function_of",
    "cuda": "pycuda.emit.cuda_module:kernel_parts",
}


def replaced(stack: ExitStack, where: str, wrap: Callable[[Any], Any]) -> None:
    """Put ``wrap`` of a function in its place, in every module and list of rules that has it."""
    owner, name = Form("", where).owner()
    old = owner.__dict__[name]
    new = wrap(old)
    if isinstance(owner, type):
        stack.enter_context(patch.object(owner, name, new))
        return
    for module in [m for n, m in sys.modules.items() if n.startswith("geon.") and m is not None]:
        for key, value in list(vars(module).items()):
            if value is old:
                stack.enter_context(patch.object(module, key, new))
            elif isinstance(value, tuple) and any(is_rule(each, old) for each in value):
                rules = tuple(r._replace(apply=new) if is_rule(r, old) else r for r in value)
                stack.enter_context(patch.object(module, key, rules))


def is_rule(value: Any, function: Any) -> bool:
    """Return True if a value is a rule that applies a function."""
    return isinstance(value, ScheduleRule) and value.apply is function


class Census:
    """Counts of kernels, and of those in which each form fires."""

    def __init__(self) -> None:
        self.kernels: Counter[str] = Counter()
        self.fired: Counter[str] = Counter()
        self.programs: defaultdict[str, list[str]] = defaultdict(list)
        self.now: list[set[str]] = [set()]  # of the kernels that are being made
        self.seen: set[str] = set()
        self.rewrites: set[str] = set()  # those that were tried

    def rewriting(self, rewrite: Any) -> Any:
        """Wrap the rewriting of a graph, so that it notes each rule that replaces an op."""

        def noting(rule: Any) -> Any:
            name = f"rewrite: {rule.__module__.removeprefix('geon.')}:{rule.__name__}"
            self.rewrites.add(name)

            @wraps(rule)
            def noted(op: Any) -> Any:
                new = rule(op)
                if new is not None and new is not op:
                    self.now[-1].add(name)
                return new

            return noted

        def rewritten(roots: Any, rules: RuleSet, *others: Any) -> Any:
            table = {name: tuple(map(noting, each)) for name, each in rules.rules.items()}
            return rewrite(roots, RuleSet(rules.name, table), *others)

        return rewritten

    def noting(self, form: Form) -> Callable[[Any], Any]:
        """Wrap the function of a form so that it notes where the form fires."""

        def wrap(old: Any) -> Any:
            function = old.func if hasattr(old, "func") else old
            is_property = isinstance(old, property)
            function = old.fget if is_property else function

            def noted(*args: Any, **keywords: Any) -> Any:
                found = function(*args, **keywords)
                off = form.answer(args, keywords)
                if form.always or (found is not off and found != off):
                    self.now[-1].add(form.name)
                return found

            return property(noted) if is_property or hasattr(old, "func") else noted

        return wrap

    def scope(self, name: str) -> Callable[[Any], Any]:
        """Wrap a function that makes one kernel."""

        def wrap(function: Any) -> Any:
            def made(*args: Any, **keywords: Any) -> Any:
                self.now.append(set())
                try:
                    return function(*args, **keywords)
                finally:
                    self.kernels[name] += 1
                    fired = self.now.pop()
                    self.fired.update(fired)
                    self.seen |= fired

            return made

        return wrap

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count within the block."""
        with ExitStack() as stack:
            for form in FORMS:
                replaced(stack, form.where, self.noting(form))
            for name, where in KERNELS.items():
                replaced(stack, where, self.scope(name))
            replaced(stack, "lowering.rules.program:rewrite", self.rewriting)
            yield

    def program(self, name: str, make: Callable[[Any], Any]) -> None:
        """Count the kernels of a program for both targets; ``make`` takes a transformer."""
        self.seen, self.now = set(), [set()]
        for transformer in (Native(), Cuda()):
            with suppress(geon.GeonError):
                _ = make(transformer).source
        self.fired.update(self.now[0])
        for form in self.seen | self.now[0]:
            self.programs[form].append(name)


def benchmark(census: Census, name: str) -> None:
    """Count the kernels of a benchmark's workload, at its own sizes."""
    made: list[Callable[[Any], Any]] = []

    class Noting(geon.NumPyTransformer):
        def computation(self, *args: Any, **keywords: Any) -> Any:
            made.append(lambda transformer: transformer.computation(*args, **keywords))
            return super().computation(*args, **keywords)

    geon_work.transformer = Noting
    workload = workloads.named(name)
    geon_work.BUILDERS[workload.kind](workload.sized(False), workload.inputs(False))
    for make in made:
        census.program(f"bench {name}", make)


def count(seed: str, programs: int) -> Census:
    """Count over golden, benchmark and random programs."""
    census = Census()
    with census.running():
        for name, make in PROGRAMS.items():
            results, placeholders = make()
            census.program(f"golden {name}", asking(results, placeholders))
        for workload in workloads.WORKLOADS:
            with suppress(geon.GeonError):
                benchmark(census, workload.name)
        for number in range(programs):
            with suppress(TooLargeError):
                p = grown(seed, number)
                census.program(str(number), asking(p.results, p.placeholders, p.unfed()))
            if number % 50 == 49:
                print(f"{number + 1} programs, {dict(census.kernels)}", file=sys.stderr, flush=True)
    return census


def asking(results: Any, placeholders: Any, lengths: Any = None) -> Callable[[Any], Any]:
    """A function that asks a transformer for a computation."""

    def make(transformer: Any) -> Any:
        return transformer.computation(results, *placeholders, lengths=lengths)

    return make


def kernels(seed: str, name: str, threads: int) -> list[tuple[str, float]]:
    """The text and the seconds of each kernel of a random program, or of a benchmark's workload."""
    if name.isdigit():
        program = grown(seed, int(name))
        with geon.make_transformer("native", threads=threads) as transformer:
            f = transformer.computation(
                program.results, *program.placeholders, lengths=program.unfed()
            )
            f(*program.feeds)
            profile = f.profile(*program.feeds, repeats=REPEATS)
    else:
        f, profile = profiled(name.removeprefix("bench "), threads, REPEATS)
    plan = f.stages().plan
    found = []
    for kernel, row in zip(plan.schedule.kernels, profile, strict=False):
        text = kernel.kind in ("call", "region") or function_of(plan, kernel).text
        found.append((str(text), row.seconds))
    return found


def gain(form: Form, seed: str, names: list[str], threads: int) -> list[float]:
    """Of each program in which a form fires, its kernels' time without the form over that with.

    Only kernels whose text changes count.
    """
    found = []
    for name in names:
        times: dict[bool, list[list[tuple[str, float]]]] = {True: [], False: []}
        with suppress(geon.GeonError):  # a workload whose arguments are not known here
            for _ in range(ROUNDS):
                for on in (True, False):
                    with ExitStack() as stack:
                        replaced(stack, "cache.programs:structure_key", partial(apart, form, on))
                        if not on:
                            replaced(stack, form.where, lambda old: without(form, old))
                        times[on].append(kernels(seed, name, threads))
        if len(times[False]) < ROUNDS:
            continue
        with_it, off = times[True], times[False]
        same = {text for text, _ in with_it[0]} & {text for text, _ in off[0]}
        sums = [[sum(t for text, t in each if text not in same) for each in way]
                for way in (off, with_it)]  # fmt: skip
        if all(sums[1]):
            found.append(statistics.median(sums[0]) / statistics.median(sums[1]))
    return found


def apart(form: Form, on: bool, key: Any) -> Any:
    """Wrap the key of compiled programs, so that each way has one of its own.

    The key is that of the graph, which is the same for both, and a profile runs the compiled
    program beside one that times its kernels, in one arena.
    """

    def keyed(text: str, *options: object) -> Any:
        return key(text, form.name, on, *options)

    return keyed


def without(form: Form, old: Any) -> Any:
    """The function of a form that never fires."""

    def off(*args: Any, **keywords: Any) -> Any:
        return form.answer(args, keywords)

    return property(off) if isinstance(old, property) or hasattr(old, "func") else off


def main() -> None:
    """Count, or time one form."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.form_census")
    parser.add_argument("what", choices=["count", "gain"])
    parser.add_argument("--seed", default="census")
    parser.add_argument("--programs", type=int, default=1000, help="random programs")
    parser.add_argument("--form", help="the form whose gain is measured")
    parser.add_argument("--most", type=int, default=6, help="programs that are timed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--into", type=Path, default=Path("form_census.json"), help="counts")
    chosen = parser.parse_args()
    if chosen.what == "count":
        census = count(chosen.seed, chosen.programs)
        chosen.into.write_text(json.dumps(
            {"kernels": census.kernels, "fired": census.fired, "programs": census.programs}
        ))  # fmt: skip
        print(dict(census.kernels))
        for name in [*(form.name for form in FORMS), *sorted(census.rewrites)]:
            print(f"{census.fired[name]:7} {len(census.programs[name]):5} {name}")
        return
    form = next(form for form in FORMS if form.name == chosen.form)
    if form.always or form.fixed:
        raise SystemExit(f"the form {form.name!r} cannot be switched off: it is only counted")
    programs = json.loads(chosen.into.read_text())["programs"].get(form.name, [])
    known = {f"bench {each.name}" for each in workloads.WORKLOADS}
    names = [name for name in programs if name in known or name.isdigit()]
    found = gain(form, chosen.seed, names[:: max(1, len(names) // chosen.most)][: chosen.most],
                 chosen.threads)  # fmt: skip
    print(form.name, [round(each, 3) for each in found],
          round(statistics.geometric_mean(found), 3) if found else "fires nowhere")  # fmt: skip


if __name__ == "__main__":
    main()
