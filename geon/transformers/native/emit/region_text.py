"""Emit regions as C: a loop that calls the kernels of its body, or a switch over branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from ....op_graph.axes.lengths import Length
from ....op_graph.op_graph import Op, Same
from ....op_graph.regions.scan_op import ScanAttributes
from ....op_graph.regions.while_op import WhileAttributes
from ...kernels.ir.nest import UNLIMITED_TURNS, Region
from ...lowering.facts.value_sizes import bytes_of
from ...lowering.planning.buffer_slots import MemoryScope
from ...lowering.planning.plan import Inside
from ...lowering.planning.schedule import Kernel
from ..products.packed_weight_cache import pays_text

# The parameters of ``geon_run``, after a table of the region's pointers.
HEAD = """\
static int64_t {0}(void *const *a, void *const *p, const int64_t *n, int32_t threads,
                   int64_t *report, void (*show)(int64_t kernel, const void *data))"""
PASSED = "p, n, threads, report, show"
STOP = "if (geon_stopped()) return -1;"  # -1 is not a kernel number
# Entry of the report: the flat iteration number of the running loop nest, if its kernels can fail.
STEP = "report[3]"

LengthText = Callable[[int | Length], str]
Calls = Callable[[MemoryScope[str]], list[str]]  # the statements that call all kernels of a scope


class LoopText:
    """The C function of one scan or while loop.

    Its table ``a`` has the arguments, the results, the buffers between which carries alternate, and
    from index ``behind`` on those of packed operands that are cached across the iterations of a
    scan, or that of the condition of a while loop. ``scopes`` are those of the bodies.
    """

    def __init__(self, kernel: Kernel, inside: Inside, around: MemoryScope[str]) -> None:
        assert isinstance(kernel.work, Region)
        self.kernel, self.inside, self.work = kernel, inside, kernel.work
        self.kernel_args = around.owners(kernel.work.op)
        at = len(kernel.work.op.args)
        self.results = {number: at + k for k, number in enumerate(kernel.work.numbers)}
        self.spares: dict[int, list[int]] = {}
        at += len(self.results)
        for number, buffers in inside.spare.items():
            self.spares[number] = list(range(at, at + len(buffers)))
            at += len(buffers)
        self.behind, self.within = at, around.looped
        self.scopes = [
            around.body(kernel.op, k, self.names(k), looped=True) for k in range(len(inside.plans))
        ]

    def names(self, body: int) -> dict[tuple[str, object], str]:
        """Return the C names of the parameters and results of a body."""
        raise NotImplementedError

    def text(self, name: str, length: LengthText, calls: Calls) -> list[str]:
        """Return the lines of the function."""
        raise NotImplementedError

    def given(self) -> list[Op]:
        """Return the values of the enclosing plan that the loop takes: arguments, results."""
        return [*self.kernel_args, *self.kernel.results]

    def buffers(self) -> list[int]:
        """Return the numbers of the enclosing plan's buffers that the loop also takes."""
        return list(self.inside.own)

    def ways(self, carry: int) -> tuple[int, int]:
        """Return the indices in ``a`` of the two buffers between which a carry alternates.

        The last iteration of a scan writes to the first of them.
        """
        both = [self.results[carry]] if carry in self.results else []
        both += self.spares[carry]
        return both[0], both[-1]


class ScanText(LoopText):
    """The C function of one scan."""

    @property
    def a(self) -> ScanAttributes:
        """Return the attributes of the scan."""
        found: ScanAttributes = self.work.op.attrs
        return found

    def names(self, body: int) -> dict[tuple[str, object], str]:
        """Return the C names of the body's parameters and results."""
        found: dict[tuple[str, object], str] = {}
        for k, leaf in enumerate(self.work.bodies[0].leaves[:-1]):
            name = f"h{k}" if k < self.a.carries else f"x{k}"
            if k >= self.a.before_captures:
                name = f"a[{k}]"
            found["leaf", Same(leaf)] = name
        for k in range(len(self.inside.plans[0].schedule.program.outputs)):
            found["result", k] = f"w{k}" if k < self.a.carries else f"y{k}"
        for k in range(len(self.inside.kept)):
            found["kept", k] = f"&kept[{k}]"
        return found

    def text(self, name: str, length: LengthText, calls: Calls) -> list[str]:
        """Return the lines of the function."""
        leaves = self.work.bodies[0].leaves
        outputs = self.inside.plans[0].schedule.program.outputs
        turns = "steps - 1 - k" if self.a.reverse else "k"
        lines = [HEAD.format(name), "{"]
        lines += ["    (void)p; (void)n; (void)threads; (void)report; (void)show;"]
        lines += self.steps(length)
        lines += self.copies(length)
        lines += init_carries(self.a.carries, self.work.held, self.ways, leaves, length)
        if self.kernel.raises:
            lines.append(f"    const int64_t before = {STEP if self.within else 0};")
        moving = [k for k in range(self.a.carries) if k not in self.work.held]
        lines += [
            "    for (int64_t k = 0; k < steps; k++) {",
            f"        {STOP}",
            f"        const int64_t t = {turns};",
        ]
        if self.kernel.raises:
            most = "most" if self.a.counted else "steps"
            lines.append(f"        {STEP} = before * {most} + t;")
        lines.append("        const int last = (steps - k) % 2 == 1;")
        lines.append("        (void)t; (void)last;")
        for k in range(self.a.carries, self.a.before_captures):
            stride = length(bytes_of(leaves[k]))
            lines.append(f"        void *const x{k} = (char *)a[{k}] + t * ({stride});")
        for k, op in enumerate(outputs):
            if k in moving:
                one, other = self.ways(k)
                lines.append(f"        void *const w{k} = last ? a[{one}] : a[{other}];")
            elif k >= self.a.carries:
                stride, at = length(bytes_of(op)), self.results[k]
                lines.append(f"        void *const y{k} = (char *)a[{at}] + t * ({stride});")
        lines += [f"        {line}" for line in calls(self.scopes[0])]
        lines += [f"        h{k} = w{k};" for k in moving]
        lines.append("    }")
        for k in moving:
            if k in self.results:
                size, at = length(bytes_of(outputs[k])), self.results[k]
                lines.append(f"    if (steps == 0) __builtin_memcpy(a[{at}], h{k}, {size});")
        for k in range(self.a.carries, len(outputs)) if self.a.counted else ():
            stride = length(bytes_of(outputs[k]))
            lines.append(zero_unreached_rows(self.results[k], stride, "steps", "most"))
        if self.kernel.raises and self.within:
            lines.append(f"    {STEP} = before;")
        return [*lines, "    return 0;", "}", ""]

    def steps(self, length: LengthText) -> list[str]:
        """Return the statements that set ``steps``: the axis length, or a count limited to it."""
        most = length(self.a.axis.expression)
        if not self.a.counted:
            return [f"    const int64_t steps = {most};"]
        given = f"*(const int64_t *)a[{len(self.kernel_args) - 1}]"
        return [
            f"    const int64_t most = {most}, given = {given};",
            "    const int64_t steps = given < 0 ? 0 : given < most ? given : most;",
        ]

    def copies(self, length: LengthText) -> list[str]:
        """Return the table of packed operands that the first iteration computes for all others."""
        found = list(self.inside.plans[0].kept.values())
        if not found:
            return []
        lines = ["    int64_t version = 1;", "    struct geon_kept kept[] = {"]
        for k, copy in enumerate(found):
            memory = f"{pays_text(length(copy.rows))} ? a[{self.behind + k}] : 0"
            lines.append(f"        {{&version, 0, {memory}}},")
        return [*lines, "    };"]


def init_carries(
    count: int,
    held: Set[int],
    ways: Callable[[int], tuple[int, int]],
    leaves: Sequence[Op],
    length: LengthText,
) -> list[str]:
    """Return the statements that set the initial pointers of carries.

    A carry in ``held`` is updated in place: it is copied to its buffer if it is elsewhere.
    """
    lines = []
    for k in range(count):
        if k in held:
            at, size = ways(k)[0], length(bytes_of(leaves[k]))
            lines.append(f"    void *const h{k} = a[{at}];")
            lines.append(f"    if (h{k} != a[{k}]) __builtin_memcpy(h{k}, a[{k}], {size});")
        else:
            lines.append(f"    void *h{k} = a[{k}];")
    return lines


def zero_unreached_rows(at: int, stride: str, steps: str, most: str) -> str:
    """Return the statement that zeroes the rows of a stacked result behind the last iteration."""
    start = f"(char *)a[{at}] + {steps} * ({stride})"
    return f"    __builtin_memset({start}, 0, ({most} - {steps}) * ({stride}));"


class WhileText(LoopText):
    """The C function of one while loop."""

    @property
    def a(self) -> WhileAttributes:
        """Return the attributes of the loop."""
        found: WhileAttributes = self.work.op.attrs
        return found

    def names(self, body: int) -> dict[tuple[str, object], str]:
        """Return the C names of the parameters and results of body 0 (test) or 1 (step)."""
        found: dict[tuple[str, object], str] = {}
        for k, leaf in enumerate(self.work.bodies[body].leaves[:-1]):
            found["leaf", Same(leaf)] = f"h{k}" if k < self.a.carries else f"a[{k}]"
        if body == 0:
            found["result", 0] = f"a[{self.behind}]"
            return found
        for k in range(len(self.inside.plans[1].schedule.program.outputs)):
            found["result", k] = f"w{k}" if k < self.a.carries else f"y{k}"
        return found

    def text(self, name: str, length: LengthText, calls: Calls) -> list[str]:
        """Return the lines of the function."""
        outputs, count = self.inside.plans[1].schedule.program.outputs, self.a.carries
        most = "" if self.a.limit is None else f"k < INT64_C({self.a.limit})"
        lines = [HEAD.format(name), "{"]
        lines += ["    (void)p; (void)n; (void)threads; (void)report; (void)show;"]
        leaves, held = self.work.bodies[1].leaves, self.work.held
        lines += init_carries(count, held, self.ways, leaves, length)
        if self.kernel.raises:
            lines.append(f"    const int64_t before = {STEP if self.within else 0};")
        lines += ["    int64_t k = 0;", f"    for (; {most}; k++) {{", f"        {STOP}"]
        if self.kernel.raises:
            lines.append(
                f"        {STEP} = before * INT64_C({self.a.limit or UNLIMITED_TURNS}) + k;"
            )
        lines += [f"        {line}" for line in calls(self.scopes[0])]
        lines.append(f"        if (!*(const uint8_t *)a[{self.behind}]) break;")
        for k, op in enumerate(outputs):
            if k in held:
                continue
            if k < count:
                one, other = self.ways(k)
                lines.append(f"        void *const w{k} = k % 2 == 0 ? a[{one}] : a[{other}];")
            else:
                stride, at = length(bytes_of(op)), self.results[k + 1]
                lines.append(f"        void *const y{k} = (char *)a[{at}] + k * ({stride});")
        lines += [f"        {line}" for line in calls(self.scopes[1])]
        lines += [f"        h{k} = w{k};" for k in range(count) if k not in held]
        lines.append("    }")
        if self.kernel.raises and self.within:
            lines.append(f"    {STEP} = before;")
        for k, op in enumerate(outputs):
            size = length(bytes_of(op))
            if k >= count:
                lines.append(zero_unreached_rows(self.results[k + 1], size, "k", str(self.a.limit)))
            elif k in self.results and k not in held:
                at = self.results[k]
                lines.append(f"    if (h{k} != a[{at}]) __builtin_memcpy(a[{at}], h{k}, {size});")
        return [*lines, "    return 0;", "}", ""]


class CaseText:
    """The C function of one case; its table ``a`` has the arguments and the results."""

    def __init__(self, kernel: Kernel, inside: Inside, around: MemoryScope[str]) -> None:
        assert isinstance(kernel.work, Region)
        self.kernel, self.work = kernel, kernel.work
        self.kernel_args = around.owners(kernel.work.op)
        self.scopes = []
        for k, body in enumerate(self.work.bodies):
            names: dict[tuple[str, object], str] = {
                ("leaf", Same(leaf)): f"a[{n}]" for n, leaf in enumerate(body.leaves)
            }
            for n in range(len(kernel.results)):
                names["result", n] = f"a[{len(body.leaves) + n}]"
            self.scopes.append(around.body(kernel.op, k, names))

    def given(self) -> list[Op]:
        """Return the values of the enclosing plan that the case takes."""
        return [*self.kernel_args, *self.kernel.results]

    def buffers(self) -> list[int]:
        """Return the empty list: a case takes no buffers."""
        return []

    def text(self, name: str, length: LengthText, calls: Calls) -> list[str]:
        """Return the lines of the function."""
        lines = [HEAD.format(name), "{"]
        lines += ["    (void)p; (void)n; (void)threads; (void)report; (void)show;"]
        lines.append("    switch (*(const int64_t *)a[0]) {")
        for k, scope in enumerate(self.scopes):
            lines += [f"    case {k}:", *(f"        {line}" for line in calls(scope))]
            lines.append("        break;")
        return [*lines, "    default:", "        break;", "    }", "    return 0;", "}", ""]


TEXTS: dict[str, type[LoopText] | type[CaseText]] = {
    "scan": ScanText,
    "while": WhileText,
    "case": CaseText,
}
