"""What the tests of programs share: a new program, and runs of it on NumPy."""

from contextlib import contextmanager

from geon.frontends.program import operators
from geon.frontends.program.executor import CPUPlace, Executor
from geon.frontends.program.operators import control
from geon.frontends.program.program import Program, program_guard
from geon.frontends.program.scope import Scope

assert operators and control


@contextmanager
def new_program():
    """Context of a new default program; ``run(feed, fetch)`` runs it in a scope of its own."""
    main, startup = Program(), Program()
    with program_guard(main, startup):
        yield Run(main, startup)


class Run:
    """A program with its start-up program and a scope."""

    def __init__(self, main, startup):
        self.main, self.startup, self.scope = main, startup, Scope()
        self.executors = {}

    def start(self, **values):
        """Run the initialisers, then set variables of the scope."""
        Executor(CPUPlace("numpy")).run(self.startup, scope=self.scope)
        for name, value in values.items():
            self.scope.var(name).set(value)

    def __call__(self, feed, fetch, transformer="numpy", **options):
        made = self.executors.setdefault(transformer, Executor(CPUPlace(transformer)))
        return made.run(self.main, feed, fetch, self.scope, **options)
