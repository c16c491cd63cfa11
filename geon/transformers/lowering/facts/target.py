"""``Target``: an immutable description of where code will run, used by all later stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from ....lazy_dataclasses import dataclass
from ....op_graph.op_graph import Op
from ....op_graph.rewriting.driver import RuleSet
from ...kernels.costs.machine import Machine
from ...kernels.scans.scalarised_scans import TurnBounds
from ...sizes.scratch import Scratch


@dataclass(frozen=True, slots=True)
class Layout:
    """Memory layout: ``order`` has the axes, outermost first.

    ``mergeable`` is True if neighbours in ``order`` can be traversed as one axis. ``unit`` is True
    if the innermost axis has stride 1.
    """

    order: tuple[str, ...]
    mergeable: bool = True
    unit: bool = True


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Layouts of a contraction: ``copies`` of operands (None: no copy), ``order`` of its result."""

    copies: tuple[tuple[str, ...] | None, tuple[str, ...] | None]
    order: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Target:
    """Properties of a machine and its library that the stages of a transformer depend on.

    ``name`` identifies the target in errors. ``rules`` lower primitives that the target lacks.
    ``arrange`` chooses the layouts of a contraction's operands and result. ``in_place`` maps
    primitives to the positions of arguments whose memory the result may overwrite. ``hidden`` maps
    primitives to the bytes per element of the first operand that the library allocates by itself;
    scratch memory of bounded size is not counted. ``contiguous`` maps primitives to the operands
    that must be contiguous in the order of their axes. ``group`` fuses ops into kernels
    (``fusion_groups.Group``); if None, each op is a kernel. ``last`` are rules applied after
    ``rules`` and the stable forms have converged. ``fused`` are rules applied after ``last``,
    except where each op is a checked kernel. ``packed`` returns the packed copies that kernels
    cache, by ``op``, from a schedule, the forms of kernels by ``op``, and the leaves that are
    constant in the loop: from call to call, or in its body from iteration to iteration. ``forms``
    returns a new, empty ``FormTable``, which chooses what kernels run; if None, they have no
    choice. ``scratch`` returns the scratch memory of kernels, by ``op``, from a schedule and the
    forms of kernels, by ``op``. ``lacks`` lists the table entries that an op of a lowered program
    needs and the target lacks. ``machine`` returns the machine of calls on a number of threads, for
    predictions of kernel times; if None, there are no predictions. ``model`` is the machine that
    fusion decides by. It does not depend on the actual machine, so that kernels and results are the
    same everywhere. ``collapsed`` is the maximum of known elements of a row that is transposed in
    one loop with rows around it; columns of longer rows are in vector lanes. ``scattered`` is the
    cost of a scatter-add of one element, in multiply-adds of a product; if None, products of
    gathered rows are not rewritten. ``orders`` bounds the statements of a scan that becomes one
    kernel, scalarised; if None, no scan does.
    ``stops`` names the loops that an interrupt ends. ``alignment`` is that of the arena and its
    buffers, in bytes. ``result_bytes`` returns the bytes allocated for a result of a size in bytes.
    ``concurrent_kinds`` names the kinds of kernels that may run concurrently if they are
    independent. If not ``transforms``, Fourier transforms of known lengths become products with
    matrices.
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
    forms: Callable[[], Any] | None = None
    scratch: Callable[..., dict[Op, Scratch]] | None = None
    lacks: Callable[[Op], list[str]] = lambda op: []
    machine: Callable[[int], Machine] | None = None
    model: Machine | None = None
    collapsed: int = 0
    scattered: int | None = None
    orders: TurnBounds | None = None
    stops: tuple[str, ...] = ()
    alignment: int = 64
    result_bytes: Callable[[int], int] = lambda size: size
    concurrent_kinds: tuple[str, ...] = ()
    transforms: bool = True
