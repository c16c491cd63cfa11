"""Stages 3 to 6, in order: from the pure graph of a computation to a program.

Each stage is run once for a graph, when what it makes is first asked for, by a call or by a person.
The modules of stages 3 to 5 are imported when one of them is first run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

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
    from .lowering.rules.program import Program
    from .request import Request
    from .sizes.budget import Budget
else:
    pipeline = LaterModule(".pipeline", __package__)  # a program that is recalled runs no stage


class Compiler(Protocol):
    """What the stages need of a transformer."""

    target: Target

    @property
    def threads(self) -> int:
        """How many threads a call may use."""

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """The text of a compiled plan."""

    def begin(self, program: Program) -> None:
        """Begin what compiling a program is known to need, beside the stages that follow."""

    def compile(self, plan: Plan, linking: Linking) -> Any:
        """The program of a plan."""

    def recall(self, key: str) -> Any:
        """A program that was kept under this key; else None."""

    def keep(self, key: str, program: Any) -> None:
        """Keep a program under this key."""


class Stages:
    """What the stages make of ``pure``, a graph of a request, fed by ``inputs``."""

    def __init__(
        self, request: Request, pure: Functional, inputs: Sequence[Leaf], compiler: Compiler
    ) -> None:
        self.request, self.pure, self.inputs, self.compiler = request, pure, inputs, compiler
        self._made: dict[str, Any] = {}

    @property
    def program(self) -> Program:
        """Stage 3: the simplified graph, of the request's own copies, fitted to its memory."""
        made: Program = self.once(
            "program",
            lambda: pipeline.simplified(self.request, self.pure, self.compiler.target, self.budget),
        )
        return made

    @property
    def budget(self) -> Budget | None:
        """The bytes that a call may take, and what they are meant for."""
        made: Budget | None = self.once(
            "budget", lambda: self.request.budget(self.compiler.threads)
        )
        return made

    @property
    def kept(self) -> Plan:
        """The plan in which nothing is computed again."""
        made: Plan = self.once("kept", self._kept)
        return made

    def _kept(self) -> Plan:
        request, target = self.request, self.compiler.target
        program = pipeline.built(request, self.pure, target, again=False)
        return pipeline.planned(request, pipeline.scheduled(request, program, target))

    @property
    def schedule(self) -> Schedule:
        """Stage 4: kernels in order."""
        made: Schedule = self.once(
            "schedule",
            lambda: pipeline.scheduled(self.request, self.program, self.compiler.target),
        )
        return made

    @property
    def plan(self) -> Plan:
        """Stage 5: the home of each value."""
        made: Plan = self.once(
            "plan", lambda: pipeline.verified(pipeline.planned(self.request, self.schedule))
        )
        return made

    @property
    def compiled(self) -> Any:
        """Stage 6: the program, which all graphs of this structure share."""
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
        """The program under this key: one that was kept, found before stages 3 to 6 run.

        What users' rows compute is in their code, which no key knows. Plans are checked, where that
        is asked for, so they are made.
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
        """The program as text, with the user's names, axes and lines as comments."""
        return self.compiler.emit(self.plan, self.linking, annotate=True)

    @property
    def linking(self) -> Linking:
        """What the program is linked with: inputs, variables, constants."""
        made: Linking = self.once(
            "linking", lambda: Linking(self.pure, self.inputs, self.request.storage)
        )
        return made

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, made when it is first asked for under this name."""
        with self.request.lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]
