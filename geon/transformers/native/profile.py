"""``f.profile``: how long each kernel takes, what it moves and computes, and what it could take."""

from __future__ import annotations

import contextlib
import io
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...errors import ArgumentError, AxisError, IndexRangeError, NonFiniteError, SizeError
from ...op_graph.dtypes import name_of
from ...op_graph.nodes import shown_name
from ...op_graph.op_graph import Op
from ..compile import Stages
from ..computation import Computation
from ..kernels.machine import Ceilings, Machine
from ..lowering.kernel import Kernel
from ..lowering.places import place_of
from ..lowering.predictions import Predicted, predictions
from ..messages import about_ops
from .c_function import Table
from .emit import REPORTED, make_module
from .machine import machine
from .objects import shared_object
from .record import record_of
from .runtime import SHOW, Bound, NativeProgram
from .threads import processors
from .toolchain import Toolchain

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class KernelProfile:
    """One kernel: what it computes, and what was measured and counted; bytes and seconds are those
    of one call.

    ``computes`` has a text for each result, with its name or op, axes and dtype; ``places`` the
    user's lines. ``operations`` are by the name of the dtype they are done in. ``predicted`` are
    the seconds that it should take on this machine (``kernels.predict``); ``least`` those that its
    traffic or arithmetic take at the machine's ceilings, whichever are more (the roofline model).
    """

    number: int
    kind: str
    computes: tuple[str, ...]
    places: tuple[str, ...]
    seconds: float
    predicted: float
    least: float
    read: int
    written: int
    touched: int
    operations: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read + self.written

    @property
    def gigabytes_per_second(self) -> float:
        """The rate of its traffic."""
        return 1e-9 * self.bytes / self.seconds

    @property
    def gigaflops(self) -> float:
        """Its operations, in thousand millions a second."""
        return 1e-9 * sum(self.operations.values()) / self.seconds

    @property
    def share(self) -> float:
        """The part of the measured time that the machine needs for it at least."""
        return self.least / self.seconds


@dataclass(frozen=True, eq=False, repr=False)
class Profile(Sequence[KernelProfile]):
    """What a computation spends its time on: a sequence of kernels in the order they run.

    ``str`` is a table. ``call_seconds`` is the median time of ``repeats`` whole calls;
    ``outside_seconds`` what the fastest of them took longer than the kernels of the fastest timed
    run: feeding, the results' memory, Python.
    """

    kernels: tuple[KernelProfile, ...]
    call_seconds: float
    outside_seconds: float
    threads: int
    repeats: int
    ceilings: Ceilings

    def __len__(self) -> int:
        return len(self.kernels)

    def __getitem__(self, position: Any) -> Any:
        return self.kernels[position]

    @property
    def kernel_seconds(self) -> float:
        """The sum over all kernels."""
        return sum(row.seconds for row in self.kernels)

    @property
    def predicted(self) -> float:
        """The seconds that all kernels should take."""
        return sum(row.predicted for row in self.kernels)

    @property
    def least(self) -> float:
        """The seconds that all kernels need at least."""
        return sum(row.least for row in self.kernels)

    def __str__(self) -> str:
        return "\n".join(_table(self))

    __repr__ = __str__


def profile(
    toolchain: Toolchain,
    computation: Computation,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    repeats: int,
) -> Profile:
    """The profile of a computation for these values of its placeholders.

    ``toolchain`` compiles the module that looks at the clock.
    """
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
        raise ArgumentError(f"repeats={repeats!r}: give a number of calls, 1 or more")
    values = (*computation.arranged(args, keywords), *computation.given.values())
    given = tuple(computation.given)
    try:
        return _Work(toolchain, computation, given).profile(values, repeats)
    except (AxisError, IndexRangeError, NonFiniteError, SizeError) as error:
        raise about_ops(error, computation.stages(given), values) from None


class _Work:
    """Two modules over one arena and one set of copies of the variables: the one that calls run,
    and one with the same kernels that looks at the clock between them."""

    def __init__(
        self, toolchain: Toolchain, computation: Computation, given: tuple[Op, ...]
    ) -> None:
        self.toolchain = toolchain
        self.transformer, self.stages = computation.transformer, computation.stages(given)
        self.program: NativeProgram = self.stages.compiled
        self.plan = self.stages.plan
        self.timed = self.stages.once("timed", lambda: timed_program(toolchain, self.stages))
        self.table: Table

    def call(self) -> Callable[..., Any]:
        """A call as the computation makes it, but on copies of the variables."""
        threads = self.transformer.threads
        functions = self.program.functions(threads)

        def bind(arena: Array, offsets: Any, variables: Any, constants: Any, lengths: Any) -> Any:
            bound = (arena, offsets, [np.array(each) for each in variables], constants, lengths)
            times = len(self.plan.schedule.kernels) + 1
            self.table = Table(Bound(self.timed, threads, None, *bound), times)
            return functions.bind(*bound)

        return self.linked(functions._replace(bind=bind))

    def inputs(self, values: Sequence[Any]) -> tuple[Array, ...]:
        """These values as the arrays that a call reads."""

        def run(bound: None, *inputs: Array) -> tuple[Array, ...]:
            return inputs

        sizes = self.program.functions(self.transformer.threads).sizes
        call = self.linked((lambda *bound: None, run, sizes))
        found: tuple[Array, ...] = call(*values)
        return found

    def linked(self, functions: Any) -> Callable[..., Any]:
        return self.transformer.link(functions, self.stages, writes=False)

    def profile(self, values: Sequence[Any], repeats: int) -> Profile:
        """Medians of so many calls, whole and by kernel."""
        call = self.call()
        calls: list[float] = []
        times: list[list[int]] = []

        def whole() -> None:
            begin = time.perf_counter()
            call(*values)
            calls.append(time.perf_counter() - begin)

        def timed() -> None:
            self.table.feed(inputs)
            self.table.renew()
            if self.table.run(self.transformer.threads):
                call(*values)  # fails as well, variables being as they were, and says why
            times.append(self.table.report[REPORTED:])

        with _quiet(bool(self.program.record.shown)):
            call(*values)
            inputs = self.inputs(values)
            if self.program.record.shown:
                self.table.show = SHOW(lambda kernel, data: None)
            for turn in range(repeats):
                # Turns change about: else the slices of time that a busy processor deals out could
                # fall on one of the two alone.
                for run in (timed, whole) if turn % 2 else (whole, timed):
                    run()
        threads = self.transformer.threads
        found = machine(threads, self.toolchain, measure=True)
        lengths = self.table.bound.lengths
        schedule = self.plan.schedule
        where = partial(place_of, self.plan)
        expected = predictions(schedule, lengths, found, threads, where)
        rows = []
        for number, kernel in enumerate(self.plan.schedule.kernels):
            took = statistics.median(each[number + 1] - each[number] for each in times)
            rows.append(_row(number, kernel, max(took, 1) * 1e-9, expected[number], found, threads))
        # The fastest ones are those that other programs disturbed least.
        outside = min(calls) - 1e-9 * min(each[-1] - each[0] for each in times)
        call_seconds = statistics.median(calls)
        return Profile(
            tuple(rows), call_seconds, max(outside, 0.0), threads, repeats, found.on(threads)
        )


def timed_program(toolchain: Toolchain, stages: Stages) -> NativeProgram:
    """The module of a plan with a look at the clock after each kernel, some 30 ns each."""
    width = toolchain.vector_bytes
    module = make_module(
        stages.plan, stages.linking, width, annotate=False, timed=True, cores=processors()
    )
    path = shared_object(toolchain, module.shared, own=module.units)
    return NativeProgram(record_of(stages.plan, module, path), path)


@contextlib.contextmanager
def _quiet(prints: bool) -> Iterator[None]:
    """What a computation prints is not shown while it is profiled."""
    if prints:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    else:
        yield


def _row(
    number: int, kernel: Kernel, seconds: float, expected: Predicted, on: Machine, threads: int
) -> KernelProfile:
    cost, limits = expected.cost, on.on(threads)
    operations = cost.operations(on)
    results = kernel.results or (kernel.op,)
    return KernelProfile(
        number,
        kernel.kind,
        tuple(map(_computed, results)),
        tuple(op.file_info for op in results),
        seconds,
        expected.prediction.seconds,
        limits.seconds(cost.touched, cost.read, cost.written, operations),
        cost.read,
        cost.written,
        cost.touched,
        operations,
    )


def _computed(op: Op) -> str:
    label = f"{shown_name(op)}: {op.primitive.name}" if op.name else op.primitive.name
    return f"{label} {op.axes} {name_of(op.dtype)}"


# The table ----------------------------------------------------------------------------------------

WIDEST = 40  # characters of what a kernel computes
PLACE = 28  # characters of the place where the first result was made
HEAD = ("", "kind", "computes", "at", "us", "time", "bytes", "operations", "GB/s", "GFLOP/s",
        "predicted us", "least us", "of ceiling")  # fmt: skip
LEFT = (1, 2, 3)  # columns of texts


def _table(profile: Profile) -> list[str]:
    """The lines of a table of all kernels, and what they add up to."""
    total = profile.kernel_seconds
    lines = [HEAD, *(_line(row, total) for row in profile.kernels)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD))]
    shown = []
    for line in lines:
        cells = [
            text.ljust(width) if k in LEFT else text.rjust(width)
            for k, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        shown.append("  ".join(cells).rstrip())
    limits = profile.ceilings
    arithmetic = ", ".join(
        f"{1e-9 * rate:.0f} GFLOP/s float{8 * element}"
        for element, rate in sorted(limits.arithmetic.items())
    )
    calls = f"{profile.repeats} call{'' if profile.repeats == 1 else 's'}"
    threads = f"{profile.threads} thread{'' if profile.threads == 1 else 's'}"
    share = f" ({profile.least / total:.0%})" if total else ""
    return [
        *shown,
        f"kernels {1e6 * total:.1f} us, predicted {1e6 * profile.predicted:.1f} us, "
        f"least {1e6 * profile.least:.1f} us{share}",
        f"a call {1e6 * profile.call_seconds:.1f} us, outside kernels "
        f"{1e6 * profile.outside_seconds:.1f} us",
        f"medians of {calls} on {threads}; ceilings: "
        f"{arithmetic}, reading {1e-9 * limits.rates[0][0]:.0f} GB/s of {_bytes(limits.sizes[0])} "
        f"to {1e-9 * limits.rates[0][-1]:.0f} GB/s of {_bytes(limits.sizes[-1])}",
    ]


def _line(row: KernelProfile, total: float) -> tuple[str, ...]:
    more = f" and {len(row.computes) - 1} more" if len(row.computes) > 1 else ""
    return (
        str(row.number),
        row.kind,
        _short(row.computes[0], WIDEST - len(more)) + more,
        _short(row.places[0], PLACE, start=False),
        f"{1e6 * row.seconds:.2f}",
        f"{row.seconds / total:.0%}",
        _bytes(row.bytes),
        _count(sum(row.operations.values())),
        f"{row.gigabytes_per_second:.1f}",
        f"{row.gigaflops:.1f}",
        f"{1e6 * row.predicted:.2f}",
        f"{1e6 * row.least:.2f}",
        f"{row.share:.0%}",
    )


def _short(text: str, width: int, start: bool = True) -> str:
    if len(text) <= width:
        return text
    return f"{text[: width - 3]}..." if start else f"...{text[3 - width :]}"


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def _count(count: float) -> str:
    for unit in ("", " k", " M"):
        if count < 1000:
            return f"{count:.4g}{unit}"
        count /= 1000
    return f"{count:.4g} G"
