"""What the tests of programs share: a new program, runs of it, and the parts of loops."""

from contextlib import contextmanager

from geon.frontends.program import layers
from geon.frontends.program.executor import Executor
from geon.frontends.program.program import Program, program_guard
from geon.frontends.program.scope import Scope
from geon.frontends.program.storage import CPUPlace, CUDAPlace


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
        place = CUDAPlace(0) if transformer == "pycuda" else CPUPlace(transformer)
        made = self.executors.setdefault(transformer, Executor(place))
        return made.run(self.main, feed, fetch, self.scope, **options)


def counter(value):
    return layers.fill_constant(shape=[1], value=value, dtype="int64")


def count_up(i, n, cond):
    layers.increment(i, step=1.0, Out=i)
    layers.less_than(i, n, Out=cond)


def total(x):
    return layers.reduce_sum(x, reduce_all=True)
