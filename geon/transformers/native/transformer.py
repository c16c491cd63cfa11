"""The native transformer: compiles a computation to one C function."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, UnavailableError
from ...op_graph.core.argument_hints import check_flag, public
from ..base import Transformer
from ..loading.lazy_loading import LaterModule, later_target
from .emit.record import load, save
from .machine.threads import MAX_THREADS, default_threads
from .runtime import flushing
from .runtime.bound_program import NativeProgram, prepare
from .toolchain.compilers import find_toolchain, missing_compiler, with_sanitizers

if TYPE_CHECKING:
    from ..compile import CompileStages
    from ..computation import Computation
    from ..linking import Linking
    from ..lowering.facts.target import Target
    from ..lowering.planning.plan import Plan
    from ..lowering.rules.program import Program
    from .emit import compiler
else:
    # A program from the disk cache does not need the compiler.
    compiler = LaterModule(".emit.compiler", __package__)


class NativeTransformer(Transformer):
    """Compiles computations to C: fused loops and contractions over one planned arena.

    ``threads`` is the number of threads that a call may use: by default ``GEON_THREADS``, else one
    for each processor. With ``sanitize`` compiled code checks every memory access and all
    arithmetic, and ends the process with a report of the first error; ``UnavailableError`` says how
    to start such a process. With ``flush_subnormals`` compiled code replaces results and operands
    that are too small for a normal number (less than 1e-38 for float32) by 0, as many processors
    take a hundred cycles for each of them; ``UnavailableError`` if the processor is not x86-64.
    """

    target: Target = later_target(f"{__package__}.target", "native", alignment=64)

    @public
    def __init__(
        self,
        threads: int | None = None,
        *,
        sanitize: bool = False,
        flush_subnormals: bool = False,
    ) -> None:
        given = isinstance(threads, (int, np.integer)) and not isinstance(threads, bool)
        if threads is not None and not (given and 1 <= threads <= MAX_THREADS):
            raise ArgumentError(
                f"threads={threads!r}: give a number of threads, 1 to {MAX_THREADS}, or None for "
                "one for each processor"
            )
        check_flag("NativeTransformer", "flush_subnormals", flush_subnormals)
        if flush_subnormals and not flushing.is_possible():
            raise UnavailableError(flushing.missing())
        super().__init__()
        self._threads = int(threads or default_threads())
        self.sanitize, self.flush_subnormals = sanitize, flush_subnormals
        prepare()
        if sanitize:
            from .runtime.sanitizing import require_sanitizer  # rarely needed

            require_sanitizer(self.toolchain())
        names = ["native", *["sanitized"] * sanitize, *["flushing"] * flush_subnormals]
        if len(names) > 1:
            self.target = dataclasses.replace(self.target, name=", ".join(names))

    @property
    def threads(self) -> int:
        """The number of threads that a call may use; scratch memory is for so many."""
        return self._threads

    @classmethod
    def unavailable(cls) -> str | None:
        """Return None if there is a C compiler, else how to install one."""
        return None if find_toolchain() is not None else missing_compiler()

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """Return the C text of a plan."""
        return compiler.emit_c(plan, linking, annotate, self.flush_subnormals)

    def toolchain(self) -> Any:
        """Return the C compiler; raise ``UnavailableError`` if there is none."""
        found = find_toolchain()
        if found is None:
            raise UnavailableError(missing_compiler())
        return with_sanitizers(found) if self.sanitize else found

    def recall(self, key: str) -> NativeProgram | None:
        """Return the program cached under ``key`` on disk, or None."""
        found = load(key, self.toolchain())
        return None if found is None else NativeProgram(*found)

    def keep(self, key: str, program: NativeProgram) -> None:
        """Write the compiled program to the disk cache."""
        save(key, self.toolchain(), program.record)

    def begin(self, program: Program) -> None:
        """Start to compile the shared functions that the program will call: those of products and
        of the library. Compiling them takes as long as all stages.
        """
        compiler.begin_known(program, self.toolchain())

    def compile(self, plan: Plan, linking: Linking) -> NativeProgram:
        """Compile a plan and load its module."""
        toolchain = self.toolchain()
        return NativeProgram(
            *compiler.compile_plan(plan, linking, toolchain, self.flush_subnormals)
        )

    def profile(
        self,
        computation: Computation,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        repeats: int,
    ) -> Any:
        """Return the time of each kernel, compared with the machine's limits."""
        from ..reports.profiled_calls import profile_calls  # rarely needed
        from .reports.profile import NativeProfile  # rarely needed and slow to import

        made = partial(NativeProfile, self.toolchain(), self.flush_subnormals)
        return profile_calls(made, computation, args, keywords, repeats)

    def c_function(self, computation: Computation) -> Any:
        """Return the C function that calls of a computation run."""
        from .reports.c_function import CFunction  # rarely needed

        return CFunction(computation, self.state.version)

    def written_program(
        self, computation: Computation, name: str, threads: int, march: str, values: str | None
    ) -> Any:
        """Return the C files of a computation."""
        from .standalone.written_program import WrittenProgram  # rarely needed

        flushes = self.flush_subnormals
        return WrittenProgram(self, computation, name, threads, march, values, flushes)

    def make_call(self, stages: CompileStages) -> Any:
        """Return a function from a value for each input to the results' tuple."""
        program: NativeProgram = stages.compiled
        functions = program.functions(self.threads, self.state.version)
        if self.sanitize:
            from .runtime.sanitizing import with_red_zones

            functions = with_red_zones(program, functions, self.threads)
        return self.link(functions, stages)
