"""Stage 6 for native code: a plan as the text of a C module.

One function, ``geon_run``, calls the kernels in the order of the plan. It takes a table of
pointers (inputs, results, variables, constants, arena buffers), the open lengths in the order of
their names, and how many threads it may use. Kernels with equal text are one function.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

from ...op_graph.attributes import Frozen
from ...op_graph.constants import constant_value
from ...op_graph.dtypes import name_of
from ...op_graph.lengths import Length
from ...op_graph.nodes import shown_name
from ...op_graph.op_graph import Op
from ..kernels.blocked import Blocked
from ..kernels.contraction import Contraction
from ..kernels.lower import Work
from ..kernels.ordered import OrderedLoop
from ..kernels.structure import structure
from ..kernels.types import Call, Region
from ..linking import Linking
from ..lowering.kernel import Kernel
from ..lowering.memory import Plan
from ..lowering.places import open_lengths, place_of, pointer_table
from ..printing.c_expressions import C_TYPES, literal
from ..printing.comments import comment
from ..printing.helpers import definitions
from ..printing.lengths import c_length, divides
from ..printing.parameters import Parameter, Place
from .beside import BESIDE
from .blocks import blocked_function
from .c_files import c_text, instance
from .contractions import contraction_function
from .dialect import PRELUDE
from .library_calls import finite_function, library_function
from .loop_text import PASSED, STOP, TEXTS
from .naming import NAME, START, Function, KernelNames, begun
from .nests import GRAIN, nest_function
from .ordered import ordered_function
from .past import passing
from .scopes import Scope
from .starts import from_starts
from .tiles import LEAST_TURNED, REPEAT, TURNED, WORD
from .units import CALL, cost, divided

LINK = """\
void (*geon_pool_run)(void (*task)(void *argument, int64_t index), void *argument, int64_t count,
                      int32_t threads);
void (*geon_pool_run_short)(void (*task)(void *argument, int64_t index), void *argument,
                            int64_t count, int32_t threads, int32_t duration);
int32_t (*geon_seat)(void);
const int32_t *geon_interrupt;
int32_t (*geon_is_watched)(void);
int64_t geon_past_bytes;

void geon_link(void *run, void *run_short, void *seat, void *interrupt, void *watched,
               int64_t past_bytes);
void geon_link(void *run, void *run_short, void *seat, void *interrupt, void *watched,
               int64_t past_bytes)
{
    __builtin_memcpy(&geon_pool_run, &run, sizeof run);
    __builtin_memcpy(&geon_pool_run_short, &run_short, sizeof run_short);
    __builtin_memcpy(&geon_seat, &seat, sizeof seat);
    geon_interrupt = interrupt;
    __builtin_memcpy(&geon_is_watched, &watched, sizeof watched);
    geon_past_bytes = past_bytes;
}
"""
RUN = """\
int64_t geon_run{0}(void *const *p, const int64_t *n, int32_t threads, int64_t *report,
                    void (*show)(int64_t kernel, const void *data))"""
# The clock of POSIX by hand, since <time.h> takes as long to read as a kernel takes to compile.
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
RUN_LINES = 400
REPORTED = 4  # numbers that a kernel's failure takes of a report; in a timed module times follow
FLOOR_DIV = """\
GEON_INLINE int64_t geon_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
"""
OWN = {
    "geon_floor_div": FLOOR_DIV,
    "geon_grain": GRAIN,
    "geon_beside": BESIDE,
    "geon_repeat": REPEAT,
}  # small functions of kernels


KEPT: Place = ("kept", None)  # the table of copies that are kept, and of the variables' version


@dataclass(frozen=True, eq=False, slots=True)
class Module:
    """A C module: its own units, those it shares with all others, and what the tables that
    ``geon_run`` takes hold."""

    units: tuple[str, ...]
    shared: tuple[str, ...]
    pointers: tuple[Place, ...]
    lengths: tuple[str, ...]

    @property
    def source(self) -> str:
        """The text of all units."""
        return "\n".join((*self.units, *self.shared))


def native_pointers(plan: Plan, linking: Linking) -> list[Place]:
    """The places whose pointers ``geon_run`` takes, in order."""
    kept = [KEPT] if plan.kept or linking.written else []
    return [*pointer_table(plan, linking.inputs, linking.variables, linking.constants), *kept]


def function_of(plan: Plan, kernel: Kernel, vector_bytes: int) -> Function:
    """The C function of a kernel, under the name ``NAME``."""
    work, starts = printed_work(plan, kernel)
    names = KernelNames(plan, kernel, starts)
    if isinstance(work, Call):
        return library_function(work.op, names)
    assert not isinstance(work, Region), "its body's kernels are called"
    if isinstance(work, Blocked):
        return blocked_function(plan, kernel, work, vector_bytes)
    if isinstance(work, OrderedLoop):
        return ordered_function(work, names, vector_bytes)
    if isinstance(work, Contraction):
        made = contraction_function(work, names, vector_bytes)
    else:
        made = nest_function(work, names, vector_bytes, passing=passing(work, names))
        names.calls(["geon_grain"])
    return replace(made, calls=tuple(names.called))


def printed_work(plan: Plan, kernel: Kernel) -> tuple[Work, dict[Place, int]]:
    """A kernel's work as it is printed, and where in their places operands begin for it."""
    if isinstance(kernel.work, Contraction):
        return from_starts(kernel.work, [place_of(plan, op) for op in kernel.work.operands])
    return kernel.work, {}


def memory_of(plan: Plan, kernel: Kernel) -> list[Place | None]:
    """The places that a kernel's function is given: operands, scratch memory, a copy it keeps."""
    assert not isinstance(kernel.work, Call | Region)
    starts = printed_work(plan, kernel)[1]
    found: list[Place | None] = [begun(place_of(plan, op), starts) for op in kernel.work.operands]
    scratch, kept = plan.scratch.get(kernel.op), plan.kept_numbers.get(kernel.op)
    found.append(None if scratch is None else ("arena", scratch))
    found.append(None if kept is None else ("kept", kept))
    return found


def make_module(
    plan: Plan,
    linking: Linking,
    vector_bytes: int,
    annotate: bool,
    suffix: str = "",
    timed: bool = False,
    cores: int = 1,
) -> Module:
    """The C module of a plan; with the user's names and lines where ``annotate``.

    ``suffix`` ends the names of all its functions, so that several can share a unit. Where it is
    ``timed``, a call puts the time in nanoseconds when it begins, and after each kernel, into its
    report behind the first ``REPORTED`` numbers; behind that it adds up, for each of the kernels in
    ``kernels_inside``, the nanoseconds and how often it ran. There are units for so many ``cores``
    to compile side by side.
    """
    work = _Module(plan, linking, vector_bytes, annotate, suffix, timed, cores)
    return work.make()


class _Module:
    def __init__(
        self,
        plan: Plan,
        linking: Linking,
        vector_bytes: int,
        annotate: bool,
        suffix: str,
        timed: bool,
        cores: int = 1,
    ) -> None:
        self.plan, self.linking, self.annotate = plan, linking, annotate
        self.vector_bytes, self.suffix, self.timed = vector_bytes, suffix, timed
        self.cores = cores
        self.table = native_pointers(plan, linking)
        self.where = {place: k for k, place in enumerate(self.table)}
        self.lengths = open_lengths(plan)
        self.constants: dict[Op, str] = {}
        self.statics: list[str] = []
        self.functions: dict[str, str] = {}
        self.printed: dict[Hashable, tuple[Plan, Kernel, Function]] = {}
        self.made: dict[str, Function] = {}
        self.common: dict[str, None] = {}
        self.declarations: dict[str, str] = {}
        self.loops: list[str] = []
        self.divides = False
        self.timer = REPORTED + len(plan.schedule.kernels) + 1
        self.top = Scope(plan, {})

    def make(self) -> Module:
        """All units; the first has ``geon_run``."""
        calls = [self.time(0)]
        if self.linking.written:
            calls.append([f"geon_wrote(p[{self.where[KEPT]}]);"])
        for number, kernel in enumerate(self.plan.schedule.kernels):
            calls.append([*self.call(self.top, number, kernel), *self.time(number + 1)])
        groups = self.units()
        body = self.run(calls)
        others = [self.unit(group, False) for group in groups[1:]]
        first = self.unit(groups[0], len(groups) < 2)
        first += "".join(f"{self.declarations[t]};\n" for group in groups[1:] for t in group)
        first += (CLOCK if self.timed else "") + LINK + "".join(self.statics)
        first += "\n".join([*self.loops, *body])
        return Module((first, *others), tuple(self.common), tuple(self.table), tuple(self.lengths))

    def run(self, calls: list[list[str]]) -> list[str]:
        """The text of ``geon_run`` of the lines for each kernel; a long one is several functions.

        Compilers take more than linear time for a function of many thousand calls.
        """
        parts = in_parts(calls, RUN_LINES)
        if len(parts) == 1:
            return [f"{RUN.format(self.suffix)};", RUN.format(self.suffix), *self.body(parts[0])]
        lines: list[str] = []
        rest = "(p, n, threads, report, show)"
        steps = ["int64_t failed;"]
        for k, part in enumerate(parts):
            head = RUN.format(f"{self.suffix}_part_{k}")
            lines += [f"static __attribute__((noinline)) {head}", *self.body(part)]
            steps.append(f"if ((failed = geon_run{self.suffix}_part_{k}{rest})) return failed;")
        head = RUN.format(self.suffix)
        return [*lines, f"{head};", head, *self.body(steps)]

    def body(self, lines: list[str]) -> list[str]:
        """The body of a function that has the parameters of ``geon_run``."""
        unused = "(void)p; (void)n; (void)threads; (void)report; (void)show;"
        return ["{", *(f"    {line}" for line in [unused, *lines, "return 0;"]), "}", ""]

    def time(self, number: int) -> list[str]:
        """The statement that notes the time before kernel ``number``, where times are wanted."""
        return [f"report[{REPORTED + number}] = geon_now();"] if self.timed else []

    def call(self, scope: Scope, position: int, kernel: Kernel) -> list[str]:
        """The statements for the kernel at this position of a plan."""
        plan = scope.plan
        number = scope.first_step + plan.steps[position][0]
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
        if plan.schedule.check and kernel.raises and not kernel.acts:
            op = kernel.results[0]
            check = finite_function(op, KernelNames(plan, kernel, {}), kernel.infinite)
            lines.append(self.called(check, number, scope))
        return lines

    def loop(self, scope: Scope, kernel: Kernel) -> list[str]:
        """The statements that run a region, whose function is written here."""
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

    def calls_of(self, scope: Scope) -> list[str]:
        """The statements that call all kernels of the body of a loop."""
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
        """A length as C over the table of lengths."""
        if divides(length):
            self.divides = True
        return c_length(length, {name: f"n[{k}]" for k, name in enumerate(self.lengths)})

    def function(self, plan: Plan, kernel: Kernel) -> Function:
        """The function of a kernel: that of an earlier one whose work has the same structure."""
        work, _ = printed_work(plan, kernel)
        if isinstance(work, Call | Region):
            return function_of(plan, kernel, self.vector_bytes)
        memory = memory_of(plan, kernel)
        first: dict[Place | None, int] = {None: -1}
        shared = tuple([first.setdefault(place, k) for k, place in enumerate(memory)])
        key = (structure(work), shared)
        if key not in self.printed:
            made = function_of(plan, kernel, self.vector_bytes)
            self.printed[key] = plan, kernel, made
            return made
        other, like, made = self.printed[key]
        return made.of(dict(zip(memory_of(other, like), memory, strict=True)))

    def called(self, made: Function, number: int, scope: Scope) -> str:
        """The call of a kernel's function; one that fails ends the run with its number."""
        self.common.update(dict.fromkeys(made.units))
        name = self.functions.get(made.text)
        if name is None:
            name = f"kernel{self.suffix}_{len(self.functions)}"
            self.functions[made.text] = name
            self.made[made.text] = made
        arguments = ", ".join(["threads", *(self.argument(p, scope) for p in made.parameters)])
        if made.fails:
            return f"if ({name}({arguments}, report)) return {number + 1};"
        return f"{name}({arguments});"

    def argument(self, parameter: Parameter, scope: Scope) -> str:
        """What a kernel is given for one of its parameters."""
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
            value = op.attrs[0]
            if not isinstance(value, Frozen):
                return self.static(op)
            place = ("frozen", value)
        if place[0] == "kept" and place not in scope.known:
            return f"geon_kept_of(p[{self.where[KEPT]}], {cast(int, place[1]) + 1})"
        if place[0] == "show":
            return str(place[1])
        return scope.pointer(place, lambda place: f"p[{self.where[place]}]")

    def static(self, op: Op) -> str:
        """The name of a small constant array in the module."""
        if op not in self.constants:
            name = f"constant{self.suffix}_{len(self.constants)}"
            dtype = name_of(op.dtype)
            ctype = "uint8_t" if dtype == "bool" else C_TYPES[dtype]
            values = ", ".join(literal(v, dtype) for v in constant_value(op).reshape(-1)) or "0"
            self.constants[op] = name
            self.statics.append(f"static const {ctype} {name}[] = {{{values}}};\n")
        return self.constants[op]

    def note(self, kernel: Kernel) -> list[str]:
        """Comments that say what a kernel computes."""
        if not self.annotate:
            return []
        found = []
        for op in kernel.results or (kernel.op,):
            named = f"{shown_name(op)}: " if op.name else ""
            text = f"{named}{op.primitive.name} {op.axes} {name_of(op.dtype)}, {op.file_info}"
            found.append(f"/* {comment(text)} */")
        return found

    def units(self) -> list[list[str]]:
        """The kernels' texts in groups that are compiled side by side.

        What is there for people or for measurements divides them no other way.
        """
        texts, calls = list(self.functions), CALL * len(self.plan.schedule.kernels)
        groups = divided([cost(text) for text in texts], calls, self.cores)
        return [[texts[number] for number in group] for group in groups]

    def unit(self, texts: list[str], alone: bool) -> str:
        """One unit: what its kernels need, then the kernels."""
        shared: dict[str, None] = {}
        calls: dict[str, None] = {}
        for text in texts:
            shared.update(dict.fromkeys(self.made[text].shared))
            calls.update(dict.fromkeys(self.made[text].calls))
        written = []
        for text in texts:
            name = self.functions[text]
            made = text.replace(NAME, name)
            if not alone:
                made = self.exported(text, made, name)
            written.append(made)
        kernels = "\n".join(written)
        body = "\n".join([*shared, kernels])
        small = small_functions()
        if self.divides:  # in the loops of the first unit
            calls["geon_floor_div"] = None
        own = [text for name, text in small.items() if name in calls]
        helpers = definitions([name for name in calls if name not in small])
        return "\n".join([PRELUDE, helpers, c_text("module.h"), *own, body])

    def exported(self, text: str, made: str, name: str) -> str:
        """A kernel whose function other units may call."""
        head = self.made[text].head.replace(NAME, name)
        declared = f'__attribute__((visibility("hidden"))) {head}'
        self.declarations[text] = declared
        static = f"static {head}"
        assert made.count(static) == 1, f"no function {static} in {made}"
        return made.replace(static, f"{declared};\n{head}")


def in_parts(groups: list[list[str]], most: int) -> list[list[str]]:
    """Lines in parts of about ``most``; a group, such as a block in braces, stays in one part."""
    parts: list[list[str]] = [[]]
    for group in groups:
        if parts[-1] and len(parts[-1]) + len(group) > most:
            parts.append([])
        parts[-1] += group
    return parts


@cache
def small_functions() -> dict[str, str]:
    """Functions of units of kernels, by the name that kernels call."""
    past = {"geon_past_put": c_text("past.h"), "geon_past_row": c_text("past_row.h")}
    return {**OWN, **transposes(), **past}


@cache
def transposes() -> dict[str, str]:
    """The functions that turn tiles of elements of so many bytes, by name."""
    found = {}
    for itemsize in (1, 2, 4, 8):
        macros: dict[str, object] = {"TYPE": f"uint{8 * itemsize}_t", "BYTES": itemsize}
        if itemsize >= 4:
            macros["BLOCK"] = 32 // itemsize
        if itemsize <= 4:
            macros["SIDE"] = 16 // itemsize
        name = f"geon_transpose_{itemsize}"
        found[name] = instance("transpose.h", name, macros)
        found[f"{name}_spread"] = instance("spread.h", name, macros)
        if itemsize >= WORD:
            more = {**macros, "TURNED": TURNED, "LEAST_TURNED": LEAST_TURNED}
            found[f"{name}_turned"] = instance("turn.h", name, more)
    return found
