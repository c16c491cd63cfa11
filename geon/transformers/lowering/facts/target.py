"""``Target``: a frozen description of where code will run, read by every stage after the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ....op_graph.op_graph import Op
from ....op_graph.rewriting.driver import RuleSet
from ...kernels.costs.machine import Machine
from ...kernels.scans.scalarised_scans import TurnBounds
from ...sizes.scratch import Scratch


@dataclass(frozen=True, slots=True)
class Layout:
    """The nesting of axes in memory, outermost first.

    ``mergeable``: neighbours in ``order`` can be walked as one axis; ``unit``: elements of the
    innermost axis are adjacent.
    """

    order: tuple[str, ...]
    mergeable: bool = True
    unit: bool = True


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The order to copy each operand of a contraction in (None: as it is), and the result's."""

    copies: tuple[tuple[str, ...] | None, tuple[str, ...] | None]
    order: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Target:
    """What a transformer's stages need to know of the machine and its library.

    ``rules`` lower what the target has no row for, and ``last`` are applied when those and the
    stable forms have nothing left to do, then ``fused`` unless each op is a kernel that is checked;
    ``arrange`` says how a contraction wants its operands laid out; ``in_place`` names the rows
    whose result may take the memory of some arguments, by position; ``hidden`` gives the bytes
    per element of the first operand that the library takes by
    itself while a row runs (work by blocks of bounded size is not counted). ``contiguous`` names
    the operands that a row reads only in the order of their axes. ``group`` says which ops become
    one kernel (``groups.Group``), one each where it is None; ``packed`` which copies kernels of a
    schedule keep from call to call, or of a loop's body, whose leaves that are the same in all
    steps it is told, from step to step, by their ``op`` (``Scratch`` with a ``size``),
    ``scratch`` the memory that they work in; ``lacks`` which entries of its tables an op of a
    lowered program needs and they have not. ``machine`` gives the machine that calls on so many
    threads run on, which kernels' times are predicted for; none are where it is None. ``model`` is
    the machine that fusion decides by, the same wherever it runs, as kernels and bits must be.
    ``scattered`` is how many multiply-adds of a product take as long as adding an element up at its
    place; None where products of what is looked up stay as they are. ``orders`` bounds the
    statements of a scan that is one kernel, its small tensors taken apart; None where no scan is
    one kernel. ``stops`` names the loops that an interrupt ends. ``alignment`` is
    that of the arena and its buffers, in bytes, and ``result_bytes`` says what a result of so many
    bytes takes of memory; ``beside`` names the kinds of kernels that run side
    by side where they need nothing of each other.
    """

    name: str
    rules: RuleSet
    arrange: Callable[[Op, Layout, Layout], Arrangement]
    in_place: dict[str, tuple[int, ...]]
    hidden: dict[str, int]
    contiguous: dict[str, tuple[int, ...]] = field(default_factory=dict)
    group: Callable[..., list[Any]] | None = None
    last: RuleSet | None = None
    fused: RuleSet | None = None
    packed: Callable[..., dict[Op, Any]] | None = None
    scratch: Callable[..., dict[Op, Scratch]] | None = None
    lacks: Callable[[Op], list[str]] = lambda op: []
    machine: Callable[[int], Machine] | None = None
    model: Machine | None = None
    scattered: int | None = None
    orders: TurnBounds | None = None
    stops: tuple[str, ...] = ()
    alignment: int = 64
    result_bytes: Callable[[int], int] = lambda size: size
    beside: tuple[str, ...] = ()
