"""The native transformer: a computation becomes one C function, compiled here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError, UnavailableError
from ...op_graph.functional import Functional
from ...op_graph.op_graph import Leaf, Op
from ..base import Transformer
from ..fusion import LIBRARY, group
from ..linking import Linking
from ..memory import Plan
from ..target import Arrangement, Layout, Target
from .emit import make_module
from .lowering import RULES
from .objects import shared_object
from .runtime import NativeProgram
from .threads import default_threads
from .toolchain import find_toolchain, missing_compiler


def arrange(op: Op, x: Layout, y: Layout) -> Arrangement:
    """Operands as they lie, the result in the order of its axes."""
    return Arrangement((None, None), op.axes.names)


TARGET = Target(
    name="native",
    rules=RULES,
    arrange=arrange,
    in_place=dict.fromkeys(("sort", "update", "scatter"), (0,)),
    hidden={},
    contiguous={
        **{name: tuple(range(8)) for name in LIBRARY},
        "print": (0,),
        "checked": (0,),
    },
    group=group,
)


class NativeTransformer(Transformer):
    """Compiles computations to C: fused loops and contractions over one planned arena.

    ``threads`` is how many threads a call may use: ``GEON_THREADS``, else one for each processor.
    """

    target = TARGET

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise ArgumentError(f"threads={threads!r}: give a number of threads, 1 or more")
        super().__init__()
        self.threads = threads or default_threads()

    @classmethod
    def unavailable(cls) -> str | None:
        """None where there is a C compiler; else how to get one."""
        return None if find_toolchain() is not None else missing_compiler()

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """The C text of a plan."""
        module = make_module(plan, linking, self.toolchain().vector_bytes, annotate)
        return "\n".join(module.units)

    def toolchain(self) -> Any:
        """The compiler that is used; ``UnavailableError`` where there is none."""
        found = find_toolchain()
        if found is None:
            raise UnavailableError(missing_compiler())
        return found

    def compile(self, plan: Plan, linking: Linking) -> NativeProgram:
        """The module of a plan, compiled and loaded."""
        toolchain = self.toolchain()
        module = make_module(plan, linking, toolchain.vector_bytes, annotate=False)
        path = shared_object(toolchain, module.units)
        return NativeProgram(plan, module, path, "\n".join(module.units))

    def make_call(self, computation: Any, pure: Functional, leaves: Sequence[Leaf]) -> Any:
        """A callable from one value for each leaf to the tuple of results."""
        program, linking = computation.compiled(pure, leaves)
        return self.link(program.functions(lambda: self.threads), computation, linking)
