"""``Transformer``: compiles computations for one kind of device and owns their storage."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, UnavailableError
from ..op_graph.axes import Axis, default_lengths
from ..op_graph.effects import doall, without_follows
from ..op_graph.functional import Functional
from ..op_graph.op_graph import Leaf, Op, Tensor, storage_leaves
from . import checkpoint
from .calls import Call
from .computation import Computation, Linking, _named_lengths
from .environment import default_transformer
from .memory import Plan
from .storage import Variables, dim_of, dims_of
from .target import Target

log = logging.getLogger("geon")
GROUP = "geon.transformers"
BUILT_IN = {"numpy": "geon.transformers.numpy.transformer:NumPyTransformer"}


class Transformer:
    """Compiles computations and owns their variables; a subclass for each kind of device.

    A subclass states ``target`` and ``compile`` (a plan as functions to call), and where it has
    them ``emit`` (a plan as text) and ``unavailable`` (whether it can be used here). Use it as a
    context manager, or ``close`` it, to free its memory.
    """

    target: Target

    def __init__(self) -> None:
        missing = self.unavailable()
        if missing is not None:
            raise UnavailableError(f"the transformer {self.target.name!r} cannot be used: {missing}")
        self.lock = threading.RLock()
        self.computations: list[Computation] = []
        self.variables = Variables()

    @classmethod
    def unavailable(cls) -> str | None:
        """None where it can be used here; else why not, with the command that mends it."""
        return None

    # What a subclass provides -------------------------------------------------------------------

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """The text of a compiled plan; with the user's names and lines where ``annotate``."""
        raise NotImplementedError

    def compile(self, plan: Plan, linking: Linking) -> Any:
        """An object whose ``functions`` are (bind, run, sizes), as ``link`` takes them.

        It is cached by structure and the target's name, and shared by computations of one form: it
        must read variables and large constants from what ``bind`` is given.
        """
        raise NotImplementedError

    def make_call(self, computation: Computation, pure: Functional, leaves: Sequence[Leaf]) -> Any:
        """A callable from one value for each leaf to the tuple of results."""
        program, linking = computation.compiled(pure, leaves)
        return self.link(program.functions, computation, linking)

    def link(
        self, functions: Any, computation: Computation, linking: Linking, *, writes: bool = True
    ) -> Call:
        """A callable that feeds, binds lengths, checks guards and runs ``functions``.

        ``sizes(lengths)`` gives the bytes of arena buffers, the first and last kernel of each, and
        the bytes beside the arena; ``bind(arena, offsets, variables, constants, lengths)``, called
        once for each binding, what ``run`` needs; ``run(bound, *inputs)`` the tuple of results. It
        puts new values into the arrays of variables, unless ``writes`` is False.
        """
        with self.lock:
            self.variables.add(linking.variables)
            slots = {leaf: self.variables.slot(leaf) for leaf in linking.variables}
        needed, read = list(linking.variables), list(linking.read)

        def ensure(lengths: dict[str, int]) -> None:
            self.ensure(needed, read, lengths)

        return Call(
            functions,
            [(_label(leaf), leaf.dtype, dims_of(leaf.axes)) for leaf in linking.inputs],
            list(slots.values()),
            [value.array for value in linking.constants],
            [
                (guard.relation, dim_of(guard.left), dim_of(guard.right), guard.meaning)
                for guard in computation.guards
            ],
            self.variables.state,
            [slots[leaf] for leaf in linking.written] if writes else [],
            computation.lengths,
            default_lengths,
            ensure,
        )

    # Computations -------------------------------------------------------------------------------

    def computation(
        self,
        results: Any,
        *placeholders: Leaf,
        keep: Sequence[Tensor] = (),
        check: str | None = None,
        plan: bool = True,
        lengths: Mapping[Axis, int] | None = None,
        specialize: Mapping[Axis, int] | None = None,
    ) -> Computation:
        """A callable from values of ``placeholders`` to the values of ``results``.

        ``results`` is an op or a list of them; an effect among them is run and gives None. ``keep``
        lists tensors whose values can be read, and overridden, after a call. ``check="nan"`` stops
        at the first value that is not finite, naming its op and line, with variables as they were.
        ``plan=False`` gives each value memory of its own. ``lengths`` fix open axes. Raises
        ``ArgumentError`` for a placeholder that is needed but not listed.
        """
        self.variables.state.usable()
        made = Computation(
            self,
            results,
            placeholders,
            keep=keep,
            check=check,
            plan=plan,
            lengths=lengths,
            specialize=specialize,
        )
        with self.lock:
            self.computations.append(made)
            self.variables.add(made.linking.variables)
        return made

    # Storage ------------------------------------------------------------------------------------

    def allocate(self, lengths: Mapping[Axis, int] | None = None) -> None:
        """Give every known variable memory; open axes take ``lengths`` or their defaults."""
        known = {**default_lengths(), **_named_lengths(lengths or {})}
        with self.lock:
            for leaf in self.variables.leaves:
                self.variables.allocate(leaf, known)

    def initialize(self, *, force: bool = False, lengths: Mapping[Axis, int] | None = None) -> None:
        """Set each variable not yet set to its initial value, those that others read first.

        With ``force`` all are set again. Runs by itself where a computation first needs a variable.
        """
        known = {**default_lengths(), **_named_lengths(lengths or {})}
        with self.lock:
            self.variables.state.usable()
            leaves = list(self.variables.leaves)
            for leaf in leaves:
                self.variables.allocate(leaf, known)
            if force:
                for leaf in leaves:
                    if leaf.info.initial_value is not None or leaf.info.initializers:
                        self.variables.slot(leaf).ready = False
            self._initialize([leaf for leaf in leaves if leaf.info.initial_value is not None])

    def ensure(self, needed: Sequence[Leaf], read: Sequence[Leaf], lengths: dict[str, int]) -> None:
        """Make variables usable: allocate what is ``needed``, initialize what is ``read``.

        Others that are known and whose lengths are known are initialized with them, so that the
        first values do not depend on which computation is called first.
        """
        with self.lock:
            self.variables.state.usable()
            variables = self.variables
            if all(variables.slot(leaf).array is not None for leaf in needed) and all(
                variables.slot(leaf).ready for leaf in read
            ):
                return
            for leaf in variables.leaves:
                if leaf in needed or variables.allocatable(leaf, lengths):
                    variables.allocate(leaf, lengths)
            waiting = [
                leaf
                for leaf in variables.leaves
                if variables.slot(leaf).array is not None
                and not variables.slot(leaf).ready
                and leaf.info.initial_value is not None
            ]
            self._initialize(waiting)
            for leaf in read:
                if not variables.slot(leaf).ready:
                    raise ArgumentError(
                        f"the variable {leaf} (made at {leaf.file_info}) is read but has no value: "
                        "give it initial_value=, or transformer.set(variable, array)"
                    )

    def _initialize(self, leaves: Sequence[Leaf]) -> None:
        """Set variables in rounds: first those whose initial values read no unset variable."""
        variables = self.variables
        waiting = [leaf for leaf in leaves if not variables.slot(leaf).ready]
        while waiting:
            unset = set(waiting)
            ready = [leaf for leaf in waiting if not unset.intersection(_reads(leaf))]
            if not ready:
                names = ", ".join(f"{leaf} (made at {leaf.file_info})" for leaf in waiting)
                raise ArgumentError(f"the initial values of {names} depend on each other")
            effects: list[Op] = []
            for leaf in ready:
                if isinstance(leaf.info.initial_value, Tensor):
                    effects += leaf.initializers
                else:
                    self.set(leaf, variables.called(leaf))
                    effects += leaf.initializers
            if effects:
                log.debug("initializing %s", ", ".join(map(str, ready)))
                Computation(self, doall(effects), ())()
            for leaf in ready:
                variables.slot(leaf).ready = True
            waiting = [leaf for leaf in waiting if leaf not in ready]

    def get(self, variable: Leaf) -> np.ndarray[Any, Any]:
        """A copy of a variable's value, over its axes; initializes it where it is not yet set."""
        variable = self._owned(variable)
        self.ensure([variable], [variable], self._known(variable))
        gate = self.variables.state.gate
        gate.enter_read()
        try:
            self.variables.state.usable()
            array = self.variables.slot(variable).array
            return np.array(array)
        finally:
            gate.leave_read()

    def set(self, variable: Leaf, value: Any) -> None:
        """Put an array over a variable's axes into it; ``FeedError`` where it does not fit."""
        variable = self._owned(variable)
        with self.lock:
            self.variables.state.usable()
            self.variables.put(variable, value)

    def _owned(self, variable: Op) -> Leaf:
        leaf = without_follows(variable) if isinstance(variable, Op) else variable
        if not isinstance(leaf, Leaf) or not leaf.info.stored:
            raise ArgumentError(
                f"{leaf!r} is no variable; variables are made with geon.Variable and have values "
                "that get and set reach, others are asked for as results of a computation"
            )
        with self.lock:
            self.variables.add([leaf])
        return leaf

    def _known(self, variable: Leaf) -> dict[str, int]:
        return self.variables.lengths() | {
            name: n for name, n in default_lengths().items() if name not in self.variables.lengths()
        }

    # Checkpoints --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all persistent variables to a safetensors file, atomically.

        Killed at any instant, the old file or the new one is whole. Variables not yet set are
        initialized first.
        """
        with self.lock:
            self.initialize()
            leaves, entries = self.variables.entries()
            gate = self.variables.state.gate
            gate.enter_read()
            try:
                arrays = [np.array(self.variables.slot(leaf).array) for leaf in leaves]
            finally:
                gate.leave_read()
        checkpoint.save(path, entries, arrays)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Read all persistent variables from a file that ``save`` wrote.

        Everything is checked before anything changes: ``CheckpointError`` names the entry that does
        not fit, and state is as it was.
        """
        with self.lock:
            self.variables.state.usable()
            leaves, entries = self.variables.entries()
            arrays = checkpoint.load(path, entries)
            self.variables.restore(leaves, arrays)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write one Python file that does what this transformer does, without geon.

        It has functions ``allocate``, ``initialize``, ``save`` and ``restore`` and one for each
        computation made so far; it needs NumPy and safetensors.
        """
        raise UnavailableError(f"the transformer {self.target.name!r} writes no modules")

    # Lifetime -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Free all memory; what was computed stays, calling computations again raises."""
        with self.lock:
            state = self.variables.state
            state.lost = f"this {self.target.name} transformer was closed; make a new one"
            state.epoch += 1
            for computation in self.computations:
                computation._calls.clear()
            self.computations.clear()
            self.variables.clear()

    def __enter__(self) -> Transformer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _label(leaf: Leaf) -> str:
    return f"placeholder {leaf} (made at {leaf.file_info})"


def _reads(leaf: Leaf) -> set[Leaf]:
    """The variables that must be set before ``leaf`` can be initialized."""
    roots: list[Op] = []
    if isinstance(leaf.info.initial_value, Tensor):
        roots.append(leaf.info.initial_value)
    roots += [op.args[1] for op in leaf.initializers if op.primitive.name == "assign"]
    return {other for other in storage_leaves(*roots) if other is not leaf}


def transformer_names() -> dict[str, str]:
    """Names of transformers and where each is: geon's own, and third parties' entry points."""
    import importlib.metadata  # here because it is slow to load

    found = dict(BUILT_IN)
    for point in importlib.metadata.entry_points(group=GROUP):
        found.setdefault(point.name, point.value)
    return found


def transformer_class(name: str) -> type[Transformer]:
    """The class of the transformer called ``name``; ``UnavailableError`` when there is none."""
    names = transformer_names()
    if name not in names:
        raise UnavailableError(
            f"there is no transformer {name!r}; there are {', '.join(sorted(names))}"
        )
    import importlib.metadata

    point = importlib.metadata.EntryPoint(name, names[name], GROUP)
    loaded: type[Transformer] = point.load()
    return loaded


def make_transformer(name: str | None = None, **options: Any) -> Transformer:
    """The transformer called ``name``: "numpy", or one that a package provides.

    Without a name it is that of the environment variable GEON_TRANSFORMER, else NumPy's. Raises
    ``UnavailableError`` with the command that mends it where it cannot be used here.
    """
    return transformer_class(name or default_transformer())(**options)
