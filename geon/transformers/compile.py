"""Compilation of one computation: stages 3 to 6, each run lazily and once.

The modules of stages 3 to 5 are imported when one of them first runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..op_graph.core.traversal import deep_order
from .cache import programs
from .linking import Linking
from .loading.environment import debugging
from .loading.lazy_loading import LaterModule, outline_of

if TYPE_CHECKING:
    from ..op_graph.op_graph import Leaf
    from ..op_graph.transforms.functionalize import Functional
    from . import pipeline
    from .lowering.facts.target import Target
    from .lowering.planning.plan import Plan
    from .lowering.planning.schedule import Schedule
    from .lowering.rules import complex_parts
    from .lowering.rules.program import Program
    from .request import Request
    from .sizes.budget import Budget
else:
    # loaded at first use: a recalled program runs no stage
    pipeline = LaterModule(".pipeline", __package__)
    complex_parts = LaterModule(".lowering.rules.complex_parts", __package__)


class Compiler(Protocol):
    """Interface of a transformer that the stages use."""

    target: Target

    @property
    def threads(self) -> int:
        """Return the number of threads that a call may use."""

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """Return the text of a compiled plan."""

    def begin(self, program: Program) -> None:
        """Start work that compiling a program will need, in parallel with the next stages."""

    def compile(self, plan: Plan, linking: Linking) -> Any:
        """Return the program of a plan."""

    def recall(self, key: str) -> Any:
        """Return the program stored under this key, or None."""

    def keep(self, key: str, program: Any) -> None:
        """Store a program under this key."""


class CompileStages:
    """The stages' results for ``pure``, a graph of a request, fed by ``inputs``."""

    def __init__(
        self, request: Request, pure: Functional, inputs: Sequence[Leaf], compiler: Compiler
    ) -> None:
        self.request, self.compiler = request, compiler
        self.functional, self.pure, self.inputs = pure, pure, tuple(inputs)
        self.is_complex = [op.dtype.kind == "c" for op in pure.outputs if op is not None]
        # The complex leaf for each leaf that stands for its parts; None without complex values.
        self.complex_leaves: dict[Leaf, Leaf] | None = None
        if any(op.dtype.kind == "c" for op in deep_order([*pure.roots, *pure.updates, *inputs])):
            form = complex_parts.real_form(
                pure, inputs, request.open_table, self.compiler.target.transforms
            )
            self.pure, self.inputs, self.complex_leaves = form.pure, form.inputs, form.leaves
        self._made: dict[str, Any] = {}

    @property
    def program(self) -> Program:
        """Stage 3: the simplified graph, of the request's own copies, within its memory budget."""
        made: Program = self.once(
            "program",
            lambda: pipeline.simplify(self.request, self.pure, self.compiler.target, self.budget),
        )
        return made

    @property
    def budget(self) -> Budget | None:
        """Return the memory budget of a call, with the lengths it applies to; None without one."""
        made: Budget | None = self.once(
            "budget", lambda: self.request.budget(self.compiler.threads)
        )
        return made

    @property
    def kept(self) -> Plan:
        """Return the plan without recomputation."""
        made: Plan = self.once("kept", self._kept)
        return made

    def _kept(self) -> Plan:
        request, target = self.request, self.compiler.target
        program = pipeline.built(request, self.pure, target, again=False)
        return pipeline.make_plan(request, pipeline.make_schedule(request, program, target))

    @property
    def schedule(self) -> Schedule:
        """Stage 4: kernels in order."""
        made: Schedule = self.once(
            "schedule",
            lambda: pipeline.make_schedule(self.request, self.program, self.compiler.target),
        )
        return made

    @property
    def plan(self) -> Plan:
        """Stage 5: the memory plan, which assigns each value its home."""
        made: Plan = self.once(
            "plan", lambda: pipeline.verify(pipeline.make_plan(self.request, self.schedule))
        )
        return made

    @property
    def compiled(self) -> Any:
        """Stage 6: the program, shared by all graphs of this structure."""
        key = programs.structure_key(
            self.linking.text,
            outline_of(self.compiler).name,
            self.linking.signature(),
            self.request.check,
            self.request.planned,
            self.budget,
        )
        return programs.program(key, lambda: self._compiled(key))

    def _compiled(self, key: str) -> Any:
        """Return the program for this key, from the disk cache before stages 3 to 6, or compiled.

        Programs with users' primitives are not cached: the key does not cover the code of these. If
        plans are to be verified, the cache is not used either.
        """
        keeps = self.linking.of_own_rows and not debugging("verify")
        found = self.compiler.recall(key) if keeps else None
        if found is None:
            self.compiler.begin(self.program)
            found = self.compiler.compile(self.plan, self.linking)
            if keeps:
                self.compiler.keep(key, found)
        return found

    @property
    def source(self) -> str:
        """Return the program as text, with the user's names, axes and lines as comments."""
        return self.compiler.emit(self.plan, self.linking, annotate=True)

    @property
    def linking(self) -> Linking:
        """Return the inputs, variables and constants that the program is linked with."""
        made: Linking = self.once(
            "linking", lambda: Linking(self.pure, self.inputs, self._storage())
        )
        return made

    def _storage(self) -> dict[Leaf, Leaf]:
        """Return the variables that leaves stand for, if these are others."""
        stored = self.request.storage
        parts = (self.complex_leaves or {}).items()
        return {**stored, **{leaf: stored.get(z, z) for leaf, z in parts if leaf.info.stored}}

    def stands_for(self, leaf: Leaf) -> Leaf:
        """Return the complex leaf whose parts ``leaf`` has; else the leaf itself."""
        return leaf if self.complex_leaves is None else self.complex_leaves.get(leaf, leaf)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the value of ``make()``, computed at the first request for this name."""
        with self.request.lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]
