"""``Transformer``: compiles computations for one kind of device and owns their storage."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import ArgumentError, UnavailableError
from ..op_graph.axes.length_defaults import default_lengths, default_origin
from ..op_graph.building.coordinates import coordinates_of
from ..op_graph.core.argument_hints import explained
from ..op_graph.op_graph import Leaf, Op, Tensor
from ..op_graph.rows.effects import without_follows
from ..op_graph.syntax.foreign_names import TRANSFORMERS, missing_member
from .binding.call_values import guard_of, input_of
from .binding.open_lengths import named_lengths
from .binding.variables import Variables
from .computation import Computation
from .loading.environment import default_transformer
from .loading.lazy_loading import LaterModule, has_target, outline_of
from .loading.registry import transformer_class
from .runtime.calls import Call
from .runtime.memory import HOST, Memory, carried
from .runtime.state import Slot, State

if TYPE_CHECKING:
    from ..op_graph.building.typing import FeedLike, Lengths, Results
    from .compile import Stages
    from .labelled import labelled_results as labelled
    from .linking import Linking
    from .lowering.facts.target import Target
    from .lowering.planning.plan import Plan
    from .lowering.rules.program import Program
    from .runtime import checkpoint_selection, variable_store
    from .runtime.checkpoint_selection import Restored
else:
    labelled = LaterModule(".labelled.labelled_results", __package__)  # few ask for labels
    checkpoint_selection = LaterModule(
        ".runtime.checkpoint_selection", __package__
    )  # and not every program for checkpoints
    variable_store = LaterModule(".runtime.variable_store", __package__)


class Transformer:
    """Compiles computations and owns their variables; a subclass for each kind of device.

    A subclass states ``target`` and ``compile`` (a plan as functions to call), and where it has
    them ``emit`` (a plan as text) and ``unavailable`` (whether it can be used here). Use it as a
    context manager, or ``close`` it, to free its memory.
    """

    target: Target

    @explained
    def __init__(self) -> None:
        if not has_target(self):
            raise UnavailableError(
                f"{type(self).__name__} is for no device, only its subclasses are; use "
                "geon.make_transformer() or geon.NumPyTransformer()"
            )
        missing = self.unavailable()
        if missing is not None:
            raise UnavailableError(
                f"the transformer {outline_of(self).name!r} cannot be used: {missing}"
            )
        self.memory = self.make_memory()
        self.state = State(default_lengths, self.memory, default_origin)
        self.lock = self.state.lock
        self.computations: list[Computation] = []
        self.coordinates: dict[Slot, Any] = {}
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
        """The text of a compiled plan; with the user's names and lines where ``annotate``.

        ``UnavailableError`` where there is none.
        """
        raise UnavailableError(
            f"the transformer {outline_of(self).name!r} makes no text of its programs, since "
            f'{type(self).__name__} has no method emit: explain("plan") shows what is computed, '
            'and geon.make_transformer("numpy") has the source of the same computation'
        )

    def begin(self, program: Program) -> None:
        """Begin what compiling a program is known to need, beside stages 4 and 5; may do nothing.

        ``program`` is what stage 3 made.
        """

    def compile(self, plan: Plan, linking: Linking) -> Any:
        """An object whose ``functions`` are (bind, run, sizes), as ``link`` takes them.

        It is cached by structure and the target's name, and shared by computations of one form: it
        must read variables and large constants from what ``bind`` is given.
        """
        raise UnavailableError(
            f"the transformer {outline_of(self).name!r} compiles nothing, since "
            f"{type(self).__name__} has no method compile; write one that makes functions of a plan"
        )

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
            f"the transformer {outline_of(self).name!r} does not time its kernels: "
            'geon.make_transformer("native") does'
        )

    def c_function(self, computation: Computation) -> Any:
        """The C function of a computation; ``UnavailableError`` where there is none."""
        raise UnavailableError(
            f"the transformer {outline_of(self).name!r} compiles to no C function: "
            'geon.make_transformer("native") does'
        )

    def link(
        self, functions: Any, stages: Stages, *, writes: bool = True, kind: type[Call] = Call
    ) -> Call:
        """A callable that feeds, binds lengths, checks guards and runs ``functions``.

        ``sizes(lengths)`` gives the bytes of arena buffers, the first and last kernel of each, and
        the bytes beside the arena; ``bind(arena, offsets, variables, constants, lengths)``, called
        once for each binding, what ``run`` needs; ``run(bound, *inputs)`` the tuple of results. It
        puts new values into those of variables, unless ``writes`` is False. ``arena``,
        ``variables`` and ``constants`` are values of ``memory``; inputs and results are arrays,
        which ``memory.carried`` moves for a program that takes and gives such values. A ``kind`` of
        call that has ``start`` begins calls that are waited for later.
        """
        request, linking = stages.request, stages.linking
        with self.lock:
            owners = linking.stored(linking.variables)
            self.variables.add(owners)
            slots = {
                leaf: self.variables.slot(owner)
                for leaf, owner in zip(linking.variables, owners, strict=True)
            }
        return kind(
            functions,
            [input_of(leaf) for leaf in linking.inputs],
            list(slots.values()),
            [slots[leaf] for leaf in linking.read],
            [slots[leaf] for leaf in linking.written] if writes else [],
            [self.memory.copy_in(value.array) for value in linking.constants],
            [guard_of(guard) for guard in request.guards],
            request.lengths,
            self.state,
            outline_of(self).alignment,
            request.specialization,
        )

    # Computations -------------------------------------------------------------------------------

    if not TYPE_CHECKING:  # a checker knows what there is

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_member(self, name, TRANSFORMERS)

    @explained
    def computation(
        self,
        results: Results,
        *placeholders: Leaf,
        keep: Sequence[Tensor] = (),
        check: str | None = None,
        plan: bool = True,
        lengths: Lengths | None = None,
        specialize: Lengths | None = None,
        memory: int | str | None = None,
        name: str | None = None,
        on_device: bool = False,
        labels: bool = False,
    ) -> Computation:
        """A callable from values of ``placeholders`` to the values of ``results``.

        ``results`` is an op or a structure of them: a list, a tuple, a dictionary, a dataclass, and
        these in each other; an effect among them is run and gives None. ``keep``
        lists tensors whose values can be read, and overridden, after a call. ``check="nan"`` stops
        at the first value that is not finite, naming its op and line, with variables as they were;
        infinities that constants bring in, such as the -inf of a mask, are none of these until
        something but moving, choosing and arithmetic is done with them.
        ``plan=False`` gives each value memory of its own. ``lengths`` say what open axes are in
        every call of the same program. ``specialize`` makes the program for these lengths alone:
        they are numbers in its text, and its peak is an integer where none is left open. ``memory``
        is how many bytes ``peak_bytes`` may be for the lengths given here or by default, an integer
        or a text such as "512MB": where all values at once take more, some are computed again for
        later uses, those that cost least time, as ``explain("simplify")`` shows. ``name``,
        a Python identifier, is that of the function in the module that ``write`` makes. With
        ``on_device`` results stay where they were computed: a GPU gives arrays that other libraries
        take by DLPack or CUDA's array interface and NumPy by a copy, a CPU NumPy's arrays. With
        ``labels=True`` results are arrays of xarray with the coordinates of the inputs, those of a
        dictionary a dataset: see ``LabelledComputation``. Raises ``ArgumentError`` for a
        placeholder that is needed but not listed, for a variable with the name of another variable
        of the transformer, for labels of results that stay on a device and
        for ``memory`` where a length is open, and ``GuardError`` for a length in ``specialize``
        that the graph excludes. What compiles it raises ``SizeError`` where no choice fits into
        ``memory``, and says the least that one takes.
        """
        self.state.usable()
        if labels and on_device:
            raise ArgumentError(
                "labels=True makes arrays of xarray, which lie in the memory of the processor: "
                "leave out on_device=True"
            )
        made = (labelled.LabelledComputation if labels else Computation)(
            self,
            results,
            placeholders,
            keep=keep,
            check=check,
            plan=plan,
            lengths=lengths,
            specialize=specialize,
            memory=memory,
            name=name,
            on_device=on_device,
        )
        with self.lock:
            self.variables.add(made.linking.stored(made.linking.variables))
            self.computations.append(made)
        return made

    # Storage ------------------------------------------------------------------------------------

    @explained
    def allocate(self, lengths: Lengths | None = None) -> None:
        """Give every known variable memory; open axes take ``lengths`` or their defaults.

        Variables that have memory keep their lengths.
        """
        self.state.allocate_all(self._lengths(lengths))

    @explained
    def initialize(self, *, force: bool = False, lengths: Lengths | None = None) -> None:
        """Set each variable not yet set to its initial value, those that others read first.

        With ``force`` all are set again. Runs by itself where a computation first needs a variable.
        ``lengths`` are those of variables that have none yet.
        """
        self.state.initialize(self._lengths(lengths), force)
        if force:
            self.coordinates.clear()

    @explained
    def get(self, variable: Leaf | str) -> np.ndarray[Any, Any]:
        """A copy of a variable's value, over its axes; initializes it where it is not yet set.

        The variable may be given by its name, or the name that it has in checkpoints.
        """
        return self.state.get(self._slot(variable))

    @explained
    def set(self, variable: Leaf | str, value: FeedLike) -> None:
        """Put an array over a variable's axes into it; ``FeedError`` where it does not fit.

        The variable may be given by its name, or the name that it has in checkpoints. Its open axes
        get the lengths of the array, whichever they had: each variable has its own, and a call
        raises ``FeedError`` where two that it uses have different ones.
        """
        slot = self._slot(variable)
        self.state.put(slot, value)
        self._label(slot, value)

    @explained
    def exchange(self, variable: Leaf | str, value: FeedLike) -> np.ndarray[Any, Any]:
        """A copy of a variable's value, which is then set as by ``set``, at one instant.

        What others assign is in the copy or comes after the new value: none of it is lost.
        """
        slot = self._slot(variable)
        old = self.state.exchange(slot, value)
        self._label(slot, value)
        return old

    def values(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of all persistent variables by name, those that ``save`` writes, at one instant.

        Variables not yet set are initialized first; those without a name have the one that they
        have in checkpoints, such as ``variable(C,N).0``.
        """
        with self.lock:
            self.variables.rename()
            entries, arrays = variable_store.values_of(self.state)
        return {entry.key: array for entry, array in zip(entries, arrays, strict=True)}

    def _lengths(self, lengths: Any) -> dict[str, int]:
        """Lengths by open name; those of variables, and of computations that were made, count."""
        with self.lock:
            self.state.usable()
            known = {name for made in self.computations for name in made.request.open_names}
            for slot in self.state.slots:
                known.update(n for d in slot.dims if not isinstance(d, int) for n in d.names)
        return named_lengths(lengths, known, "lengths")

    def coordinates_of(self, variable: Leaf) -> Any:
        """The coordinates of the labelled data that a variable was set to, last or first."""
        found = self.coordinates.get(self._slot(variable))
        return variable.notes().coordinates if found is None else found

    def _label(self, slot: Slot, value: Any) -> None:
        """Note the coordinates of what a variable was set to; without any, those that still fit."""
        found = coordinates_of(value)
        if found is None and slot in self.coordinates:
            found = self.coordinates[slot]
            sizes = dict(zip(slot.axes, slot.shape, strict=True))
            found = found.drop_dims([n for n, k in found.sizes.items() if sizes.get(n, k) != k])
        if found is not None:
            self.coordinates[slot] = found

    def keep_coordinates(self, variable: Leaf, coordinates: Any) -> None:
        """Note the coordinates that a variable has from now on; an empty dataset for none."""
        self.coordinates[self._slot(variable)] = coordinates

    def _slot(self, variable: Op | str) -> Slot:
        known = self.variables.known(variable) if isinstance(variable, Leaf) else None
        if known is not None:
            self.state.usable()
            return known
        if isinstance(variable, str):
            with self.lock:
                self.state.usable()
                self.variables.rename()
                return variable_store.slot_named(self.state, variable)
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

    @explained
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all persistent variables to a safetensors file, atomically.

        Killed at any instant, the old file or the new one is whole. Variables not yet set are
        initialized first.
        """
        with self.lock:
            self.variables.rename()
            variable_store.save_state(self.state, path)

    @explained
    def restore(
        self,
        path: str | os.PathLike[str],
        *,
        strict: bool = True,
        only: str | Sequence[str] | None = None,
        rename: Mapping[str, str] | Callable[[str], str | None] | None = None,
    ) -> Restored:
        """Read persistent variables from a safetensors file; a report says what was taken.

        Each variable and each entry must find its own, by name, axes and dtype; in a file of
        another program, whose axes have no names, by name and shape. ``only`` are names of
        variables to set: the others stay, and entries of the file are left. With ``strict=False``
        what does not fit stays as it is. ``rename`` has names in the file with the names of the
        variables, or is a function from one to the other (None leaves the entry). In names of both,
        ``*`` is any text. Everything is checked before anything changes: ``CheckpointError`` names
        the entry that does not fit, and state is as it was.
        """
        choice = checkpoint_selection.Choice(strict, only, rename)
        with self.lock:
            self.variables.rename()
            report = variable_store.restore_state(self.state, path, choice)
            for slot in list(self.coordinates):
                self._label(slot, None)
            return report

    @explained
    def write(self, path: str | os.PathLike[str]) -> None:
        """Write one Python file that does what this transformer does, without geon.

        It has functions ``allocate``, ``initialize``, ``save`` and ``restore`` and one for each
        computation made so far; it needs NumPy and safetensors. Its programs are those of the
        NumPy transformer, whichever this one is.
        """
        with self.lock:
            self.state.usable()
            self.variables.rename()
            leaves, made = self.variables.leaves, [*self.computations]
            lengths = self.state.lengths()
        with make_transformer("numpy") as other:
            other.state.defaults = lambda: {**default_lengths(), **lengths}
            other.variables.add(leaves)
            for computation in made:
                asked, options = computation.asked, computation.options
                copy = other.computation(asked, *computation.placeholders, **options)
                copy.request.specialized_at = computation.request.specialized_at
            other.write(path)

    # Lifetime -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Free all memory; what was computed stays, calling computations again raises."""
        with self.lock:
            self.state.close(f"the transformer {self!r} was closed; make a new one")
            for computation in self.computations:
                computation._calls.clear()
            self.computations.clear()
            self.coordinates.clear()
            self.variables.clear()

    def __reduce__(self) -> Any:
        raise ArgumentError(
            f"{self!r} cannot be copied or pickled: it owns memory; make a new one, and carry its "
            "variables over with save and restore"
        )

    def __repr__(self) -> str:
        return f"<{outline_of(self).name} transformer of {len(self.state.slots)} variables>"

    def __enter__(self) -> Transformer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@explained
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
        known = ", ".join(f"{option}=" for option in inspect.signature(made).parameters)
        raise ArgumentError(
            f"the options {options!r} do not fit {made.__name__}: {error}; it takes "
            f"{known or 'no options'}"
        ) from None
    return made(**options)
