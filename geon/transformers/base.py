"""``Transformer``: compiles computations for one kind of device and owns their storage."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, UnavailableError
from ..op_graph.axes import Axis
from ..op_graph.default_lengths import default_lengths, default_origin
from ..op_graph.effects import without_follows
from ..op_graph.op_graph import Leaf, Op, Tensor
from .compile import Stages
from .computation import Computation
from .environment import default_transformer
from .linking import Linking
from .lowering.memory import Plan
from .lowering.target import Target
from .open_lengths import named_lengths
from .plain import guard_of, input_of
from .runtime.calls import Call
from .runtime.memory import HOST, Memory, carried
from .runtime.state import Slot, State
from .storage import Variables

GROUP = "geon.transformers"
BUILT_IN = {
    "native": "geon.transformers.native.transformer:NativeTransformer",
    "numpy": "geon.transformers.numpy.transformer:NumPyTransformer",
    "pycuda": "geon.transformers.pycuda.transformer:PyCudaTransformer",
}
# Found by name, and listed nowhere.
FOR_TESTS = {"cuda-on-host": "geon.transformers.pycuda.transformer:CudaOnHost"}


class Transformer:
    """Compiles computations and owns their variables; a subclass for each kind of device.

    A subclass states ``target`` and ``compile`` (a plan as functions to call), and where it has
    them ``emit`` (a plan as text) and ``unavailable`` (whether it can be used here). Use it as a
    context manager, or ``close`` it, to free its memory.
    """

    target: Target

    def __init__(self) -> None:
        if not hasattr(self, "target"):
            raise UnavailableError(
                f"{type(self).__name__} is for no device, only its subclasses are; use "
                "geon.make_transformer() or geon.NumPyTransformer()"
            )
        missing = self.unavailable()
        if missing is not None:
            raise UnavailableError(
                f"the transformer {self.target.name!r} cannot be used: {missing}"
            )
        self.memory = self.make_memory()
        self.state = State(default_lengths, self.memory, default_origin)
        self.lock = self.state.lock
        self.computations: list[Computation] = []
        self.variables = Variables(self.state, lambda effect: Computation(self, effect, ()))

    @property
    def threads(self) -> int:
        """How many threads a call may use at once in code that the transformer has made."""
        return 1

    @classmethod
    def unavailable(cls) -> str | None:
        """None where it can be used here; else why not, with the command that mends it."""
        return None

    # What a subclass provides -------------------------------------------------------------------

    def make_memory(self) -> Memory:
        """The memory of a new transformer, where its variables, constants and arenas lie."""
        return HOST

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """The text of a compiled plan; with the user's names and lines where ``annotate``."""
        raise NotImplementedError

    def compile(self, plan: Plan, linking: Linking) -> Any:
        """An object whose ``functions`` are (bind, run, sizes), as ``link`` takes them.

        It is cached by structure and the target's name, and shared by computations of one form: it
        must read variables and large constants from what ``bind`` is given.
        """
        raise NotImplementedError

    def recall(self, key: str) -> Any:
        """A program that ``keep`` was given under this key, in this process or before; else None.

        The key says all that a program of geon's own rows depends on, but the machine.
        """
        return None

    def keep(self, key: str, program: Any) -> None:
        """Keep a program that was compiled, for ``recall``; nothing need be kept."""

    def make_call(self, stages: Stages) -> Any:
        """A callable from one value for each input of a computation to the tuple of results.

        ``stages.compiled`` is the program, and ``stages.plan`` what it was compiled from.
        """
        return self.link(carried(self.memory, stages.compiled.functions), stages)

    def profile(
        self,
        computation: Computation,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        repeats: int,
    ) -> Any:
        """What ``profile`` of a computation gives; ``UnavailableError`` where there is nothing."""
        raise UnavailableError(
            f"the transformer {self.target.name!r} does not time its kernels: "
            'geon.make_transformer("native") does'
        )

    def c_function(self, computation: Computation) -> Any:
        """The C function of a computation; ``UnavailableError`` where there is none."""
        raise UnavailableError(
            f"the transformer {self.target.name!r} compiles to no C function: "
            'geon.make_transformer("native") does'
        )

    def link(self, functions: Any, stages: Stages, *, writes: bool = True) -> Call:
        """A callable that feeds, binds lengths, checks guards and runs ``functions``.

        ``sizes(lengths)`` gives the bytes of arena buffers, the first and last kernel of each, and
        the bytes beside the arena; ``bind(arena, offsets, variables, constants, lengths)``, called
        once for each binding, what ``run`` needs; ``run(bound, *inputs)`` the tuple of results. It
        puts new values into those of variables, unless ``writes`` is False. ``arena``,
        ``variables`` and ``constants`` are values of ``memory``; inputs and results are arrays,
        which ``memory.carried`` moves for a program that takes and gives such values.
        """
        request, linking = stages.request, stages.linking
        with self.lock:
            owners = linking.stored(linking.variables)
            self.variables.add(owners)
            slots = {
                leaf: self.variables.slot(owner)
                for leaf, owner in zip(linking.variables, owners, strict=True)
            }
        return Call(
            functions,
            [input_of(leaf) for leaf in linking.inputs],
            list(slots.values()),
            [slots[leaf] for leaf in linking.read],
            [slots[leaf] for leaf in linking.written] if writes else [],
            [self.memory.copy_in(value.array) for value in linking.constants],
            [guard_of(guard) for guard in request.guards],
            request.lengths,
            self.state,
            self.target.alignment,
            request.specialization,
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
        name: str | None = None,
    ) -> Computation:
        """A callable from values of ``placeholders`` to the values of ``results``.

        ``results`` is an op or a list of them; an effect among them is run and gives None. ``keep``
        lists tensors whose values can be read, and overridden, after a call. ``check="nan"`` stops
        at the first value that is not finite, naming its op and line, with variables as they were.
        ``plan=False`` gives each value memory of its own. ``lengths`` say what open axes are in
        every call of the same program. ``specialize`` makes the program for these lengths alone:
        they are numbers in its text, and its peak is an integer where none is left open. ``name``,
        a Python identifier, is that of the function in the module that ``write`` makes. Raises
        ``ArgumentError`` for a placeholder that is needed but not listed, and ``GuardError`` for a
        length in ``specialize`` that the graph excludes.
        """
        self.state.usable()
        made = Computation(
            self,
            results,
            placeholders,
            keep=keep,
            check=check,
            plan=plan,
            lengths=lengths,
            specialize=specialize,
            name=name,
        )
        with self.lock:
            self.computations.append(made)
            self.variables.add(made.linking.stored(made.linking.variables))
        return made

    # Storage ------------------------------------------------------------------------------------

    def allocate(self, lengths: Mapping[Axis, int] | None = None) -> None:
        """Give every known variable memory; open axes take ``lengths`` or their defaults."""
        self.state.allocate_all(self._lengths(lengths))

    def initialize(self, *, force: bool = False, lengths: Mapping[Axis, int] | None = None) -> None:
        """Set each variable not yet set to its initial value, those that others read first.

        With ``force`` all are set again. Runs by itself where a computation first needs a variable.
        """
        self.state.initialize(self._lengths(lengths), force)

    def get(self, variable: Leaf) -> np.ndarray[Any, Any]:
        """A copy of a variable's value, over its axes; initializes it where it is not yet set."""
        return self.state.get(self._slot(variable))

    def set(self, variable: Leaf, value: Any) -> None:
        """Put an array over a variable's axes into it; ``FeedError`` where it does not fit."""
        self.state.put(self._slot(variable), value)

    def _lengths(self, lengths: Any) -> dict[str, int]:
        """Lengths by open name; those of variables, and of computations that were made, count."""
        with self.lock:
            self.state.usable()
            known = {name for made in self.computations for name in made.request.open_names}
            for slot in self.state.slots:
                known.update(n for d in slot.dims if not isinstance(d, int) for n in d.names)
        return named_lengths(lengths, known, "lengths")

    def _slot(self, variable: Op) -> Slot:
        leaf = without_follows(variable) if isinstance(variable, Op) else variable
        if not isinstance(leaf, Leaf) or not leaf.info.stored:
            raise ArgumentError(
                f"{leaf!r} is no variable; variables are made with geon.Variable and have values "
                "that get and set reach, others are asked for as results of a computation"
            )
        with self.lock:
            self.state.usable()
            self.variables.add([leaf])
            return self.variables.slot(leaf)

    # Checkpoints --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all persistent variables to a safetensors file, atomically.

        Killed at any instant, the old file or the new one is whole. Variables not yet set are
        initialized first.
        """
        with self.lock:
            self.variables.rename()
            self.state.save(path)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Read all persistent variables from a file that ``save`` wrote.

        Everything is checked before anything changes: ``CheckpointError`` names the entry that does
        not fit, and state is as it was.
        """
        with self.lock:
            self.variables.rename()
            self.state.restore(path)

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
            self.state.close(f"the transformer {self!r} was closed; make a new one")
            for computation in self.computations:
                computation._calls.clear()
            self.computations.clear()
            self.variables.clear()

    def __reduce__(self) -> Any:
        raise ArgumentError(
            f"{self!r} cannot be copied or pickled: it owns memory; make a new one, and carry its "
            "variables over with save and restore"
        )

    def __repr__(self) -> str:
        return f"<{self.target.name} transformer of {len(self.state.slots)} variables>"

    def __enter__(self) -> Transformer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def transformer_names() -> dict[str, str]:
    """Names of transformers and where each is: geon's own, and third parties' entry points."""
    import importlib.metadata  # here because it is slow to load

    found = dict(BUILT_IN)
    for point in importlib.metadata.entry_points(group=GROUP):
        found.setdefault(point.name, point.value)
    return found


def transformer_class(name: str) -> type[Transformer]:
    """The class of the transformer called ``name``; ``UnavailableError`` when there is none."""
    own = BUILT_IN | FOR_TESTS
    if isinstance(name, str) and name in own:
        where = own[name]  # without the packages' metadata, which take longer than the module
    else:
        where = _entry_point(name)
    module, _, attribute = where.partition(":")
    loaded: type[Transformer] = getattr(importlib.import_module(module), attribute)
    return loaded


def _entry_point(name: str) -> str:
    """Where a third party's transformer is; ``UnavailableError`` when there is none."""
    names = transformer_names()
    if not isinstance(name, str):
        raise ArgumentError(
            f"make_transformer takes a name, not {name!r}; there are {', '.join(sorted(names))}"
        )
    if name not in names:
        raise UnavailableError(
            f"there is no transformer {name!r}; there are {', '.join(sorted(names))}, and "
            "`python -m geon doctor` says which can be used here"
        )
    return names[name]


def make_transformer(name: str | None = None, **options: Any) -> Transformer:
    """The transformer called ``name``: "native", "numpy", or one that a package provides.

    Without a name it is that of the environment variable GEON_TRANSFORMER, else "native" where
    there is a C compiler, else "numpy". Raises ``UnavailableError`` with the command that mends it
    where it cannot be used here.
    """
    if name is None:
        name = default_transformer()
        if name is None:
            compiles = transformer_class("native").unavailable() is None
            name = "native" if compiles else "numpy"
    made = transformer_class(name)
    try:
        inspect.signature(made).bind(**options)
    except TypeError as error:
        raise ArgumentError(
            f"the options {options!r} do not fit {made.__name__}: {error}"
        ) from None
    return made(**options)
