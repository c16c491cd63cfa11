"""Emit a plan as the text of a C module.

The function ``geon_run`` calls the kernels in the order of the plan. Its parameters are a table of
pointers (inputs, results, variables, constants, arena buffers), the open lengths in the order of
their names, and the number of threads that it may use. Kernels with equal text share one function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import cast

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import Length
from ....op_graph.building.constants import constant_value
from ....op_graph.nodes import shown_name
from ....op_graph.op_graph import Op
from ....op_graph.values.attribute_types import Frozen
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Call, Region
from ...kernels.kernel_lowering import Work
from ...kernels.products.contraction import Contraction
from ...kernels.products.operand_starts import from_starts
from ...kernels.products.row_blocking import Blocked
from ...kernels.scans.sequential_scan import OrderedLoop
from ...kernels.structural_key import first_occurrences
from ...linking import Linking
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import MemoryScope, open_lengths, place_of, pointer_table
from ...lowering.planning.plan import Plan
from ...printing.nests.parameters import Parameter, Place
from ...printing.scalars.c_expressions import C_TYPES, literal
from ...printing.scalars.c_types import c_length, comment, divides
from ...sizes.limits import MAX_FUNCTION_NODES
from ..library.library_calls import finite_function, library_function
from ..names.external_names import external_link
from ..names.naming import (
    NAME,
    START,
    KernelNames,
    NativeFunction,
    offset_place,
)
from ..products.contractions import contraction_function
from ..toolchain.translation_units import CALL_COST_CHARACTERS
from ..trees.nest_text import nest_function
from ..vectors.scan_text import ordered_function
from .chain_text import blocked_function
from .one_file import one_file
from .region_text import PASSED, STOP, TEXTS
from .unit_texts import UnitFunctions

LINK = """\
void (*geon_pool_run)(void (*task)(void *argument, int64_t index), void *argument, int64_t count,
                      int32_t threads);
void (*geon_pool_run_short)(void (*task)(void *argument, int64_t index), void *argument,
                            int64_t count, int32_t threads, int32_t duration);
int32_t (*geon_seat)(void);
const int32_t *geon_interrupt;
int32_t (*geon_is_watched)(void);
int64_t geon_past_bytes, geon_reread_bytes;

void geon_link(void *run, void *run_short, void *seat, void *interrupt, void *watched,
               int64_t past_bytes, int64_t reread_bytes);
void geon_link(void *run, void *run_short, void *seat, void *interrupt, void *watched,
               int64_t past_bytes, int64_t reread_bytes)
{
    __builtin_memcpy(&geon_pool_run, &run, sizeof run);
    __builtin_memcpy(&geon_pool_run_short, &run_short, sizeof run_short);
    __builtin_memcpy(&geon_seat, &seat, sizeof seat);
    geon_interrupt = interrupt;
    __builtin_memcpy(&geon_is_watched, &watched, sizeof watched);
    geon_past_bytes = past_bytes;
    geon_reread_bytes = reread_bytes;
}
"""
RUN = """\
int64_t geon_run{0}(void *const *p, const int64_t *n, int32_t threads, int64_t *report,
                    void (*show)(int64_t kernel, const void *data))"""
# Bits 15 (FTZ) and 6 (DAZ) of MXCSR: subnormal results and subnormal operands become 0.
FLUSHED = """\
{{
    const unsigned control = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(control | 0x8040);
    const int64_t failed = geon_run{0}(p, n, threads, report, show);
    __builtin_ia32_ldmxcsr(control);
    return failed;
}}
"""
# POSIX clock declared by hand: including <time.h> takes as long as compiling a kernel.
CLOCK = """\
struct geon_time {
    long seconds, nanoseconds;
};
extern int clock_gettime(int clock, struct geon_time *now);
static int64_t geon_now(void)
{
    struct geon_time now;
#ifdef __APPLE__
    clock_gettime(6, &now); /* CLOCK_MONOTONIC */
#else
    clock_gettime(1, &now);
#endif
    return (int64_t)now.seconds * 1000000000 + now.nanoseconds;
}

"""
MAX_RUN_LINES = MAX_FUNCTION_NODES  # statements of one function of a long ``geon_run``
# Int64 values in a report that describe a failure; a timed module's times follow.
FAILURE_REPORT_WORDS = 4


KEPT: Place = ("kept", None)  # the table of cached packed operands and the variables' version


@dataclass(frozen=True, eq=False, slots=True)
class CModule:
    """A C module and the layout of the tables that ``geon_run`` takes.

    ``units`` are the module's own translation units, the first one with ``geon_run``. ``shared``
    are the units that all programs share. ``pointers`` are the memory locations of the pointer
    table, in order. ``lengths`` are the names of the open lengths, in order. ``external`` are the
    keys of the external functions that the units call.
    """

    units: tuple[str, ...]
    shared: tuple[str, ...]
    pointers: tuple[Place, ...]
    lengths: tuple[str, ...]
    external: tuple[str, ...]

    @property
    def source(self) -> str:
        """Return all units as one C file, which ends with ``geon_run``."""
        first, *others = self.units
        return one_file([*self.shared, *others, first])


def native_pointers(plan: Plan, linking: Linking) -> list[Place]:
    """Return the memory locations whose pointers ``geon_run`` takes, in order."""
    kept = [KEPT] if plan.kept or linking.written else []
    return [*pointer_table(plan, linking.inputs, linking.variables, linking.constants), *kept]


def function_of(plan: Plan, kernel: Kernel) -> NativeFunction:
    """Return the C function of a kernel, under the placeholder name ``NAME``."""
    work, starts = printed_work(plan, kernel)
    form = plan.forms.get(kernel.op)
    names = KernelNames(plan, kernel, starts)
    if isinstance(work, Call):
        return library_function(work.op, names)
    assert not isinstance(work, Region), "its body's kernels are called"
    assert form is not None
    if isinstance(work, Contraction):
        made = contraction_function(work, form.parts, names)
        return replace(made, calls=tuple(names.called))
    if isinstance(work, Blocked):
        return blocked_function(plan, kernel, work, form)
    if isinstance(work, OrderedLoop):
        (scan,) = form.parts
        return ordered_function(work, scan, names)
    made = nest_function(work, form.parts, names)
    names.calls(["geon_grain"])
    return replace(made, calls=tuple(names.called))


def printed_work(plan: Plan, kernel: Kernel) -> tuple[Work, dict[Place, int]]:
    """Return the kernel's work as emitted, and its operands' start offsets by location."""
    starts: dict[Place, int] = {}
    if isinstance(kernel.work, Contraction):
        _, starts = from_starts(kernel.work, [place_of(plan, op) for op in kernel.work.operands])
    form = plan.forms.get(kernel.op)
    return kernel.work if form is None else form.work, starts


def memory_of(plan: Plan, kernel: Kernel) -> list[Place | None]:
    """Return the memory locations that a kernel's function takes: operands, scratch, cached copy.

    A kernel without scratch memory or cached copy has None there.
    """
    assert not isinstance(kernel.work, Call | Region)
    starts = printed_work(plan, kernel)[1]
    found: list[Place | None] = [
        offset_place(place_of(plan, op), starts) for op in kernel.work.operands
    ]
    scratch, kept = plan.scratch.get(kernel.op), plan.kept_numbers.get(kernel.op)
    found.append(None if scratch is None else ("arena", scratch))
    found.append(None if kept is None else ("kept", kept))
    return found


def make_module(
    plan: Plan,
    linking: Linking,
    annotate: bool,
    suffix: str = "",
    timed: bool = False,
    cores: int = 1,
    ready: Callable[[str], None] = lambda unit: None,
    flushes: bool = False,
    link: str = LINK,
) -> CModule:
    """Return the C module of a plan, with the user's names and lines as comments if ``annotate``.

    ``suffix`` ends the names of all functions, so that several modules can share a unit. If
    ``timed``, a call writes the time in nanoseconds at its start and after each kernel into its
    report, behind the first ``FAILURE_REPORT_WORDS`` values. Behind those it adds up the
    nanoseconds and the
    number of runs of each kernel in ``kernels_inside``. The functions are divided into units for
    ``cores`` parallel compilers. ``ready`` receives some of the units while others are still being
    emitted. If ``flushes``, subnormal numbers are flushed to zero while a call runs. ``link``
    defines the pool's functions that kernels call; by default a call of ``geon_link`` sets them.
    """
    work = _CModuleWriter(plan, linking, annotate, suffix, timed, cores, ready, flushes, link)
    return work.make()


class _CModuleWriter:
    def __init__(
        self,
        plan: Plan,
        linking: Linking,
        annotate: bool,
        suffix: str,
        timed: bool,
        cores: int,
        ready: Callable[[str], None],
        flushes: bool = False,
        link: str = LINK,
    ) -> None:
        self.plan, self.linking, self.annotate = plan, linking, annotate
        self.link = link
        self.suffix, self.timed = suffix, timed
        self.flushes = flushes
        self.table = native_pointers(plan, linking)
        self.where = {place: k for k, place in enumerate(self.table)}
        self.lengths = open_lengths(plan)
        self.constants: dict[Op, str] = {}
        self.statics: list[str] = []
        self.functions = UnitFunctions(
            suffix, CALL_COST_CHARACTERS * len(plan.schedule.kernels), cores, ready
        )
        self.printed: dict[Hashable, tuple[Plan, Kernel, NativeFunction]] = {}
        self.common: dict[str, None] = {}
        self.external: dict[str, None] = {}
        self.loops: list[str] = []
        self.divides = False
        self.timer = FAILURE_REPORT_WORDS + len(plan.schedule.kernels) + 1
        self.top: MemoryScope[str] = MemoryScope(plan)

    def make(self) -> CModule:
        """Return the module; ``geon_run`` is in its first unit."""
        kernels = [k for k in self.plan.schedule.kernels if not isinstance(k.work, Call | Region)]
        self.functions.forms = len({self.plan.forms[kernel.op] for kernel in kernels})
        calls = [self.time(0)]
        if self.linking.written:
            calls.append([f"geon_wrote(p[{self.where[KEPT]}]);"])
        for number, kernel in enumerate(self.plan.schedule.kernels):
            calls.append([*self.call(self.top, number, kernel), *self.time(number + 1)])
        body = self.flushing(calls) if self.flushes else self.run(calls, self.suffix)
        first, *others = self.functions.units(self.divides)
        first += (
            (CLOCK if self.timed else "")
            + self.link
            + external_link(list(self.external), self.suffix)
        )
        first += "".join(self.statics)
        first += "\n".join([*self.loops, *body])
        shared, external = tuple(self.common), tuple(self.external)
        return CModule((first, *others), shared, tuple(self.table), tuple(self.lengths), external)

    def flushing(self, calls: list[list[str]]) -> list[str]:
        """Return the text of ``geon_run`` that flushes subnormal numbers in the calling thread.

        The pool gives its threads the control word of the thread that calls it.
        """
        inner = f"{self.suffix}_flushed"
        head = RUN.format(self.suffix)
        return [*self.run(calls, inner), f"{head};", head, FLUSHED.format(inner)]

    def run(self, calls: list[list[str]], suffix: str) -> list[str]:
        """Return the text of ``geon_run`` from the statements of each kernel; split a long one.

        Compile time grows faster than linearly for a function of many thousand calls.
        """
        parts = in_parts(calls, MAX_RUN_LINES)
        if len(parts) == 1:
            return [f"{RUN.format(suffix)};", RUN.format(suffix), *self.body(parts[0])]
        lines: list[str] = []
        rest = "(p, n, threads, report, show)"
        steps = ["int64_t failed;"]
        for k, part in enumerate(parts):
            head = RUN.format(f"{suffix}_part_{k}")
            lines += [f"static __attribute__((noinline)) {head}", *self.body(part)]
            steps.append(f"if ((failed = geon_run{suffix}_part_{k}{rest})) return failed;")
        head = RUN.format(suffix)
        return [*lines, f"{head};", head, *self.body(steps)]

    def body(self, lines: list[str]) -> list[str]:
        """Return the body of a function that has the parameters of ``geon_run``."""
        unused = "(void)p; (void)n; (void)threads; (void)report; (void)show;"
        return ["{", *(f"    {line}" for line in [unused, *lines, "return 0;"]), "}", ""]

    def time(self, number: int) -> list[str]:
        """Return the statement that stores the time before kernel ``number``, if timed."""
        return [f"report[{FAILURE_REPORT_WORDS + number}] = geon_now();"] if self.timed else []

    def call(self, scope: MemoryScope[str], position: int, kernel: Kernel) -> list[str]:
        """Return the statements that run the kernel at ``position`` in a plan's schedule."""
        plan = scope.plan
        number = scope.step(position)
        if isinstance(kernel.work, Region):
            return [*self.note(kernel), *self.loop(scope, kernel)]
        if kernel.op.primitive.name == "print":
            value = plan.schedule.base[kernel.op]
            pointer = self.argument(Parameter("x0", "", place_of(plan, value)), scope)
            ended = f"if (report[0]) return {number + 1};"
            return [*self.note(kernel), f"report[0] = 0; show({number}, {pointer}); {ended}"]
        lines = self.note(kernel)
        lines.append(self.called(self.function(plan, kernel), number, scope))
        if kernel.stops:
            lines.append(STOP)
        if plan.schedule.check and kernel.raises and not kernel.has_side_effect:
            op = kernel.results[0]
            check = finite_function(op, KernelNames(plan, kernel, {}), kernel.infinite)
            lines.append(self.called(check, number, scope))
        return lines

    def loop(self, scope: MemoryScope[str], kernel: Kernel) -> list[str]:
        """Emit the function of a region and return the statements that call it."""
        assert isinstance(kernel.work, Region)
        made = TEXTS[kernel.work.op.primitive.name](kernel, scope.plan.inside[kernel.op], scope)
        text = made.text(NAME, self.length_text, self.calls_of)
        name = f"loop{self.suffix}_{len(self.loops)}"
        self.loops.append("\n".join(text).replace(NAME, name))
        given = [place_of(scope.plan, op) for op in made.given()]
        given += [("arena", each) for each in made.buffers()]
        pointers = [self.argument(Parameter("a", "", place), scope) for place in given]
        listed = ", ".join([f"(void *){pointer}" for pointer in pointers])
        failed = f"const int64_t failed = {name}(given, {PASSED});"
        return ["{", f"    void *const given[] = {{{listed}}};", f"    {failed}",
                "    if (failed) return failed;", "}"]  # fmt: skip

    def calls_of(self, scope: MemoryScope[str]) -> list[str]:
        """Return the statements that call all kernels of a region's body."""
        kernels = list(enumerate(scope.plan.schedule.kernels))
        if not self.timed:
            return [line for k, kernel in kernels for line in self.call(scope, k, kernel)]
        lines = ["{", "int64_t now = geon_now();"]
        for k, kernel in kernels:
            spent, runs = f"report[{self.timer}]", f"report[{self.timer + 1}]"
            self.timer += 2
            lines += self.call(scope, k, kernel)
            lines.append(f"{spent} -= now; now = geon_now(); {spent} += now; {runs}++;")
        return [*lines, "}"]

    def length_text(self, length: int | Length) -> str:
        """Return a length as a C expression over the table of lengths."""
        if divides(length):
            self.divides = True
        return c_length(length, {name: f"n[{k}]" for k, name in enumerate(self.lengths)})

    def function(self, plan: Plan, kernel: Kernel) -> NativeFunction:
        """Return the C function of a kernel; kernels of equal structure share it."""
        if isinstance(kernel.work, Call | Region):
            return function_of(plan, kernel)
        memory = memory_of(plan, kernel)
        key = (plan.forms[kernel.op], first_occurrences(memory))
        if key not in self.printed:
            made = function_of(plan, kernel)
            self.printed[key] = plan, kernel, made
            return made
        other, like, made = self.printed[key]
        return made.of(dict(zip(memory_of(other, like), memory, strict=True)))

    def called(self, made: NativeFunction, number: int, scope: MemoryScope[str]) -> str:
        """Return the call of a kernel's function; if it fails, the run returns its number."""
        self.common.update(dict.fromkeys(made.units))
        self.external.update(dict.fromkeys(made.external))
        name = self.functions.name(made)
        arguments = ", ".join(["threads", *(self.argument(p, scope) for p in made.parameters)])
        if made.fails:
            return f"if ({name}({arguments}, report)) return {number + 1};"
        return f"{name}({arguments});"

    def argument(self, parameter: Parameter, scope: MemoryScope[str]) -> str:
        """Return the C expression that a kernel receives for ``parameter``."""
        place = parameter.place
        if isinstance(place, str):
            return f"n[{self.lengths.index(place)}]"
        assert isinstance(place, tuple)
        if place[0] == START:
            within, start = cast("tuple[Place, int]", place[1])
            first = self.argument(replace(parameter, place=within), scope)
            return f"({parameter.ctype} *){first} + {start}"
        if place[0] == "constant":
            op = place[1].op
            value = op.attrs.value
            if not isinstance(value, Frozen):
                return self.static(op)
            place = ("frozen", value)
        if place[0] == "kept" and place not in scope.known:
            return f"geon_kept_of(p[{self.where[KEPT]}], {cast(int, place[1]) + 1})"
        if place[0] == "show":
            return str(place[1])
        return scope.pointer(place, lambda place: f"p[{self.where[place]}]")

    def static(self, op: Op) -> str:
        """Return the name of a small constant array, and define it at first use."""
        if op not in self.constants:
            name = f"constant{self.suffix}_{len(self.constants)}"
            dtype = name_of(op.dtype)
            ctype = "uint8_t" if dtype == "bool" else C_TYPES[dtype]
            values = ", ".join(literal(v, dtype) for v in constant_value(op).reshape(-1)) or "0"
            self.constants[op] = name
            self.statics.append(f"static const {ctype} {name}[] = {{{values}}};\n")
        return self.constants[op]

    def note(self, kernel: Kernel) -> list[str]:
        """Return comments that name the kernel's results, or none if not ``annotate``."""
        if not self.annotate:
            return []
        found = []
        for op in kernel.results or (kernel.op,):
            named = f"{shown_name(op)}: " if op.name else ""
            text = f"{named}{op.primitive.name} {op.axes} {name_of(op.dtype)}, {op.file_info}"
            found.append(f"/* {comment(text)} */")
        return found


def in_parts(groups: list[list[str]], most: int) -> list[list[str]]:
    """Split lines into parts of at most ``most`` lines where possible, without splitting a group.

    A group is, for example, a block in braces.
    """
    parts: list[list[str]] = [[]]
    for group in groups:
        if parts[-1] and len(parts[-1]) + len(group) > most:
            parts.append([])
        parts[-1] += group
    return parts
