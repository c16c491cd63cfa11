"""The native transformer: a computation becomes one C function, compiled here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, UnavailableError
from ...op_graph.core.argument_hints import check_flag, explained
from ..base import Transformer
from ..loading.lazy_loading import LaterModule, later_target
from .emit.record import load, save
from .machine.threads import MOST_THREADS, default_threads
from .runtime import flushing
from .runtime.bound_program import NativeProgram, prepare
from .toolchain.compilers import find_toolchain, missing_compiler, sanitized

if TYPE_CHECKING:
    from ..compile import Stages
    from ..computation import Computation
    from ..linking import Linking
    from ..lowering.facts.target import Target
    from ..lowering.planning.plan import Plan
    from ..lowering.rules.program import Program
    from .emit import compiler
else:
    # A program that is recalled is not compiled.
    compiler = LaterModule(".emit.compiler", __package__)


class NativeTransformer(Transformer):
    """Compiles computations to C: fused loops and contractions over one planned arena.

    ``threads`` is how many threads a call may use: ``GEON_THREADS``, else one for each processor.
    With ``sanitize`` compiled code checks every access to memory and all arithmetic, and ends the
    process with a report of the first error; ``UnavailableError`` says how to start a process so.
    With ``flush_subnormals`` results and operands that are too small for a normal number (less than
    1e-38 of float32) are 0 in compiled code, for which many processors take a hundred cycles each;
    ``UnavailableError`` where the processor is not x86-64.
    """

    target: Target = later_target(f"{__package__}.target", "native", alignment=64)

    @explained
    def __init__(
        self,
        threads: int | None = None,
        *,
        sanitize: bool = False,
        flush_subnormals: bool = False,
    ) -> None:
        given = isinstance(threads, (int, np.integer)) and not isinstance(threads, bool)
        if threads is not None and not (given and 1 <= threads <= MOST_THREADS):
            raise ArgumentError(
                f"threads={threads!r}: give a number of threads, 1 to {MOST_THREADS}, or None for "
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
            from .runtime.sanitizing import require_sanitizer  # few need it

            require_sanitizer(self.toolchain())
        names = ["native", *["sanitized"] * sanitize, *["flushing"] * flush_subnormals]
        if len(names) > 1:
            self.target = dataclasses.replace(self.target, name=", ".join(names))

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
        return compiler.emitted(plan, linking, self.toolchain(), annotate, self.flush_subnormals)

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
        compiler.begin_known(program, self.toolchain())

    def compile(self, plan: Plan, linking: Linking) -> NativeProgram:
        """The module of a plan, compiled and loaded."""
        toolchain = self.toolchain()
        return NativeProgram(*compiler.compiled(plan, linking, toolchain, self.flush_subnormals))

    def profile(
        self,
        computation: Computation,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        repeats: int,
    ) -> Any:
        """The time of each kernel, and what the machine could do."""
        from .reports.profile import (
            profile,  # here because few need it, and it takes a while to load
        )

        flushes = self.flush_subnormals
        return profile(self.toolchain(), computation, args, keywords, repeats, flushes)

    def c_function(self, computation: Computation) -> Any:
        """The C function that calls of a computation run."""
        from .reports.c_function import CFunction  # as above

        return CFunction(computation, self.state.version)

    def make_call(self, stages: Stages) -> Any:
        """A callable from one value for each input to the tuple of results."""
        program: NativeProgram = stages.compiled
        functions = program.functions(self.threads, self.state.version)
        if self.sanitize:
            from .runtime.sanitizing import with_red_zones

            functions = with_red_zones(program, functions, self.threads)
        return self.link(functions, stages)
