"""The native transformer: a computation becomes one C function, compiled here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, UnavailableError
from ...op_graph.dtypes import name_of
from ...op_graph.keywords import explained
from ...op_graph.op_graph import Op, deep_order
from ...op_graph.registry import PRIMITIVES
from ..base import Transformer
from ..compile import Stages
from ..computation import Computation
from ..linking import Linking
from ..lowering.fusion import fusion_groups, is_product
from ..lowering.loop_rules import LAST, RULES
from ..lowering.memory import Plan
from ..lowering.program import Program
from ..lowering.short_sums import SHORT_SUMS
from ..lowering.split_folds import SPLIT_FOLDS
from ..lowering.target import Arrangement, Layout, Target
from ..printing.c_expressions import C_TYPES
from .completeness import lacks
from .emit import make_module
from .library_calls import CALLED, called
from .machine import MODEL, machine
from .objects import begin, shared_object
from .packed_copies import packed_copies
from .product_kernels import product_units
from .product_shape import shape
from .record import load, record_of, save
from .runtime import NativeProgram, prepare
from .scratch import scratch_of
from .threads import MOST_THREADS, default_threads, processors
from .toolchain import find_toolchain, missing_compiler, sanitized


def arrange(op: Op, x: Layout, y: Layout) -> Arrangement:
    """Operands as they lie, the result in the order of its axes."""
    return Arrangement((None, None), op.axes.names)


TARGET = Target(
    name="native",
    rules=RULES,
    arrange=arrange,
    in_place={name: row.in_place for name, row in PRIMITIVES.items() if row.in_place},
    hidden={},
    contiguous={
        **{row.name: tuple(range(8)) for row in PRIMITIVES.values() if row.cost == "kernel"},
        "print": (0,),
    },
    group=fusion_groups,
    last=LAST,
    fused=SHORT_SUMS | SPLIT_FOLDS,
    packed=packed_copies,
    scratch=scratch_of,
    lacks=lacks,
    machine=machine,
    model=MODEL,
    scattered=32,  # 0.5 ns, where a multiply-add takes 0.02
    orders=True,
    stops=("scan", "while"),
)


class NativeTransformer(Transformer):
    """Compiles computations to C: fused loops and contractions over one planned arena.

    ``threads`` is how many threads a call may use: ``GEON_THREADS``, else one for each processor.
    With ``sanitize`` compiled code checks every access to memory and all arithmetic, and ends the
    process with a report of the first error; ``UnavailableError`` says how to start a process so.
    """

    target = TARGET

    @explained
    def __init__(self, threads: int | None = None, *, sanitize: bool = False) -> None:
        given = isinstance(threads, (int, np.integer)) and not isinstance(threads, bool)
        if threads is not None and not (given and 1 <= threads <= MOST_THREADS):
            raise ArgumentError(
                f"threads={threads!r}: give a number of threads, 1 to {MOST_THREADS}, or None for "
                "one for each processor"
            )
        super().__init__()
        self._threads = int(threads or default_threads())
        self.sanitize = sanitize
        prepare()
        if sanitize:
            from .sanitizing import require_sanitizer  # few need it

            require_sanitizer(self.toolchain())
            self.target = dataclasses.replace(TARGET, name="native, sanitized")

    @property
    def threads(self) -> int:
        """How many threads a call may use; scratch memory is laid out for so many."""
        return self._threads

    @classmethod
    def unavailable(cls) -> str | None:
        """None where there is a C compiler; else how to get one."""
        return None if find_toolchain() is not None else missing_compiler()

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """The C text of a plan."""
        width = self.toolchain().vector_bytes
        return make_module(plan, linking, width, annotate, cores=processors()).source

    def toolchain(self) -> Any:
        """The compiler that is used; ``UnavailableError`` where there is none."""
        found = find_toolchain()
        if found is None:
            raise UnavailableError(missing_compiler())
        return sanitized(found) if self.sanitize else found

    def recall(self, key: str) -> NativeProgram | None:
        """The program that some process compiled under this key."""
        found = load(key, self.toolchain())
        return None if found is None else NativeProgram(*found)

    def keep(self, key: str, program: NativeProgram) -> None:
        """Let other processes have the program."""
        save(key, self.toolchain(), program.record)

    def begin(self, program: Program) -> None:
        """What ops are known to call, which takes a compiler as long as all stages: the functions
        that products share, and those of the library.
        """
        toolchain = self.toolchain()
        units: dict[str, None] = {}
        for op in deep_order(program.roots):
            if op.primitive.name == "dot" and is_product(op):
                of = shape(C_TYPES[name_of(op.dtype)], toolchain.vector_bytes)
                units.update(dict.fromkeys(product_units(of)))
            elif op.primitive.name in CALLED:
                units.update(dict.fromkeys(called(op).units))
        for unit in units:
            begin(toolchain, unit)

    def compile(self, plan: Plan, linking: Linking) -> NativeProgram:
        """The module of a plan, compiled and loaded."""
        toolchain = self.toolchain()
        width = toolchain.vector_bytes

        def ready(unit: str) -> None:
            begin(toolchain, unit, toolchain.own_flags(unit))

        module = make_module(plan, linking, width, False, cores=processors(), ready=ready)
        path = shared_object(toolchain, module.shared, own=module.units)
        return NativeProgram(record_of(plan, module, path), path)

    def profile(
        self,
        computation: Computation,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        repeats: int,
    ) -> Any:
        """The time of each kernel, and what the machine could do."""
        from .profile import profile  # here because few need it, and it takes a while to load

        return profile(self.toolchain(), computation, args, keywords, repeats)

    def c_function(self, computation: Computation) -> Any:
        """The C function that calls of a computation run."""
        from .c_function import CFunction  # as above

        return CFunction(computation, self.state.version)

    def make_call(self, stages: Stages) -> Any:
        """A callable from one value for each input to the tuple of results."""
        program: NativeProgram = stages.compiled
        functions = program.functions(self.threads, self.state.version)
        if self.sanitize:
            from .sanitizing import with_red_zones

            functions = with_red_zones(program, functions, self.threads)
        return self.link(functions, stages)
