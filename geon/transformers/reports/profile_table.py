"""Profiles: rows of kernels, and their text table."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import ArgumentError
from ...lazy_dataclasses import dataclass
from ...op_graph.nodes import shown_name
from ...op_graph.op_graph import Op
from ...op_graph.values.dtypes import name_of
from ..kernels.costs.machine import Ceilings
from ..lowering.fusion.fusion_groups import is_region_result

UNKNOWN = math.nan  # predicted seconds on a device without a model
# Min. share and seconds of a kernel's time that flushing subnormals must save for it to be marked.
MIN_SUBNORMAL_SHARE = 1 / 3
MIN_SUBNORMAL_SECONDS = 2e-6


@dataclass(frozen=True, eq=False)
class KernelProfile:
    """One kernel of a profile; bytes and seconds are per call.

    ``computes`` has a text for each result, with its name or op, axes and dtype; ``places`` has the
    user's lines. ``operations`` are counts by name of the dtype. ``predicted`` is the time that the
    cost model predicts on this machine (``kernels.predict``), in seconds. ``least`` is the lower
    bound by the machine's ceilings for its traffic or its arithmetic, whichever is larger (the
    roofline model). Both are NaN if the ceilings are not known. For a loop or branch, ``inner`` has
    the kernels in it, in execution order, each summed over its ``runs``. ``subnormal`` is the share
    of the time saved by flushing subnormal numbers to zero, NaN if it was not measured.
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
    runs: int = 1
    inner: tuple[KernelProfile, ...] = ()
    subnormal: float = UNKNOWN

    @property
    def slowed(self) -> bool:
        """Return True if it spends a third of its time, and 2 us, on subnormal numbers."""
        return self.subnormal >= MIN_SUBNORMAL_SHARE and (
            self.subnormal * self.seconds >= MIN_SUBNORMAL_SECONDS
        )

    @property
    def bytes(self) -> int:
        """Return the bytes read and written."""
        return self.read + self.written

    @property
    def gigabytes_per_second(self) -> float:
        """Return its memory traffic in GB/s."""
        return 1e-9 * self.bytes / self.seconds

    @property
    def gigaflops(self) -> float:
        """Return its operations in GFLOP/s."""
        return 1e-9 * sum(self.operations.values()) / self.seconds

    @property
    def share(self) -> float:
        """Return the share of the measured time that the machine needs at least."""
        return self.least / self.seconds


@dataclass(frozen=True, eq=False, repr=False)
class Profile(Sequence[KernelProfile]):
    """The profile of a computation: a sequence of kernels in execution order.

    ``str`` is a table. ``call_seconds`` is the median time of ``repeats`` whole calls.
    ``outside_seconds`` is the time of the fastest call minus that of the kernels in the fastest
    timed run: feeding, the results' memory, Python. ``device`` names a device that computes
    asynchronously; its ``ceilings`` are not measured and None.
    """

    kernels: tuple[KernelProfile, ...]
    call_seconds: float
    outside_seconds: float
    threads: int
    repeats: int
    ceilings: Ceilings | None
    device: str = ""

    def __len__(self) -> int:
        return len(self.kernels)

    def __getitem__(self, position: Any) -> Any:
        return self.kernels[position]

    @property
    def kernel_seconds(self) -> float:
        """Return the sum over all kernels, in seconds."""
        return sum(row.seconds for row in self.kernels)

    @property
    def predicted(self) -> float:
        """Return the predicted time of all kernels, in seconds."""
        return sum(row.predicted for row in self.kernels)

    @property
    def least(self) -> float:
        """Return the lower bound of the time of all kernels, in seconds."""
        return sum(row.least for row in self.kernels)

    def __str__(self) -> str:
        return "\n".join(_table(self))

    __repr__ = __str__


def describe_computed(op: Op) -> str:
    """Return text about what an op computes; a result of a region is named by the region."""
    row = op.args[0].primitive if is_region_result(op) else op.primitive
    label = f"{shown_name(op)}: {row.name}" if op.name else row.name
    return f"{label} {op.axes} {name_of(op.dtype)}"


def checked_repeats(repeats: Any) -> int:
    """Return a number of calls; raise ``ArgumentError`` for anything else."""
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
        raise ArgumentError(f"repeats={repeats!r}: give a number of calls, 1 or more")
    return repeats


@contextlib.contextmanager
def quiet(prints: bool) -> Iterator[None]:
    """Suppress the output of a computation while it is profiled."""
    if prints:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    else:
        yield


# The table ----------------------------------------------------------------------------------------

INDENT = "  "  # per level of loops and branches
MAX_OP_CHARACTERS = 40  # max. characters of what a kernel computes
MAX_PLACE_CHARACTERS = 28  # max. characters of the line of the first result
HEAD = ("", "kind", "runs", "computes", "at", "us", "time", "bytes", "operations", "GB/s",
        "GFLOP/s", "predicted us", "least us", "of ceiling")  # fmt: skip
RUNS_COLUMN = 2  # column that is shown if there are loops or branches
PREDICTED_COLUMNS = (11, 12, 13)  # columns that are shown if the machine's ceilings are known
TEXT_COLUMNS = (1, 3, 4)  # left-aligned columns


def _table(profile: Profile) -> list[str]:
    """Return the lines of a table of all kernels, with totals."""
    total = profile.kernel_seconds
    lines = [HEAD, *(line for row in profile.kernels for line in _lines(row, total))]
    hidden: tuple[int, ...] = () if any(row.inner for row in profile.kernels) else (RUNS_COLUMN,)
    hidden += PREDICTED_COLUMNS if profile.ceilings is None else ()
    shows = [k for k in range(len(HEAD)) if k not in hidden]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD))]
    shown = []
    for line in lines:
        cells = [
            line[k].ljust(widths[k]) if k in TEXT_COLUMNS else line[k].rjust(widths[k])
            for k in shows
        ]
        shown.append("  ".join(cells).rstrip())
    kernels, where, limits = f"kernels {1e6 * total:.1f} us", profile.device, profile.ceilings
    if limits is not None:
        share = f" ({profile.least / total:.0%})" if total else ""
        kernels += f", predicted {1e6 * profile.predicted:.1f} us, "
        kernels += f"least {1e6 * profile.least:.1f} us{share}"
        where = f"{profile.threads} thread{'' if profile.threads == 1 else 's'}; "
        where += _ceilings(limits)
    calls = f"{profile.repeats} call{'' if profile.repeats == 1 else 's'}"
    return [
        *shown,
        *_slowed(profile.kernels),
        kernels,
        f"a call {1e6 * profile.call_seconds:.1f} us, outside kernels "
        f"{1e6 * profile.outside_seconds:.1f} us",
        f"medians of {calls} on {where}",
    ]


def _slowed(rows: Sequence[KernelProfile]) -> list[str]:
    """Return a line for each kernel that spends its time on subnormal numbers."""
    return [
        f"kernel {row.number} spends {row.subnormal:.0%} of its time on subnormal numbers: "
        "flush_subnormals=True of the native transformer takes them for 0"
        for row in rows
        if row.slowed
    ]


def _ceilings(limits: Ceilings) -> str:
    """Return a machine's measured ceilings as text."""
    arithmetic = ", ".join(
        f"{1e-9 * rate:.0f} GFLOP/s float{8 * element}"
        for element, rate in sorted(limits.arithmetic.items())
    )
    return (
        f"ceilings: {arithmetic}, reading {1e-9 * limits.rates[0][0]:.0f} GB/s of "
        f"{_bytes(limits.sizes[0])} to {1e-9 * limits.rates[0][-1]:.0f} GB/s of "
        f"{_bytes(limits.sizes[-1])}"
    )


def _lines(row: KernelProfile, total: float, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the line of a kernel, and below it, indented, those of the kernels in it."""
    yield _line(row, total, depth)
    for each in row.inner:
        yield from _lines(each, total, depth + 1)


def _line(row: KernelProfile, total: float, depth: int) -> tuple[str, ...]:
    more = f" and {len(row.computes) - 1} more" if len(row.computes) > 1 else ""
    return (
        "" if depth else str(row.number),
        INDENT * depth + row.kind,
        f"{row.runs:,}",
        _short(row.computes[0], MAX_OP_CHARACTERS - len(more)) + more,
        _short(row.places[0], MAX_PLACE_CHARACTERS, start=False),
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
